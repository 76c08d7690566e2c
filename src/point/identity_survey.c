/* SPDX-License-Identifier: Apache-2.0 */
#include "point/identity_survey.h"

#include "result/cause.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Fewer packets at either point only are no evidence, */
#define DOUBT_LEAST 20
/* nor is a smaller share of the matched ones. */
#define DOUBT_SHARE 0.05
/* With `exchanged`: packets in common / packets of the larger sample. Few packets, and those without an IP id, may be the same
 * by chance: then nearly all must be. */
#define EXCHANGED_SHARE 0.1
#define WHOLE_SHARE     0.8
#define FEW_PACKETS     50
/* Intervals of a survey that are open: the first is used. */
#define OPEN_INTERVALS 4

const enum ow_variant ow_survey_variant[OW_SURVEY_VARIANTS] = {
	OW_VARIANT_IP,        OW_VARIANT_IP_INNER,        OW_VARIANT_NAT,        OW_VARIANT_NAT_INNER,
	OW_VARIANT_IP_ANY_ID, OW_VARIANT_IP_INNER_ANY_ID, OW_VARIANT_NAT_ANY_ID, OW_VARIANT_NAT_INNER_ANY_ID,
};

struct ow_identity_survey {
	int64_t end_ns;
	struct ow_lane_log *log[OW_SURVEY_VARIANTS]; /* NULL: not allowed */
};

void ow_survey_samples_done(struct ow_survey_samples *samples)
{
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++)
		free(samples->of[i].id);
	*samples = (struct ow_survey_samples){0};
}

int ow_identity_survey_start(struct ow_lane_logs *logs, const struct ow_lane_options *lane, uint32_t allowed,
                             struct ow_identity_survey **ret_survey, struct ow_error *err)
{
	struct ow_identity_survey *survey = calloc(1, sizeof *survey);
	if (!survey)
		return ow_error_set(err, ENOMEM, "out of memory");
	survey->end_ns = lane->t0_ns + lane->length_ns;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < OW_SURVEY_VARIANTS; i++) {
		enum ow_variant v = ow_survey_variant[i];
		struct ow_lane_options options = *lane;
		if (!(allowed >> v & 1))
			continue;
		options.identity.level = ow_variant_level(v);
		options.identity.inner = ow_variant_inner(v);
		options.identity.any_ip_id = ow_variant_any_ip_id(v);
		options.flows = false;
		options.firsts = true;
		r = ow_lane_log_create(logs, &options, OW_SURVEY_IDS_MAX, OPEN_INTERVALS, &survey->log[i], err);
	}
	if (r < 0) {
		ow_identity_survey_free(survey);
		return r;
	}
	*ret_survey = survey;
	return 0;
}

void ow_identity_survey_free(struct ow_identity_survey *survey)
{
	for (unsigned i = 0; survey && i < OW_SURVEY_VARIANTS; i++)
		ow_lane_log_free(survey->log[i]);
	free(survey);
}

/* Identical packets get the id of the first of them back. */
static int take_sample(const struct ow_interval_packets *packets, struct ow_survey_sample *ret_sample)
{
	size_t count = packets->count < OW_SURVEY_IDS_MAX ? packets->count : OW_SURVEY_IDS_MAX;
	uint64_t *id = malloc((count + 1) * sizeof *id);
	if (!id)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct ow_copy *copy = ow_interval_packets_copy(packets, packets->sighting[i].id);
		id[i] = copy ? copy->base_id : packets->sighting[i].id;
	}
	*ret_sample = (struct ow_survey_sample){packets->sample_shift, id, count};
	return 0;
}

int ow_identity_survey_take(struct ow_identity_survey *survey, int64_t passed_ns, struct ow_survey_samples *ret_samples)
{
	struct ow_survey_samples samples = {0};
	int r = 0;
	if (passed_ns < survey->end_ns)
		return 0;
	for (unsigned i = 0; r == 0 && i < OW_SURVEY_VARIANTS; i++) {
		struct ow_interval_packets *packets =
			survey->log[i] ? ow_interval_log_next(survey->log[i]->packets, passed_ns) : NULL;
		/* The first interval; if it is not there, memory ran out or a clock jumped, and the sample is empty. */
		if (packets && packets->interval == 0)
			r = take_sample(packets, &samples.of[i]);
		ow_interval_packets_free(packets);
	}
	if (r < 0) {
		ow_survey_samples_done(&samples);
		return r;
	}
	*ret_samples = samples;
	return 1;
}

/* The packets of a sample that are also in one of a larger shift. */
static int make_sample(const struct ow_survey_sample *from, const struct ow_identity *identity, unsigned shift,
                       struct ow_identity_sample *ret_sample)
{
	struct ow_identity_sample s = {.below = UINT64_MAX};
	s.packet = calloc(from->count + 1, sizeof *s.packet);
	if (!s.packet)
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++) {
		if (ow_sampled(ow_sample_rank(identity, from->id[i]), shift))
			s.packet[s.packets++].id = from->id[i];
	}
	s.offered = s.packets;
	*ret_sample = s;
	return 0;
}

/* What two samples under one identity have in common, and how many packets the smaller and the larger one have. */
static int compare(const struct ow_survey_sample *a, const struct ow_survey_sample *b,
                   const struct ow_identity *identity, struct ow_sample_overlap *ret_overlap, size_t ret_sizes[2])
{
	unsigned shift = a->sample_shift > b->sample_shift ? a->sample_shift : b->sample_shift;
	struct ow_identity_sample x = {0}, y = {0};
	int r = make_sample(a, identity, shift, &x);
	if (r == 0)
		r = make_sample(b, identity, shift, &y);
	if (r == 0)
		r = ow_sample_overlap_find(&x, &y, false, ret_overlap);
	ret_sizes[0] = x.packets < y.packets ? x.packets : y.packets;
	ret_sizes[1] = x.packets < y.packets ? y.packets : x.packets;
	/* Samples of different shifts are comparable by what they stand for. */
	ret_overlap->rate = exp2(-(double)shift);
	ret_overlap->packets = (double)ret_overlap->common / ret_overlap->rate;
	ow_sample_done(&x);
	ow_sample_done(&y);
	return r;
}

int ow_identity_survey_decide(const struct ow_survey_samples *a, const struct ow_survey_samples *b, uint64_t seed,
                              uint32_t allowed, bool exchanged, enum ow_variant now,
                              struct ow_identity_decision *ret_decision)
{
	struct ow_sample_overlap common[OW_VARIANTS] = {0};
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	size_t smaller[OW_VARIANTS] = {0};
	uint32_t may = 0;
	ow_identity_seed(&identity, seed);
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		enum ow_variant v = ow_survey_variant[i];
		size_t sizes[2];
		int r = compare(&a->of[i], &b->of[i], &identity, &common[v], sizes);
		if (r < 0)
			return r;
		smaller[v] = sizes[0];
		bool chance = common[v].common < FEW_PACKETS || ow_variant_any_ip_id(v);
		bool enough = (double)common[v].common >= (chance ? WHOLE_SHARE : EXCHANGED_SHARE) * (double)sizes[1];
		if (allowed >> v & 1 && (!exchanged || ow_variant_level(v) != OW_LEVEL_NAT || enough))
			may |= UINT32_C(1) << v;
	}
	enum ow_variant best = ow_identity_choose(common, may, false);
	enum ow_variant wanted = ow_identity_choose(common, allowed, false);
	if (!may || !common[best].common)
		best = now;
	*ret_decision = (struct ow_identity_decision){.variant = best,
	                                              .partial = wanted != best && common[wanted].common,
	                                              .wanted = wanted,
	                                              .sampled = smaller[best],
	                                              .share = common[best].share,
	                                              .share_before = common[now].share};
	return 0;
}

void ow_identity_decision_text(const struct ow_identity_decision *d, enum ow_variant before,
                               char text[OW_DECISION_TEXT])
{
	char name[OW_VARIANT_TEXT], other[OW_VARIANT_TEXT];
	ow_variant_text(d->variant, name);
	ow_variant_text(before, other);
	snprintf(text, OW_DECISION_TEXT,
	         "identity: %s, because %.0f %% of %zu sampled packets are the same under it and %.0f %% under %s",
	         name, 100 * d->share, d->sampled, 100 * d->share_before, other);
}

bool ow_identity_doubtful(const struct ow_interval_result *r)
{
	uint64_t from = r->total_sent, to = r->total_received;
	if (r->status == OW_RESULT_UNKNOWN) {
		enum ow_cause cause = ow_cause_of(r->cause);
		if (cause != OW_CAUSE_NOTHING_SHARED && cause != OW_CAUSE_DIFFERENCES_UNKNOWN &&
		    cause != OW_CAUSE_DIFFERENCES_UNSHARED && cause != OW_CAUSE_TOO_MANY_DIFFER)
			return false;
	} else if (r->final) {
		from = r->lost + r->pending + r->unshared_sent;
		to = r->extra - r->duplicated + r->unshared_received;
	} else if (r->matched) {
		return false; /* others may be under way */
	}
	uint64_t least = from < to ? from : to;
	return least >= DOUBT_LEAST && (double)least > DOUBT_SHARE * (double)r->matched;
}

uint32_t ow_identity_allowed(const bool *inner)
{
	uint32_t allowed = 0;
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		enum ow_variant v = ow_survey_variant[i];
		if (!inner || *inner == ow_variant_inner(v))
			allowed |= UINT32_C(1) << v;
	}
	return allowed;
}

enum ow_variant ow_identity_variant(enum ow_level level, bool inner, bool any_ip_id)
{
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		enum ow_variant v = ow_survey_variant[i];
		if (ow_variant_level(v) == level && ow_variant_inner(v) == inner &&
		    ow_variant_any_ip_id(v) == any_ip_id)
			return v;
	}
	return OW_VARIANT_IP;
}

unsigned ow_identity_survey_shift(double packets)
{
	return packets > OW_SURVEY_IDS_MAX ? (unsigned)ceil(log2(packets / (OW_SURVEY_IDS_MAX / 2))) : 0;
}
