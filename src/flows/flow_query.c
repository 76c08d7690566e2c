/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From recordings to answers: sums the epochs of each point, computes loads from flow counts, and estimates the
 * differences of each leg, combined by flow.
 */
#include "flows/flow_query.h"

#include "base/time.h"
#include "flows/counts_csv.h"
#include "flows/epochs.h"
#include "flows/flow_groups.h"
#include "flows/flow_leg.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts from other programs may differ by this share of the packets, because they are taken at another place. */
#define COUNTS_OFF_MAX 0.05

struct file {
	struct ow_epochs *epochs;
	struct ow_epoch sum;
	bool summed;
};

struct ow_flows_files {
	struct file file[OW_FLOW_POINTS_MAX];
	unsigned files;
	struct ow_flow_counts *counts; /* from CSV; NULL = none */
};

void ow_flows_files_free(struct ow_flows_files *files)
{
	if (!files)
		return;
	for (unsigned i = 0; i < files->files; i++) {
		if (files->file[i].summed)
			ow_epoch_done(&files->file[i].sum);
		ow_epochs_close(files->file[i].epochs);
	}
	ow_flow_counts_free(files->counts);
	free(files);
}

uint64_t ow_flows_files_packets(const struct ow_flows_files *files, unsigned point, const struct ow_flow_key *key)
{
	const struct ow_flow_counts *counts = files->file[point].sum.counts;
	struct ow_flow_count count;
	if (!counts)
		return 0;
	uint64_t seed = ow_epochs_info(files->file[point].epochs)->params.seed;
	ptrdiff_t i = ow_flow_counts_find(counts, ow_flow_hash(seed, key));
	if (i < 0)
		return 0;
	ow_flow_counts_get(counts, (size_t)i, &count);
	return count.packets;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

/* The size of the used epochs in the file, per packet. */
static void fill_cost(const struct ow_flows_question *q, const struct file *file, struct ow_flow_point *point)
{
	double counters = 0, counts = 0, packets = 0;
	for (size_t i = 0; i < ow_epochs_count(file->epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(file->epochs, i);
		if (span.end_ns <= q->since_ns || span.begin_ns >= q->until_ns)
			continue;
		counters += (double)(span.bytes - span.count_bytes);
		counts += (double)span.count_bytes;
		packets += (double)span.packets;
	}
	point->counter_bits = packets > 0 ? 8 * counters / packets : NAN;
	point->count_bits = packets > 0 && point->counted ? 8 * counts / packets : NAN;
}

static int read_point(const struct ow_flows_question *q, struct ow_flows_files *files, unsigned i,
                      struct ow_flow_point *point, struct ow_error *err)
{
	struct file *file = &files->file[i];
	int r = ow_epochs_open(q->path[i], &file->epochs, err);
	if (r < 0)
		return r;
	files->files++;
	if (i > 0)
		r = ow_epochs_comparable(files->file[0].epochs, file->epochs, err);
	if (r == 0)
		r = ow_epochs_sum(file->epochs, q->since_ns, q->until_ns,
		                  q->flows_max ? q->flows_max : OW_FLOW_COUNTS_MAX, &file->sum, err);
	if (r < 0)
		return r;
	file->summed = true;
	if (!file->sum.epochs || !ow_colate_packets(file->sum.colate))
		return ow_error_set(err, ENODATA, "%.200s: %s", q->path[i],
		                    ow_epochs_count(file->epochs) ? "no packet of the time that was asked for"
		                                                  : "has no epoch yet");
	*point = (struct ow_flow_point){
		.path = q->path[i],
		.damage = ow_epochs_damage(file->epochs),
		.epochs = file->sum.epochs,
		.begin_ns = file->sum.begin_ns,
		.end_ns = file->sum.end_ns,
		.packets = ow_colate_packets(file->sum.colate),
		.flaws = file->sum.flaws,
		.counted = file->sum.counts != NULL,
	};
	if (file->sum.counts) {
		point->flows = ow_flow_counts_flows(file->sum.counts);
		point->uncounted = ow_flow_counts_uncounted(file->sum.counts);
	}
	fill_cost(q, file, point);
	return 0;
}

static bool has_banks(const struct ow_flows_files *files)
{
	const struct ow_colate_params *params = &ow_epochs_info(files->file[0].epochs)->params;
	for (uint32_t i = 0; i < params->layers; i++) {
		if (params->layer[i].form == OW_COLATE_BANKS)
			return true;
	}
	return false;
}

static int read_counts(const struct ow_flows_question *q, struct ow_flows_files *files, struct ow_error *err)
{
	const struct ow_epoch_info *info = ow_epochs_info(files->file[0].epochs);
	bool is_stdin = strcmp(q->counts, "-") == 0;
	FILE *in = is_stdin ? stdin : fopen(q->counts, "re");
	if (!in)
		return ow_error_set(err, errno, "%.200s: %s", q->counts, strerror(errno));
	int r = ow_counts_csv_read(in, q->counts, &info->select, info->params.seed, &files->counts, err);
	if (!is_stdin)
		fclose(in);
	return r;
}

/*
 * Checks that the counts cover every recorded packet. Missing packets are noise, which the solver of all banks together
 * would amplify where it solves for flows exactly; one bank at a time does not amplify it. If the counts differ by too
 * much, they are of other packets.
 */
static int check_counts(const struct ow_flows_question *q, const struct ow_flows_files *files,
                        const struct ow_flow_answers *a, enum ow_flow_estimator *estimator, struct ow_error *err)
{
	const struct ow_flow_point *last = &a->point[a->points - 1];
	double recorded = (double)last->packets, counted = (double)ow_flow_counts_packets(files->counts);
	if (fabs(counted - recorded) > COUNTS_OFF_MAX * recorded)
		return ow_error_set(
			err, EINVAL,
			"%.150s counts %.0f packets, but %.150s has recorded %.0f: these are not the same packets",
			q->counts, counted, last->path, recorded);
	if (counted != recorded && *estimator == OW_FLOWS_AUTO && has_banks(files))
		*estimator = OW_FLOWS_BLUP;
	return 0;
}

static int check_time(const struct ow_flow_answers *a, struct ow_error *err)
{
	const struct ow_flow_point *x = &a->point[0];
	char from[OW_FORMAT], to[OW_FORMAT];
	for (unsigned i = 1; i < a->points; i++) {
		const struct ow_flow_point *y = &a->point[i];
		__int128 shift_ns = i == a->points - 1 ? a->offset_ns : 0;
		if (x->begin_ns < y->end_ns + shift_ns && y->begin_ns + shift_ns < x->end_ns)
			continue;
		const struct ow_flow_point *early = x->begin_ns < y->begin_ns ? x : y, *late = early == x ? y : x;
		ow_format_time(early->end_ns, "%Y-%m-%d %H:%M:%S", from);
		ow_format_time(late->begin_ns, "%Y-%m-%d %H:%M:%S", to);
		return ow_error_set(err, ENOMSG,
		                    "nothing in common: %.120s ends at %s UTC, %.120s begins only at %s UTC",
		                    early->path, from, late->path, to);
	}
	return 0;
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

static void shift(struct ow_value *value, double offset_ns)
{
	value->value += offset_ns;
	value->low += offset_ns;
	value->high += offset_ns;
}

static void shift_spreads(const struct ow_flow_leg_flows *leg, int64_t offset_ns)
{
	for (size_t i = 0; i < leg->flows; i++) {
		if (!leg->estimate[i].spread)
			continue;
		struct ow_flow_spread *spread = &leg->spread[leg->estimate[i].spread - leg->spread];
		spread->least_ns += offset_ns;
		spread->most_ns += offset_ns;
		for (int k = 0; k < OW_QUANTILES; k++)
			shift(&spread->quantile_ns[k], (double)offset_ns);
	}
}

/* The estimate of a flow over a leg, found by its hash: some points may not have seen the flow. */
static struct ow_flow_estimate estimate_of(const struct ow_flow_leg_flows *leg, uint64_t flow)
{
	ptrdiff_t i = ow_flow_counts_find(leg->counts, flow);
	if (i >= 0)
		return leg->estimate[i];
	struct ow_value none = ow_value_none(OW_REASON_FLOW_NOT_COUNTED);
	return (struct ow_flow_estimate){.mean_ns = none, .stddev_ns = none, .no_spread = OW_REASON_FLOW_NOT_COUNTED};
}

/* The flows that only the first point counted. */
static size_t count_never_arrived(const struct ow_flow_leg_flows *whole)
{
	size_t flows = whole->sender ? ow_flow_counts_flows(whole->sender) : 0, never = 0;
	for (size_t i = 0; i < flows; i++) {
		struct ow_flow_count sent;
		ow_flow_counts_get(whole->sender, i, &sent);
		never += ow_flow_counts_find(whole->counts, sent.flow) < 0;
	}
	return never;
}

static void gather_flow(const struct ow_flow_leg_flows *leg, size_t i, struct ow_flow_answers *a)
{
	const struct ow_flow_leg_flows *whole = &leg[a->legs - 1];
	struct ow_flow_estimate *estimate = &a->estimates[i * a->legs];
	struct ow_value *mean = &estimate[a->legs - 1].mean_ns;
	struct ow_flow_count count, sent;
	ow_flow_counts_get(whole->counts, i, &count);
	for (unsigned k = 0; k + 1 < a->legs; k++)
		estimate[k] = estimate_of(&leg[k], count.flow);
	estimate[a->legs - 1] = whole->estimate[i];
	/* All packets of the flow that arrived were taken out: the first point did not have them. */
	if (mean->reason == OW_REASON_FLOW_NOT_RECEIVED)
		*mean = ow_value_none(OW_REASON_NO_COMMON_PACKET);
	ptrdiff_t at = whole->sender ? ow_flow_counts_find(whole->sender, count.flow) : -1;
	if (at >= 0)
		ow_flow_counts_get(whole->sender, (size_t)at, &sent);
	a->flow[i] = (struct ow_flow_answer){
		.key = count.key,
		.packets = count.packets,
		.sent = at >= 0         ? sent.packets
	                : whole->sender ? 0
	                                : UINT64_MAX,
		.estimate = estimate,
	};
	a->estimated += mean->status != OW_VALUE_NONE;
	a->counted_packets += (double)count.packets;
}

/* Flows of which nothing arrived have lost all of their packets. Legs before the last point may have seen them. */
static void gather_never_arrived(const struct ow_flow_leg_flows *leg, struct ow_flow_answers *a)
{
	const struct ow_flow_leg_flows *whole = &leg[a->legs - 1];
	size_t next = whole->flows;
	for (size_t i = 0; next < a->flows; i++) {
		struct ow_flow_estimate *estimate = &a->estimates[next * a->legs];
		struct ow_flow_count sent;
		ow_flow_counts_get(whole->sender, i, &sent);
		if (ow_flow_counts_find(whole->counts, sent.flow) >= 0)
			continue;
		for (unsigned k = 0; k < a->legs; k++)
			estimate[k] = estimate_of(&leg[k], sent.flow);
		estimate[a->legs - 1] = (struct ow_flow_estimate){
			.mean_ns = ow_value_none(OW_REASON_FLOW_NOT_RECEIVED),
			.stddev_ns = ow_value_none(OW_REASON_FLOW_NOT_RECEIVED),
			.estimator = whole->flows ? whole->estimate[0].estimator : OW_FLOWS_AUTO,
			.no_spread = OW_REASON_FLOW_NOT_RECEIVED,
		};
		a->flow[next++] = (struct ow_flow_answer){.key = sent.key, .sent = sent.packets, .estimate = estimate};
	}
}

/* Combines the legs: the flows are those that the last leg counts, and those that only the first point does. */
static int gather(const struct ow_flows_question *q, struct ow_flow_answers *a, struct ow_flow_leg_flows *leg,
                  struct ow_error *err)
{
	const struct ow_flow_leg_flows *whole = &leg[a->legs - 1];
	a->never_arrived = count_never_arrived(whole);
	if (a->never_arrived && a->never_arrived == ow_flow_counts_flows(whole->sender))
		return ow_error_set(err, ENOMSG, "nothing in common: none of the %zu flows of %.120s is in %.120s",
		                    (size_t)a->never_arrived, a->point[0].path,
		                    a->counts ? a->counts : a->point[a->points - 1].path);
	a->flows = whole->flows + a->never_arrived;
	a->flow = calloc(a->flows + 1, sizeof *a->flow);
	a->estimates = calloc((a->flows + 1) * a->legs, sizeof *a->estimates);
	if (!a->flow || !a->estimates)
		return ow_error_set(err, ENOMEM, "not enough memory for the answers");
	if (q->offset_ns)
		shift_spreads(whole, q->offset_ns);
	for (unsigned k = 0; k < a->legs; k++) {
		a->spread[k] = leg[k].spread;
		leg[k].spread = NULL;
	}
	for (size_t i = 0; i < whole->flows; i++)
		gather_flow(leg, i, a);
	gather_never_arrived(leg, a);
	return 0;
}

/* The mean of all packets with an estimate; of colate-random, whose estimates are noise of either sign, that of heavy flows. */
static double mean_delay(const struct ow_flow_answers *a, const struct ow_flow_leg_flows *whole)
{
	double sum = 0, packets = 0;
	if (whole->is_noise)
		return whole->mean_ns;
	for (size_t i = 0; i < a->flows; i++) {
		const struct ow_value *mean = &ow_flow_answer_whole(a, &a->flow[i])->mean_ns;
		if (mean->status == OW_VALUE_NONE)
			continue;
		sum += mean->value * (double)a->flow[i].packets;
		packets += (double)a->flow[i].packets;
	}
	return packets > 0 ? sum / packets : NAN;
}

/* Packets cannot arrive before they are sent. */
static int check_order(const struct ow_flow_answers *a, const struct ow_flow_leg_flows *whole, struct ow_error *err)
{
	double mean_ns = mean_delay(a, whole);
	char text[OW_DURATION_TEXT];
	if (!(mean_ns < 0))
		return 0;
	ow_duration_text(-mean_ns, text);
	return ow_error_set(
		err, EINVAL,
		"packets were at %.120s %s before %.120s on average: --from and --to are swapped, or the clocks "
		"differ (--offset)",
		a->point[a->points - 1].path, text, a->point[0].path);
}

static void set_legs(struct ow_flow_answers *a)
{
	for (unsigned i = 0; i + 1 < a->points; i++)
		a->leg[a->legs++] = (struct ow_flow_leg){.from = i, .to = i + 1};
	if (a->points > 2)
		a->leg[a->legs++] = (struct ow_flow_leg){.from = 0, .to = a->points - 1};
}

static int ask(const struct ow_flows_question *q, struct ow_flows_files *files, struct ow_flow_answers *a,
               struct ow_error *err)
{
	struct ow_flow_leg_flows leg[OW_FLOW_LEGS_MAX] = {0};
	struct ow_flows_options estimate = q->estimate;
	int r = 0;
	for (; r == 0 && a->points < q->points; a->points++)
		r = read_point(q, files, a->points, &a->point[a->points], err);
	if (r == 0)
		r = check_time(a, err);
	if (r == 0 && q->counts)
		r = read_counts(q, files, err);
	if (r == 0 && q->counts)
		r = check_counts(q, files, a, &estimate.estimator, err);
	if (r < 0)
		return r;
	a->select = ow_epochs_info(files->file[0].epochs)->select;
	set_legs(a);
	for (unsigned i = 0; r == 0 && i < a->legs; i++) {
		const struct file *from = &files->file[a->leg[i].from], *to = &files->file[a->leg[i].to];
		const struct ow_flow_leg_input input = {
			.side = {{from->epochs, &from->sum}, {to->epochs, &to->sum}},
			.path = {a->point[a->leg[i].from].path, a->point[a->leg[i].to].path},
			.counts = files->counts,
			.since_ns = q->since_ns,
			.until_ns = q->until_ns,
			.offset_ns = q->offset_ns,
			.no_repair = q->no_repair,
			.estimate = estimate,
		};
		r = ow_flow_leg_estimate(&input, &a->leg[i], &leg[i], err);
	}
	if (r == 0)
		r = gather(q, a, leg, err);
	if (r == 0)
		r = check_order(a, &leg[a->legs - 1], err);
	if (r == 0 && q->by.by)
		r = ow_flow_answers_group(a, &q->by, err);
	if (r == 0)
		a->backwards = ow_flow_answers_backwards(a);
	for (unsigned i = 0; i < a->legs; i++)
		ow_flow_leg_done(&leg[i]);
	return r;
}

int ow_flows_ask(const struct ow_flows_question *question, struct ow_flow_answers *ret_answers,
                 struct ow_flows_files **ret_files, struct ow_error *err)
{
	struct ow_flow_answers answers = {.counts = question->counts,
	                                  .offset_ns = question->offset_ns,
	                                  .worst = question->worst,
	                                  .lost = question->lost};
	struct ow_flows_files *files = calloc(1, sizeof *files);
	if (!files)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = ask(question, files, &answers, err);
	if (r < 0) {
		ow_flow_answers_done(&answers);
		ow_flows_files_free(files);
		return r;
	}
	ow_flow_answers_sort(&answers);
	*ret_answers = answers;
	*ret_files = files;
	return 0;
}
