/* SPDX-License-Identifier: Apache-2.0 */
/* What two samples have in common: counts, clocks and directions, compared with what was put into them. */
#include "base/hash.h"
#include "base/random.h"
#include "reconcile/sample_overlap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define US INT64_C(1000)
#define S  INT64_C(1000000000)

struct samples {
	struct ow_identity_sample a, b;
};

static int setup(void **state)
{
	static struct samples samples;
	*state = &samples;
	return ow_sample_init(&samples.a) < 0 || ow_sample_init(&samples.b) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct samples *s = *state;
	ow_sample_done(&s->a);
	ow_sample_done(&s->b);
	return 0;
}

static void offer(struct ow_identity_sample *sample, uint64_t i, int64_t time_ns, uint64_t hosts, bool reverse)
{
	struct ow_sampled packet = {.id = ow_mix64(i + 1), .time_ns = time_ns, .hosts = hosts, .reverse = reverse};
	sample->offered++;
	bool wants = ow_sample_wants(sample, packet.id);
	size_t before = sample->packets;
	ow_sample_add(sample, &packet);
	if (!wants)
		assert_int_equal(sample->packets, before);
}

static struct ow_sample_overlap find(struct samples *s)
{
	struct ow_sample_overlap c;
	assert_int_equal(ow_sample_overlap_find(&s->a, &s->b, false, &c), 0);
	return c;
}

static void nothing_in_common(void **state)
{
	struct samples *s = *state;
	struct ow_sample_overlap c = find(s);
	assert_true(c.share == 0 && c.packets == 0 && c.unique == 0);
	for (uint64_t i = 0; i < 1000; i++) {
		offer(&s->a, i, 0, 1, false);
		offer(&s->b, i + 1000, 0, 1, false);
	}
	c = find(s);
	assert_true(c.share == 0 && c.packets == 0 && c.unique == 0);
}

static void one_direction(void **state)
{
	struct samples *s = *state;
	for (uint64_t i = 0; i < 10000; i++) {
		int64_t t = (int64_t)i * 10 * US;
		offer(&s->a, i, t, 1 + i % 7, false);
		if (i % 10)
			offer(&s->b, i, t + 37 * S + (int64_t)i, 1 + i % 7, false);
	}
	struct ow_sample_overlap c = find(s);
	assert_int_equal(c.unique, 9000);
	assert_true(c.share == 1 && fabs(c.packets - 9000) < 1e-6);
	assert_false(c.both_directions);
	assert_int_equal(c.min_ns, 37 * S + 1);
	assert_int_equal(c.max_ns, 37 * S + 9999);
	/* 2 %, 50 % and 98 % of 1 .. 9999, less the tens. */
	assert_true(llabs(c.low_ns[0] - (37 * S + 200)) < 20);
	assert_true(llabs(c.median_ns[0] - (37 * S + 5000)) < 20);
	assert_true(llabs(c.high_ns[0] - (37 * S + 9800)) < 20);
}

/* Repeating ids are common as often as both have them, but say nothing of the clocks. */
static void repeating_ids(void **state)
{
	struct samples *s = *state;
	for (int64_t i = 0; i < 50; i++)
		offer(&s->a, 1, i * S, 1, false);
	for (int64_t i = 0; i < 30; i++)
		offer(&s->b, 1, i * S + 5, 1, false);
	offer(&s->a, 2, 7, 1, false);
	offer(&s->b, 2, 9, 1, false);
	struct ow_sample_overlap c = find(s);
	assert_int_equal(c.unique, 1);
	assert_true(fabs(c.packets - 31) < 1e-9 && fabs(c.share - 1) < 1e-9);
	assert_true(c.min_ns == 2 && c.max_ns == 2 && c.median_ns[0] == 2);
}

/* Several ids repeat equally often: their period depends neither on the order of ids nor on that of the captures. */
static void the_period_of_repeating_ids(void **state)
{
	struct samples *s = *state;
	for (uint64_t run = 0; run < 16; run++) {
		s->a.packets = s->b.packets = 0;
		for (int64_t i = 0; i < 5; i++) {
			for (uint64_t k = 1; k < 4; k++) {
				offer(run % 2 ? &s->b : &s->a, 4 * run + k, i * (int64_t)k * S, 1, false);
				if (i < 3)
					offer(run % 2 ? &s->a : &s->b, 4 * run + k, i * (int64_t)k * S, 1, false);
			}
		}
		assert_int_equal(find(s).repeats_ns, S);
	}
}

static void offer_ttl(struct ow_identity_sample *sample, uint64_t i, int64_t time_ns, uint8_t ttl, bool reverse)
{
	sample->offered++;
	ow_sample_add(sample,
	              &(struct ow_sampled){
			      .id = ow_mix64(i + 1), .time_ns = time_ns, .hosts = 1, .ttl = ttl, .reverse = reverse});
}

/* A is joined of two captures: that of the packets from B has a clock that is 1 s behind, or not. TTLs tell the
 * directions apart, unless a device sets them, or they differ by more than any path is long. */
static void joined_captures(void **state)
{
	struct samples *s = *state;
	for (unsigned joined = 0; joined < 2; joined++) {
		for (unsigned kind = 0; kind < 3; kind++) {
			s->a.packets = s->b.packets = 0;
			s->a.joined = joined;
			for (uint64_t i = 0; i < 1000; i++) {
				int64_t t = (int64_t)i * US;
				bool to_b = i % 2;
				uint8_t there = kind == 0 ? 57 : kind == 1 ? (i % 4 < 2 ? 57 : 63) : 255;
				uint8_t sent = kind == 1 ? 60 : 64;
				int64_t behind = kind == 0 && joined && !to_b ? S : 0;
				offer_ttl(&s->a, i, (to_b ? t : t + 50 * US) - behind, to_b ? sent : there, !to_b);
				offer_ttl(&s->b, i, to_b ? t + 50 * US : t, to_b ? there : sent, !to_b);
			}
			struct ow_sample_overlap c = find(s);
			assert_true(c.both_directions);
			assert_int_equal(c.median_ns[0], 50 * US);
			assert_int_equal(c.median_ns[1], kind == 0 && joined ? S - 50 * US : -50 * US);
			assert_int_equal(c.lower_ttl[0] + c.lower_ttl[1] > 0, kind < 2);
		}
	}
	s->a.joined = false;
}

/* Whatever the clocks say, the way that is later at B is A to B, for every pair of hosts. */
static void two_directions(void **state)
{
	static const int64_t offsets[] = {0, 300, 37 * S, -3600 * S};
	for (unsigned k = 0; k < sizeof offsets / sizeof *offsets; k++) {
		struct samples *s = *state;
		s->a.packets = s->b.packets = 0;
		for (uint64_t i = 0; i < 4000; i++) {
			uint64_t hosts = 1 + i % 10;
			bool to_b = i % 3, reverse = to_b == (hosts % 2 == 0); /* how the names sort has no meaning */
			int64_t t = (int64_t)i * US, delay = to_b ? 20 * US : 50 * US;
			offer(&s->a, i, to_b ? t : t + delay, hosts, reverse);
			offer(&s->b, i, (to_b ? t + delay : t) + offsets[k], hosts, reverse);
		}
		for (uint64_t i = 0; i < 100; i++) { /* a pair with one way only is left out */
			offer(&s->a, i + 10000, 0, 99, false);
			offer(&s->b, i + 10000, 5 * S, 99, false);
		}
		struct ow_sample_overlap c = find(s);
		assert_true(c.both_directions);
		assert_int_equal(c.unique, 4100);
		assert_int_equal(c.median_ns[0], 20 * US + offsets[k]);
		assert_int_equal(c.median_ns[1], -50 * US + offsets[k]);
		assert_int_equal(c.low_ns[0], 20 * US + offsets[k]);
		assert_int_equal(c.high_ns[1], -50 * US + offsets[k]);
	}
}

/* More packets than a sample holds: both keep the same ones, and the estimate is within 5 standard deviations. */
/* No pair of hosts shows both directions, but routers do. */
static void two_directions_by_hops(void **state)
{
	struct samples *s = *state;
	for (uint64_t i = 0; i < 400; i++) {
		bool back = i % 4 == 0;
		int64_t sent = (int64_t)i * 10 * US, offset = 50 * US;
		struct ow_sampled near = {.id = ow_mix64(i + 1), .time_ns = sent + (back ? offset : 0), .ttl = 64},
				  far = {.id = near.id, .time_ns = sent + 3 * US + (back ? 0 : offset), .ttl = 61};
		near.hosts = far.hosts = back ? 1 : 2;
		ow_sample_add(back ? &s->b : &s->a, &near);
		ow_sample_add(back ? &s->a : &s->b, &far);
	}
	struct ow_sample_overlap c = find(s);
	assert_true(c.both_directions);
	assert_int_equal(c.median_ns[0], 53 * US);
	assert_int_equal(c.median_ns[1], 47 * US);
}

static void large_captures_keep_the_same_packets(void **state)
{
	struct samples *s = *state;
	const uint64_t packets = 500000, apart = 100000;
	for (uint64_t i = 0; i < packets; i++)
		offer(&s->a, i, (int64_t)i, 1, false);
	for (uint64_t i = apart; i < packets + apart; i++)
		offer(&s->b, i, (int64_t)i + 77, 1, false);
	assert_true(s->a.packets <= OW_SAMPLE_MAX && s->a.packets >= OW_SAMPLE_MAX / 2);
	struct ow_sample_overlap c = find(s);
	double p = (double)s->a.below / (double)UINT64_MAX, n = (double)(packets - apart);
	assert_true(fabs(c.packets - n) < 5 * sqrt(n * (1 - p) / p));
	assert_true(fabs(c.share - 0.8) < 5 * sqrt(0.16 / (p * (double)packets)));
	assert_true(c.min_ns == 77 && c.max_ns == 77);
}

/* A capture of one packet over and over must not make the sample spin. */
static void the_same_packet_over_and_over(void **state)
{
	struct samples *s = *state;
	for (uint64_t i = 0; i < 300000; i++) {
		offer(&s->a, 5, (int64_t)i, 1, false);
		offer(&s->b, 5, (int64_t)i, 1, false);
	}
	struct ow_sample_overlap c = find(s);
	assert_int_equal(c.unique, 0);
	assert_true(s->a.packets <= OW_SAMPLE_MAX);
	assert_true(c.share == 1 && c.common > 0);
	assert_int_equal(c.repeats_ns, 1);
}

/* Floods of identical packets take no places of others: all of those are found. */
static void floods(void **state)
{
	struct samples *s = *state;
	for (uint64_t i = 0; i < 400000; i++) {
		uint64_t id = i % 10 ? i % 5 : i + 10;
		offer(&s->a, id, (int64_t)i, 1, false);
		offer(&s->b, id, (int64_t)i + 77, 1, false);
	}
	struct ow_sample_overlap c = find(s);
	assert_int_equal(c.unique, 40000);
	assert_true(c.min_ns == 77 && c.max_ns == 77);
}

/* By id, then by time, however many there are: few, all, a part of all ids, and several of one. */
static void sorted(void **state)
{
	struct samples *s = *state;
	static const uint64_t sizes[] = {1, 3, 1000, 60000, 200000};
	for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
		s->a.packets = 0;
		s->a.below = UINT64_MAX;
		for (uint64_t i = 0; i < sizes[n]; i++)
			offer(&s->a, i % 7 ? i : i % 5, -(int64_t)i, 1, false);
		size_t packets = s->a.packets;
		ow_sample_sort(&s->a);
		assert_int_equal(s->a.packets, packets);
		for (size_t i = 1; i < packets; i++) {
			const struct ow_sampled *x = &s->a.packet[i - 1], *y = &s->a.packet[i];
			assert_true(x->id < y->id || (x->id == y->id && x->time_ns < y->time_ns));
		}
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(nothing_in_common),
		CASE(one_direction),
		CASE(repeating_ids),
		CASE(the_period_of_repeating_ids),
		CASE(joined_captures),
		CASE(two_directions),
		CASE(two_directions_by_hops),
		CASE(large_captures_keep_the_same_packets),
		CASE(the_same_packet_over_and_over),
		CASE(floods),
		CASE(sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
