/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte ranges in the matcher: the bytes of a TCP stream divided one way at A and another way at B. Every byte of every
 * record is in one pair or unmatched, and a byte that each side has once is in a pair with the times of its records.
 */
#include "base/hash.h"
#include "base/random.h"
#include "reconcile/matching.h"
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define US      INT64_C(1000)
#define MS      INT64_C(1000000)
#define WINDOW  (2000 * MS) /* longer than any train here lasts */
#define BYTES   4096        /* of the stream */
#define HEADERS 52

static struct stage stage;
static uint64_t current_seed;

/* Per byte of the stream and side: in how many records, how often reported as matched and as unmatched, and where. */
static struct tale {
	unsigned put, matched, unmatched;
	int64_t time_ns; /* of the last record that has it */
	bool certain;
	int64_t told_ns;
} tale[OW_SIDES][BYTES];
static uint32_t base;
static uint32_t pairs_of_bytes;
static bool repeats; /* some bytes are in several records: what shares a record with them may be uncertain, too */

static void for_bytes(enum ow_side side, const struct ow_record *r,
                      void (*each)(struct tale *t, const struct ow_record *r))
{
	assert_int_equal(r->bytes, r->len + HEADERS);
	for (uint32_t i = 0; i < r->len; i++) {
		uint32_t at = r->seq + i - base;
		assert_in_range(at, 0, BYTES - 1);
		each(&tale[side][at], r);
	}
}

static void put_byte(struct tale *t, const struct ow_record *r)
{
	t->put++;
	t->time_ns = r->time_ns;
}

static void match_byte(struct tale *t, const struct ow_record *r)
{
	t->matched++;
	t->told_ns = r->time_ns;
	t->certain = true;
}

static void doubt_byte(struct tale *t, const struct ow_record *r)
{
	match_byte(t, r);
	t->certain = false;
}

static void miss_byte(struct tale *t, const struct ow_record *r)
{
	(void)r;
	t->unmatched++;
}

static void on_pair(struct stage *s, const struct ow_pair *pair, enum ow_certainty certainty)
{
	(void)s;
	assert_int_not_equal(certainty, OW_UNSETTLED);
	assert_true(pair->record[OW_SIDE_A]->len > 0);
	pairs_of_bytes += pair->record[OW_SIDE_A]->len;
	for (unsigned side = 0; side < OW_SIDES; side++)
		for_bytes(side, pair->record[side], certainty == OW_CERTAIN ? match_byte : doubt_byte);
}

static void on_single(struct stage *s, enum ow_side side, const struct ow_record *record, bool copy)
{
	(void)s;
	(void)copy;
	assert_true(record->len > 0);
	for_bytes(side, record, miss_byte);
}

static void open_train(uint32_t first_seq)
{
	stage_open(&stage, WINDOW, OW_A_TO_B);
	stage.pieces = true;
	stage.on_pair = on_pair;
	stage.on_single = on_single;
	memset(tale, 0, sizeof tale);
	base = first_seq;
	repeats = false;
	pairs_of_bytes = 0;
}

static void put_piece(enum ow_side side, uint32_t at, uint32_t len, int64_t time_ns)
{
	struct stage_record *e = stage_put(&stage, side, 99, time_ns, 0);
	e->record.seq = base + at;
	e->record.len = len;
	e->record.bytes = HEADERS + len;
	for_bytes(side, &e->record, put_byte);
}

static void check_bytes(void)
{
	stage_check(&stage);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (unsigned i = 0; i < BYTES; i++) {
			const struct tale *t = &tale[side][i], *other = &tale[!side][i];
			assert_int_equal(t->put, t->matched + t->unmatched);
			assert_int_equal(t->matched, other->matched);
			if (t->put != 1 || other->put != 1)
				continue;
			assert_int_equal(t->matched, 1);
			assert_true(t->certain || repeats);
			assert_int_equal(t->told_ns, t->time_ns);
		}
	}
}

static void play_train(void)
{
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	check_bytes();
	stage_close(&stage);
}

/* Divides the stream into parts of up to `most` bytes, omitting some with this probability, one every step. */
static void tile(struct ow_random *random, enum ow_side side, uint32_t most, double loss, int64_t from_ns,
                 int64_t step_ns)
{
	for (uint32_t at = 0; at < BYTES;) {
		uint32_t len = 1 + (uint32_t)ow_random_below(random, most);
		len = at + len > BYTES ? BYTES - at : len;
		if (ow_random_unit(random) >= loss)
			put_piece(side, at, len, from_ns);
		from_ns += step_ns;
		at += len;
	}
}

static void random_tilings(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		current_seed = seed;
		/* A third of the streams wrap around 2^32. */
		open_train(seed % 3 ? (uint32_t)ow_random_u64(&random)
		                    : UINT32_MAX - (uint32_t)ow_random_below(&random, BYTES));
		uint32_t most_a = 1 + (uint32_t)ow_random_below(&random, 900),
			 most_b = 60 + (uint32_t)ow_random_below(&random, 900);
		double loss = seed % 4 ? ow_random_unit(&random) * 0.3 : 0;
		tile(&random, OW_SIDE_A, most_a, 0, 0, 1 + (int64_t)ow_random_below(&random, 100 * US));
		tile(&random, OW_SIDE_B, most_b, loss, 50 * US, 1 + (int64_t)ow_random_below(&random, 100 * US));
		play_train();
	}
	current_seed = 0;
}

/* Parts overtake each other, are sent again or arrive twice: nothing is reported twice, nothing is forgotten. */
static void random_pieces_in_any_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 250; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		current_seed = seed;
		open_train(seed % 3 ? 1000 : UINT32_MAX - BYTES / 2);
		repeats = true;
		for (int i = 0; i < 60; i++) {
			unsigned side = ow_random_below(&random, 2);
			uint32_t at = (uint32_t)ow_random_below(&random, BYTES),
				 len = 1 + (uint32_t)ow_random_below(&random, 600);
			put_piece(side, at, at + len > BYTES ? BYTES - at : len, i * 10 * US);
		}
		play_train();
	}
	current_seed = 0;
}

/* One superframe against more single bytes than any wire has, in either order of arrival. */
static void one_frame_of_many_segments(void **state)
{
	(void)state;
	for (unsigned backwards = 0; backwards < 2; backwards++) {
		open_train(7);
		for (uint32_t i = 0; i < 1000; i++)
			put_piece(OW_SIDE_A, backwards ? 999 - i : i, 1, i);
		put_piece(OW_SIDE_B, 0, 1000, 10 * US);
		stage_play(&stage, INT64_MAX);
		stage_finish(&stage);
		check_bytes(); /* all of them: a frame of BIG TCP has 181 */
		assert_int_equal(pairs_of_bytes, 1000);
		stage_close(&stage);
	}
}

/* Of the last pair. */
static int64_t told_delay, told_less, told_more;

static void note_bounds(struct stage *s, const struct ow_pair *pair, enum ow_certainty certainty)
{
	on_pair(s, pair, certainty);
	told_delay = pair->record[OW_SIDE_B]->time_ns - pair->record[OW_SIDE_A]->time_ns;
	told_less = pair->less_ns;
	told_more = pair->more_ns;
	assert_int_equal(certainty, told_less || told_more ? OW_UNCERTAIN : OW_CERTAIN);
}

/* The same bytes wait twice when their copy arrives: the delay may be that of either. */
static void bytes_that_wait_twice_have_bounds(void **state)
{
	(void)state;
	open_train(0);
	stage.on_pair = note_bounds;
	put_piece(OW_SIDE_A, 0, 1000, 0);
	put_piece(OW_SIDE_A, 0, 1000, 10 * US);
	put_piece(OW_SIDE_B, 0, 1000, 25 * US);
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	assert_int_equal(pairs_of_bytes, 1000);
	assert_int_equal(tale[OW_SIDE_A][0].matched, 1);
	assert_int_equal(tale[OW_SIDE_A][0].unmatched, 1);
	assert_int_equal(told_delay - told_less, 15 * US);
	assert_int_equal(told_delay + told_more, 25 * US);
	stage_close(&stage);
}

/* A superframe of which one segment was lost and sent again: only the segment is uncertain, and the usual delay is the
 * estimate. */
static void a_segment_sent_again(void **state)
{
	(void)state;
	open_train(0);
	stage.on_pair = note_bounds;
	ow_matcher_expect(stage.matcher, OW_A_TO_B, MS, 2 * MS);
	put_piece(OW_SIDE_A, 0, 3000, 0);
	put_piece(OW_SIDE_B, 0, 1000, MS);
	put_piece(OW_SIDE_A, 1000, 1000, 200 * MS);
	put_piece(OW_SIDE_B, 1000, 1000, 201 * MS);
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	assert_int_equal(pairs_of_bytes, 2000);
	assert_true(tale[OW_SIDE_A][0].certain);
	assert_int_equal(told_delay, MS);
	assert_int_equal(told_less, 0);
	assert_int_equal(told_more, 200 * MS);
	stage_close(&stage);
}

/* More copies wait than are looked at one by one: the bounds are those of all that wait. */
static void bytes_that_wait_very_often(void **state)
{
	(void)state;
	open_train(0);
	stage.on_pair = note_bounds;
	for (int i = 0; i < 1000; i++)
		put_piece(OW_SIDE_A, 0, 1000, i * US);
	put_piece(OW_SIDE_B, 0, 1000, 2000 * US);
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	assert_int_equal(pairs_of_bytes, 1000);
	assert_int_equal(told_delay - told_less, 1001 * US);
	assert_int_equal(told_delay + told_more, 2000 * US);
	stage_close(&stage);
}

/* Pieces of one train that never meet anybody, each side's in the other's gaps, in several orders. */
enum order { UPWARDS, DOWNWARDS, ANY_ORDER, SAME_BYTES, ORDERS };

static uint32_t gap_of(enum order order, uint32_t i, uint32_t count)
{
	switch (order) {
	case UPWARDS:
		return i;
	case DOWNWARDS:
		return count - 1 - i;
	case ANY_ORDER:
		return (uint32_t)(ow_mix64(i) % count);
	default:
		return 0;
	}
}

/* How many nodes the matcher looks at for so many of them. */
static uint64_t looked_at(enum order order, uint32_t count)
{
	static struct stage many;
	stage_open(&many, WINDOW, OW_A_TO_B);
	many.pieces = true;
	many.count[OW_SIDE_A] = many.count[OW_SIDE_B] = 1;
	struct ow_record r = {.id = ow_mix64(1), .number = 1, .len = 1000, .bytes = 1000 + HEADERS};
	for (uint32_t i = 0; i < count; i++) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			/* From the upper half on and around 2^32. */
			r.seq = UINT32_MAX / 2 + gap_of(order, i, count) * 500000 + side * 1000;
			r.time_ns = i;
			assert_int_equal(ow_matcher_push(many.matcher, side, &r, i), 0);
		}
	}
	uint64_t looked = many.matcher->waiting.looked;
	stage_finish(&many);
	assert_int_equal(many.pairs, 0);
	assert_int_equal(many.unmatched[OW_SIDE_A], count);
	assert_int_equal(many.unmatched[OW_SIDE_B], count);
	stage_close(&many);
	return looked;
}

/* n log n: four times as many cost 4.8 times as much here; a scan of everything that waits would cost 16 times. */
static void pieces_that_never_meet_cost_little(void **state)
{
	(void)state;
	for (enum order order = UPWARDS; order < ORDERS; order++) {
		uint64_t few = looked_at(order, 1000), many = looked_at(order, 4000);
		print_message("order %u: %.1f and %.1f nodes a piece\n", (unsigned)order, (double)few / 2000,
		              (double)many / 8000);
		assert_true(many < 7 * few);
	}
}

static int say_seed(void **state)
{
	(void)state;
	if (current_seed)
		print_message("seed %u\n", (unsigned)current_seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(random_tilings, say_seed),
		cmocka_unit_test_teardown(random_pieces_in_any_order, say_seed),
		cmocka_unit_test(one_frame_of_many_segments),
		cmocka_unit_test(bytes_that_wait_twice_have_bounds),
		cmocka_unit_test(a_segment_sent_again),
		cmocka_unit_test(bytes_that_wait_very_often),
		cmocka_unit_test(pieces_that_never_meet_cost_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
