/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as copies of a few packets at two points, through the matcher and its alignment. Each record must be in one
 * pair or be unmatched, pairs of an id keep the order of both points, bounds contain the delay, and no time overflows.
 *
 * Byte 0: the start of the times (including the limits of what a file can contain), the waiting time, and what is known
 * beforehand. Then two bytes for each record: side, id, and the time since the previous record.
 */
#include "base/hash.h"
#include "reconcile/matcher.h"

#include <stdbool.h>
#include <stdlib.h>

#define RECORDS_MAX 4096
#define IDS         4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The fates of the records of both sides. */
struct told {
	struct ow_record record[OW_SIDES][RECORDS_MAX];
	uint8_t ended[OW_SIDES][RECORDS_MAX];
	size_t count[OW_SIDES], pairs, singles, unsettled, settled;
	uint64_t next[OW_SIDES][IDS]; /* index after the last pair of an id */
	int64_t window_ns;
};

static void end(struct told *told, enum ow_side side, const struct ow_record *record)
{
	check(record->number < told->count[side]);
	const struct ow_record *given = &told->record[side][record->number];
	check(given->id == record->id && given->time_ns == record->time_ns);
	check(!told->ended[side][record->number]);
	told->ended[side][record->number] = 1;
}

static void note_pair(struct told *told, const struct ow_pair *pair, enum ow_certainty certainty)
{
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	check(a->id == b->id);
	check(pair->less_ns >= 0 && pair->more_ns >= 0);
	check((certainty == OW_UNCERTAIN) == (pair->less_ns || pair->more_ns));
	__int128 delay = (__int128)b->time_ns - a->time_ns;
	check(delay <= told->window_ns && delay >= -(__int128)told->window_ns);
	end(told, OW_SIDE_A, a);
	end(told, OW_SIDE_B, b);
	unsigned id = 0;
	while (id + 1 < IDS && ow_mix64(1 + id) != a->id)
		id++;
	check(ow_mix64(1 + id) == a->id);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		check(pair->record[side]->number >= told->next[side][id]);
		told->next[side][id] = pair->record[side]->number + 1;
	}
}

static void on_matched(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct told *told = arg;
	told->pairs++;
	if (certainty == OW_UNSETTLED)
		told->unsettled++;
	else
		note_pair(told, pair, certainty);
}

static void on_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct told *told = arg;
	check(certainty != OW_UNSETTLED && ++told->settled <= told->unsettled);
	note_pair(told, pair, certainty);
}

static void on_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy)
{
	struct told *told = arg;
	(void)copy;
	told->singles++;
	end(told, side, record);
}

static enum ow_direction on_direction(void *arg, enum ow_side side, uint32_t flow)
{
	(void)arg;
	(void)side;
	return (enum ow_direction)(flow % (OW_DIRECTIONS + 1));
}

/* The limits of times in captures: years -292 to 2554 with shifted clocks. */
static int64_t start_of(uint8_t config)
{
	static const int64_t start[] = {0, INT64_C(1700000000) * 1000000000, INT64_MAX / 2, INT64_MIN / 2};
	return start[config & 3];
}

static void take_records(struct told *told, const uint8_t *data, size_t size, int64_t now_ns)
{
	for (size_t i = 0; i + 1 < size && told->count[OW_SIDE_A] < RECORDS_MAX && told->count[OW_SIDE_B] < RECORDS_MAX;
	     i += 2) {
		enum ow_side side = data[i] & 1 ? OW_SIDE_B : OW_SIDE_A;
		now_ns += (int64_t)data[i + 1] << (data[i] >> 3 & 31);
		told->record[side][told->count[side]] = (struct ow_record){
			.id = ow_mix64(1 + (data[i] >> 1 & (IDS - 1))), .time_ns = now_ns, .number = told->count[side]};
		told->count[side]++;
	}
}

static void play(struct told *told, struct ow_matcher *matcher)
{
	size_t at[OW_SIDES] = {0, 0};
	while (at[OW_SIDE_A] < told->count[OW_SIDE_A] || at[OW_SIDE_B] < told->count[OW_SIDE_B]) {
		int64_t next_ns[OW_SIDES];
		for (unsigned side = 0; side < OW_SIDES; side++)
			next_ns[side] = at[side] < told->count[side] ? told->record[side][at[side]].time_ns : INT64_MAX;
		enum ow_side side = next_ns[OW_SIDE_A] <= next_ns[OW_SIDE_B] ? OW_SIDE_A : OW_SIDE_B;
		check(ow_matcher_push(matcher, side, &told->record[side][at[side]++], next_ns[!side]) == 0);
	}
	check(ow_matcher_finish(matcher) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	static struct told told;
	const int64_t window[] = {1000000, 200000000, 2000000000, INT64_C(60000000000)};
	told = (struct told){.window_ns = window[data[0] >> 2 & 3]};
	const struct ow_matcher_calls calls = {.matched = on_matched,
	                                       .settled = on_settled,
	                                       .unmatched = on_unmatched,
	                                       .direction = on_direction,
	                                       .arg = &told};
	struct ow_matcher *matcher = NULL;
	check(ow_matcher_create(told.window_ns, &calls, &matcher) == 0);
	take_records(&told, data + 1, size - 1, start_of(data[0]));
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (size_t i = 0; i < told.count[side]; i++)
			told.record[side][i].flow = data[0] >> 4 & 3;
		if (data[0] & 64 && told.count[side])
			ow_matcher_start(matcher, side, told.record[side][0].time_ns);
	}
	if (data[0] & 128) {
		ow_matcher_expect(matcher, OW_A_TO_B, 100000, 5000000);
		ow_matcher_reorders(matcher, OW_A_TO_B, 3000000);
	}
	if ((data[0] >> 4 & 3) == 3)
		ow_matcher_one_way(matcher, OW_A_TO_B);
	play(&told, matcher);
	check(told.settled == told.unsettled);
	check(2 * told.pairs + told.singles == told.count[OW_SIDE_A] + told.count[OW_SIDE_B]);
	ow_matcher_free(matcher);
	return 0;
}
