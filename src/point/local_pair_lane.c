/* SPDX-License-Identifier: Apache-2.0 */
/* A lane between two interfaces of one host: its two interval logs, and its results. */
#include "base/array.h"
#include "base/word.h"
#include "capture/iface/stream.h"
#include "point/local_pair_private.h"
#include "result/cause.h"

#include <stdio.h>
#include <string.h>

/* Intervals that may be open: the recorder lags by less than this, files by a few intervals. */
#define OPEN_NS   (2 * OW_NS_PER_S)
#define OPEN_MIN  64
#define OPEN_MOST 60000
/* The memory of an empty one, and the share of the memory that they may take. */
#define OPEN_BYTES 256u
#define OPEN_SHARE 8u
/* The longest frames of most links with tags, and of those with jumbo frames. */
#define FRAME_USUAL 1600u
#define FRAME_JUMBO 9300u
/* With fewer packets per interval there is no measurement. */
#define STAMPS_MIN 4096

/* -- interval logs ------------------------------------------------------------------------------------------------- */

void ow_local_pair_log_options(const struct ow_local_pair *pair, size_t lane, int side,
                               struct ow_lane_options *ret_options)
{
	const struct ow_local_pair_options *o = &pair->options;
	bool backward = lane % 2;
	/* Forward it arrives at `from` and leaves at `to`; backward the reverse. */
	unsigned source = (side == OW_LOCAL_PAIR_SENDER) != backward ? OW_LOCAL_PAIR_FROM : OW_LOCAL_PAIR_TO;
	*ret_options = (struct ow_lane_options){
		.identity = o->identity,
		.sources = 1u << source,
		.heading = o->forward                     ? OW_HEADING_UNKNOWN
	                   : side == OW_LOCAL_PAIR_SENDER ? OW_HEADING_IN
	                                                  : OW_HEADING_OUT,
		.filter = o->classes[lane / 2].filter,
		.way = backward && o->backward ? o->backward : o->forward,
		.way_not = backward && !o->backward,
		.t0_ns = pair->t0_ns + pair->base * o->length_ns,
		.length_ns = o->length_ns,
		.flows = o->shared,
		.flow_seed = o->identity.key,
	};
}

static int add_log(struct ow_local_pair *pair, size_t lane, int side, struct ow_error *err)
{
	const struct ow_local_pair_options *o = &pair->options;
	struct ow_local_pair_log *log = pair->lane[lane].log + side;
	struct ow_lane_options lane_options;
	ow_local_pair_log_options(pair, lane, side, &lane_options);
	log->source = lane_options.sources == 1u << OW_LOCAL_PAIR_TO ? OW_LOCAL_PAIR_TO : OW_LOCAL_PAIR_FROM;
	uint64_t memory = o->memory ? o->memory : OW_LOCAL_PAIR_MEMORY;
	/* Packets of two intervals for each log: one is filled while the other is compared. */
	uint64_t sightings = memory / (2 * 2 * pair->lanes * sizeof(struct ow_sighting));
	/* A stream may be ahead of the other one by the lag. */
	uint64_t open = (uint64_t)((OPEN_NS + (pair->streams ? 2 * o->lag_ns : 0)) / o->length_ns);
	uint64_t most = memory / OPEN_SHARE / (2 * pair->lanes * OPEN_BYTES);
	open = open < most ? open : most;
	open = open < OPEN_MOST ? open : OPEN_MOST;
	return ow_lane_log_create(&pair->logs, &lane_options, sightings > STAMPS_MIN ? sightings : STAMPS_MIN,
	                          open > OPEN_MIN ? open : OPEN_MIN, &log->recorded, err);
}

int ow_local_pair_add_logs(struct ow_local_pair *pair, size_t index, struct ow_error *err)
{
	int r = add_log(pair, index, OW_LOCAL_PAIR_SENDER, err);
	return r < 0 ? r : add_log(pair, index, OW_LOCAL_PAIR_RECEIVER, err);
}

static void forget_logs(struct ow_local_pair_lane *lane)
{
	for (int side = 0; side < 2; side++) {
		struct ow_local_pair_log *log = lane->log + side;
		ow_lane_log_free(log->recorded);
		ow_interval_packets_free(log->packets);
		*log = (struct ow_local_pair_log){.source = log->source};
	}
	ow_interval_packets_free(lane->before);
	lane->before = NULL;
}

/* -- results ------------------------------------------------------------------------------------------------------- */

/*
 * Streams do not say how a superframe was cut, so that it does not match the packets of the wire. It is longer than a frame
 * of the wire can be, or than any that the other point shows.
 */
static void look_for_superframes(const struct ow_local_pair *pair, struct ow_interval_result *r)
{
	const struct ow_local_pair_options *o = &pair->options;
	uint32_t from = ow_streams_longest(&o->from.streams), to = ow_streams_longest(&o->to.streams);
	uint32_t most = from > to ? from : to, least = from > to ? to : from;
	char text[OW_RESULT_CAUSE];
	if (most <= FRAME_USUAL || (most <= FRAME_JUMBO && least > FRAME_USUAL))
		return;
	snprintf(text, sizeof text, ow_cause_superframes, most == from ? o->from_name : o->to_name, most);
	ow_result_add_cause(r, text);
}

void ow_local_pair_complete(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, struct ow_interval_result *r)
{
	ow_result_name_like(r, &lane->names);
	/* One clock gives both timestamps; nothing is known about the clock of files. */
	r->clock_from = r->clock_to =
		pair->clock.files ? (struct ow_clock_state){false, OW_CLOCK_UNKNOWN} : (struct ow_clock_state){true, 0};
	if (pair->streams)
		look_for_superframes(pair, r);
	uint64_t misplaced = 0;
	for (int side = 0; side < 2; side++) {
		struct ow_local_pair_log *log = lane->log + side;
		uint64_t all = ow_interval_log_misplaced(log->recorded->packets);
		misplaced += all - log->misplaced;
		log->misplaced = all;
	}
	if (misplaced) {
		char text[OW_RESULT_CAUSE];
		snprintf(text, sizeof text, ow_cause_out_of_time, misplaced, ow_plural(misplaced, "packet", "packets"));
		ow_result_add_cause(r, text);
	}
	if (!pair->clock.files)
		r->cost.ready_ns = ow_recorder_now_ns(pair->recorder) - (r->start_ns + r->length_ns);
}

/* These intervals are unknown, and packets that wait stay undecided, because later ones are not comparable. */
static int tell_unknown(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, int64_t last, const char *cause)
{
	int r = 0;
	for (int64_t i = pair->next; r == 0 && i <= last; i++) {
		struct ow_interval_result result = {.interval = i + pair->split - pair->lead,
		                                    .start_ns = ow_local_pair_start_of(pair, i),
		                                    .length_ns = pair->options.length_ns,
		                                    .reordered = OW_RESULT_NOT_COUNTED};
		ow_local_pair_complete(pair, lane, &result);
		snprintf(result.cause, sizeof result.cause, "%s", cause);
		if (i >= pair->lead && result.start_ns < pair->end_ns)
			r = ow_interval_results_unknown(lane->results, &result, false);
	}
	if (ow_cause_of(cause) == OW_CAUSE_IDENTITY_CHANGED)
		ow_interval_results_distrust(lane->results);
	ow_interval_results_finish(lane->results);
	return r;
}

int ow_local_pair_give_up(struct ow_local_pair *pair, int64_t last, const char *cause)
{
	int r = 0;
	pair->holding = true;
	for (size_t i = 0; r == 0 && i < pair->lanes; i++) {
		r = tell_unknown(pair, pair->lane + i, last, cause);
		forget_logs(pair->lane + i);
		pair->lane[i].running.begun = false;
	}
	ow_local_pair_release(pair);
	pair->next = last + 1 > pair->next ? last + 1 : pair->next;
	pair->base = pair->next;
	return r;
}

int ow_local_pair_begin(struct ow_local_pair *pair, struct ow_error *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < pair->lanes; i++)
		r = ow_local_pair_add_logs(pair, i, err);
	return r;
}

/* Which lane a result is of. */
static size_t lane_of(const struct ow_local_pair *pair, const struct ow_interval_result *result)
{
	size_t i = 0;
	while (i + 1 < pair->lanes && (strcmp(pair->lane[i].names.class_name, result->class_name) != 0 ||
	                               strcmp(pair->lane[i].names.from, result->from) != 0))
		i++;
	return i;
}

static void note_doubt(struct ow_local_pair *pair, const struct ow_interval_result *r)
{
	if (!pair->options.identities || !ow_identity_doubtful(r))
		return;
	pair->survey.doubtful = true;
	pair->survey.lane = lane_of(pair, r);
	pair->survey.rate =
		(double)(r->total_sent > r->total_received ? r->total_sent : r->total_received) / (double)r->length_ns;
}

void ow_local_pair_add_shift(const struct ow_local_pair *pair, struct ow_interval_result *r)
{
	struct ow_value *offset = &r->clock_offset_ns;
	bool forward = strcmp(r->from, pair->lane[0].names.from) == 0;
	double shift_ns = (double)(forward ? pair->shift_ns : -pair->shift_ns);
	if (!pair->shift_ns || offset->status == OW_VALUE_NONE)
		return;
	offset->value += shift_ns;
	offset->low += shift_ns;
	offset->high += shift_ns;
}

/* Packets that arrived and that the capture of their sender does not show: it may have missed others that arrived there. */
static void note_missed(struct ow_local_pair *pair, const struct ow_interval_result *r)
{
	size_t lane = lane_of(pair, r);
	if (r->status != OW_RESULT_UNKNOWN) /* lanes are in pairs: the two directions of a class */
		ow_interval_results_missed(pair->lane[lane ^ 1].results, r->interval, r->extra - r->duplicated,
		                           r->received);
}

/* At the end of many intervals a lane reports several at a time: in the order of the intervals, if there is memory. */
void ow_local_pair_on_result(void *arg, const struct ow_interval_result *result)
{
	struct ow_local_pair *pair = arg;
	struct ow_interval_result told = *result;
	note_doubt(pair, result);
	note_missed(pair, result);
	ow_local_pair_add_shift(pair, &told);
	if (pair->holding && OW_GROW(pair->held, pair->held_room, pair->helds + 1) == 0)
		pair->held[pair->helds++] = told;
	else
		pair->options.sink(pair->options.arg, &told);
}

void ow_local_pair_on_event(void *arg, const struct ow_flow_event *event)
{
	const struct ow_local_pair *pair = arg;
	if (pair->options.event)
		pair->options.event(pair->options.arg, event);
}

void ow_local_pair_release(struct ow_local_pair *pair)
{
	pair->holding = false;
	for (size_t told = 0; told < pair->helds;) {
		int64_t interval = INT64_MAX;
		for (size_t i = 0; i < pair->helds; i++)
			interval = ow_local_pair_least(interval, pair->held[i].interval);
		for (size_t i = 0; i < pair->helds; i++) {
			if (pair->held[i].interval != interval)
				continue;
			pair->options.sink(pair->options.arg, pair->held + i);
			pair->held[i].interval = INT64_MAX; /* already reported */
			told++;
		}
	}
	pair->helds = 0;
}
