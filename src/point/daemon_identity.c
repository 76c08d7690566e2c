/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the identity of a lane. The point that proposes lanes asks for a sample when results are doubtful, compares it
 * with its own, and proposes the lane anew if another identity is better. The other point only answers.
 */
#include "point/daemon_identity.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/time.h"
#include "point/agreement.h"
#include "point/daemon_events.h"
#include "point/daemon_private.h"
#include "point/daemon_record.h"
#include "result/cause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

_Static_assert(OW_SURVEY_VARIANTS == OW_MESSAGE_IDENTITIES && OW_SURVEY_IDS_MAX == OW_MESSAGE_IDS_MAX,
               "samples fit into messages");

/* A survey begins this long after it was asked for (and twice the round trip), so that both points have its lanes. */
#define LEAD_NS (200 * OW_NS_PER_MS)
/* It lasts this long, or this many times as long as packets may be under way and clocks apart. */
#define LENGTH_NS    OW_NS_PER_S
#define LENGTH_TIMES 10
/* An answer is awaited this long after the end. */
#define ANSWER_NS (5 * OW_NS_PER_S)
/* Pauses between surveys of a lane. */
#define PAUSE_FIRST_NS (10 * OW_NS_PER_S)
#define PAUSE_MOST_NS  (640 * OW_NS_PER_S)
/* A peer may ask for a survey of a lane this often. */
#define ASKED_NS (5 * OW_NS_PER_S)

/* What is known of a lane, whether it runs or not. */
static struct ow_daemon_identity *find(const struct ow_daemon *d, const char *peer, const struct ow_message_open *open)
{
	for (size_t i = 0; i < d->identities.count; i++) {
		struct ow_daemon_identity *k = &d->identities.entry[i];
		if (strcmp(k->peer, peer) == 0 && strcmp(k->segment, open->segment) == 0 &&
		    strcmp(k->class_name, open->class_name) == 0 && k->sends == open->sends)
			return k;
	}
	return NULL;
}

static struct ow_daemon_identity *find_or_add(struct ow_daemon_lane *lane)
{
	struct ow_daemon *d = lane->daemon;
	struct ow_daemon_identity *k = find(d, lane->peer->name, &lane->open);
	if (k || OW_GROW(d->identities.entry, d->identities.room, d->identities.count + 1) < 0)
		return k;
	k = &d->identities.entry[d->identities.count++];
	*k = (struct ow_daemon_identity){
		.sends = lane->open.sends, .variant = ow_daemon_lane_variant(lane), .pause_ns = PAUSE_FIRST_NS};
	snprintf(k->peer, sizeof k->peer, "%s", lane->peer->name);
	snprintf(k->segment, sizeof k->segment, "%s", lane->open.segment);
	snprintf(k->class_name, sizeof k->class_name, "%s", lane->open.class_name);
	return k;
}

void ow_daemon_identities_free(struct ow_daemon *d)
{
	free(d->identities.entry);
}

/* What the configuration of this point allows; 0: it is fixed. */
static uint32_t allowed_here(const struct ow_config_segment *s)
{
	if (s->level != OW_LEVEL_AUTO)
		return 0;
	return ow_identity_allowed(s->stated & OW_STATED_INNER ? &s->inner : NULL);
}

void ow_daemon_identity_propose(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                struct ow_message_open *open)
{
	const struct ow_daemon_identity *k = find(peer->daemon, peer->name, open);
	if (!k || !(allowed_here(segment) >> k->variant & 1))
		return;
	open->level = ow_variant_level(k->variant) == OW_LEVEL_NAT ? OW_MESSAGE_LEVEL_NAT : OW_MESSAGE_LEVEL_IP;
	open->inner = ow_variant_inner(k->variant);
	open->any_ip_id = ow_variant_any_ip_id(k->variant);
}

/* -- surveys ------------------------------------------------------------------------------------------------------- */

static int start_survey(struct ow_daemon_lane *lane, const struct ow_message_survey *m, uint32_t allowed,
                        struct ow_error *err)
{
	struct ow_lane_options options;
	ow_daemon_lane_unsurvey(lane);
	ow_daemon_lane_options(lane, &options);
	options.t0_ns = m->t0_ns;
	options.length_ns = m->length_ns;
	options.sample_shift = m->sample_shift;
	ow_identity_seed(&options.identity, m->seed);
	lane->survey.seed = m->seed;
	return ow_identity_survey_start(&lane->daemon->logs, &options, allowed, &lane->survey.running, err);
}

static bool can_ask(const struct ow_daemon_lane *lane)
{
	const struct ow_daemon_peer *peer = lane->peer;
	return lane->doubtful && peer->connect && peer->link && peer->link->ready && !peer->link->closing &&
	       lane->state == OW_LANE_RUNNING && lane->until == INT64_MAX && lane->segment &&
	       allowed_here(lane->segment) && !lane->survey.seed && !lane->daemon->stopping;
}

static void ask(struct ow_daemon_lane *lane, struct ow_daemon_identity *k, int64_t steady_ns)
{
	struct ow_daemon_peer *peer = lane->peer;
	int64_t here = ow_point_clock_now_ns(&lane->daemon->clock), apart = llabs(peer->ahead_ns) + peer->round_trip_ns;
	int64_t lead = (int64_t)((double)(LEAD_NS + 2 * peer->round_trip_ns) * lane->daemon->clock.speed);
	struct ow_message m = {.type = OW_MESSAGE_SURVEY, .lane = lane->wire};
	struct ow_error err;
	m.survey.length_ns = apart > LENGTH_NS / LENGTH_TIMES ? LENGTH_TIMES * apart : LENGTH_NS;
	if (m.survey.length_ns > OW_MESSAGE_SURVEY_MAX_NS)
		m.survey.length_ns = OW_MESSAGE_SURVEY_MAX_NS;
	m.survey.t0_ns = ow_agree_t0(here, here + peer->ahead_ns, lead, 1);
	m.survey.sample_shift = (uint8_t)ow_identity_survey_shift(lane->rate * (double)m.survey.length_ns);
	k->again_ns = steady_ns + k->pause_ns;
	lane->doubtful = false;
	if (getrandom(&m.survey.seed, sizeof m.survey.seed, 0) != (ssize_t)sizeof m.survey.seed)
		return;
	m.survey.seed |= 1; /* 0 = no survey */
	if (start_survey(lane, &m.survey, allowed_here(lane->segment), &err) < 0) {
		ow_daemon_lane_unsurvey(lane);
		ow_daemon_peer_log(peer, OW_EVENT_WARNING, "cannot examine the identity of packets: %s", err.text);
		return;
	}
	lane->survey.until_ns =
		steady_ns + ANSWER_NS + (int64_t)((double)(lead + m.survey.length_ns) / lane->daemon->clock.speed);
	ow_daemon_link_send(peer->link, &m);
}

void ow_daemon_identity_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_survey *m)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	int64_t steady_ns = ow_clock_steady_ns();
	struct ow_error err;
	if (!lane || peer->connect || lane->state != OW_LANE_RUNNING || lane->until != INT64_MAX || !lane->segment ||
	    m->seed == 0 || (lane->survey.asked_ns && steady_ns - lane->survey.asked_ns < ASKED_NS))
		return;
	double lead = (double)m->t0_ns - (double)ow_point_clock_now_ns(&lane->daemon->clock);
	if (lead > (double)OW_MESSAGE_SURVEY_MAX_NS * lane->daemon->clock.speed) {
		ow_daemon_complain(peer, "SURVEY refused: its time is far in the future");
		return;
	}
	lane->survey.asked_ns = steady_ns;
	if (start_survey(lane, m, allowed_here(lane->segment), &err) < 0) {
		ow_daemon_lane_unsurvey(lane);
		ow_daemon_complain(peer, "SURVEY refused: %s", err.text);
	}
}

static void answer(struct ow_daemon_lane *lane, const struct ow_survey_samples *samples)
{
	struct ow_message m = {.type = OW_MESSAGE_SAMPLE, .lane = lane->wire, .sample.seed = lane->survey.seed};
	uint8_t *bytes = malloc((size_t)OW_SURVEY_VARIANTS * OW_SURVEY_IDS_MAX * 8);
	for (unsigned i = 0; bytes && i < OW_SURVEY_VARIANTS; i++) {
		const struct ow_survey_sample *s = &samples->of[i];
		uint8_t *ids = bytes + (size_t)i * OW_SURVEY_IDS_MAX * 8;
		for (size_t k = 0; k < s->count; k++)
			ow_store_le64(ids + 8 * k, s->id[k]);
		m.sample.sample_shift[i] = (uint8_t)s->sample_shift;
		m.sample.count[i] = (uint32_t)s->count;
		m.sample.ids[i] = ids;
	}
	if (bytes && lane->peer->link && lane->peer->link->ready)
		ow_daemon_link_send(lane->peer->link, &m);
	free(bytes);
}

/* -- the decision -------------------------------------------------------------------------------------------------- */

/* The lane is agreed on anew. */
static void begin_anew(struct ow_daemon_lane *lane, struct ow_daemon_identity *k, enum ow_variant variant)
{
	char name[OW_VARIANT_TEXT], cause[OW_RESULT_CAUSE];
	ow_variant_text(variant, name);
	snprintf(cause, sizeof cause, ow_cause_identity_changed, name);
	k->variant = variant;
	k->pause_ns = PAUSE_FIRST_NS;
	lane->peer->renew = true;
	ow_daemon_lane_break(lane, cause);
}

/*
 * Lanes to several peers can be joined if they have one identity: what one way needs usually serves the others, too.
 * They follow once for each identity; if it does not serve, a survey of their own changes it back.
 */
static void follow(struct ow_daemon_group *group, enum ow_variant variant)
{
	struct ow_daemon *d = group->daemon;
	if (group->followed >> variant & 1)
		return;
	group->followed |= UINT32_C(1) << variant;
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		bool runs = lane->group == group && lane->state == OW_LANE_RUNNING && lane->until == INT64_MAX;
		if (!runs || !lane->peer->connect || !lane->segment || ow_daemon_lane_variant(lane) == variant ||
		    !(allowed_here(lane->segment) >> variant & 1))
			continue;
		struct ow_daemon_identity *k = find_or_add(lane);
		if (k)
			begin_anew(lane, k, variant);
	}
}

static void change(struct ow_daemon_lane *lane, struct ow_daemon_identity *k, const struct ow_identity_decision *d)
{
	char name[OW_LANE_TEXT], text[OW_DECISION_TEXT];
	struct ow_daemon_group *group = lane->group;
	ow_daemon_lane_text(lane, name);
	ow_identity_decision_text(d, k->variant, text);
	ow_daemon_log(lane->daemon, OW_EVENT_NOTICE, "%s: %s: %s", lane->peer->name, name, text);
	begin_anew(lane, k, d->variant);
	if (group)
		follow(group, d->variant);
}

/* All that is not common would be exchanged. */
static void tell_partial(const struct ow_daemon_lane *lane, const struct ow_identity_decision *d)
{
	char name[OW_LANE_TEXT], variant[OW_VARIANT_TEXT];
	ow_daemon_lane_text(lane, name);
	ow_variant_text(d->wanted, variant);
	ow_daemon_log(lane->daemon, OW_EVENT_WARNING,
	              "%s: %s: packets are the same under identity %s, but most pass one point only, and it costs much "
	              "to tell which: choose those that pass both by a class, or use identity: nat",
	              lane->peer->name, name, variant);
}

/* Both samples are there. */
static void decide(struct ow_daemon_lane *lane)
{
	struct ow_daemon_identity *k = find_or_add(lane);
	struct ow_identity_decision decision;
	int r = k ? ow_identity_survey_decide(&lane->survey.here, &lane->survey.there, lane->survey.seed,
	                                      allowed_here(lane->segment), lane->open.shared, k->variant, &decision)
	          : -1;
	ow_daemon_lane_unsurvey(lane);
	if (r < 0)
		return;
	if (decision.variant != k->variant) {
		change(lane, k, &decision);
		return;
	}
	if (decision.partial)
		tell_partial(lane, &decision);
	k->pause_ns = 2 * k->pause_ns < PAUSE_MOST_NS ? 2 * k->pause_ns : PAUSE_MOST_NS;
}

void ow_daemon_identity_told(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_sample *m)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	if (!lane || !peer->connect || !lane->survey.seed || m->seed != lane->survey.seed || lane->survey.has_there)
		return;
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		struct ow_survey_sample *s = &lane->survey.there.of[i];
		s->id = malloc(((size_t)m->count[i] + 1) * sizeof *s->id);
		if (!s->id)
			continue;
		for (uint32_t n = 0; n < m->count[i]; n++)
			s->id[n] = ow_load_le64(m->ids[i] + 8 * (size_t)n);
		s->count = m->count[i];
		s->sample_shift = m->sample_shift[i];
	}
	lane->survey.has_there = true;
}

static void tend(struct ow_daemon_lane *lane, int64_t steady_ns)
{
	struct ow_daemon_survey *s = &lane->survey;
	struct ow_survey_samples samples;
	int r = s->running ? ow_identity_survey_take(s->running, lane->daemon->passed_ns, &samples) : 0;
	if (r != 0) {
		ow_identity_survey_free(s->running);
		s->running = NULL;
	}
	if (r == 1 && !lane->peer->connect) {
		answer(lane, &samples);
		ow_survey_samples_done(&samples);
		ow_daemon_lane_unsurvey(lane);
	} else if (r == 1) {
		s->here = samples;
		s->has_here = true;
	}
	if (s->has_here && s->has_there)
		decide(lane);
	else if (r < 0 || (lane->peer->connect && s->seed && steady_ns > s->until_ns))
		ow_daemon_lane_unsurvey(lane);
}

void ow_daemon_identity_tick(struct ow_daemon *d)
{
	int64_t steady_ns = ow_clock_steady_ns();
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (can_ask(lane)) {
			struct ow_daemon_identity *k = find_or_add(lane);
			if (k && steady_ns >= k->again_ns)
				ask(lane, k, steady_ns);
		}
		tend(lane, steady_ns);
	}
}
