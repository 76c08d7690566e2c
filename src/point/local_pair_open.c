/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up a measurement between two interfaces of one host: its times, its lanes and their logs. */
#include "point/local_pair_private.h"

#include "capture/filter.h"
#include "capture/iface/stream.h"
#include "match/capture_time_range.h"
#include "point/stream_start.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For files: more results than anybody needs, caused by a wrong time. 11 days of seconds. */
#define INTERVALS_MAX 1000000

/* A wrong time in a file must not give results of years without packets. span: of the file with the longer gap. */
static int check_intervals(const struct ow_local_pair *pair, int64_t start_ns, const char *path,
                           const struct ow_capture_time_range *span, struct ow_error *err)
{
	int64_t count = (pair->end_ns - start_ns) / pair->options.length_ns;
	char gap[OW_DURATION_TEXT];
	if (count < INTERVALS_MAX || (pair->options.intervals && pair->options.intervals < INTERVALS_MAX))
		return 0;
	ow_duration_text((double)llabs(span->gap_ns), gap);
	return ow_error_set(err, ERANGE,
	                    "more than %d intervals: choose a longer interval, or take out what has a wrong time "
	                    "(%.200s: packet %llu is %s %s than the previous one)",
	                    INTERVALS_MAX, path, (unsigned long long)span->gap_number, gap,
	                    span->gap_ns < 0 ? "earlier" : "later");
}

/* For files: the time when both have begun, and when the first of them ends. */
static int plan_files(struct ow_local_pair *pair, int64_t *ret_start_ns, struct ow_error *err)
{
	const char *from = pair->options.from.live.name, *to = pair->options.to.live.name;
	struct ow_capture_time_range a = {0}, b = {0};
	int64_t wait_ns = pair->options.wait_ns;
	int r = ow_capture_time_range_of_file(from, wait_ns, &a, err);
	if (r == 0)
		r = ow_capture_time_range_of_file(to, wait_ns, &b, err);
	if (r < 0)
		return r;
	pair->untimed[OW_LOCAL_PAIR_FROM] = a.untimed;
	pair->untimed[OW_LOCAL_PAIR_TO] = b.untimed;
	*ret_start_ns = a.first_ns > b.first_ns ? a.first_ns : b.first_ns;
	pair->over_ns[OW_LOCAL_PAIR_FROM] = a.last_ns + 1;
	pair->over_ns[OW_LOCAL_PAIR_TO] = b.last_ns + 1;
	pair->end_ns = ow_local_pair_least(a.last_ns, b.last_ns) + 1;
	if (*ret_start_ns >= pair->end_ns)
		return ow_error_set(err, EINVAL, "%.200s and %.200s were not taken at the same time", from, to);
	bool first = llabs(a.gap_ns) > llabs(b.gap_ns);
	return check_intervals(pair, *ret_start_ns, first ? from : to, first ? &a : &b, err);
}

/* Plans when to begin, how much earlier to record, and when to end. */
static int plan_time(struct ow_local_pair *pair, struct ow_error *err)
{
	const struct ow_local_pair_options *o = &pair->options;
	int64_t lead_ns = ow_local_pair_least(o->wait_ns, OW_LOCAL_PAIR_LEAD_NS), start_ns;
	pair->lead = (lead_ns + o->length_ns - 1) / o->length_ns;
	pair->end_ns = pair->streams ? o->until_ns : INT64_MAX;
	pair->stop_ns = pair->over_ns[OW_LOCAL_PAIR_FROM] = pair->over_ns[OW_LOCAL_PAIR_TO] = INT64_MAX;
	if (pair->clock.files && !pair->streams) {
		int r = plan_files(pair, &start_ns, err);
		if (r < 0)
			return r;
	} else {
		int64_t step_ns = ow_local_pair_least(o->length_ns, OW_NS_PER_S);
		int64_t ready_ns = pair->streams
		                           ? pair->first_ns
		                           : ow_recorder_now_ns(pair->recorder) + OW_LOCAL_PAIR_SETUP_NS + lead_ns;
		start_ns = (ow_floor_div(ready_ns, step_ns) + 1) * step_ns;
		pair->begun_ns = ready_ns - lead_ns;
	}
	pair->t0_ns = start_ns - pair->lead * o->length_ns;
	if (o->intervals && o->intervals < (uint64_t)((INT64_MAX - start_ns) / o->length_ns))
		pair->end_ns = ow_local_pair_least(pair->end_ns, start_ns + (int64_t)o->intervals * o->length_ns);
	if (pair->streams && start_ns >= pair->end_ns)
		return ow_error_set(err, EINVAL, "the captures begin after the time of --until");
	if (pair->end_ns < INT64_MAX - o->wait_ns)
		pair->stop_ns = pair->end_ns + o->wait_ns;
	return 0;
}

/*
 * The number of intervals for which a packet waits. Files end anywhere, and an interval that is split there becomes
 * two. Runs on interfaces also end anywhere; but with one interval more all results would be late because of the last
 * one.
 */
static int64_t horizon_of(const struct ow_local_pair_options *options)
{
	return (options->wait_ns + options->length_ns - 1) / options->length_ns +
	       (options->from.live.kind == OW_IFACE_FILE || options->from.live.kind == OW_IFACE_STREAM);
}

/* The two directions of a class have one. */
static int add_clock(struct ow_local_pair *pair, size_t index)
{
	const struct ow_local_pair_options *o = &pair->options;
	struct ow_local_pair_lane *lane = pair->lane + index;
	struct ow_segment_clock_options options = {
		.mode = o->clock, .length_ns = o->length_ns, .same = !pair->two_clocks, .files = pair->clock.files};
	lane->direction = index % 2 ? OW_B_TO_A : OW_A_TO_B;
	if (index % 2) {
		lane->clock = pair->lane[index - 1].clock;
		return 0;
	}
	return ow_segment_clock_create(&options, &lane->clock);
}

static int add_lane(struct ow_local_pair *pair, size_t index, struct ow_error *err)
{
	const struct ow_local_pair_options *o = &pair->options;
	const struct ow_local_pair_class *class = o->classes + index / 2;
	bool backward = index % 2;
	struct ow_local_pair_lane *lane = pair->lane + index;
	const char *from = o->from_name, *to = o->to_name;
	snprintf(lane->names.segment, sizeof lane->names.segment, "%s", o->segment);
	snprintf(lane->names.class_name, sizeof lane->names.class_name, "%s", class->name);
	snprintf(lane->names.from, sizeof lane->names.from, "%s", backward ? to : from);
	snprintf(lane->names.to, sizeof lane->names.to, "%s", backward ? from : to);
	lane->link_filter = class->filter && ow_filter_names_link(class->filter);
	int r = add_clock(pair, index);
	if (r == 0)
		r = ow_interval_results_create((uint32_t)horizon_of(o), ow_local_pair_on_result, pair, &lane->results);
	if (r == 0 && o->shared)
		r = ow_interval_results_share(lane->results, o->length_ns, ow_local_pair_on_event);
	if (r == 0)
		r = ow_interval_copies_create(&lane->copies);
	if (r < 0)
		return ow_error_set(err, -r, "cannot keep late packets: %s", strerror(-r));
	return ow_local_pair_add_logs(pair, index, err);
}

static int check(const struct ow_local_pair_options *o, struct ow_error *err)
{
	if (o->length_ns < OW_INTERVAL_MIN_NS || o->length_ns > OW_INTERVAL_MAX_NS)
		return ow_error_set(err, EINVAL, "an interval has 1ms to 5min");
	if (o->wait_ns < 1 || (o->wait_ns - 1) / o->length_ns >= OW_LOCAL_PAIR_WAIT_MAX)
		return ow_error_set(err, EINVAL, "the waiting time is at most %d intervals", OW_LOCAL_PAIR_WAIT_MAX);
	if (!o->class_count || 4 * o->class_count > OW_LANES_MAX)
		return ow_error_set(err, EINVAL, "there can be 1 to %d classes", OW_LANES_MAX / 4);
	return 0;
}

/* Streams: what their first packets show. */
static int look_at_streams(struct ow_local_pair *pair, struct ow_error *err)
{
	struct ow_local_pair_options *o = &pair->options;
	struct ow_stream_start start;
	const struct ow_stream_start_options options = {
		.from = &o->from.streams,
		.to = &o->to.streams,
		.from_name = o->from_name,
		.to_name = o->to_name,
		.identity = o->identity,
		.identities = o->identities,
		.any_way = o->any_way,
		.length_ns = o->length_ns,
		.wait_ns = o->wait_ns,
		.lag_ns = o->lag_ns,
		.most_ns = o->intervals && o->intervals < (uint64_t)(INT64_MAX / 2 / o->length_ns)
	                           ? (int64_t)o->intervals * o->length_ns + o->lag_ns
	                           : INT64_MAX,
		.keep_times = o->clock == OW_CLOCK_TRUSTED,
		.sides = !o->forward,
		.say = o->changed,
		.arg = o->opened_arg,
	};
	int r = ow_stream_start(&options, &start, err);
	if (r < 0)
		return r;
	o->identity = start.identity;
	o->identities = 0; /* streams are not in step: another identity could not begin at the same packet of both */
	o->clock = start.shift_ns ? OW_CLOCK_RELATIVE : o->clock;
	pair->shift_ns = start.shift_ns;
	pair->met = start.met;
	if (!o->forward) {
		pair->sides = start.sides;
		o->forward = pair->sides.forward;
		o->backward = pair->sides.backward;
	}
	pair->first_ns = start.first_ns > o->since_ns ? start.first_ns : o->since_ns - 1;
	return 0;
}

/* Filters of the link layer are compiled for one link type. */
static int check_link_types(const struct ow_local_pair *pair, const struct ow_source_options *source,
                            struct ow_error *err)
{
	const struct ow_local_pair_options *o = &pair->options;
	bool names = (source->live.filter && ow_filter_names_link(source->live.filter)) ||
	             (o->forward && ow_filter_names_link(o->forward));
	for (size_t i = 0; i < o->class_count; i++)
		names = names || (o->classes[i].filter && ow_filter_names_link(o->classes[i].filter));
	for (unsigned i = 1; names && i < source->streams.parts; i++) {
		if (ow_iface_linktype(source->streams.part[i]) != ow_iface_linktype(source->streams.part[0]))
			return ow_error_set(
				err, EINVAL,
				"%.200s: its captures have different link types: no filter can name the link "
				"layer of all of them",
				source->live.name);
	}
	return 0;
}

static int open_recorder(struct ow_local_pair *pair, struct ow_source_options sources[OW_LOCAL_PAIR_SIDES],
                         struct ow_error *err)
{
	const char *name[2];
	int r = ow_recorder_open(sources, OW_LOCAL_PAIR_SIDES, &pair->recorder, err);
	for (unsigned i = 0; r == 0 && i < OW_LOCAL_PAIR_SIDES; i++)
		snprintf(pair->note[i], OW_IFACE_NOTE, "%s", ow_recorder_note(pair->recorder, i));
	if (r < 0 || !ow_recorder_mixes(pair->recorder, UINT32_MAX, name))
		return r;
	for (unsigned i = 0; i < OW_LOCAL_PAIR_SIDES; i++) {
		if (!pair->note[i][0])
			snprintf(pair->note[i], OW_IFACE_NOTE, "%.60s: %.60s is not, and their times would differ",
			         name[0], name[1]);
		sources[i].live.kind = OW_IFACE_AUTO;
	}
	ow_recorder_free(pair->recorder);
	pair->recorder = NULL;
	return ow_recorder_open(sources, OW_LOCAL_PAIR_SIDES, &pair->recorder, err);
}

int ow_local_pair_create(const struct ow_local_pair_options *options, struct ow_local_pair **ret_pair,
                         struct ow_error *err)
{
	struct ow_local_pair *pair = calloc(1, sizeof *pair);
	if (!pair) {
		ow_streams_close(&options->from.streams);
		ow_streams_close(&options->to.streams);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	pair->options = *options;
	pair->streams = options->from.live.kind == OW_IFACE_STREAM;
	/* One clock gives the timestamps of both sides: its error does not matter, only a step does. */
	pair->clock = (struct ow_point_clock){.files = pair->streams || options->from.live.kind == OW_IFACE_FILE,
	                                      .state = {true, 0}};
	pair->two_clocks = pair->clock.files || options->from.live.hardware_stamps || options->to.live.hardware_stamps;
	pair->lanes = 2 * options->class_count;
	pair->passed_ns = INT64_MIN;
	pair->lane = calloc(pair->lanes + 1, sizeof *pair->lane);
	int r = pair->lane ? check(options, err) : ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0 && pair->streams)
		r = look_at_streams(pair, err);
	struct ow_source_options sources[OW_LOCAL_PAIR_SIDES] = {
		[OW_LOCAL_PAIR_FROM] = options->from, [OW_LOCAL_PAIR_TO] = options->to};
	for (unsigned i = 0; r == 0 && i < OW_LOCAL_PAIR_SIDES; i++)
		r = check_link_types(pair, &sources[i], err);
	if (r < 0) {
		ow_streams_close(&options->from.streams);
		ow_streams_close(&options->to.streams);
	} else {
		r = open_recorder(pair, sources, err);
	}
	ow_lane_logs_init(&pair->logs, pair->recorder, OW_LOCAL_PAIR_SIDES);
	const char *name = r == 0 && !pair->options.forward ? ow_recorder_undirected(pair->recorder, UINT32_MAX) : NULL;
	if (name)
		r = ow_error_set(err, EINVAL, "%s does not show the direction of packets: give --forward FILTER", name);
	if (r == 0)
		r = plan_time(pair, err);
	for (size_t i = 0; r == 0 && i < pair->lanes; i++)
		r = add_lane(pair, i, err);
	if (r == 0 && options->opened)
		r = options->opened(options->opened_arg, err);
	if (r == 0)
		r = ow_recorder_start(pair->recorder, err);
	if (r < 0) {
		ow_local_pair_free(pair);
		return r;
	}
	*ret_pair = pair;
	return 0;
}

void ow_local_pair_free(struct ow_local_pair *pair)
{
	if (!pair)
		return;
	ow_local_pair_unsurvey(pair);
	ow_recorder_free(pair->recorder);
	for (size_t i = 0; pair->lane && i < pair->lanes; i++) {
		for (int side = 0; side < 2; side++)
			ow_interval_packets_free(pair->lane[i].log[side].packets);
		ow_interval_results_free(pair->lane[i].results);
		ow_shared_flows_done(&pair->lane[i].shared);
		ow_interval_copies_free(pair->lane[i].copies);
		if (i % 2 == 0)
			ow_segment_clock_free(pair->lane[i].clock);
		ow_interval_packets_free(pair->lane[i].before);
	}
	ow_lane_logs_done(&pair->logs);
	free(pair->lane);
	free(pair->held);
	free(pair);
}
