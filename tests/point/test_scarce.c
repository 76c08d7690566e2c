/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interval log and lane recorder when memory runs out at any allocation, once or for good: packets stay counted, the
 * packets of an interval are a sample by its shift, nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "record/interval_log.h"
#include "record/lane_recorder.h"
#include "scarce.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS 9000
#define CHUNK   1500

static struct ow_identity identity;

static struct ow_sighting stamp[PACKETS];
static struct ow_interval_packets *pages[3];

/* One interval after another, each with all packets. Returns the errors of adding. */
static unsigned write_pages(struct ow_interval_log *ledger)
{
	static struct {
		struct ow_chunk chunk;
		struct ow_sighting stamp[CHUNK];
	} c;
	unsigned errors = 0;
	for (int64_t interval = 0; interval < 3; interval++) {
		for (size_t from = 0; from < PACKETS; from += CHUNK) {
			c.chunk = (struct ow_chunk){.interval = interval, .count = CHUNK, .packets = CHUNK};
			memcpy(c.chunk.sighting, stamp + from, CHUNK * sizeof *stamp);
			int r = ow_interval_log_add(ledger, &c.chunk);
			assert_true(r == 0 || r == -ENOMEM);
			errors += r != 0;
		}
		pages[interval] = ow_interval_log_next(ledger, 1000 * (interval + 1));
	}
	return errors;
}

/* Exactly the packets whose rank the shift keeps, in their order, with the names of copies. */
static void check_page(const struct ow_interval_packets *page)
{
	static struct ow_sighting want[PACKETS];
	size_t count = 0;
	for (size_t i = 0; i < PACKETS; i++) {
		if (ow_sampled(ow_sample_rank(&identity, stamp[i].id), page->sample_shift))
			want[count++] = stamp[i];
	}
	assert_int_equal(ow_copies_rename(want, count), 0);
	assert_int_equal(page->total_packets, PACKETS);
	assert_int_equal(page->count, count);
	if (count > 0)
		assert_memory_equal(page->sighting, want, count * sizeof *want);
}

static void test_ledger(void **state)
{
	(void)state;
	const struct ow_interval_log_options options = {identity, 0, 1000, 1000000, 4};
	struct ow_random random;
	ow_random_seed(&random, 9);
	for (size_t i = 0; i < PACKETS; i++)
		stamp[i] = (struct ow_sighting){ow_mix64(ow_random_below(&random, PACKETS)),
		                                (int64_t)(i * 1000 / PACKETS)};
	unsigned runs = 0, halved = 0;
	for (int forever = 0; forever < 2; forever++) {
		for (size_t nth = 1, failures = 1; failures > 0; nth++, runs++) {
			struct ow_interval_log *ledger;
			assert_int_equal(ow_interval_log_create(&options, &ledger), 0);
			scarce_from(nth, forever);
			unsigned errors = write_pages(ledger);
			failures = scarce_failures();
			scarce_from(0, false);
			/* An interval that could not be closed for lack of memory comes later. */
			for (int i = 0; i < 3; i++) {
				if (!pages[i])
					pages[i] = ow_interval_log_next(ledger, 3000);
			}
			for (int i = 0; i < 3; i++) {
				assert_non_null(pages[i]);
				check_page(pages[i]);
				halved += pages[i]->sample_shift > 0;
				if (errors == 0)
					assert_int_equal(pages[i]->sample_shift, 0);
				ow_interval_packets_free(pages[i]);
			}
			assert_int_equal(ow_interval_log_misplaced(ledger), 0);
			ow_interval_log_free(ledger);
		}
	}
	print_message("%u runs, %u pages halved\n", runs, halved);
	assert_true(runs > 20 && halved > 20);
}

/* An Ethernet frame with UDP in IPv4. */
static void make_frame(uint8_t frame[60], uint32_t number)
{
	static const uint8_t start[42] = {2, 0, 0,  0,  0, 1, 2,  0, 0, 0, 0,  2, 8, 0, 0x45, 0, 0, 46, 0, 0,
	                                  0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2, 4,    0, 0, 7,  0, 26};
	memset(frame, 0, 60);
	memcpy(frame, start, sizeof start);
	memcpy(frame + 42, &number, sizeof number);
}

/* Lanes are created and used, frames noted, chunks taken: each packet is in a chunk or counted as lost. */
static void scribe_run(size_t nth, bool forever, size_t *ret_failures, uint64_t *lost)
{
	enum { FRAMES = 6000 };
	static uint8_t bytes[FRAMES][60];
	static struct ow_iface_frame frame[FRAMES];
	const uint16_t linktype = 1;
	const char *const name = "frames";
	struct ow_lanes lanes;
	struct ow_lane_recorder *scribe;
	struct ow_error err;
	uint32_t lane[3] = {0}, got = 0;
	assert_int_equal(ow_lanes_init(&lanes, &linktype, &name, 1), 0);
	assert_int_equal(ow_lane_recorder_create(0, &scribe), 0);
	assert_int_equal(ow_lane_recorder_take_up(scribe, lanes.newest), 0);
	struct ow_lane_options options = {.identity = identity, .sources = 1, .length_ns = OW_INTERVAL_MIN_NS};
	scarce_from(nth, forever);
	for (uint32_t i = 0; i < 3; i++) {
		options.filter = i ? "udp" : NULL;
		int r = ow_lanes_add(&lanes, &options, &lane[got], &err);
		assert_true(r == 0 || r == -ENOMEM ||
		            r == -EINVAL); /* libpcap takes lack of memory for a wrong filter */
		got += r == 0;
	}
	const struct ow_lane_table *table = ow_lane_recorder_take_up(scribe, lanes.newest) == 0 ? lanes.newest : NULL;
	for (uint32_t i = 0; i < FRAMES; i++) {
		make_frame(bytes[i], i);
		frame[i] = (struct ow_iface_frame){
			.frame = {.time_ns = i * 400, .data = bytes[i], .caplen = 60, .len = 60, .linktype = 1}};
	}
	ow_lane_recorder_frames(scribe, frame, FRAMES);
	ow_lane_recorder_finish(scribe, INT64_MAX);
	*ret_failures = scarce_failures();
	scarce_from(0, false);
	uint64_t packets = 0;
	struct ow_chunk *last, *next;
	for (struct ow_chunk *chunk = ow_lane_recorder_take(scribe, &last); chunk; chunk = next) {
		next = chunk->next;
		packets += chunk->packets;
		assert_int_equal(chunk->packets, chunk->count);
		free(chunk);
	}
	const struct ow_lane_recorder_counts *counts = ow_lane_recorder_counts(scribe);
	uint64_t want = table ? (uint64_t)got * FRAMES : 0;
	assert_int_equal(packets + counts->lost, want);
	assert_int_equal(counts->unclaimed, want ? 0 : FRAMES);
	*lost += counts->lost;
	ow_lane_recorder_free(scribe);
	ow_lanes_done(&lanes);
}

static void test_scribe(void **state)
{
	(void)state;
	uint64_t lost = 0;
	for (int forever = 0; forever < 2; forever++) {
		for (size_t nth = 1, failures = 1; failures > 0; nth++)
			scribe_run(nth, forever, &failures, &lost);
	}
	assert_true(lost > 0);
}

int main(void)
{
	identity = (struct ow_identity){.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&identity, 42);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ledger), cmocka_unit_test(test_scribe)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
