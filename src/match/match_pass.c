/* SPDX-License-Identifier: Apache-2.0 */
#include "match/match_pass_private.h"

#include "base/side.h"
#include "match/capture_ends.h"
#include "match/merge.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define FEW_VOTES          3
#define THREADS_FROM_BYTES 4000000 /* bytes of both captures: with fewer, threads cost more than they save */
#define RARE_DELAY         0.001   /* share of delays, at either end, that are not usual; .. */
#define FEWER_DELAYS       0.25 /* .. and that may be those of identical packets on either side of a hole, matched wrongly */

int ow_match_pass_init(struct ow_match_pass *pass, const struct ow_match_options *options)
{
	pass->options = options;
	if (ow_directions_create(&pass->directions) < 0 || ow_tally_init(&pass->tally[OW_A_TO_B]) < 0 ||
	    ow_tally_init(&pass->tally[OW_B_TO_A]) < 0)
		return -ENOMEM;
	return 0;
}

void ow_match_pass_done(struct ow_match_pass *pass)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ow_record_reader_close(&pass->input[side]);
		ow_copies_aside_free(pass->aside[side]);
	}
	ow_tcp_segments_done(&pass->pieces);
	ow_flow_pairs_done(&pass->flow_pairs);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		ow_tally_done(&pass->tally[d]);
	ow_directions_free(pass->directions);
	free(pass->edge);
	free(pass->edge_before);
}

static enum ow_direction only_way(const struct ow_plan *plan)
{
	return plan->rule == OW_ALL_FORWARD ? OW_A_TO_B : plan->way;
}

static enum ow_direction on_direction(void *arg, enum ow_side side, uint32_t flow)
{
	struct ow_match_pass *p = arg;
	const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, flow);
	if (p->plan.rule != OW_BY_VOTES)
		return only_way(&p->plan);
	if (!e)
		return OW_DIRECTIONS;
	bool few = llabs(e->votes - ow_directions_repeats(p->directions, side, flow)->votes) < FEW_VOTES;
	return few && !e->decided ? OW_DIRECTIONS : ow_pass_direction(p, e);
}

/* Copies were matched because they have about the usual delays: they do not show which delays are usual. */
static void note_usual_delays(struct ow_match_pass *p)
{
	bool resent = p->resent[OW_SIDE_A] + p->resent[OW_SIDE_B] > 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (!resent)
			p->usual[d] = ow_match_reach(p, d, RARE_DELAY);
		p->common[d] = ow_match_reach(p, d, FEWER_DELAYS);
	}
}

/* -- the pass ----------------------------------------------------------------------------------------------------- */

/* Flows will have other numbers. */
static void forget_flows(struct ow_match_pass *p)
{
	ow_directions_forget(p->directions);
	ow_flow_pairs_done(&p->flow_pairs);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->input[side].pair = NULL;
		p->input[side].pairs = 0;
	}
}

/* Those of the pass before foretell the next one's. */
static void keep_edges(struct ow_match_pass *p)
{
	struct ow_edge *edge = p->edge_before;
	size_t room = p->edge_room_before;
	p->edge_before = p->edge;
	p->edge_room_before = p->edge_room;
	p->edges_before = p->edges;
	p->edge = edge;
	p->edge_room = room;
	p->edges = 0;
	if (p->details[OW_A_TO_B] && p->edges_before)
		ow_pass_sort_edges(p);
}

static void reset(struct ow_match_pass *p)
{
	const struct ow_identity *now = &p->plan.identity, *then = &p->numbered_by;
	if (now->level != then->level || now->inner != then->inner || now->segments != then->segments ||
	    now->hash_limit != then->hash_limit || now->cut != then->cut || now->cut_df != then->cut_df ||
	    now->routed != then->routed || now->tcp != then->tcp || now->any_ip_id != then->any_ip_id)
		forget_flows(p);
	p->numbered_by = *now;
	ow_directions_restart(p->directions);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		ow_tally_reset(&p->tally[d]);
		ow_floor_init(&p->floor[d]);
	}
	p->repeats[OW_A_TO_B] = p->repeats[OW_B_TO_A] = 0;
	p->alike[OW_A_TO_B] = p->alike[OW_B_TO_A] = (struct ow_spacing){0};
	p->alike_sent_ns[OW_A_TO_B] = p->alike_sent_ns[OW_B_TO_A] = INT64_MIN;
	p->last_sent[OW_A_TO_B] = p->last_sent[OW_B_TO_A] = (struct ow_last_sent){0};
	p->untimed[OW_A_TO_B] = p->untimed[OW_B_TO_A] = 0;
	p->unpaired = (struct ow_unpaired){0};
	p->unsettled[OW_A_TO_B] = p->unsettled[OW_B_TO_A] = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->first_ns[side] = p->last_ns[side] = 0;
		p->ended[side] = false;
		p->unclassified[side] = p->outside[side] = p->records[side] = p->unmatched_frames[side] = 0;
		p->unmatched_fragments[side] = 0;
		p->resent[side] = p->maybe_copied[side] = 0;
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (unsigned i = 0; i < p->gaps[side]; i++)
			ow_gap_init(&p->gap[side][i], p->gap[side][i].silence, p->gap[side][i].verdict);
	}
	ow_tcp_segments_restart(&p->pieces);
	ow_skew_init(&p->skew);
	keep_edges(p);
	p->details_ns[OW_A_TO_B] = p->details_ns[OW_B_TO_A] = INT64_MIN;
	p->misjudged = 0;
	memset(p->class_order, 0, sizeof p->class_order);
	p->failed = 0;
}

/* The processors that this process may use: fewer than the machine has under taskset or in a container. */
static int cores(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

unsigned ow_match_pass_threads(const struct ow_match_pass *p)
{
	uint64_t bytes = ow_reader_info(p->input[OW_SIDE_A].reader)->size_bytes +
	                 ow_reader_info(p->input[OW_SIDE_B].reader)->size_bytes;
	/* Details need the TCP headers that the readers note. */
	if (p->details[OW_A_TO_B])
		return 0;
	if (p->options->threads)
		return p->options->threads - 1;
	return bytes < THREADS_FROM_BYTES ? 0 : (unsigned)(cores() - 1);
}

struct ow_time_base ow_match_pass_time_base(const struct ow_match_pass *p, enum ow_side side)
{
	if (side == OW_SIDE_A)
		return (struct ow_time_base){0};
	return (struct ow_time_base){p->plan.shift_ns, p->plan.drift_from_ns, p->plan.drift};
}

static int start_batches(struct ow_match_pass *p, struct ow_record_batches *batches[OW_SIDES], struct ow_error *err)
{
	struct ow_time_base base[OW_SIDES] = {ow_match_pass_time_base(p, OW_SIDE_A),
	                                      ow_match_pass_time_base(p, OW_SIDE_B)};
	int r = 0;
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		if (p->input[side].dedup && !p->aside[side] && !(p->aside[side] = ow_copies_aside_create()))
			return -ENOMEM;
		if (p->aside[side])
			ow_copies_aside_reset(p->aside[side]);
		p->input[side].wants_classes = p->events;
		r = ow_record_reader_start(&p->input[side], &p->plan.identity, err);
	}
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++)
		r = ow_record_batches_start(&p->input[side], &base[side], &batches[side]);
	return r;
}

bool ow_match_pass_is_plain(const struct ow_match_pass *pass)
{
	return !pass->events && !pass->details[OW_A_TO_B] && !pass->intervals && !pass->plan.identity.cut;
}

int ow_match_pass_begin(struct ow_match_pass *pass, struct ow_matcher **ret_matcher)
{
	const struct ow_matcher_calls calls = {.met = ow_match_pass_is_plain(pass) ? ow_pass_on_met : NULL,
	                                       .matched = ow_pass_on_matched,
	                                       .settled = ow_pass_on_settled,
	                                       .unmatched = ow_pass_on_unmatched,
	                                       .direction = on_direction,
	                                       .arg = pass};
	struct ow_matcher *matcher;
	reset(pass);
	int r = ow_matcher_create(pass->plan.window_ns, &calls, &matcher);
	if (r < 0)
		return r;
	pass->matcher = matcher;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (pass->plan.expects[d])
			ow_matcher_expect(matcher, d, pass->plan.low_ns[d], pass->plan.high_ns[d]);
		ow_matcher_reorders(matcher, d, pass->plan.reorder_ns[d]);
		ow_matcher_flight(matcher, d, pass->flight_ns[d]);
		if (pass->plan.has_least[d])
			ow_matcher_least(matcher, d, pass->plan.least_ns[d]);
		if (pass->plan.in_order[d] && r == 0)
			r = ow_matcher_in_order(matcher, d, ow_pass_timestamp_error(pass));
	}
	if (pass->plan.rule != OW_BY_VOTES)
		ow_matcher_one_way(matcher, only_way(&pass->plan));
	if (r < 0)
		ow_matcher_free(matcher);
	else
		*ret_matcher = matcher;
	return r;
}

int ow_match_pass_end(struct ow_match_pass *pass, struct ow_matcher *matcher, int r)
{
	const struct ow_flow_table *const keys[OW_SIDES] = {pass->input[OW_SIDE_A].flows, pass->input[OW_SIDE_B].flows};
	pass->matcher = NULL; /* what is decided now comes in any order */
	if (r == 0)
		r = ow_matcher_finish(matcher);
	if (r == 0) {
		ow_tally_flush(&pass->tally[OW_A_TO_B]);
		ow_tally_flush(&pass->tally[OW_B_TO_A]);
		ow_skew_finish(&pass->skew);
		pass->miscounted = ow_directions_decide(pass->directions, keys, pass->plan.rule, pass->plan.way,
		                                        pass->plan.doubt_ns);
		r = pass->miscounted < 0 ? (int)pass->miscounted : 0;
	}
	if (r == 0) {
		ow_pass_resolve_missing(pass);
		ow_pass_resolve_edges(pass);
		note_usual_delays(pass);
		r = pass->failed;
	}
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		pass->crowded[d] = ow_matcher_crowded(matcher, d);
		pass->impossible[d] = ow_matcher_impossible(matcher, d);
		pass->sent_again[d] = ow_matcher_sent_again(matcher, d);
	}
	ow_matcher_free(matcher);
	return r;
}

int ow_match_pass_refuse(int r, struct ow_error *err)
{
	if (r == -ENOMEM)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (r == -ERANGE)
		return ow_error_set(err, ERANGE, "more than %u intervals: choose a longer --interval",
		                    OW_INTERVALS_MAX);
	return r;
}

int ow_match_pass_run(struct ow_match_pass *pass, struct ow_error *err)
{
	struct ow_matcher *matcher = NULL;
	struct ow_record_batches *batches[OW_SIDES] = {NULL, NULL};
	int r = ow_match_pass_begin(pass, &matcher);
	if (r == 0) {
		r = start_batches(pass, batches, err);
		struct ow_readahead *readahead =
			r == 0 ? ow_readahead_start(batches, OW_SIDES, ow_match_pass_threads(pass)) : NULL;
		if (r == 0)
			r = ow_merge_run(pass, matcher, batches, err);
		ow_readahead_leave(readahead);
		for (unsigned side = 0; side < OW_SIDES; side++)
			ow_record_batches_stop(batches[side]);
		r = ow_match_pass_end(pass, matcher, r);
	}
	return ow_match_pass_refuse(r, err);
}

void ow_match_pass_event(const struct ow_match_pass *p, const struct ow_pass_note *note,
                         struct ow_packet_event *ret_event)
{
	enum ow_side side = note->fate == OW_FATE_MATCHED ? OW_SIDE_A : note->side;
	const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, note->flow[side]);
	struct ow_packet_event event = {.size = sizeof event,
	                                .fate = note->fate,
	                                .direction = e ? e->direction : OW_DIRECTIONS,
	                                .side = side,
	                                .ambiguous = note->ambiguous,
	                                .packets = 1,
	                                .bytes = note->bytes};
	if (note->fate == OW_FATE_OUTSIDE)
		event.direction = note->direction;
	if (note->fate == OW_FATE_LOST)
		event.fate = e ? ow_pass_fate(e, side, note->copy) : OW_FATE_UNCLASSIFIED;
	if (note->fate == OW_FATE_MATCHED) {
		event.direction = e ? ow_pass_direction(p, e) : OW_A_TO_B;
		event.side = side = ow_sender_of(event.direction);
	}
	event.flow = ow_flow_table_key(p->input[side].flows, note->flow[side]);
	memcpy(event.number, note->number, sizeof event.number);
	memcpy(event.time_ns, note->time_ns, sizeof event.time_ns);
	*ret_event = event;
}
