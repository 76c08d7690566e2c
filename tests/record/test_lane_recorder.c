/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into chunks: superframes, order around the end of an interval, changes of the sample, ends of intervals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "packet/segments.h"
#include "record/lane_recorder.h"
#include <stdlib.h>
#include <string.h>

#define LENGTH OW_INTERVAL_MIN_NS
#define T0     INT64_C(1700000000000000000)

static const uint16_t linktype = 1;
static const char *const name = "frames";

struct desk {
	struct ow_identity identity;
	struct ow_lanes lanes;
	struct ow_lane_recorder *scribe;
	uint8_t bytes[4096];
	struct ow_iface_frame frame;
};

static void desk_open(struct desk *desk)
{
	*desk = (struct desk){.identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX}};
	ow_identity_seed(&desk->identity, 4);
	assert_int_equal(ow_lanes_init(&desk->lanes, &linktype, &name, 1), 0);
	assert_int_equal(ow_lane_recorder_create(0, &desk->scribe), 0);
}

static uint32_t add_lane(struct desk *desk, int64_t t0_ns, int64_t length_ns)
{
	struct ow_lane_options options = {
		.identity = desk->identity, .sources = 1, .t0_ns = t0_ns, .length_ns = length_ns};
	struct ow_error err = {""};
	uint32_t lane;
	if (ow_lanes_add(&desk->lanes, &options, &lane, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_lane_recorder_take_up(desk->scribe, desk->lanes.newest), 0);
	return lane;
}

static void desk_close(struct desk *desk)
{
	ow_lane_recorder_free(desk->scribe);
	ow_lanes_done(&desk->lanes);
}

/* An Ethernet frame with TCP in IPv4 and so many bytes of payload, which tell its number. */
static void write_frame(struct desk *desk, uint32_t number, uint32_t payload, int64_t time_ns)
{
	static const uint8_t start[54] = {2, 0,  0,    0, 0,  1, 2, 0, 0,  0, 0,    2,    8,  0,    0x45, 0, 0, 0,
	                                  0, 0,  0x40, 0, 64, 6, 0, 0, 10, 9, 0,    1,    10, 9,    0,    2, 4, 0,
	                                  0, 80, 0,    0, 0,  0, 0, 0, 0,  1, 0x50, 0x18, 1,  0xff, 0,    0, 0, 0};
	memset(desk->bytes, (int)(number * 7), sizeof desk->bytes);
	memcpy(desk->bytes, start, sizeof start);
	ow_store_be16(desk->bytes + 16, (uint16_t)(40 + payload));
	ow_store_be16(desk->bytes + 18, (uint16_t)number);
	ow_store_be32(desk->bytes + 38, number);
	uint32_t len = 54 + payload;
	desk->frame = (struct ow_iface_frame){
		.frame = {.time_ns = time_ns, .data = desk->bytes, .caplen = len, .len = len, .linktype = linktype}};
}

/* All chunks, in one list of the caller's. */
static struct ow_chunk *take_all(struct desk *desk, int64_t passed_ns)
{
	struct ow_chunk *last;
	ow_lane_recorder_finish(desk->scribe, passed_ns);
	struct ow_chunk *first = ow_lane_recorder_take(desk->scribe, &last);
	assert_true(first ? last && !last->next : !last);
	assert_false(ow_lane_recorder_ready(desk->scribe));
	return first;
}

static struct ow_chunk *drop(struct ow_chunk *chunk)
{
	struct ow_chunk *next = chunk->next;
	ow_chunk_free(chunk);
	return next;
}

/* A superframe counts as the packets of the wire, all with its time. */
static void test_superframe(void **state)
{
	(void)state;
	static struct desk desk;
	static struct ow_segments segments;
	desk_open(&desk);
	add_lane(&desk, T0, LENGTH);
	write_frame(&desk, 1, 2500, T0 + 77);
	desk.frame.gso = OW_GSO_TCP4;
	desk.frame.gso_size = 1000;
	assert_int_equal(ow_segments_of_frame(&desk.identity, &desk.frame, &segments), 0);
	assert_int_equal(segments.count, 3);
	ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	struct ow_chunk *chunk = take_all(&desk, INT64_MAX);
	assert_int_equal(chunk->count, 3);
	assert_int_equal(chunk->packets, 3);
	assert_int_equal(chunk->bytes, 2500 + 3 * 40);
	assert_int_equal(chunk->unreadable, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chunk->sighting[i].time_ns, 77);
		assert_true(chunk->sighting[i].id == segments.id[i]);
	}
	assert_null(drop(chunk));

	/* One that cannot be cut is a packet, and said to be doubtful. */
	desk.frame.gso = OW_GSO_UDP;
	ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	chunk = take_all(&desk, INT64_MAX);
	assert_int_equal(chunk->packets, 1);
	assert_int_equal(chunk->unreadable, 1);
	assert_null(drop(chunk));
	desk_close(&desk);
}

/* Frames around the ends of intervals, out of order: few chunks, each packet in its interval. */
static void test_boundaries(void **state)
{
	(void)state;
	enum { FRAMES = 20000, INTERVALS = 20 };
	static struct desk desk;
	struct ow_random random;
	uint64_t want[INTERVALS + 1] = {0}, got[INTERVALS + 1] = {0};
	unsigned chunks = 0, before = 0;
	ow_random_seed(&random, 6);
	desk_open(&desk);
	uint32_t lane = add_lane(&desk, T0, LENGTH);
	for (uint32_t i = 0; i < FRAMES; i++) {
		int64_t time_ns = (int64_t)i * INTERVALS * LENGTH / FRAMES +
		                  (int64_t)ow_random_below(&random, LENGTH / 4) - LENGTH / 8;
		write_frame(&desk, i, 20, T0 + time_ns);
		ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
		if (time_ns >= 0)
			want[time_ns / LENGTH]++;
		else
			before++;
	}
	for (struct ow_chunk *chunk = take_all(&desk, INT64_MAX); chunk; chunk = drop(chunk)) {
		assert_int_equal(chunk->lane, lane);
		assert_true(chunk->interval >= 0 && chunk->interval <= INTERVALS);
		for (uint32_t i = 0; i < chunk->count; i++)
			assert_true(chunk->sighting[i].time_ns >= 0 && chunk->sighting[i].time_ns < LENGTH);
		got[chunk->interval] += chunk->packets;
		chunks++;
	}
	assert_true(before > 0);
	assert_memory_equal(want, got, sizeof want);
	assert_int_equal(chunks, INTERVALS + 1);

	/* A clock that is set back: the frames still are in their intervals. */
	for (uint32_t i = 0; i < 100; i++) {
		write_frame(&desk, i, 20, T0 + (i % 2 ? 19 : i % 4 ? 3 : 7) * LENGTH);
		ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	}
	memset(got, 0, sizeof got);
	for (struct ow_chunk *chunk = take_all(&desk, INT64_MAX); chunk; chunk = drop(chunk))
		got[chunk->interval] += chunk->packets;
	assert_int_equal(got[19], 50);
	assert_int_equal(got[3], 25);
	assert_int_equal(got[7], 25);
	desk_close(&desk);
}

/* Only what has ended is put aside; the ends are those of all lanes. */
static void test_ends(void **state)
{
	(void)state;
	static struct desk desk;
	desk_open(&desk);
	assert_int_equal(ow_lane_recorder_boundary(desk.scribe, T0), INT64_MAX);
	uint32_t first = add_lane(&desk, T0, LENGTH), second = add_lane(&desk, T0 + 10, 3 * LENGTH);
	assert_int_equal(ow_lane_recorder_boundary(desk.scribe, INT64_MIN), T0 + LENGTH);
	assert_int_equal(ow_lane_recorder_boundary(desk.scribe, T0 + LENGTH - 1), T0 + LENGTH);
	assert_int_equal(ow_lane_recorder_boundary(desk.scribe, T0 + LENGTH), T0 + 2 * LENGTH);
	assert_int_equal(ow_lane_recorder_boundary(desk.scribe, T0 + 3 * LENGTH), T0 + 3 * LENGTH + 10);
	write_frame(&desk, 1, 20, T0 + 500);
	ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	assert_null(take_all(&desk, T0 + LENGTH - 1));
	struct ow_chunk *chunk = take_all(&desk, T0 + LENGTH);
	assert_int_equal(chunk->lane, first);
	assert_null(drop(chunk));
	chunk = take_all(&desk, T0 + 3 * LENGTH + 10);
	assert_int_equal(chunk->lane, second);
	assert_int_equal(chunk->sighting[0].time_ns, 490);
	assert_null(drop(chunk));

	/* A full chunk is put aside at once. */
	for (uint32_t i = 0; i < OW_CHUNK_STAMPS + 1; i++) {
		assert_false(ow_lane_recorder_ready(desk.scribe));
		ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	}
	assert_true(ow_lane_recorder_ready(desk.scribe));
	uint64_t packets[2] = {0};
	for (chunk = take_all(&desk, INT64_MAX); chunk; chunk = drop(chunk))
		packets[chunk->lane == second] += chunk->count;
	assert_int_equal(packets[0], OW_CHUNK_STAMPS + 1);
	assert_int_equal(packets[1], OW_CHUNK_STAMPS + 1);
	desk_close(&desk);
}

/* Another sample, another chunk; a lane that is gone has none. */
static void test_tables(void **state)
{
	(void)state;
	static struct desk desk;
	desk_open(&desk);
	uint32_t stays = add_lane(&desk, T0, LENGTH), goes = add_lane(&desk, T0, LENGTH);
	uint64_t packets[3] = {0}, stamps[3] = {0};
	for (unsigned shift = 0; shift < 3; shift++) {
		assert_int_equal(ow_lanes_set_shift(&desk.lanes, stays, shift), 0);
		if (shift == 2)
			assert_int_equal(ow_lanes_remove(&desk.lanes, goes), 0);
		assert_int_equal(ow_lane_recorder_take_up(desk.scribe, desk.lanes.newest), 0);
		ow_lanes_reclaim(&desk.lanes, desk.lanes.newest->generation);
		for (uint32_t i = 0; i < 1000; i++) {
			write_frame(&desk, i, 20, T0 + i);
			ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
		}
	}
	assert_true(ow_lanes_has(&desk.lanes, stays) && !ow_lanes_has(&desk.lanes, goes));
	for (struct ow_chunk *chunk = take_all(&desk, INT64_MAX); chunk; chunk = drop(chunk)) {
		assert_int_equal(chunk->lane, stays);
		packets[chunk->sample_shift] += chunk->packets;
		stamps[chunk->sample_shift] += chunk->count;
		for (uint32_t i = 0; i < chunk->count; i++)
			assert_true(
				ow_sampled(ow_sample_rank(&desk.identity, chunk->sighting[i].id), chunk->sample_shift));
	}
	/* Binomial: 1000 packets at 1/2 and 1/4, within six standard deviations. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(packets[i], 1000);
	assert_int_equal(stamps[0], 1000);
	assert_true(stamps[1] > 500 - 95 && stamps[1] < 500 + 95);
	assert_true(stamps[2] > 250 - 83 && stamps[2] < 250 + 83);
	desk_close(&desk);
}

/* What a lane leaves out is noted with the next packet that it takes. */
static void test_left_out(void **state)
{
	(void)state;
	static struct desk desk;
	desk_open(&desk);
	struct ow_lane_options options = {
		.identity = desk.identity, .sources = 1, .t0_ns = T0, .length_ns = LENGTH, .without = "len > 500"};
	struct ow_error err = {""};
	uint32_t lane;
	if (ow_lanes_add(&desk.lanes, &options, &lane, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_lane_recorder_take_up(desk.scribe, desk.lanes.newest), 0);
	static const uint32_t payload[] = {10, 1000, 20, 30};
	for (uint32_t i = 0; i < 4; i++) {
		write_frame(&desk, i, payload[i], T0 + i * LENGTH);
		ow_lane_recorder_frames(desk.scribe, &desk.frame, 1);
	}
	struct ow_chunk *chunk = take_all(&desk, INT64_MAX);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chunk->count, 1);
		assert_int_equal(chunk->session, i == 1);
		chunk = drop(chunk);
	}
	assert_null(chunk);
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_superframe), cmocka_unit_test(test_boundaries),
	                                   cmocka_unit_test(test_ends), cmocka_unit_test(test_tables),
	                                   cmocka_unit_test(test_left_out)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
