/* SPDX-License-Identifier: Apache-2.0 */
/* Late packets are distinguished from lost ones across intervals, with a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"
#include "reconcile/late_packets.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

static int step(struct ow_late_packets *carry, int64_t start, uint64_t matched, const struct ow_sighting *a, size_t as,
                const struct ow_sighting *b, size_t bs, struct ow_late_packets_account *settled)
{
	struct ow_late_packets_interval in = {start, matched + as, matched + bs, a, b, as, bs, 0};
	return ow_late_packets_step(carry, &in, settled);
}

/* A packet sent at 90 of interval 1 arrives at 5 of interval 2; another never does; one comes from nowhere. */
static void test_example(void **state)
{
	(void)state;
	struct ow_late_packets *carry;
	assert_int_equal(ow_late_packets_create(1, &carry), 0);
	struct ow_late_packets_account one, all;
	assert_int_equal(step(carry, 0, 10, (struct ow_sighting[]){{1, 90}, {2, 40}}, 2, NULL, 0, &one), 0);
	ow_late_packets_totals(carry, &all);
	assert_true(all.sent == 12 && all.pending == 2 && all.lost == 0);
	assert_int_equal(step(carry, 100, 20, NULL, 0, (struct ow_sighting[]){{1, 5}, {3, 6}}, 2, &one), 1);
	assert_true(one.sent == 12 && one.matched == 10 && one.late == 1 && one.lost == 1 && one.pending == 0 &&
	            one.extra == 0);
	assert_true(one.late_delay_ns == 15);
	assert_int_equal(ow_late_packets_flush(carry, &one), 1);
	assert_true(one.sent == 20 && one.received == 22 && one.late_received == 1 && one.extra == 1 && one.lost == 0);
	assert_int_equal(ow_late_packets_flush(carry, &one), 0);
	ow_late_packets_totals(carry, &all);
	assert_true(all.sent == 32 && all.matched == 30 && all.late == 1 && all.lost == 1 && all.pending == 0 &&
	            all.extra == 1);
	ow_late_packets_free(carry);
}

/* A packet may be late by `horizon` intervals, not by one more. */
static void test_horizon(void **state)
{
	(void)state;
	for (uint32_t horizon = 1; horizon < 5; horizon++) {
		for (uint32_t by = 1; by <= horizon + 1; by++) {
			struct ow_late_packets *carry;
			assert_int_equal(ow_late_packets_create(horizon, &carry), 0);
			const struct ow_sighting packet = {42, 7};
			struct ow_late_packets_account all, settled;
			for (uint32_t i = 0; i <= horizon + 1; i++) {
				int r = step(carry, 100 * i, 0, &packet, i == 0, &packet, i == by, &settled);
				assert_int_equal(r, i >= horizon);
			}
			ow_late_packets_totals(carry, &all);
			assert_true(all.late == (by <= horizon) && all.lost == (by > horizon) &&
			            all.extra == (by > horizon));
			if (by <= horizon)
				assert_true(all.late_delay_ns == 100. * by);
			ow_late_packets_free(carry);
		}
	}
}

/* The same id sent in two intervals: the older one is met first. */
static void test_same_id(void **state)
{
	(void)state;
	struct ow_late_packets *carry;
	assert_int_equal(ow_late_packets_create(4, &carry), 0);
	const struct ow_sighting twice[] = {{9, 0}, {9, 1}};
	struct ow_late_packets_account all;
	assert_int_equal(step(carry, 0, 0, twice, 2, NULL, 0, NULL), 0);
	assert_int_equal(step(carry, 100, 0, twice, 1, NULL, 0, NULL), 0);
	assert_int_equal(step(carry, 200, 0, NULL, 0, twice, 2, NULL), 0);
	ow_late_packets_totals(carry, &all);
	assert_true(all.late == 2 && all.pending == 1 && all.extra == 0);
	assert_int_equal(step(carry, 300, 0, NULL, 0, twice, 2, NULL), 0);
	ow_late_packets_totals(carry, &all);
	assert_true(all.late == 3 && all.pending == 0 && all.extra == 1);
	ow_late_packets_free(carry);
}

/* Where the caller knows which of the identical packets arrived, that one is late, or none. */
static void test_named(void **state)
{
	(void)state;
	const struct ow_sighting sent[] = {{7, 10}, {7, 50}, {7, 90}}, arrived[] = {{7, 5}, {7, 6}};
	static const struct {
		int64_t sent_ns[2];
		double delay_ns;
	} cases[] = {
		{{OW_LATE_PACKETS_ANY, OW_LATE_PACKETS_ANY}, 95 + 56},
		{{50, 90}, 55 + 16},
		{{90, OW_LATE_PACKETS_NOBODY}, 15},
		{{OW_LATE_PACKETS_NOBODY, OW_LATE_PACKETS_OLDEST}, 96},
		{{60, 60}, 15 + 96}, /* no other was sent so late: the oldest */
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct ow_late_packets *carry;
		struct ow_late_packets_account one;
		unsigned nobody =
			cases[k].sent_ns[0] == OW_LATE_PACKETS_NOBODY || cases[k].sent_ns[1] == OW_LATE_PACKETS_NOBODY;
		assert_int_equal(ow_late_packets_create(1, &carry), 0);
		assert_int_equal(step(carry, 0, 0, sent, 3, NULL, 0, &one), 0);
		int64_t times[3];
		ow_late_packets_times(carry, 7, times);
		assert_true(times[0] == 10 && times[1] == 50 && times[2] == 90);
		struct ow_late_packets_interval in = {
			.start_ns = 100, .received = 2, .only_b = arrived, .only_bs = 2, .sent_ns = cases[k].sent_ns};
		assert_int_equal(ow_late_packets_step(carry, &in, &one), 1);
		assert_int_equal(one.late, 2 - nobody);
		assert_int_equal(one.lost, 1 + nobody);
		assert_true(one.late_delay_ns == cases[k].delay_ns);
		assert_int_equal(ow_late_packets_flush(carry, &one), 1);
		assert_int_equal(one.extra, nobody);
		ow_late_packets_free(carry);
	}
}

static void test_refused(void **state)
{
	(void)state;
	struct ow_late_packets *carry = NULL;
	assert_int_equal(ow_late_packets_create(0, &carry), -EINVAL);
	assert_int_equal(ow_late_packets_create(OW_LATE_PACKETS_HORIZON_MAX + 1, &carry), -EINVAL);
	ow_late_packets_free(NULL);
	assert_int_equal(ow_late_packets_create(1, &carry), 0);
	struct ow_sighting p = {1, 1};
	struct ow_late_packets_interval in = {0, 5, 5, &p, &p, 1, 0, 0};
	assert_int_equal(ow_late_packets_step(carry, &in, NULL), -EINVAL); /* 4 matched at A, 5 at B */
	in = (struct ow_late_packets_interval){0, 0, 5, &p, &p, 1, 0, 0};
	assert_int_equal(ow_late_packets_step(carry, &in, NULL), -EINVAL);
	struct ow_late_packets_account all;
	ow_late_packets_totals(carry, &all);
	assert_true(all.sent == 0 && all.pending == 0);
	ow_late_packets_free(carry);
}

struct told {
	struct ow_late_packets_late late[8];
	size_t lates;
	int64_t doubt_from_ns; /* packets sent from here on stay undecided */
};

static void tell_late(void *arg, const struct ow_late_packets_late *late)
{
	struct told *told = arg;
	assert_true(told->lates < 8);
	told->late[told->lates++] = *late;
}

static bool tell_undecided(void *arg, int64_t sent_ns)
{
	return sent_ns >= ((struct told *)arg)->doubt_from_ns;
}

/* Which packets are late, by how much, and whether it could have been another identical one. */
static void test_told(void **state)
{
	(void)state;
	struct ow_late_packets *carry;
	struct ow_late_packets_account one, all;
	struct told told = {.doubt_from_ns = 60};
	assert_int_equal(ow_late_packets_create(2, &carry), 0);
	ow_late_packets_listen(carry, &(struct ow_late_packets_calls){tell_late, tell_undecided, NULL, &told});
	assert_int_equal(
		step(carry, 0, 1, (struct ow_sighting[]){{5, 10}, {5, 90}, {6, 50}, {7, 60}}, 4, NULL, 0, &one), 0);
	assert_true(ow_late_packets_waits(carry, 5) == 2 && ow_late_packets_waits(carry, 8) == 0 &&
	            ow_late_packets_waiting(carry) == 4);
	/* The first 5 that was sent is met first, but it could be the second. A third one is sent after it arrived. */
	assert_int_equal(step(carry, 100, 0, (struct ow_sighting[]){{5, 50}}, 1,
	                      (struct ow_sighting[]){{9, 1}, {5, 20}}, 2, &one),
	                 0);
	assert_true(told.lates == 1 && told.late[0].alike && told.late[0].age == 1 && told.late[0].place == 1 &&
	            told.late[0].delay_ns == 110 && told.late[0].sent_ns == 10);
	/* Of the two that wait now only one had been sent at 120, yet both at 210. */
	assert_int_equal(step(carry, 200, 0, NULL, 0, (struct ow_sighting[]){{5, 10}}, 1, &one), 1);
	assert_true(told.lates == 2 && told.late[1].alike && told.late[1].age == 2 && told.late[1].delay_ns == 120);
	assert_true(one.late == 2 && one.lost == 1 && one.pending == 1);
	assert_int_equal(step(carry, 300, 0, NULL, 0, (struct ow_sighting[]){{5, 10}}, 1, &one), 1);
	assert_true(told.lates == 3 && !told.late[2].alike && told.late[2].delay_ns == 160);
	while (ow_late_packets_flush(carry, NULL))
		;
	ow_late_packets_totals(carry, &all);
	assert_true(all.pending == 1 && all.lost == 1 && all.late == 3 && all.extra == 1);
	ow_late_packets_free(carry);
}

/* Ten identical packets wait. Of two that arrive at an unknown time, those sent last are late, as far as they can be. */
static void test_since(void **state)
{
	(void)state;
	struct ow_late_packets *carry;
	struct ow_late_packets_account one;
	struct told told = {.doubt_from_ns = INT64_MAX};
	struct ow_sighting a[10];
	const struct ow_sighting b[] = {{5, OW_LATE_PACKETS_NO_TIME}, {5, OW_LATE_PACKETS_NO_TIME}, {5, 7}};
	for (int i = 0; i < 10; i++)
		a[i] = (struct ow_sighting){5, 10 * i};
	assert_int_equal(ow_late_packets_create(2, &carry), 0);
	ow_late_packets_listen(carry, &(struct ow_late_packets_calls){tell_late, tell_undecided, NULL, &told});
	struct ow_late_packets_interval in = {.sent = 10, .only_a = a, .only_as = 10};
	assert_int_equal(ow_late_packets_step(carry, &in, &one), 0);
	assert_int_equal(ow_late_packets_waits_since(carry, 5, 85), 1);
	assert_int_equal(ow_late_packets_waits_since(carry, 5, 91), 0);
	assert_int_equal(ow_late_packets_waits_since(carry, 5, INT64_MIN), 10);
	in = (struct ow_late_packets_interval){
		.start_ns = 100, .received = 3, .only_b = b, .only_bs = 3, .since_ns = 85};
	assert_int_equal(ow_late_packets_step(carry, &in, &one), 0);
	assert_true(told.lates == 3 && told.late[0].sent_ns == 90 && !told.late[0].timed);
	/* None of the others can be late by the delays so far, but more arrived than were sent. */
	assert_true(told.late[1].sent_ns == 0 && told.late[2].sent_ns == 10 && told.late[2].timed);
	in = (struct ow_late_packets_interval){.start_ns = 200};
	assert_int_equal(ow_late_packets_step(carry, &in, &one), 1);
	assert_true(one.late == 3 && one.lost == 7);
	ow_late_packets_free(carry);
}

/* Clocks that are apart: the arrival is an interval before the sending, by up to early_ns. */
static void test_early(void **state)
{
	(void)state;
	for (int64_t early = 0; early < 30; early += 7) {
		struct ow_late_packets *carry;
		struct ow_late_packets_account one, all;
		struct told told = {.doubt_from_ns = INT64_MAX};
		assert_int_equal(ow_late_packets_create(1, &carry), 0);
		ow_late_packets_listen(carry, &(struct ow_late_packets_calls){tell_late, NULL, NULL, &told});
		struct ow_sighting b = {3, 95}, a = {3, 9};
		struct ow_late_packets_interval in = {.received = 1, .only_b = &b, .only_bs = 1, .early_ns = early};
		assert_int_equal(ow_late_packets_step(carry, &in, &one), 0);
		in = (struct ow_late_packets_interval){
			.start_ns = 100, .sent = 1, .only_a = &a, .only_as = 1, .early_ns = early};
		assert_int_equal(ow_late_packets_step(carry, &in, &one), 1);
		bool meets = early >= 14;
		assert_true(one.extra == !meets && one.late_received == meets && told.lates == meets);
		if (meets)
			assert_true(told.late[0].age == 0 && told.late[0].arrived == 1 && told.late[0].delay_ns == -14);
		assert_int_equal(ow_late_packets_flush(carry, &one), 1);
		assert_true(one.late == meets && one.lost == !meets);
		ow_late_packets_totals(carry, &all);
		assert_true(all.sent == 1 && all.received == 1 && all.late == meets && all.extra == !meets);
		ow_late_packets_free(carry);
	}
}

/*
 * After a stall the receiver's intervals are shifted by more than their length: a packet that takes 10 again arrives some
 * intervals before its own. Of two identical ones each is the one that arrived when it was sent.
 */
static void test_early_by_several(void **state)
{
	(void)state;
	for (uint32_t by = 1; by <= OW_LATE_PACKETS_EARLY_MAX + 1; by++) {
		struct ow_late_packets *carry;
		struct ow_late_packets_account one, all;
		struct told told = {.doubt_from_ns = INT64_MAX};
		assert_int_equal(ow_late_packets_create(10, &carry), 0);
		ow_late_packets_listen(carry, &(struct ow_late_packets_calls){tell_late, NULL, NULL, &told});
		int64_t shift_ns = by * 100 + 20;
		struct ow_sighting b[] = {{3, by * 100 + 19}, {3, by * 100 + 23}}, a[] = {{3, 9}, {3, 13}};
		for (uint32_t i = 0; i <= by; i++) {
			struct ow_late_packets_interval in = {
				.start_ns = i * 100, .shift_ns = shift_ns, .early_ns = shift_ns + 5, .early = by + 1};
			in.received = in.only_bs = i == 0 ? 2 : 0;
			in.sent = in.only_as = i == by ? 2 : 0;
			in.only_a = a;
			in.only_b = b;
			assert_int_equal(ow_late_packets_step(carry, &in, &one), 0);
		}
		bool meets = by <= OW_LATE_PACKETS_EARLY_MAX;
		assert_int_equal(told.lates, 2 * meets);
		for (int i = 0; i < 2 * meets; i++)
			assert_true(told.late[i].age == 0 && told.late[i].arrived == by && told.late[i].delay_ns == 10);
		ow_late_packets_totals(carry, &all);
		assert_true(all.late == 2 * meets && all.extra == 2 * !meets && all.pending == 2 * !meets);
		ow_late_packets_free(carry);
	}
}

struct packet {
	int64_t sent, received; /* -1 = lost */
};

static int by_received(const void *x, const void *y)
{
	int64_t a = ((const struct packet *)x)->received, b = ((const struct packet *)y)->received;
	return (a > b) - (a < b);
}

/*
 * 1e6 packets over 10 s, loss 1e-4, delays of 0.67 ms on average, intervals of 100 ms. Each interval alone would count
 * packets in flight at its end as lost: 0.67 % of them, 68 times the loss. With late packets, loss, mean and every
 * count are exact.
 */
static void test_late_is_not_lost(void **state)
{
	(void)state;
	enum { N = 1000000, INTERVALS = 101 };
	struct packet *p = malloc(N * sizeof *p);
	struct ow_sighting *only_a = malloc(N * sizeof *only_a), *only_b = malloc(N * sizeof *only_b);
	struct ow_random random;
	ow_random_seed(&random, 11);
	uint64_t lost = 0;
	double delays = 0, matched_delays = 0;
	for (int i = 0; i < N; i++) {
		int64_t delay = (int64_t)(-0.67 * (double)MS * log(1 - ow_random_unit(&random)));
		bool drop = ow_random_unit(&random) < 1e-4;
		p[i] = (struct packet){i * 10 * MS / 1000, drop ? -1 : i * 10 * MS / 1000 + delay};
		lost += drop;
		delays += drop ? 0 : (double)delay;
	}
	struct ow_late_packets *carry;
	assert_int_equal(ow_late_packets_create(2, &carry), 0);
	uint64_t naive = 0;
	/* By arrival, so that an interval's arrivals are together; the lost ones come first. */
	qsort(p, N, sizeof *p, by_received);
	size_t *sent = calloc(INTERVALS, sizeof *sent);
	for (int i = 0; i < N; i++)
		sent[p[i].sent / (100 * MS)]++;
	size_t arrival = 0, n = lost;
	for (int64_t k = 0; k < INTERVALS; k++) {
		size_t as = 0, bs = 0, received = 0, matched = 0;
		for (; arrival < N - lost && p[n + arrival].received / (100 * MS) == k; arrival++, received++) {
			const struct packet *q = p + n + arrival;
			if (q->sent / (100 * MS) == k) {
				matched++;
				matched_delays += (double)(q->received - q->sent);
			} else {
				only_b[bs++] =
					(struct ow_sighting){ow_mix64((uint64_t)q->sent), q->received - k * 100 * MS};
			}
		}
		for (size_t i = 0; i < N; i++) {
			/* Only at A: sent here, received later or never. Most packets fail the first test. */
			if (p[i].sent / (100 * MS) == k && (p[i].received < 0 || p[i].received / (100 * MS) != k))
				only_a[as++] =
					(struct ow_sighting){ow_mix64((uint64_t)p[i].sent), p[i].sent - k * 100 * MS};
		}
		assert_int_equal(as, sent[k] - matched);
		naive += as;
		struct ow_late_packets_interval in = {k * 100 * MS, sent[k], received, only_a, only_b, as, bs, 0};
		struct ow_late_packets_account settled;
		int r = ow_late_packets_step(carry, &in, &settled);
		assert_true(r >= 0);
		if (r)
			assert_true(settled.pending == 0 && settled.extra == 0);
	}
	struct ow_late_packets_account all;
	while (ow_late_packets_flush(carry, NULL))
		;
	ow_late_packets_totals(carry, &all);
	assert_true(all.sent == N && all.received == N - lost && all.lost == lost && all.extra == 0 &&
	            all.pending == 0);
	assert_true(all.matched + all.late == N - lost);
	double ratio = (double)naive / (double)lost;
	assert_true(ratio > 50 && ratio < 90);
	assert_true(fabs((matched_delays + all.late_delay_ns) / delays - 1) < 1e-9);
	/* Without the late ones the mean is too low: long delays cross the end more often. */
	assert_true(matched_delays / (double)all.matched < 0.995 * delays / (double)(N - lost));
	ow_late_packets_free(carry);
	free(sent);
	free(p);
	free(only_a);
	free(only_b);
}

/*
 * Random packets compared with the plain definition, and the conservation of packets (asserted inside) after every
 * step.
 */
static void test_random(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 12);
	for (int run = 0; run < 200; run++) {
		enum { N = 60, INTERVALS = 12 };
		uint32_t horizon = 1 + (uint32_t)ow_random_below(&random, 4);
		int at[N], arrives[N];
		uint64_t late = 0, lost = 0, extra = 0;
		for (int i = 0; i < N; i++) {
			at[i] = (int)ow_random_below(&random, INTERVALS);
			arrives[i] = at[i] + 1 + (int)ow_random_below(&random, 6);
			bool in_time = arrives[i] - at[i] <= (int)horizon && arrives[i] < INTERVALS;
			late += in_time;
			lost += !in_time;
			extra += !in_time && arrives[i] < INTERVALS;
		}
		struct ow_late_packets *carry;
		assert_int_equal(ow_late_packets_create(horizon, &carry), 0);
		for (int k = 0; k < INTERVALS; k++) {
			struct ow_sighting a[N], b[N];
			size_t as = 0, bs = 0;
			for (int i = 0; i < N; i++) {
				if (at[i] == k)
					a[as++] = (struct ow_sighting){(uint64_t)i, 0};
				if (arrives[i] == k)
					b[bs++] = (struct ow_sighting){(uint64_t)i, 0};
			}
			assert_true(step(carry, k, 5, a, as, b, bs, NULL) >= 0);
		}
		while (ow_late_packets_flush(carry, NULL))
			;
		struct ow_late_packets_account all;
		ow_late_packets_totals(carry, &all);
		assert_true(all.late == late && all.lost == lost && all.extra == extra && all.pending == 0);
		ow_late_packets_free(carry);
	}
}

/* A flood of one packet over and over: half of them late, half lost. In a list that is searched it would take minutes.
 */
static void test_flood(void **state)
{
	(void)state;
	enum { N = 200000 };
	static struct ow_sighting sent[N], arrived[N / 2];
	struct ow_late_packets *carry;
	struct ow_late_packets_account one, all;
	for (size_t i = 0; i < N; i++)
		sent[i] = (struct ow_sighting){77, (int64_t)i};
	for (size_t i = 0; i < N / 2; i++)
		arrived[i] = (struct ow_sighting){77, i % 2 ? (int64_t)i : OW_LATE_PACKETS_NO_TIME};
	assert_int_equal(ow_late_packets_create(1, &carry), 0);
	assert_int_equal(step(carry, 0, 5, sent, N, NULL, 0, &one), 0);
	assert_int_equal(ow_late_packets_waits(carry, 77), N);
	assert_int_equal(step(carry, N, 0, NULL, 0, arrived, N / 2, &one), 1);
	assert_int_equal(one.late, N / 2);
	assert_int_equal(one.lost, N / 2);
	assert_int_equal(ow_late_packets_waiting(carry), 0);
	ow_late_packets_totals(carry, &all);
	assert_int_equal(all.sent, N + 5);
	ow_late_packets_free(carry);
}

static void identical_packets_take_turns(void **state)
{
	(void)state;
	for (size_t waiting = 0; waiting < 4; waiting++) {
		for (size_t sent = 0; sent < 4; sent++) {
			for (size_t received = 0; received < 8; received++) {
				struct ow_late_packets_turns t = ow_late_packets_turns(waiting, sent, received);
				/* Nothing is left over at both ends, and what waits comes first. */
				assert_true(t.late <= waiting && t.pairs <= sent && t.late + t.pairs <= received);
				assert_true(t.late + t.pairs == received || t.late + t.pairs == waiting + sent);
				assert_true(t.pairs == 0 || t.late == waiting);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_same_id),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_late_is_not_lost),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_early_by_several),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(identical_packets_take_turns),
		cmocka_unit_test(test_since),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
