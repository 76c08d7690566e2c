/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each frame: finds the lanes that want it (direction, filters), computes its ids (once for all lanes with the same
 * identity), and adds sightings to the open chunk of each lane. Filters and ids are evaluated when they are needed, at
 * most once a frame.
 *
 * Each lane has two open chunks, because around the end of an interval frames are slightly out of order.
 */
#include "record/lane_recorder.h"

#include "packet/segments.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OW_HEADINGS            3
#define OW_CHUNK_LEAST         64 /* initial room of a chunk */
#define OW_LANE_RECORDER_AHEAD 4  /* frames whose headers are prefetched */

struct open_chunk {                  /* of one interval */
	int64_t start_ns, origin_ns; /* origin: times of packets are since then */
	uint64_t length_ns;
	int64_t interval;
	struct ow_chunk *chunk; /* NULL = none yet */
	uint32_t room;
};

struct slot { /* the state of a lane, in the order of the table */
	struct ow_interval_cuts cuts;
	struct open_chunk open[2];
	unsigned now;   /* index of the one that was used last */
	uint32_t usual; /* usual count of a chunk */
	uint32_t number;
	unsigned sample_shift;
	uint32_t identity, filter, way, without;
	bool way_not, firsts;
	bool session;                          /* packets were left out since the last ones that were noted */
	const struct ow_scope_hash *flow_hash; /* NULL: flows are not noted */
};

/* The cached result for a frame, valid if `frame` is its number. */
struct verdict {
	uint64_t frame;
	bool takes;
};

struct ids {
	uint64_t frame;
	int status;
	struct ow_segments segments;
};

struct view { /* the state for a table */
	const struct ow_lane_table *table;
	struct slot *slot;
	uint32_t *wants[OW_HEADINGS]; /* slots that want frames of this direction from this source */
	uint32_t wanting[OW_HEADINGS];
	struct verdict *verdict; /* for each filter */
	struct ids *ids;         /* for each identity */
};

struct ow_lane_recorder {
	unsigned source;
	uint64_t frame; /* counts the frames; the key of verdicts and ids */
	struct view view;
	struct ow_chunk *first, **end; /* finished chunks */
	struct ow_chunk *last;
	struct ow_lane_recorder_counts counts;
};

void ow_chunk_free(struct ow_chunk *chunk)
{
	if (chunk)
		ow_lane_flows_done(&chunk->flows);
	free(chunk);
}

int ow_lane_recorder_create(unsigned source, struct ow_lane_recorder **ret_recorder)
{
	struct ow_lane_recorder *recorder = calloc(1, sizeof *recorder);
	if (!recorder)
		return -ENOMEM;
	recorder->source = source;
	recorder->end = &recorder->first;
	*ret_recorder = recorder;
	return 0;
}

static void view_free(struct view *view)
{
	free(view->slot);
	for (int i = 0; i < OW_HEADINGS; i++)
		free(view->wants[i]);
	free(view->verdict);
	free(view->ids);
}

void ow_lane_recorder_free(struct ow_lane_recorder *recorder)
{
	if (!recorder)
		return;
	for (uint32_t i = 0; recorder->view.table && i < recorder->view.table->count; i++) {
		ow_chunk_free(recorder->view.slot[i].open[0].chunk);
		ow_chunk_free(recorder->view.slot[i].open[1].chunk);
	}
	for (struct ow_chunk *chunk = recorder->first, *next; chunk; chunk = next) {
		next = chunk->next;
		ow_chunk_free(chunk);
	}
	view_free(&recorder->view);
	free(recorder);
}

/*
 * -- chunks ---------------------------------------------------------------------------------------------------------
 */

static void put_aside(struct ow_lane_recorder *recorder, struct slot *slot, struct open_chunk *open)
{
	struct ow_chunk *chunk = open->chunk;
	if (!chunk)
		return;
	slot->usual = chunk->count;
	/* If a lane has few packets, most of a large block is given back. */
	if (chunk->count < open->room / 2) {
		struct ow_chunk *less = realloc(chunk, sizeof *chunk + chunk->count * sizeof *chunk->sighting);
		if (less)
			chunk = less;
	}
	ow_lane_flows_close(&chunk->flows);
	open->chunk = NULL;
	*recorder->end = chunk;
	recorder->end = &chunk->next;
	recorder->last = chunk;
}

/* Returns the open chunk for this interval, with room for a sighting. NULL if out of memory. */
static __attribute__((noinline)) struct ow_chunk *make_room(struct ow_lane_recorder *recorder, struct slot *slot,
                                                            struct open_chunk *open)
{
	if (open->chunk && open->room >= OW_CHUNK_STAMPS)
		put_aside(recorder, slot, open);
	uint32_t room = OW_CHUNK_STAMPS;
	if (!open->chunk && slot->usual < OW_CHUNK_STAMPS / 2)
		room = slot->usual < OW_CHUNK_LEAST / 2 ? OW_CHUNK_LEAST : slot->usual * 2;
	struct ow_chunk *chunk = realloc(open->chunk, sizeof *chunk + room * sizeof *chunk->sighting);
	if (!chunk)
		return NULL;
	if (!open->chunk) {
		*chunk = (struct ow_chunk){
			.lane = slot->number, .interval = open->interval, .sample_shift = slot->sample_shift};
	}
	open->chunk = chunk;
	open->room = room;
	return chunk;
}

static void open_interval(struct open_chunk *open, const struct ow_interval_cuts *cuts, int64_t interval)
{
	open->interval = interval;
	open->start_ns = ow_cuts_start(cuts, interval);
	open->origin_ns = ow_cuts_origin(cuts, interval);
	open->length_ns = (uint64_t)(ow_cuts_start(cuts, interval + 1) - open->start_ns);
}

/* Switches to the interval of this time; the older one of the two is finished. */
static __attribute__((noinline)) struct open_chunk *turn(struct ow_lane_recorder *recorder, struct slot *slot,
                                                         int64_t time_ns)
{
	slot->now ^= 1;
	struct open_chunk *open = &slot->open[slot->now], *other = &slot->open[slot->now ^ 1];
	if ((uint64_t)(time_ns - open->start_ns) < open->length_ns)
		return open;
	if (open->start_ns > other->start_ns) {
		struct open_chunk swap = *open;
		*open = *other;
		*other = swap;
	}
	put_aside(recorder, slot, open);
	open_interval(open, &slot->cuts, ow_cuts_interval(&slot->cuts, time_ns));
	return open;
}

static uint32_t number_of_flow(const struct ow_scope_hash *hash, const struct ow_segments *segments,
                               struct ow_lane_flows *flows)
{
	struct ow_scope_flow flow;
	uint32_t number = ow_lane_flows_find(flows, ow_scope_hash_flow(hash, &segments->flow));
	if (!number) {
		ow_scope_flow_of(hash, &segments->flow, &flow);
		number = ow_lane_flows_add(flows, &flow, UINT32_MAX);
	}
	if (number && flows->flow)
		flows->flow[number - 1].ttl = segments->ttl;
	return number;
}

/* Adds the packets of a frame to the chunk of a lane. */
static inline void note(struct ow_lane_recorder *recorder, struct slot *slot, int64_t time_ns, const struct ids *ids)
{
	struct open_chunk *open = &slot->open[slot->now];
	if ((uint64_t)(time_ns - open->start_ns) >= open->length_ns) {
		if (time_ns < ow_cuts_start(&slot->cuts, 0))
			return;
		open = turn(recorder, slot, time_ns);
	}
	unsigned count = ids->status == 0 ? ids->segments.count : 0;
	struct ow_chunk *chunk = open->chunk;
	if (!chunk && !(chunk = make_room(recorder, slot, open))) {
		recorder->counts.lost += count;
		return;
	}
	chunk->frames++;
	chunk->session |= slot->session;
	slot->session = false;
	/* A superframe that could not be cut is one packet for points that see the same one; other points do not know
	 * it. */
	chunk->unreadable += ids->status != 0 || ids->segments.uncut;
	const struct ow_identity *identity = &recorder->view.table->identity[slot->identity];
	uint32_t flow = slot->flow_hash && count ? number_of_flow(slot->flow_hash, &ids->segments, &chunk->flows) : 0;
	/* Without memory for its flow, a packet would look like one that the other point does not see. */
	if (slot->flow_hash && count && !flow) {
		recorder->counts.lost += count;
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t id = ids->segments.id[i];
		if (chunk->count == open->room) {
			if (!(chunk = make_room(recorder, slot, open))) {
				recorder->counts.lost += count - i;
				return;
			}
			/* A new chunk has flows of its own. */
			flow = slot->flow_hash ? number_of_flow(slot->flow_hash, &ids->segments, &chunk->flows) : 0;
			if (slot->flow_hash && !flow) {
				recorder->counts.lost += count - i;
				return;
			}
		}
		chunk->packets++;
		chunk->bytes += ids->segments.bytes[i];
		if (slot->sample_shift && !ow_sampled(ow_sample_rank(identity, id), slot->sample_shift))
			continue;
		chunk->sighting[chunk->count++] = (struct ow_sighting){id, time_ns - open->origin_ns, flow};
	}
}

/*
 * -- frames ---------------------------------------------------------------------------------------------------------
 */

static bool passes(struct ow_lane_recorder *recorder, uint32_t filter, const struct ow_frame *frame)
{
	struct verdict *verdict = &recorder->view.verdict[filter];
	if (verdict->frame != recorder->frame) {
		const struct ow_packet_filter *code = &recorder->view.table->filter[filter].code[recorder->source];
		verdict->frame = recorder->frame;
		verdict->takes = ow_packet_filter_takes(code, frame);
	}
	return verdict->takes;
}

static bool wanted(struct ow_lane_recorder *recorder, struct slot *slot, const struct ow_frame *frame)
{
	if (slot->filter != OW_NO_FILTER && !passes(recorder, slot->filter, frame))
		return false;
	if (slot->way != OW_NO_FILTER && passes(recorder, slot->way, frame) == slot->way_not)
		return false;
	bool session = slot->without != OW_NO_FILTER && passes(recorder, slot->without, frame);
	slot->session |= session;
	return !session;
}

static const struct ids *ids_of(struct ow_lane_recorder *recorder, uint32_t identity,
                                const struct ow_iface_frame *frame)
{
	struct ids *ids = &recorder->view.ids[identity];
	if (ids->frame != recorder->frame) {
		ids->frame = recorder->frame;
		ids->status = ow_segments_of_frame(&recorder->view.table->identity[identity], frame, &ids->segments);
	}
	return ids;
}

static bool is_later_fragment(const struct ids *ids)
{
	const struct ow_flow_key *flow = &ids->segments.flow;
	return ids->status == 0 && flow->version && flow->ethertype == OW_FLOW_LATER_FRAGMENTS;
}

/* No lane wants the frame: counts whether it is an IP packet. */
static void count_unclaimed(struct ow_lane_recorder *recorder, const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (ow_packet_decode(frame, false, &packet) == OW_DECODE_IP)
		recorder->counts.unclaimed++;
	else
		recorder->counts.not_ip++;
}

void ow_lane_recorder_frames(struct ow_lane_recorder *recorder, const struct ow_iface_frame *frames, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		const struct ow_iface_frame *frame = &frames[n];
		if (n + OW_LANE_RECORDER_AHEAD < count) {
			__builtin_prefetch(frame[OW_LANE_RECORDER_AHEAD].frame.data);
			__builtin_prefetch(frame[OW_LANE_RECORDER_AHEAD].frame.data + 64);
		}
		recorder->frame++;
		bool claimed = false;
		const struct ids *ids = NULL;
		for (uint32_t i = 0; i < recorder->view.wanting[frame->heading]; i++) {
			struct slot *slot = &recorder->view.slot[recorder->view.wants[frame->heading][i]];
			if (!wanted(recorder, slot, &frame->frame))
				continue;
			claimed = true;
			ids = ids_of(recorder, slot->identity, frame);
			if (ids->status != -ENOMSG && !(slot->firsts && is_later_fragment(ids)))
				note(recorder, slot, frame->frame.time_ns, ids);
		}
		if (!claimed)
			count_unclaimed(recorder, &frame->frame);
		else
			recorder->counts.not_ip += ids->status == -ENOMSG;
	}
}

void ow_lane_recorder_finish(struct ow_lane_recorder *recorder, int64_t passed_ns)
{
	for (uint32_t i = 0; recorder->view.table && i < recorder->view.table->count; i++) {
		struct slot *slot = &recorder->view.slot[i];
		/* The earlier interval first. */
		unsigned first = slot->open[1].start_ns < slot->open[0].start_ns;
		for (unsigned k = 0; k < 2; k++) {
			struct open_chunk *open = &slot->open[first ^ k];
			if (open->chunk &&
			    (passed_ns == INT64_MAX || open->start_ns + (int64_t)open->length_ns <= passed_ns))
				put_aside(recorder, slot, open);
		}
	}
}

bool ow_lane_recorder_ready(const struct ow_lane_recorder *recorder)
{
	return recorder->first != NULL;
}

struct ow_chunk *ow_lane_recorder_take(struct ow_lane_recorder *recorder, struct ow_chunk **ret_last)
{
	struct ow_chunk *first = recorder->first;
	*ret_last = recorder->last;
	recorder->first = recorder->last = NULL;
	recorder->end = &recorder->first;
	return first;
}

int64_t ow_lane_recorder_boundary(const struct ow_lane_recorder *recorder, int64_t time_ns)
{
	int64_t boundary = INT64_MAX;
	for (uint32_t i = 0; recorder->view.table && i < recorder->view.table->count; i++) {
		const struct slot *slot = &recorder->view.slot[i];
		int64_t interval = ow_cuts_interval(&slot->cuts, time_ns);
		int64_t end = ow_cuts_start(&slot->cuts, interval < 0 ? 1 : interval + 1);
		boundary = end < boundary ? end : boundary;
	}
	return boundary;
}

void ow_lane_recorder_miss(struct ow_lane_recorder *recorder, uint64_t packets)
{
	recorder->counts.lost += packets;
}

const struct ow_lane_recorder_counts *ow_lane_recorder_counts(const struct ow_lane_recorder *recorder)
{
	return &recorder->counts;
}

/*
 * -- tables ---------------------------------------------------------------------------------------------------------
 */

static int view_make(const struct ow_lane_table *table, unsigned source, struct view *ret_view)
{
	struct view view = {.table = table};
	bool failed = !(view.slot = calloc(table->count + 1, sizeof *view.slot)) ||
	              !(view.verdict = calloc(table->filters + 1, sizeof *view.verdict)) ||
	              !(view.ids = calloc(table->identities + 1, sizeof *view.ids));
	for (int i = 0; i < OW_HEADINGS; i++)
		failed = !(view.wants[i] = calloc(table->count + 1, sizeof *view.wants[i])) || failed;
	if (failed) {
		view_free(&view);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		const struct ow_lane_entry *entry = &table->entry[i];
		const struct ow_lane *lane = entry->lane;
		view.slot[i] = (struct slot){.cuts = entry->cuts,
		                             .number = lane->number,
		                             .sample_shift = entry->sample_shift,
		                             .identity = entry->identity,
		                             .filter = entry->filter,
		                             .way = entry->way,
		                             .without = entry->without,
		                             .way_not = lane->way_not,
		                             .firsts = lane->firsts,
		                             .flow_hash = lane->flows ? &lane->flow_hash : NULL};
		open_interval(&view.slot[i].open[0], &entry->cuts, 0);
		open_interval(&view.slot[i].open[1], &entry->cuts, 0);
		for (int heading = 0; lane->sources >> source & 1 && heading < OW_HEADINGS; heading++) {
			if (lane->heading == OW_HEADING_UNKNOWN || (int)lane->heading == heading)
				view.wants[heading][view.wanting[heading]++] = i;
		}
	}
	*ret_view = view;
	return 0;
}

int ow_lane_recorder_take_up(struct ow_lane_recorder *recorder, const struct ow_lane_table *table)
{
	struct view view, *old = &recorder->view;
	if (table == old->table)
		return 0;
	int r = view_make(table, recorder->source, &view);
	if (r < 0)
		return r;
	/* Both are sorted by lane number. */
	uint32_t to = 0;
	for (uint32_t i = 0; old->table && i < old->table->count; i++) {
		struct slot *slot = &old->slot[i];
		while (to < table->count && view.slot[to].number < slot->number)
			to++;
		if (to == table->count || view.slot[to].number != slot->number) {
			ow_chunk_free(slot->open[0].chunk);
			ow_chunk_free(slot->open[1].chunk);
			continue;
		}
		if (slot->sample_shift != view.slot[to].sample_shift) {
			put_aside(recorder, slot, &slot->open[slot->open[1].start_ns < slot->open[0].start_ns]);
			put_aside(recorder, slot, &slot->open[0]);
			put_aside(recorder, slot, &slot->open[1]);
		}
		memcpy(view.slot[to].open, slot->open, sizeof slot->open);
		view.slot[to].now = slot->now;
		view.slot[to].usual = slot->usual;
	}
	view_free(old);
	*old = view;
	return 0;
}
