/* SPDX-License-Identifier: Apache-2.0 */
/* Decides where epochs end: flow_recorder.h. */
#include "flows/flow_recorder.h"

#include "base/array.h"
#include "base/sort.h"
#include <errno.h>
#include <stdlib.h>

struct ow_flow_recorder {
	struct ow_flow_recorder_options options;
	struct ow_epoch epoch;
	int64_t begin_ns, end_ns; /* the current interval, once there is a packet */
	int64_t since_ns;  /* when the recording began; INT64_MIN: before this interval, or nothing was added yet */
	int64_t passed_ns; /* all packets before it were added */
	bool begun;
	uint8_t flaws;
	/* Hashes of the flows that were heavy in the last epoch, ascending: */
	uint64_t *heavy;
	size_t heavies, heavy_room;
};

static int make_epoch(struct ow_flow_recorder *recorder, struct ow_error *err)
{
	const struct ow_epoch_info *info = &recorder->options.info;
	size_t flows_max = recorder->options.flows_max;
	int r = ow_epoch_init(info, flows_max ? flows_max : OW_FLOW_COUNTS_MAX, &recorder->epoch, err);
	recorder->epoch.epochs = 1;
	return r;
}

int ow_flow_recorder_create(const struct ow_flow_recorder_options *options, struct ow_flow_recorder **ret_recorder,
                            struct ow_error *err)
{
	int r = ow_epoch_info_check(&options->info, err);
	if (r < 0)
		return r;
	struct ow_flow_recorder *recorder = calloc(1, sizeof *recorder);
	if (!recorder)
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	recorder->options = *options;
	r = make_epoch(recorder, err);
	if (r < 0) {
		ow_flow_recorder_free(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

void ow_flow_recorder_free(struct ow_flow_recorder *recorder)
{
	if (!recorder)
		return;
	ow_epoch_done(&recorder->epoch);
	free(recorder->heavy);
	free(recorder);
}

static int remember_heavy(struct ow_flow_recorder *recorder, uint64_t from)
{
	const struct ow_flow_counts *counts = recorder->epoch.counts;
	recorder->heavies = 0;
	for (size_t i = 0; i < ow_flow_counts_flows(counts); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		if (count.packets < from)
			continue;
		if (OW_GROW(recorder->heavy, recorder->heavy_room, recorder->heavies + 1) < 0)
			return -ENOMEM;
		recorder->heavy[recorder->heavies++] = count.flow;
	}
	ow_sort_ids(recorder->heavy, recorder->heavies);
	return 0;
}

/* The packets from which on a flow keeps a counter of its own. */
static uint64_t heavy_from(uint64_t packets)
{
	uint64_t share = packets / OW_FLOW_HEAVY_SHARE;
	return share > OW_FLOW_HEAVY_MIN ? share : OW_FLOW_HEAVY_MIN;
}

/*
 * A flow that was heavy in the last epoch keeps its counter in this one: its packets that were in flight at the end of the
 * last are here at the next point.
 */
static int keep_heavy(struct ow_flow_recorder *recorder)
{
	uint64_t from = heavy_from(ow_colate_packets(recorder->epoch.colate));
	ow_flow_counts_drop_own(recorder->epoch.counts, from, recorder->heavy, recorder->heavies);
	return remember_heavy(recorder, from);
}

/* The interval; or from the first to the last packet. until_ns: when the recording ended, INT64_MAX = it goes on. */
static void set_span(const struct ow_flow_recorder *recorder, struct ow_epoch *epoch, int64_t until_ns)
{
	epoch->begin_ns = ow_colate_first_ns(epoch->colate);
	epoch->end_ns = ow_colate_last_ns(epoch->colate) + 1;
	if (!recorder->options.info.interval_ns)
		return;
	int64_t since_ns = recorder->since_ns < epoch->begin_ns ? recorder->since_ns : epoch->begin_ns;
	until_ns = until_ns > epoch->end_ns ? until_ns : epoch->end_ns;
	bool begins = recorder->since_ns > recorder->begin_ns && recorder->since_ns < recorder->end_ns;
	epoch->begin_ns = begins && since_ns > recorder->begin_ns ? since_ns : recorder->begin_ns;
	epoch->end_ns = until_ns < recorder->end_ns ? until_ns : recorder->end_ns;
}

static int pass_on(struct ow_flow_recorder *recorder, int64_t until_ns, struct ow_error *err)
{
	struct ow_epoch *epoch = &recorder->epoch;
	if (!epoch->colate || !ow_colate_packets(epoch->colate))
		return 0;
	set_span(recorder, epoch, until_ns);
	recorder->since_ns = INT64_MIN;
	epoch->flaws = recorder->flaws;
	recorder->flaws = 0;
	if (epoch->counts && keep_heavy(recorder) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory for heavy flows");
	int r = recorder->options.on_epoch(recorder->options.arg, epoch, err);
	if (epoch->colate)
		ow_colate_reset(epoch->colate);
	if (epoch->counts)
		ow_flow_counts_reset(epoch->counts);
	return r;
}

/* The first packet, or the first time that passed. */
static void begin(struct ow_flow_recorder *recorder, int64_t time_ns)
{
	if (!recorder->begun)
		recorder->since_ns = time_ns;
	recorder->begun = true;
}

int ow_flow_recorder_cut(struct ow_flow_recorder *recorder, struct ow_error *err)
{
	recorder->begun = false;
	return pass_on(recorder, recorder->passed_ns, err);
}

static void begin_interval(struct ow_flow_recorder *recorder, int64_t time_ns)
{
	int64_t length = recorder->options.info.interval_ns, rest = time_ns % length;
	recorder->begin_ns = time_ns - rest - (rest < 0 ? length : 0);
	recorder->end_ns = recorder->begin_ns + length;
}

/*
 * Whether the packet is of the current interval, or late for it. A packet that is very early or late shows that the
 * clock was set.
 */
static bool belongs(const struct ow_flow_recorder *recorder, int64_t time_ns)
{
	return time_ns < recorder->end_ns && time_ns >= recorder->begin_ns - recorder->options.info.interval_ns;
}

static int add(struct ow_flow_recorder *recorder, const struct ow_flow_sighting *sightings,
               const struct ow_flow_key *const *keys, size_t count, struct ow_error *err)
{
	struct ow_epoch *epoch = &recorder->epoch;
	ow_colate_add(epoch->colate, sightings, count);
	if (epoch->counts)
		ow_flow_counts_add(epoch->counts, sightings, keys, count);
	if (recorder->options.threshold && ow_colate_time_sum(epoch->colate) >= recorder->options.threshold)
		return pass_on(recorder, INT64_MAX, err);
	return 0;
}

int ow_flow_recorder_add(struct ow_flow_recorder *recorder, const struct ow_flow_sighting *sightings,
                         const struct ow_flow_key *const *keys, size_t count, struct ow_error *err)
{
	while (count) {
		size_t some = 0;
		if (!recorder->epoch.colate) {
			int r = make_epoch(recorder, err);
			if (r < 0)
				return r;
		}
		if (!recorder->options.info.interval_ns)
			return add(recorder, sightings, keys, count, err);
		begin(recorder, sightings[0].time_ns);
		if (!ow_colate_packets(recorder->epoch.colate) && !belongs(recorder, sightings[0].time_ns))
			begin_interval(recorder, sightings[0].time_ns);
		while (some < count && belongs(recorder, sightings[some].time_ns))
			some++;
		int r = some ? add(recorder, sightings, keys, some, err) : pass_on(recorder, INT64_MAX, err);
		if (r < 0)
			return r;
		sightings += some;
		keys += some;
		count -= some;
	}
	return 0;
}

void ow_flow_recorder_flaw(struct ow_flow_recorder *recorder, uint8_t flaws)
{
	recorder->flaws |= flaws;
}

bool ow_flow_recorder_due(const struct ow_flow_recorder *recorder, int64_t time_ns)
{
	const struct ow_colate *colate = recorder->epoch.colate;
	return recorder->options.info.interval_ns && colate && ow_colate_packets(colate) && time_ns >= recorder->end_ns;
}

int ow_flow_recorder_pass(struct ow_flow_recorder *recorder, int64_t passed_ns, struct ow_error *err)
{
	begin(recorder, passed_ns);
	recorder->passed_ns = passed_ns;
	if (!recorder->options.info.interval_ns || passed_ns < recorder->end_ns)
		return 0;
	return pass_on(recorder, INT64_MAX, err);
}
