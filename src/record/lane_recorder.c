/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each frame: the lanes that want it (heading, filters), its ids (once for all lanes with the same identity), and a
 * stamp into the open chunk of each lane. Filters and ids are looked at when they are needed, at most once a frame.
 *
 * Each lane has two open chunks: around the end of an interval frames come a little out of order.
 */
#include "record/lane_recorder.h"

#include "packet/segments.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OW_HEADINGS            3
#define OW_CHUNK_LEAST         64 /* stamps that a new chunk has room for */
#define OW_LANE_RECORDER_AHEAD 4  /* frames whose headers are fetched ahead */

struct open_chunk { /* of one interval */
	int64_t start_ns;
	struct ow_chunk *chunk; /* NULL = none yet */
	uint32_t room;
};

struct slot { /* what a lane of the table needs here, in the order of the table */
	int64_t t0_ns;
	uint64_t length_ns;
	struct open_chunk open[2];
	unsigned now;   /* which of the two was used last */
	uint32_t usual; /* stamps of a chunk */
	uint32_t number;
	unsigned sample_shift;
	uint32_t identity, filter, way;
	bool way_not;
};

/* What is known of the frame at hand, if `frame` is its number. */
struct verdict {
	uint64_t frame;
	bool takes;
};

struct ids {
	uint64_t frame;
	int status;
	struct ow_segments segments;
};

struct view { /* what goes with a table */
	const struct ow_lane_table *table;
	struct slot *slot;
	uint32_t *wants[OW_HEADINGS]; /* slots that take frames of this heading from this source */
	uint32_t wanting[OW_HEADINGS];
	struct verdict *verdict; /* by filter */
	struct ids *ids;         /* by identity */
};

struct ow_lane_recorder {
	unsigned source;
	uint64_t frame; /* counts the frames, as the key of verdicts and ids */
	struct view view;
	struct ow_chunk *first, **end; /* put aside */
	struct ow_chunk *last;
	struct ow_lane_recorder_counts counts;
};

int ow_lane_recorder_create(unsigned source, struct ow_lane_recorder **ret_scribe)
{
	struct ow_lane_recorder *scribe = calloc(1, sizeof *scribe);
	if (!scribe)
		return -ENOMEM;
	scribe->source = source;
	scribe->end = &scribe->first;
	*ret_scribe = scribe;
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

void ow_lane_recorder_free(struct ow_lane_recorder *scribe)
{
	if (!scribe)
		return;
	for (uint32_t i = 0; scribe->view.table && i < scribe->view.table->count; i++) {
		free(scribe->view.slot[i].open[0].chunk);
		free(scribe->view.slot[i].open[1].chunk);
	}
	for (struct ow_chunk *chunk = scribe->first, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	view_free(&scribe->view);
	free(scribe);
}

/* Chunks. */

static void put_aside(struct ow_lane_recorder *scribe, struct slot *slot, struct open_chunk *open)
{
	struct ow_chunk *chunk = open->chunk;
	if (!chunk)
		return;
	slot->usual = chunk->count;
	/* Most of a large block is given back where a lane has few packets. */
	if (chunk->count < open->room / 2) {
		struct ow_chunk *less = realloc(chunk, sizeof *chunk + chunk->count * sizeof *chunk->stamp);
		if (less)
			chunk = less;
	}
	open->chunk = NULL;
	*scribe->end = chunk;
	scribe->end = &chunk->next;
	scribe->last = chunk;
}

/* The open chunk for this interval; there is room for a stamp. NULL when out of memory. */
static __attribute__((noinline)) struct ow_chunk *make_room(struct ow_lane_recorder *scribe, struct slot *slot,
                                                            struct open_chunk *open)
{
	if (open->chunk && open->room >= OW_CHUNK_STAMPS)
		put_aside(scribe, slot, open);
	uint32_t room = OW_CHUNK_STAMPS;
	if (!open->chunk && slot->usual < OW_CHUNK_STAMPS / 2)
		room = slot->usual < OW_CHUNK_LEAST / 2 ? OW_CHUNK_LEAST : slot->usual * 2;
	struct ow_chunk *chunk = realloc(open->chunk, sizeof *chunk + room * sizeof *chunk->stamp);
	if (!chunk)
		return NULL;
	if (!open->chunk) {
		*chunk = (struct ow_chunk){.lane = slot->number,
		                           .interval = (open->start_ns - slot->t0_ns) / (int64_t)slot->length_ns,
		                           .sample_shift = slot->sample_shift};
	}
	open->chunk = chunk;
	open->room = room;
	return chunk;
}

/* The interval of this time becomes the one in use; the older one makes way. time_ns >= t0_ns. */
static __attribute__((noinline)) struct open_chunk *turn(struct ow_lane_recorder *scribe, struct slot *slot,
                                                         int64_t time_ns)
{
	slot->now ^= 1;
	struct open_chunk *open = &slot->open[slot->now], *other = &slot->open[slot->now ^ 1];
	if ((uint64_t)(time_ns - open->start_ns) < slot->length_ns)
		return open;
	if (open->start_ns > other->start_ns) {
		struct open_chunk swap = *open;
		*open = *other;
		*other = swap;
	}
	put_aside(scribe, slot, open);
	open->start_ns = time_ns - (time_ns - slot->t0_ns) % (int64_t)slot->length_ns;
	return open;
}

/* The packets of a frame into the chunk of a lane. */
static inline void note(struct ow_lane_recorder *scribe, struct slot *slot, int64_t time_ns, const struct ids *ids)
{
	struct open_chunk *open = &slot->open[slot->now];
	if (time_ns < slot->t0_ns)
		return;
	if ((uint64_t)(time_ns - open->start_ns) >= slot->length_ns)
		open = turn(scribe, slot, time_ns);
	unsigned count = ids->status == 0 ? ids->segments.count : 0;
	struct ow_chunk *chunk = open->chunk;
	if (!chunk && !(chunk = make_room(scribe, slot, open))) {
		scribe->counts.lost += count;
		return;
	}
	/* A superframe that could not be cut is a packet to points that see the same one, and unknown to all others. */
	chunk->unreadable += ids->status != 0 || ids->segments.uncut;
	const struct ow_identity *identity = &scribe->view.table->identity[slot->identity];
	for (unsigned i = 0; i < count; i++) {
		uint64_t id = ids->segments.id[i];
		if (chunk->count == open->room && !(chunk = make_room(scribe, slot, open))) {
			scribe->counts.lost += count - i;
			return;
		}
		chunk->packets++;
		chunk->bytes += ids->segments.bytes[i];
		if (slot->sample_shift && !ow_sampled(ow_sample_rank(identity, id), slot->sample_shift))
			continue;
		chunk->stamp[chunk->count++] = (struct ow_sighting){id, time_ns - open->start_ns};
	}
}

/* Frames. */

static bool passes(struct ow_lane_recorder *scribe, uint32_t filter, const struct ow_frame *frame)
{
	struct verdict *verdict = &scribe->view.verdict[filter];
	if (verdict->frame != scribe->frame) {
		const struct ow_packet_filter *code = &scribe->view.table->filter[filter].code[scribe->source];
		verdict->frame = scribe->frame;
		verdict->takes = ow_packet_filter_takes(code, frame);
	}
	return verdict->takes;
}

static bool wanted(struct ow_lane_recorder *scribe, const struct slot *slot, const struct ow_frame *frame)
{
	if (slot->filter != OW_NO_FILTER && !passes(scribe, slot->filter, frame))
		return false;
	return slot->way == OW_NO_FILTER || passes(scribe, slot->way, frame) != slot->way_not;
}

static const struct ids *ids_of(struct ow_lane_recorder *scribe, uint32_t identity, const struct ow_iface_frame *frame)
{
	struct ids *ids = &scribe->view.ids[identity];
	if (ids->frame != scribe->frame) {
		ids->frame = scribe->frame;
		ids->status = ow_segments_of_frame(&scribe->view.table->identity[identity], frame, &ids->segments);
	}
	return ids;
}

/* No lane wants it: is it an IP packet at all? */
static void count_unclaimed(struct ow_lane_recorder *scribe, const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (ow_packet_decode(frame, false, &packet) == OW_DECODE_IP)
		scribe->counts.unclaimed++;
	else
		scribe->counts.not_ip++;
}

void ow_lane_recorder_frames(struct ow_lane_recorder *scribe, const struct ow_iface_frame *frames, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		const struct ow_iface_frame *frame = &frames[n];
		if (n + OW_LANE_RECORDER_AHEAD < count) {
			__builtin_prefetch(frame[OW_LANE_RECORDER_AHEAD].frame.data);
			__builtin_prefetch(frame[OW_LANE_RECORDER_AHEAD].frame.data + 64);
		}
		scribe->frame++;
		bool claimed = false;
		const struct ids *ids = NULL;
		for (uint32_t i = 0; i < scribe->view.wanting[frame->heading]; i++) {
			struct slot *slot = &scribe->view.slot[scribe->view.wants[frame->heading][i]];
			if (!wanted(scribe, slot, &frame->frame))
				continue;
			claimed = true;
			ids = ids_of(scribe, slot->identity, frame);
			if (ids->status != -ENOMSG)
				note(scribe, slot, frame->frame.time_ns, ids);
		}
		if (!claimed)
			count_unclaimed(scribe, &frame->frame);
		else
			scribe->counts.not_ip += ids->status == -ENOMSG;
	}
}

void ow_lane_recorder_finish(struct ow_lane_recorder *scribe, int64_t passed_ns)
{
	for (uint32_t i = 0; scribe->view.table && i < scribe->view.table->count; i++) {
		struct slot *slot = &scribe->view.slot[i];
		/* The earlier interval first. */
		unsigned first = slot->open[1].start_ns < slot->open[0].start_ns;
		for (unsigned k = 0; k < 2; k++) {
			struct open_chunk *open = &slot->open[first ^ k];
			if (open->chunk &&
			    (passed_ns == INT64_MAX || open->start_ns + (int64_t)slot->length_ns <= passed_ns))
				put_aside(scribe, slot, open);
		}
	}
}

bool ow_lane_recorder_ready(const struct ow_lane_recorder *scribe)
{
	return scribe->first != NULL;
}

struct ow_chunk *ow_lane_recorder_take(struct ow_lane_recorder *scribe, struct ow_chunk **ret_last)
{
	struct ow_chunk *first = scribe->first;
	*ret_last = scribe->last;
	scribe->first = scribe->last = NULL;
	scribe->end = &scribe->first;
	return first;
}

int64_t ow_lane_recorder_boundary(const struct ow_lane_recorder *scribe, int64_t time_ns)
{
	int64_t boundary = INT64_MAX;
	for (uint32_t i = 0; scribe->view.table && i < scribe->view.table->count; i++) {
		const struct slot *slot = &scribe->view.slot[i];
		int64_t length = (int64_t)slot->length_ns, end = slot->t0_ns + length;
		if (time_ns >= slot->t0_ns)
			end += (time_ns - slot->t0_ns) / length * length;
		boundary = end < boundary ? end : boundary;
	}
	return boundary;
}

void ow_lane_recorder_miss(struct ow_lane_recorder *scribe, uint64_t packets)
{
	scribe->counts.lost += packets;
}

const struct ow_lane_recorder_counts *ow_lane_recorder_counts(const struct ow_lane_recorder *scribe)
{
	return &scribe->counts;
}

/* Tables. */

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
		view.slot[i] = (struct slot){.t0_ns = lane->t0_ns,
		                             .length_ns = (uint64_t)lane->length_ns,
		                             .open = {{.start_ns = lane->t0_ns}, {.start_ns = lane->t0_ns}},
		                             .number = lane->number,
		                             .sample_shift = entry->sample_shift,
		                             .identity = entry->identity,
		                             .filter = entry->filter,
		                             .way = entry->way,
		                             .way_not = lane->way_not};
		for (int heading = 0; lane->sources >> source & 1 && heading < OW_HEADINGS; heading++) {
			if (lane->heading == OW_HEADING_UNKNOWN || (int)lane->heading == heading)
				view.wants[heading][view.wanting[heading]++] = i;
		}
	}
	*ret_view = view;
	return 0;
}

int ow_lane_recorder_take_up(struct ow_lane_recorder *scribe, const struct ow_lane_table *table)
{
	struct view view, *old = &scribe->view;
	if (table == old->table)
		return 0;
	int r = view_make(table, scribe->source, &view);
	if (r < 0)
		return r;
	/* Both are in the order of numbers. */
	uint32_t to = 0;
	for (uint32_t i = 0; old->table && i < old->table->count; i++) {
		struct slot *slot = &old->slot[i];
		while (to < table->count && view.slot[to].number < slot->number)
			to++;
		if (to == table->count || view.slot[to].number != slot->number) {
			free(slot->open[0].chunk);
			free(slot->open[1].chunk);
			continue;
		}
		if (slot->sample_shift != view.slot[to].sample_shift) {
			put_aside(scribe, slot, &slot->open[slot->open[1].start_ns < slot->open[0].start_ns]);
			put_aside(scribe, slot, &slot->open[0]);
			put_aside(scribe, slot, &slot->open[1]);
		}
		memcpy(view.slot[to].open, slot->open, sizeof slot->open);
		view.slot[to].now = slot->now;
		view.slot[to].usual = slot->usual;
	}
	view_free(old);
	*old = view;
	return 0;
}
