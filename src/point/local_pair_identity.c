/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what makes a packet the same at both interfaces, where that is not fixed: point/identity_survey.h. */
#include "point/local_pair_private.h"
#include "result/cause.h"

#include <stdio.h>
#include <sys/random.h>

#define LENGTH_NS      OW_NS_PER_S
#define PAUSE_FIRST_NS (2 * OW_NS_PER_S)
#define PAUSE_MOST_NS  (512 * OW_NS_PER_S)

void ow_local_pair_unsurvey(struct ow_local_pair *pair)
{
	struct ow_local_pair_survey *s = &pair->survey;
	for (int side = 0; side < 2; side++) {
		ow_identity_survey_free(s->running[side]);
		ow_survey_samples_done(&s->samples[side]);
		s->running[side] = NULL;
		s->has[side] = false;
	}
	s->seed = 0;
}

static int start(struct ow_local_pair *pair, struct ow_error *err)
{
	struct ow_local_pair_survey *s = &pair->survey;
	int64_t t0_ns = ow_recorder_now_ns(pair->recorder) + OW_LOCAL_PAIR_SETUP_NS;
	int r = 0;
	s->doubtful = false;
	if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed)
		return 0;
	s->seed |= 1;
	for (int side = 0; r == 0 && side < 2; side++) {
		struct ow_lane_options options;
		ow_local_pair_log_options(pair, s->lane, side, &options);
		options.t0_ns = t0_ns;
		options.length_ns = LENGTH_NS;
		options.sample_shift = ow_identity_survey_shift(s->rate * (double)LENGTH_NS);
		ow_identity_seed(&options.identity, s->seed);
		r = ow_identity_survey_start(&pair->logs, &options, pair->options.identities, &s->running[side], err);
	}
	return r;
}

static int change(struct ow_local_pair *pair, enum ow_variant variant, struct ow_error *err)
{
	struct ow_identity *identity = &pair->options.identity;
	int64_t from_ns = ow_recorder_now_ns(pair->recorder) + OW_LOCAL_PAIR_SETUP_NS;
	char name[OW_VARIANT_TEXT], cause[OW_RESULT_CAUSE];
	ow_variant_text(variant, name);
	snprintf(cause, sizeof cause, ow_cause_identity_changed, name);
	int r = ow_local_pair_give_up(pair, (from_ns - pair->t0_ns) / pair->options.length_ns, cause);
	identity->level = ow_variant_level(variant);
	identity->inner = ow_variant_inner(variant);
	identity->any_ip_id = ow_variant_any_ip_id(variant);
	pair->survey.doubtful = false;
	return r < 0 ? r : ow_local_pair_begin(pair, err);
}

static int decide(struct ow_local_pair *pair, struct ow_error *err)
{
	struct ow_local_pair_survey *s = &pair->survey;
	const struct ow_identity *i = &pair->options.identity;
	enum ow_variant now = ow_identity_variant(i->level, i->inner, i->any_ip_id);
	struct ow_identity_decision decision;
	char text[OW_DECISION_TEXT];
	int r = ow_identity_survey_decide(&s->samples[0], &s->samples[1], s->seed, pair->options.identities, false, now,
	                                  &decision);
	ow_local_pair_unsurvey(pair);
	s->pause_ns = 2 * s->pause_ns < PAUSE_MOST_NS ? 2 * s->pause_ns : PAUSE_MOST_NS;
	if (r < 0 || decision.variant == now)
		return 0; /* without memory the identity stays */
	s->pause_ns = PAUSE_FIRST_NS;
	ow_identity_decision_text(&decision, now, text);
	if (pair->options.changed)
		pair->options.changed(pair->options.opened_arg, text);
	return change(pair, decision.variant, err);
}

int ow_local_pair_look_at_identity(struct ow_local_pair *pair, struct ow_error *err)
{
	struct ow_local_pair_survey *s = &pair->survey;
	int64_t steady_ns = ow_clock_steady_ns();
	if (pair->stopped) {
		ow_local_pair_unsurvey(pair);
		return 0;
	}
	if (s->doubtful && !s->seed && steady_ns >= s->again_ns) {
		s->pause_ns = s->pause_ns ? s->pause_ns : PAUSE_FIRST_NS;
		s->again_ns = steady_ns + s->pause_ns;
		int r = start(pair, err);
		if (r < 0)
			return r;
	}
	for (int side = 0; side < 2; side++) {
		if (!s->running[side] || s->has[side])
			continue;
		int r = ow_identity_survey_take(s->running[side], pair->passed_ns, &s->samples[side]);
		s->has[side] = r == 1;
	}
	return s->has[0] && s->has[1] ? decide(pair, err) : 0;
}
