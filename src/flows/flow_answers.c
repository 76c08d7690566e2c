/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for all flows: their order, and warnings. */
#include "flows/flow_answers.h"

#include "base/format.h"
#include "estimate/distribution.h"
#include "flows/epoch.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Warn if counts differ by more than this share from the recorded packets. */
#define COUNTS_TOLERANCE 0.001
/* Warn if the share of clean counters is below this. */
#define CLEAN_FEW 0.5
/* Warn if so many packets that only one point has, and this share of them, are from when the other may not have recorded. */
#define UNCOVERED_FEW   2
#define UNCOVERED_SHARE 0.01
/* Negative means are told if chance gives them in fewer than this share of queries, by each of two rules. */
#define CHANCE 0.05

void ow_flow_answers_done(struct ow_flow_answers *answers)
{
	free(answers->flow);
	free(answers->estimates);
	for (unsigned i = 0; i < OW_FLOW_LEGS_MAX; i++)
		free(answers->spread[i]);
	*answers = (struct ow_flow_answers){0};
}

/* Those of which it is not known come last. */
static int by_lost(const struct ow_flow_answer *x, const struct ow_flow_answer *y)
{
	uint64_t lx = ow_flow_answer_lost(x) + 1, ly = ow_flow_answer_lost(y) + 1;
	return (lx < ly) - (lx > ly);
}

static int slower_first(const void *a, const void *b, void *arg)
{
	const struct ow_flow_answers *answers = arg;
	const struct ow_flow_answer *x = a, *y = b;
	const struct ow_value *mx = &ow_flow_answer_whole(answers, x)->mean_ns;
	const struct ow_value *my = &ow_flow_answer_whole(answers, y)->mean_ns;
	if (answers->lost && by_lost(x, y) != 0)
		return by_lost(x, y);
	bool nx = mx->status == OW_VALUE_NONE, ny = my->status == OW_VALUE_NONE;
	if (nx != ny)
		return nx ? 1 : -1;
	double vx = answers->worst ? mx->low : mx->value, vy = answers->worst ? my->low : my->value;
	if (!nx && vx != vy)
		return vx > vy ? -1 : 1;
	if (x->packets != y->packets)
		return x->packets > y->packets ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof x->key);
}

void ow_flow_answers_sort(struct ow_flow_answers *answers)
{
	qsort_r(answers->flow, answers->flows, sizeof *answers->flow, slower_first, answers);
}

/*
 * Of F intervals of 95 %, 2.5 % F are below the truth by chance, so one of them that is below 0 tells nothing. Flows go backwards
 * if a mean is negative that is exact, or whose interval is below 0 also if it is made so wide that all F hold the truth with
 * 95 %, or if there are more of them than chance gives.
 */
uint64_t ow_flow_answers_backwards(const struct ow_flow_answers *answers)
{
	uint64_t below = 0;
	bool certain = false;
	double flows = (double)answers->estimated;
	if (!answers->estimated)
		return 0;
	double wider = sqrt(ow_chi2_quantile(1 - CHANCE / flows, 1)) / OW_NORMAL_975;
	for (size_t i = 0; i < answers->flows; i++) {
		const struct ow_flow_estimate *whole = ow_flow_answer_whole(answers, &answers->flow[i]);
		const struct ow_value *mean = &whole->mean_ns;
		/* COLATE as published also gives negative means for flows that are only noisy. */
		if (mean->status == OW_VALUE_NONE || !(mean->high < 0) || whole->estimator == OW_FLOWS_COLATE)
			continue;
		below++;
		certain = certain || mean->value + wider * (mean->high - mean->value) < 0;
	}
	return certain || (below && ow_gamma_p((double)below, CHANCE / 2 * flows) < CHANCE) ? below : 0;
}

static bool warn_damage(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	if (!a->point[i].damage)
		return false;
	snprintf(line, OW_FLOW_WARNING, "%.280s", a->point[i].damage);
	return true;
}

static bool warn_uncounted(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	char count[OW_FORMAT];
	if (!a->point[i].uncounted || a->counts)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%.150s: %s packets of flows beyond the recording's limit were not counted; they disturb the others",
	         a->point[i].path, ow_format_count(a->point[i].uncounted, count));
	return true;
}

static bool warn_missed(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	if (!(a->point[i].flaws & OW_EPOCH_MISSED))
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%.200s did not record all packets of this time (a full ring or memory, or an interface that was "
	         "away; its "
	         "log has more): they count as lost or extra",
	         a->point[i].path);
	return true;
}

static bool warn_clock(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	if (!(a->point[i].flaws & OW_EPOCH_CLOCK_SET))
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "the clock of %.200s was set in this time: delays before and after it are those of two clocks "
	         "(--since, "
	         "--until)",
	         a->point[i].path);
	return true;
}

static bool warn_clean(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_leg *leg = &a->leg[i];
	char share[OW_FORMAT];
	if (!leg->counters || (double)leg->clean >= CLEAN_FEW * (double)leg->counters)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "only %s of the counters hold the same packets at %.80s and %.80s: packets were lost, or one point "
	         "also sees other traffic (record with --filter, and with a larger --repair against loss)",
	         ow_format_share(leg->clean, leg->counters, share), a->point[leg->from].path, a->point[leg->to].path);
	return true;
}

/* Such a loss is rare; a proxy, a tunnel or other traffic is not. */
static bool warn_different(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_leg *leg = &a->leg[i];
	const struct ow_flow_point *from = &a->point[leg->from], *to = &a->point[leg->to];
	char lost[OW_FORMAT], extra[OW_FORMAT];
	if (2 * leg->lost <= from->packets && 2 * leg->extra <= to->packets)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%s of the packets of %.80s are not at %.80s, and %s of its packets not at the first: different "
	         "traffic, "
	         "a proxy or tunnel between them, or both directions at one of them",
	         ow_format_share(leg->lost, from->packets, lost), from->path, to->path,
	         ow_format_share(leg->extra, to->packets, extra));
	return true;
}

/* Where the time is not that of whole recordings, their next epochs may have these packets. */
static bool warn_in_flight(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_leg *leg = &a->leg[i];
	char count[OW_FORMAT], all[OW_FORMAT];
	uint64_t found = leg->lost + leg->extra;
	if (leg->in_flight <= UNCOVERED_FEW || (double)leg->in_flight < UNCOVERED_SHARE * (double)found)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "up to %s of the %s lost and extra packets between %.80s and %.80s were not lost, but in flight at an "
	         "end of "
	         "the time that was asked for",
	         ow_format_count(leg->in_flight, count), ow_format_count(found, all), a->point[leg->from].path,
	         a->point[leg->to].path);
	return true;
}

/* A packet or two at the ends may be lost without a later start of the other point. */
static bool warn_uncovered(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_leg *leg = &a->leg[i];
	char uncovered[OW_FORMAT], all[OW_FORMAT];
	uint64_t found = leg->lost + leg->extra;
	if (leg->uncovered <= UNCOVERED_FEW || (double)leg->uncovered < UNCOVERED_SHARE * (double)found)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%s of the %s lost and extra packets between %.80s and %.80s are from before the first or after the "
	         "last packet of the other: if it did not record then, they were not lost (--since, --until)",
	         ow_format_count(leg->uncovered, uncovered), ow_format_count(found, all), a->point[leg->from].path,
	         a->point[leg->to].path);
	return true;
}

/* An outage of all packets, or of one of the points. Times that only one of them has do not matter if all packets are there. */
static bool warn_unmet(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_leg *leg = &a->leg[i];
	bool sent = leg->unmet_from >= leg->unmet_to;
	double unmet = sent ? leg->unmet_from : leg->unmet_to, found = (double)leg->lost + (double)leg->extra;
	double differ = fmax(found, fabs((double)a->point[leg->from].packets - (double)a->point[leg->to].packets));
	char count[OW_FORMAT];
	if (unmet <= UNCOVERED_FEW || differ <= UNCOVERED_FEW || unmet < UNCOVERED_SHARE * differ)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "about %s packets of %.80s are of times for which %.80s has no epoch: if it did not record then, they "
	         "were not %s",
	         ow_format_count(ow_packets_of(unmet), count), a->point[sent ? leg->from : leg->to].path,
	         a->point[sent ? leg->to : leg->from].path, sent ? "lost" : "extra");
	return true;
}

static bool warn_counts(const struct ow_flow_answers *a, char line[OW_FLOW_WARNING])
{
	const struct ow_flow_point *last = &a->point[a->points - 1];
	char counted[OW_FORMAT], recorded[OW_FORMAT];
	double off = fabs(a->counted_packets - (double)last->packets);
	if (!a->counts || off <= COUNTS_TOLERANCE * (double)last->packets)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%.120s counts %s packets, %.100s has recorded %s: as far as they are not the same packets, estimates "
	         "are "
	         "wrong",
	         a->counts, ow_format_count(ow_packets_of(a->counted_packets), counted), last->path,
	         ow_format_count(last->packets, recorded));
	return true;
}

static bool warn_backwards(const struct ow_flow_answers *a, char line[OW_FLOW_WARNING])
{
	char count[OW_FORMAT];
	if (!a->backwards)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%s %s at %.120s before %.120s: %s the other way (record one direction with --filter), or the clocks "
	         "are "
	         "apart (--offset)",
	         ow_format_count(a->backwards, count), a->backwards == 1 ? "flow was" : "flows were",
	         a->point[a->points - 1].path, a->point[0].path, a->backwards == 1 ? "it goes" : "they go");
	return true;
}

/* Of a group, packets of flows without an estimate are not in its mean. */
static bool warn_groups(const struct ow_flow_answers *a, char line[OW_FLOW_WARNING])
{
	uint64_t packets = 0, estimated = 0;
	char share[OW_FORMAT];
	for (size_t i = 0; a->grouped && i < a->flows; i++) {
		packets += a->flow[i].packets;
		estimated += a->flow[i].estimated_packets;
	}
	if (estimated == packets)
		return false;
	snprintf(line, OW_FLOW_WARNING,
	         "%s of the packets are of flows without an estimate: means are those of the others",
	         ow_format_share(packets - estimated, packets, share));
	return true;
}

/* As of two captures that are copies. */
static bool warn_copies(const struct ow_flow_answers *a, char line[OW_FLOW_WARNING])
{
	for (size_t i = 0; i < a->flows; i++) {
		const struct ow_value *mean = &ow_flow_answer_whole(a, &a->flow[i])->mean_ns;
		if (mean->status != OW_VALUE_NONE && mean->value != (double)a->offset_ns)
			return false;
	}
	snprintf(line, OW_FLOW_WARNING, "every delay is 0: are %.120s and %.120s recordings of one point?",
	         a->point[0].path, a->point[a->points - 1].path);
	return a->estimated > 0;
}

bool ow_flow_answers_warning(const struct ow_flow_answers *a, unsigned i, char line[OW_FLOW_WARNING])
{
	for (unsigned k = 0; k < a->points; k++) {
		if (warn_damage(a, k, line) && i-- == 0)
			return true;
		if (warn_uncounted(a, k, line) && i-- == 0)
			return true;
		if (warn_missed(a, k, line) && i-- == 0)
			return true;
		if (warn_clock(a, k, line) && i-- == 0)
			return true;
	}
	for (unsigned k = 0; k < a->legs; k++) {
		if (warn_clean(a, k, line) && i-- == 0)
			return true;
		if (warn_different(a, k, line) && i-- == 0)
			return true;
		if (warn_uncovered(a, k, line) && i-- == 0)
			return true;
		if (warn_in_flight(a, k, line) && i-- == 0)
			return true;
		if (warn_unmet(a, k, line) && i-- == 0)
			return true;
	}
	if (warn_groups(a, line) && i-- == 0)
		return true;
	if (warn_backwards(a, line) && i-- == 0)
		return true;
	if (warn_copies(a, line) && i-- == 0)
		return true;
	return warn_counts(a, line) && i == 0;
}

struct ow_flow_answers ow_flow_answers_of_means(const struct ow_flow_answers *answers)
{
	struct ow_flow_answers means = *answers;
	for (unsigned k = 0; k < means.legs; k++) {
		means.leg[k].uncovered = means.leg[k].in_flight = 0;
		means.leg[k].unmet_from = means.leg[k].unmet_to = 0;
	}
	return means;
}
