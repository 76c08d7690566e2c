/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "base/random.h"
#include "discovery/sampler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define T0     (INT64_C(1750000000) * SECOND)

/* -- the sample alone ---------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The k smallest distinct ids with their copies, and tau, whatever the order and number of copies. */
static void smallest_distinct(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		enum { N = 2000 };
		static uint64_t ids[N], sorted[N];
		uint32_t k = 1 + (uint32_t)ow_random_below(&random, 300), distinct = 0;
		uint64_t values = 1 + ow_random_below(&random, 1000);
		struct ow_bottom bottom;
		struct ow_vantage_sample sample = {.count = 0};
		assert_int_equal(ow_bottom_init(&bottom, k), 0);
		for (unsigned i = 0; i < N; i++) {
			ids[i] = sorted[i] = ow_random_below(&random, values) * 1000003;
			struct ow_sample_record record = {.id = ids[i], .time_ns = i, .copies = 1};
			if (ow_bottom_wants(&bottom, ids[i]))
				ow_bottom_add(&bottom, &record);
		}
		assert_int_equal(ow_bottom_take(&bottom, &sample), 0);
		qsort(sorted, N, sizeof *sorted, by_id);
		for (unsigned i = 0; i < N; i++) {
			if (i > 0 && sorted[i] == sorted[i - 1])
				continue;
			unsigned copies = 0, first = N;
			for (unsigned j = N; j-- > 0;) {
				copies += ids[j] == sorted[i];
				first = ids[j] == sorted[i] ? j : first;
			}
			if (distinct < k) {
				assert_true(sample.record[distinct].id == sorted[i]);
				assert_int_equal(sample.record[distinct].time_ns, first);
				assert_int_equal(sample.record[distinct].copies, copies > 127 ? 127 : copies);
			} else if (distinct == k) {
				assert_true(sample.tau == sorted[i]);
			}
			distinct++;
		}
		assert_int_equal(sample.count, distinct < k ? distinct : k);
		if (distinct <= k)
			assert_true(sample.tau == UINT64_MAX);
		ow_vantage_sample_done(&sample);
		ow_bottom_done(&bottom);
	}
}

/* Two threads together have the sample that one thread would have. */
static void threads_merge(void **state)
{
	(void)state;
	enum { N = 3000, K = 100 };
	struct ow_random random;
	struct ow_bottom bottom[3];
	struct ow_vantage_sample sample[3] = {{.count = 0}};
	ow_random_seed(&random, 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ow_bottom_init(&bottom[i], K), 0);
	for (int i = 0; i < N; i++) {
		struct ow_sample_record record = {.id = ow_random_u64(&random) >> 8, .time_ns = i, .copies = 1};
		struct ow_bottom *some[2] = {&bottom[ow_random_below(&random, 10) == 0], &bottom[2]};
		for (int k = 0; k < 2; k++) {
			some[k]->packets++;
			if (ow_bottom_wants(some[k], record.id))
				ow_bottom_add(some[k], &record);
		}
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ow_bottom_take(&bottom[i], &sample[i]), 0);
		ow_bottom_done(&bottom[i]);
	}
	assert_int_equal(ow_vantage_sample_merge(&sample[0], &sample[1], K), 0);
	assert_int_equal(sample[0].count, sample[2].count);
	assert_true(sample[0].tau == sample[2].tau && sample[0].packets == N);
	for (uint32_t i = 0; i < sample[0].count; i++)
		assert_true(sample[0].record[i].id == sample[2].record[i].id);
	/* A thread that saw nothing adds nothing. */
	struct ow_vantage_sample none = {.tau = UINT64_MAX, .end_ns = INT64_MAX}, nobody = none;
	assert_int_equal(ow_vantage_sample_merge(&none, &nobody, K), 0);
	assert_int_equal(ow_vantage_sample_merge(&none, &sample[2], K), 0);
	assert_int_equal(none.count, sample[2].count);
	assert_int_equal(ow_vantage_sample_merge(&none, &nobody, K), 0);
	assert_true(none.count == sample[2].count && none.tau == sample[2].tau);
	ow_vantage_sample_done(&none);
	for (int i = 0; i < 3; i++)
		ow_vantage_sample_done(&sample[i]);
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

struct seen {
	unsigned count;
	struct ow_vantage_sample sample[64];
};

static void take(void *arg, unsigned source, struct ow_vantage_sample *sample)
{
	struct seen *seen = arg;
	assert_int_equal(source, 3);
	assert_true(seen->count < 64);
	seen->sample[seen->count++] = *sample;
	sample->record = NULL;
}

static void forget(struct seen *seen)
{
	for (unsigned i = 0; i < seen->count; i++)
		ow_vantage_sample_done(&seen->sample[i]);
	seen->count = 0;
}

/* A UDP packet with this number in its payload. */
static struct ow_iface_frame frame_of(uint8_t *bytes, uint64_t number, uint8_t ttl, uint8_t last, int64_t time_ns,
                                      enum ow_heading heading)
{
	memset(bytes, 0, 200);
	bytes[12] = 8;
	uint8_t *ip = bytes + 14;
	ip[0] = 0x45;
	ow_store_be16(ip + 2, 60);
	ow_store_be16(ip + 4, (uint16_t)number);
	ip[8] = ttl;
	ip[9] = 17;
	memcpy(ip + 12, (uint8_t[]){10, 1, 0, last, 10, 2, 0, 1}, 8);
	ow_store_be16(ip + 20, 1234);
	ow_store_be16(ip + 22, 53);
	ow_store_be16(ip + 24, 40);
	memcpy(ip + 28, &number, sizeof number);
	return (struct ow_iface_frame){
		.frame = {.time_ns = time_ns, .data = bytes, .caplen = 74, .len = 74, .linktype = 1},
		.heading = heading};
}

static struct ow_sampler *sampler_of(struct seen *seen, bool directed)
{
	struct ow_sampler *sampler;
	struct ow_sampler_options options = {
		.key = 42, .records = 100, .epoch_ns = SECOND, .on_sample = take, .arg = seen};
	assert_int_equal(ow_sampler_create(&options, 3, directed, &sampler, NULL), 0);
	return sampler;
}

static void send(struct ow_sampler *sampler, uint64_t number, uint8_t ttl, uint8_t last, int64_t time_ns,
                 enum ow_heading heading)
{
	uint8_t bytes[200];
	struct ow_iface_frame frame = frame_of(bytes, number, ttl, last, time_ns, heading);
	ow_sampler_frames(sampler, &frame, 1);
}

static void vantages_and_epochs(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, true);
	ow_sampler_pass(sampler, T0 + SECOND / 2, 0);
	for (unsigned i = 0; i < 300; i++) /* from .5 s to 3.5 s, 100 a second, a third arrives */
		send(sampler, i, 64, 1, T0 + SECOND / 2 + i * SECOND / 100, i % 3 ? OW_HEADING_OUT : OW_HEADING_IN);
	ow_sampler_pass(sampler, T0 + 4 * SECOND, 7);
	assert_int_equal(seen.count, 8);
	uint64_t packets = 0, drops = 0;
	for (unsigned i = 0; i < seen.count; i++) {
		const struct ow_vantage_sample *s = &seen.sample[i];
		assert_int_equal(s->epoch, T0 / SECOND + i / 2);
		assert_int_equal(s->kind, i % 2 ? OW_VANTAGE_IN : OW_VANTAGE_OUT);
		assert_int_equal(ow_vantage_sample_complete(s), i >= 2); /* it began in the first epoch */
		assert_int_equal(s->packets, s->count);
		packets += s->packets;
		drops += s->drops;
	}
	assert_int_equal(packets, 300);
	assert_int_equal(drops, 14); /* of either direction */
	/* An epoch in which nothing passes has a sample, too. */
	forget(&seen);
	for (int i = 1; i <= 4; i++)
		ow_sampler_pass(sampler, T0 + 4 * SECOND + i * SECOND / 2, 7);
	assert_int_equal(seen.count, 4);
	assert_int_equal(seen.sample[3].packets, 0);
	assert_true(ow_vantage_sample_complete(&seen.sample[3]));
	/* A frame that is late by one epoch is in its own; what is older is not. */
	forget(&seen);
	send(sampler, 1, 64, 1, T0 + 7 * SECOND, OW_HEADING_OUT);
	send(sampler, 2, 64, 1, T0 + 7 * SECOND - 1, OW_HEADING_OUT);
	send(sampler, 3, 64, 1, T0 + 5 * SECOND, OW_HEADING_OUT);
	ow_sampler_pass(sampler, INT64_MAX, 7);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.sample[0].packets + seen.sample[1].packets, 2);
	assert_false(ow_vantage_sample_complete(&seen.sample[1]));
	forget(&seen);
	ow_sampler_free(sampler);
}

/* The id is that of level nat: other addresses and another TTL leave it, another payload does not. */
static void ids(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, false);
	send(sampler, 1, 64, 1, T0, OW_HEADING_UNKNOWN);
	send(sampler, 1, 60, 9, T0 + 5, OW_HEADING_UNKNOWN);
	send(sampler, 2, 64, 1, T0, OW_HEADING_UNKNOWN);
	ow_sampler_pass(sampler, T0 + SECOND, 0);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.sample[0].kind, OW_VANTAGE_TAP);
	assert_int_equal(seen.sample[0].packets, 3);
	assert_int_equal(seen.sample[0].count, 2);
	assert_int_equal(seen.sample[0].record[0].copies + seen.sample[0].record[1].copies, 3);
	forget(&seen);
	ow_sampler_free(sampler);
}

/* A packet to many hosts takes several ways: who got it lies on no way to another one who did. */
static void packets_to_many(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, false);
	uint8_t bytes[200];
	struct ow_iface_frame frame;
	for (unsigned i = 0; i < 4; i++) {
		frame = frame_of(bytes, i, 64, 1, T0, OW_HEADING_UNKNOWN);
		if (i == 1) /* multicast */
			memcpy(bytes + 30, (uint8_t[]){239, 1, 2, 3}, 4);
		if (i == 2)
			memset(bytes + 30, 255, 4);
		if (i == 3) /* to all hosts of a network: its address does not tell */
			memset(bytes, 255, 6);
		ow_sampler_frames(sampler, &frame, 1);
	}
	ow_sampler_pass(sampler, T0 + SECOND, 0);
	assert_int_equal(seen.sample[0].packets, 1);
	assert_int_equal(seen.sample[0].count, 1);
	assert_int_equal(seen.sample[0].drops, 0);
	forget(&seen);
	ow_sampler_free(sampler);
}

/* When the clock is set, nothing of before is reported, and the epoch counts as begun. */
static void clock_set(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, false);
	ow_sampler_pass(sampler, T0, 0);
	send(sampler, 1, 64, 1, T0 + 5, OW_HEADING_UNKNOWN);
	ow_sampler_clock(sampler, 1);
	ow_sampler_pass(sampler, T0 - 3 * SECOND - SECOND / 2, 0);
	send(sampler, 2, 64, 1, T0 - 3 * SECOND, OW_HEADING_UNKNOWN);
	ow_sampler_pass(sampler, T0 - 2 * SECOND, 0);
	assert_int_equal(seen.count, 2);
	assert_false(ow_vantage_sample_complete(&seen.sample[0]));
	assert_true(ow_vantage_sample_complete(&seen.sample[1]));
	assert_int_equal(seen.sample[1].packets, 1);
	assert_int_equal(seen.sample[1].clock_generation, 1);
	forget(&seen);
	ow_sampler_free(sampler);
}

/* Time that skips a second was set, or the host slept: the epochs around it are not complete. */
static void skipped_time(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, true);
	for (int64_t at = 0; at < 6 * SECOND; at += at == 2 * SECOND ? 3 * SECOND / 2 : SECOND / 4)
		ow_sampler_pass(sampler, T0 + at, 0);
	assert_int_equal(seen.count, 10);
	for (unsigned i = 0; i < seen.count; i++)
		assert_int_equal(ow_vantage_sample_complete(&seen.sample[i]), i / 2 < 2 || i / 2 > 3);
	forget(&seen);
	/* A hole of an hour: what is at its ends is not complete, and the hole is not told epoch by epoch. */
	ow_sampler_pass(sampler, T0 + 3600 * SECOND, 0);
	assert_true(seen.count <= 8);
	for (unsigned i = 0; i < seen.count; i++)
		assert_false(ow_vantage_sample_complete(&seen.sample[i]));
	forget(&seen);
	ow_sampler_free(sampler);
}

/* A superframe counts as the packets that it stands for; one that cannot be cut is missing, and said to be. */
static void superframes(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct ow_sampler *sampler = sampler_of(&seen, true);
	uint8_t bytes[200];
	struct ow_iface_frame frame = frame_of(bytes, 1, 64, 1, T0, OW_HEADING_OUT);
	frame.gso = OW_GSO_UDP;
	frame.gso_size = 10;
	ow_sampler_frames(sampler, &frame, 1); /* 32 bytes of payload: 4 packets */
	frame.gso = OW_GSO_TCP6;
	ow_sampler_frames(sampler, &frame, 1);
	ow_sampler_pass(sampler, T0 + SECOND, 0);
	assert_int_equal(seen.sample[0].packets, 4);
	assert_int_equal(seen.sample[0].drops, 1);
	forget(&seen);
	ow_sampler_free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest_distinct),   cmocka_unit_test(threads_merge),
		cmocka_unit_test(vantages_and_epochs), cmocka_unit_test(ids),
		cmocka_unit_test(clock_set),           cmocka_unit_test(skipped_time),
		cmocka_unit_test(superframes),         cmocka_unit_test(packets_to_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
