/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_packets.h"

#include "base/array.h"
#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "estimate/packet_event.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

int ow_match_packets_add(struct ow_match_packets *packets, const struct ow_packet_event *event)
{
	if (packets->count == OW_MATCH_PACKETS_MAX) {
		packets->omitted++;
		return 0;
	}
	if (OW_GROW(packets->packet, packets->room, packets->count + 1) < 0)
		return -ENOMEM;
	bool matched = event->fate == OW_FATE_MATCHED;
	packets->packet[packets->count++] = (struct ow_match_packet){
		.fate = event->fate,
		.direction = event->fate == OW_FATE_UNCLASSIFIED ? OW_DIRECTIONS : event->direction,
		.known = matched && (!event->ambiguous || event->estimated),
		.estimated = event->estimated,
		.number = {event->number[OW_SIDE_A], event->number[OW_SIDE_B]},
		.time_ns = {event->time_ns[OW_SIDE_A], event->time_ns[OW_SIDE_B]},
		.bytes = event->bytes,
	};
	return 0;
}

static int by_numbers(const uint64_t x[OW_SIDES], const uint64_t y[OW_SIDES])
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (x[side] != y[side])
			return x[side] < y[side] ? -1 : 1;
	}
	return 0;
}

static int seen_by_numbers(const void *a, const void *b)
{
	return by_numbers(((const struct ow_last_seen *)a)->number, ((const struct ow_last_seen *)b)->number);
}

static int packet_by_numbers(const void *a, const void *b)
{
	return by_numbers(((const struct ow_match_packet *)a)->number, ((const struct ow_match_packet *)b)->number);
}

void ow_match_packets_place(struct ow_match_packets *packets, struct ow_last_seen *seen, size_t count)
{
	packets->on_path = true;
	if (!packets->count || !count)
		return;
	qsort(packets->packet, packets->count, sizeof *packets->packet, packet_by_numbers);
	qsort(seen, count, sizeof *seen, seen_by_numbers);
	for (size_t i = 0, k = 0; i < packets->count && k < count;) {
		int order = by_numbers(packets->packet[i].number, seen[k].number);
		if (order == 0)
			packets->packet[i].last_seen = seen[k].point;
		i += order <= 0;
		k += order > 0;
	}
}

/* When it was sent, or, if that was not seen, received. */
static int64_t time_of(const struct ow_match_packet *p)
{
	enum ow_side from = p->direction == OW_B_TO_A ? OW_SIDE_B : OW_SIDE_A;
	return p->number[from] ? p->time_ns[from] : p->time_ns[!from];
}

static int by_time(const void *a, const void *b)
{
	const struct ow_match_packet *x = a, *y = b;
	int64_t s = time_of(x), t = time_of(y);
	if (s != t)
		return s < t ? -1 : 1;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (x->number[side] != y->number[side])
			return x->number[side] < y->number[side] ? -1 : 1;
	}
	return 0;
}

void ow_match_packets_sort(struct ow_match_packets *packets)
{
	if (packets->count)
		qsort(packets->packet, packets->count, sizeof *packets->packet, by_time);
}

void ow_match_packets_done(struct ow_match_packets *packets)
{
	free(packets->packet);
	*packets = (struct ow_match_packets){0};
}

static int64_t delay_of(const struct ow_match_packet *p)
{
	/* Times from a file may be anything: wrap instead of overflowing. */
	uint64_t later = (uint64_t)p->time_ns[OW_SIDE_B] - (uint64_t)p->time_ns[OW_SIDE_A];
	return (int64_t)(p->direction == OW_A_TO_B ? later : 0 - later);
}

enum { AFTER, WAY, BYTES, DELAY, IN_A, IN_B, SEEN, CELLS };

static const struct ow_table_column columns[SEEN] = {
	[AFTER] = {"sent after s", 14, 0}, [WAY] = {"", 7, 2, .left = true}, [BYTES] = {"bytes", 6, 5},
	[DELAY] = {"delay", 14, 1},        [IN_A] = {"frame in A", 10, 3},   [IN_B] = {"in B", 10, 4},
};

/* Of a path. */
#define SEEN_WIDTH 14
static const struct ow_table_column path_columns[CELLS] = {
	[AFTER] = {"sent after s", 14, 0},
	[WAY] = {"", 7, 3, .left = true},
	[BYTES] = {"bytes", 6, 6},
	[DELAY] = {"delay", 14, 1},
	[IN_A] = {"frame in A", 10, 4},
	[IN_B] = {"in B", 10, 5},
	[SEEN] = {"last seen", SEEN_WIDTH, 2},
};

static void put_row(const struct ow_table *table, const struct ow_match_packet *p, int64_t first_ns)
{
	static const char *const way[] = {" A to B", " B to A", ""};
	ow_table_cells cell = {[IN_A] = "-", [IN_B] = "-"};
	snprintf(cell[AFTER], OW_TABLE_CELL, "%.9f", (double)((uint64_t)time_of(p) - (uint64_t)first_ns) / 1e9);
	snprintf(cell[WAY], OW_TABLE_CELL, "%s", way[p->direction]);
	snprintf(cell[BYTES], OW_TABLE_CELL, "%" PRIu32, p->bytes);
	snprintf(cell[DELAY], OW_TABLE_CELL, "%s", p->fate == OW_FATE_MATCHED ? "ambiguous" : ow_fate_name[p->fate]);
	if (p->known) {
		char delay[OW_DURATION_TEXT];
		ow_duration_text((double)delay_of(p), delay);
		snprintf(cell[DELAY], OW_TABLE_CELL, "%s%s", p->estimated ? "~ " : "", delay);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (p->number[side])
			snprintf(cell[side == OW_SIDE_A ? IN_A : IN_B], OW_TABLE_CELL, "%" PRIu64, p->number[side]);
	}
	if (p->fate == OW_FATE_LOST)
		ow_format_clean(p->last_seen ? p->last_seen : "not known", false, cell[SEEN], SEEN_WIDTH);
	ow_table_row(table, cell, p->fate == OW_FATE_LOST ? 1u << DELAY : 0);
}

void ow_report_match_packets_text(FILE *out, const struct ow_match_packets *packets, unsigned width, enum ow_look look)
{
	struct ow_table table = {out, packets->on_path ? path_columns : columns, packets->on_path ? CELLS : SEEN,
	                         .colour = look != OW_LOOK_PLAIN, .marked = look == OW_LOOK_MARKED};
	ow_table_fit(&table, width);
	fprintf(out, "\npackets of %s\n", packets->flow);
	ow_table_titles(&table);
	for (size_t i = 0; i < packets->count; i++)
		put_row(&table, &packets->packet[i], time_of(&packets->packet[0]));
	if (packets->omitted)
		fprintf(out, "  and %" PRIu64 " more\n", packets->omitted);
}

void ow_report_match_packets_json(struct ow_json *json, const struct ow_match_packets *packets)
{
	static const char *const way[] = {"a_to_b", "b_to_a"};
	ow_json_rows(json, "packets");
	for (size_t i = 0; i < packets->count; i++) {
		const struct ow_match_packet *p = &packets->packet[i];
		ow_json_row(json);
		ow_json_string(json, "fate", ow_fate_name[p->fate]);
		if (p->direction < OW_DIRECTIONS)
			ow_json_string(json, "direction", way[p->direction]);
		else
			ow_json_null(json, "direction");
		ow_json_count_if(json, "number_a", p->number[OW_SIDE_A] != 0, p->number[OW_SIDE_A]);
		ow_json_count_if(json, "number_b", p->number[OW_SIDE_B] != 0, p->number[OW_SIDE_B]);
		ow_json_integer_if(json, "time_a_ns", p->number[OW_SIDE_A] != 0, p->time_ns[OW_SIDE_A]);
		ow_json_integer_if(json, "time_b_ns", p->number[OW_SIDE_B] != 0, p->time_ns[OW_SIDE_B]);
		ow_json_integer_if(json, "delay_ns", p->known, p->known ? delay_of(p) : 0);
		ow_json_flag(json, "estimated", p->estimated);
		ow_json_count(json, "bytes", p->bytes);
		if (packets->on_path)
			ow_json_string(json, "last_seen", p->last_seen);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_count(json, "packets_omitted", packets->omitted);
}
