/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_batches.h"
#include "pair_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define PACKETS  20000
#define DEDUP_NS 100000

struct read {
	uint64_t sum[OW_SIDES], records[OW_SIDES], copies[OW_SIDES];
};

static void add(uint64_t *sum, uint64_t value)
{
	*sum = (*sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

static void add_record(uint64_t *sum, const struct ow_record *r)
{
	const uint64_t value[] = {
		r->id,   (uint64_t)r->time_ns, r->number, r->flow,   r->seq,      r->len,    r->bytes, r->lag_ns,
		r->part, r->untimed,           r->again,  r->flying, r->doubtful, r->classes};
	for (size_t i = 0; i < sizeof value / sizeof *value; i++)
		add(sum, value[i]);
}

static void add_batch(struct read *read, unsigned side, const struct ow_batch *batch)
{
	uint64_t *sum = &read->sum[side];
	for (int i = 0; i < batch->count; i++) {
		add_record(sum, &batch->record[i]);
		add(sum, (uint64_t)batch->order_ns[i]);
	}
	for (int i = 0; i < batch->agains; i++)
		add_record(sum, &batch->again[i]);
	assert_int_equal(batch->order_ns[batch->count], INT64_MAX);
	add(sum, (uint64_t)batch->last_ns ^ (uint64_t)batch->first_ns ^ batch->position);
	read->records[side] += (uint64_t)batch->count;
	read->copies[side] += (uint64_t)batch->agains;
}

/* What both streams of batches contain, in order; taken in turn by one consumer. */
static struct read read_both(const struct pair_maker *pair, int64_t dedup_ns, unsigned threads)
{
	const struct ow_frame_choice all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	struct ow_record_reader input[OW_SIDES];
	struct ow_record_batches *batches[OW_SIDES];
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	struct read read = {.sum = {0}};
	ow_identity_seed(&identity, 1);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_time_base base = {.shift_ns = 5};
		assert_int_equal(ow_record_reader_open(&input[side], pair->path[side], NULL, &all, dedup_ns, 1, NULL),
		                 0);
		assert_int_equal(ow_record_reader_start(&input[side], &identity, NULL), 0);
		assert_int_equal(ow_record_batches_start(&input[side], &base, &batches[side]), 0);
	}
	struct ow_readahead *readahead = ow_readahead_start(batches, OW_SIDES, threads);
	const struct ow_batch *batch[OW_SIDES], *before[OW_SIDES] = {NULL, NULL};
	do {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			uint64_t kept = before[side] ? before[side]->record[0].id : 0;
			assert_int_equal(ow_record_batches_next(batches[side], &batch[side], NULL), 0);
			if (before[side]) /* it is valid until the call after this one */
				assert_int_equal(before[side]->record[0].id, kept);
			if (batch[side])
				add_batch(&read, side, batch[side]);
			before[side] = batch[side];
		}
	} while (batch[OW_SIDE_A] || batch[OW_SIDE_B]);
	ow_readahead_leave(readahead);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ow_record_batches_stop(batches[side]);
		ow_record_reader_close(&input[side]);
	}
	return read;
}

/* Whoever makes them, the consumer or any number of threads: each record comes once, in order, with all that it has. */
static void check_threads(const struct pair_maker *pair, int64_t dedup_ns, const struct read *want)
{
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct read read = read_both(pair, dedup_ns, threads);
		assert_memory_equal(&read, want, sizeof read);
	}
}

static void any_number_of_threads_gives_the_same_records(void **state)
{
	(void)state;
	struct pair_maker pair;
	pair_init(&pair, 7);
	for (int i = 0; i < PACKETS; i++)
		pair_send(&pair, OW_A_TO_B, (int64_t)i * 1000, 50000, i % 3 == 0);
	pair_match(&pair, NULL);
	struct read one = read_both(&pair, 0, 0);
	assert_int_equal(one.records[OW_SIDE_A], PACKETS);
	assert_int_equal(one.records[OW_SIDE_B], PACKETS - (PACKETS + 2) / 3);
	check_threads(&pair, 0, &one);
	pair_done(&pair);
}

/* Batches that are handed over whole: copies in some of them, and times that are far apart. */
static void unusual_records_are_handed_over_whole(void **state)
{
	(void)state;
	struct pair_maker pair;
	pair_init(&pair, 8);
	for (int i = 0; i < PACKETS; i++)
		pair_send(&pair, OW_A_TO_B, (int64_t)i * 1000 + i / 3000 * INT64_C(5000000000), 50000, i % 3 == 0);
	size_t copies = pair_mirror(&pair, OW_SIDE_A, 0.001, 1000, DEDUP_NS / 2);
	assert_int_not_equal(copies, 0);
	pair_match(&pair, NULL);
	struct read one = read_both(&pair, DEDUP_NS, 0);
	assert_int_equal(one.records[OW_SIDE_A], PACKETS);
	assert_int_equal(one.copies[OW_SIDE_A], copies);
	check_threads(&pair, DEDUP_NS, &one);
	pair_done(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_threads_gives_the_same_records),
		cmocka_unit_test(unusual_records_are_handed_over_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
