/* SPDX-License-Identifier: Apache-2.0 */
#include "match/annotate.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/time.h"
#include "capture/file/comment_copy.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64 /* of the name of a point, at most */

/* Packets that are identical to an earlier one, by id. */
struct copies {
	struct seen {
		uint64_t id;
		uint64_t count; /* copies so far, with the first */
	} * seen;
	size_t count, room;
	struct ow_id_map map;
};

struct annotator {
	const struct ow_annotation *notes;
	/* of this waiting time and of the one before it */
	struct copies copies, before;
	int64_t copies_end_ns;
	uint64_t last; /* record */
};

static void copies_done(struct copies *copies)
{
	free(copies->seen);
	ow_id_map_done(&copies->map);
}

/* The copy begins anew. */
static void begin_again(struct annotator *a)
{
	copies_done(&a->copies);
	copies_done(&a->before);
	a->copies = a->before = (struct copies){0};
	a->copies_end_ns = INT64_MIN;
}

static uint64_t copies_of(const struct copies *copies, uint64_t id)
{
	uint32_t i = OW_ID_MAP_FIND(&copies->map, id, item, copies->seen[item].id == id);
	return i == OW_ID_MAP_NONE ? 0 : copies->seen[i].count;
}

/* Forgets packets that are older than the waiting time. */
static void forget(struct annotator *a, int64_t time_ns)
{
	if (time_ns < a->copies_end_ns)
		return;
	struct copies old = a->before;
	a->before = a->copies;
	a->copies = old;
	a->copies.count = 0;
	ow_id_map_clear(&a->copies.map);
	a->copies_end_ns = ow_time_later(time_ns, a->notes->window_ns);
}

/* Which one of identical packets this is: 1 is the first. */
static int count_copy(struct annotator *a, const struct ow_packet_note *note, uint64_t *ret_copy)
{
	forget(a, note->time_ns);
	struct copies *now = &a->copies;
	uint32_t i = OW_ID_MAP_FIND(&now->map, note->id, item, now->seen[item].id == note->id);
	if (i == OW_ID_MAP_NONE) {
		i = (uint32_t)now->count;
		if (OW_GROW(now->seen, now->room, now->count + 1) < 0 || ow_id_map_add(&now->map, note->id, i) < 0)
			return -ENOMEM;
		now->seen[now->count++] = (struct seen){note->id, copies_of(&a->before, note->id)};
	}
	*ret_copy = ++now->seen[i].count;
	return 0;
}

struct text {
	char *at;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vsnprintf(text->at + text->length, OW_COMMENT_MAX - text->length, format, list);
	va_end(list);
	text->length += (size_t)n;
	assert(text->length < OW_COMMENT_MAX); /* each part is a name and a number */
}

static void put_fate(struct text *text, const struct ow_packet_note *note)
{
	unsigned fates = 0;
	uint64_t packets = 0;
	for (unsigned i = 0; i < OW_FATES; i++) {
		packets += note->packets[i];
		fates += note->packets[i] > 0;
	}
	put(text, " fate=%s", fates > 1 ? "mixed" : ow_fate_name[note->fate]);
	if (note->direction < OW_DIRECTIONS)
		put(text, " direction=%s", ow_direction_name[note->direction]);
	if (packets > 1)
		put(text, " packets=%" PRIu64, packets);
	for (unsigned i = 0; fates > 1 && i < OW_FATES; i++) {
		if (note->packets[i])
			put(text, " %s=%" PRIu32, ow_fate_name[i], note->packets[i]);
	}
}

static void put_delay(struct text *text, const struct ow_packet_note *note)
{
	if (note->ambiguous)
		put(text, " ambiguous=1");
	if (!note->timed)
		return;
	/* Wrap instead of overflow, as for the delay itself. */
	uint64_t delay = (uint64_t)note->delay_ns;
	put(text, " delay=%" PRId64 "ns", note->delay_ns);
	if (note->ambiguous)
		put(text, " least=%" PRId64 "ns most=%" PRId64 "ns", (int64_t)(delay - (uint64_t)note->less_ns),
		    (int64_t)(delay + (uint64_t)note->more_ns));
}

static void put_other(struct text *text, const struct ow_packet_note *note)
{
	int64_t s = ow_floor_div(note->other_time_ns, OW_NS_PER_S), ns = note->other_time_ns - s * OW_NS_PER_S;
	if (note->other_number)
		put(text, " other_frame=%" PRIu64 " other_time=%" PRId64 ".%09" PRId64, note->other_number, s, ns);
}

/* Without spaces and other characters that have a meaning in a comment. */
static void put_name(struct text *text, const char *name)
{
	for (size_t i = 0; i < NAME_BYTES && name[i]; i++)
		put(text, "%c", isalnum((unsigned char)name[i]) || strchr("-.:_", name[i]) ? name[i] : '_');
}

/* The delay of each hop whose ends both saw the packet, and the last point that saw a packet which did not arrive. */
static void put_hops(struct text *text, const struct annotator *a, const struct ow_hop_note *hop, bool arrived)
{
	bool back = hop->direction == OW_B_TO_A;
	if (!hop->seen || hop->direction >= OW_DIRECTIONS)
		return;
	if (!arrived && !back) {
		put(text, " last_seen=");
		put_name(text, a->notes->name[31 - __builtin_clz(hop->seen)]);
	}
	for (unsigned i = 0; i + 1 < a->notes->points; i++) {
		uint64_t delay = (uint64_t)hop->time_ns[i + 1] - (uint64_t)hop->time_ns[i];
		if ((hop->seen >> i & 3) == 3)
			put(text, " hop%u=%" PRId64 "ns", i + 1, (int64_t)(back ? -delay : delay));
	}
}

static int comment_of(void *arg, uint64_t number, char comment[OW_COMMENT_MAX], struct ow_error *err)
{
	struct annotator *a = arg;
	const void *item, *hop = NULL;
	struct text text = {.at = comment};
	uint64_t copy;
	if (*a->notes->interrupted)
		return ow_error_set(err, EINTR, "interrupted");
	int r = ow_record_file_get(a->notes->packets, number, &item, err);
	if (r == 0 && a->notes->points)
		r = ow_record_file_get(a->notes->hops, number, &hop, err);
	if (r < 0)
		return r;
	if (number <= a->last)
		begin_again(a);
	a->last = number;
	const struct ow_packet_note *note = item;
	put(&text, "oneway:");
	if (!note->id) {
		put(&text, " fate=skipped");
		return (int)text.length;
	}
	if (count_copy(a, note, &copy) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory for the copies of packets");
	put_fate(&text, note);
	put_delay(&text, note);
	put_other(&text, note);
	if (copy > 1)
		put(&text, " copy=%" PRIu64, copy);
	if (hop)
		put_hops(&text, a, hop, note->other_number != 0);
	return (int)text.length;
}

int ow_annotate(const char *from, const char *to, const struct ow_annotation *annotation, struct ow_error *err)
{
	struct annotator a = {.notes = annotation, .copies_end_ns = INT64_MIN};
	int r = ow_comment_copy(from, to, ow_record_file_last(annotation->packets), comment_of, &a, err);
	copies_done(&a.copies);
	copies_done(&a.before);
	return r;
}
