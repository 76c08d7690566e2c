/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_batches.h"
#include "pair_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define PACKETS 20000

/* What both streams of records contain, in order; taken in turn by one consumer. */
static void read_both(const struct pair_maker *pair, unsigned threads, uint64_t ret_sum[OW_SIDES],
                      uint64_t ret_records[OW_SIDES])
{
	const struct ow_frame_choice all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	struct ow_record_reader input[OW_SIDES];
	struct ow_record_batches *batches[OW_SIDES];
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&identity, 1);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_time_base base = {.shift_ns = 5};
		assert_int_equal(ow_record_reader_open(&input[side], pair->path[side], NULL, &all, 0, 1, NULL), 0);
		assert_int_equal(ow_record_reader_start(&input[side], &identity, NULL), 0);
		assert_int_equal(ow_record_batches_start(&input[side], &base, &batches[side]), 0);
		ret_sum[side] = ret_records[side] = 0;
	}
	struct ow_readahead *readahead = ow_readahead_start(batches, OW_SIDES, threads);
	const struct ow_batch *batch[OW_SIDES];
	do {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			assert_int_equal(ow_record_batches_next(batches[side], &batch[side], NULL), 0);
			for (int i = 0; batch[side] && i < batch[side]->count; i++) {
				const struct ow_record *r = &batch[side]->record[i];
				assert_int_equal(r->number, ++ret_records[side]);
				ret_sum[side] = ret_sum[side] * 31 + (r->id ^ (uint64_t)r->time_ns ^ r->flow);
			}
		}
	} while (batch[OW_SIDE_A] || batch[OW_SIDE_B]);
	ow_readahead_leave(readahead);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ow_record_batches_stop(batches[side]);
		ow_record_reader_close(&input[side]);
	}
}

/* Whoever makes them, the consumer or any number of threads: each record comes once and in order. */
static void any_number_of_threads_gives_the_same_records(void **state)
{
	(void)state;
	struct pair_maker pair;
	pair_init(&pair, 7);
	for (int i = 0; i < PACKETS; i++)
		pair_send(&pair, OW_A_TO_B, (int64_t)i * 1000, 50000, i % 3 == 0);
	pair_match(&pair, NULL);
	uint64_t sum[OW_SIDES], records[OW_SIDES], again[OW_SIDES];
	read_both(&pair, 0, sum, records);
	assert_int_equal(records[OW_SIDE_A], PACKETS);
	assert_int_equal(records[OW_SIDE_B], PACKETS - (PACKETS + 2) / 3);
	for (unsigned threads = 1; threads <= 3; threads++) {
		read_both(&pair, threads, again, records);
		assert_memory_equal(again, sum, sizeof sum);
	}
	pair_done(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_threads_gives_the_same_records)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
