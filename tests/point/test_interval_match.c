/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of two points compared: every count and delay against the truth, for unique and identical packets, across
 * boundaries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../effort.h"
#include "base/hash.h"
#include "base/random.h"
#include "history.h"
#include "reconcile/id_pairing.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool close_to(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* Both lists in order, one missing at each point; then the same shuffled: the walk and the table must agree. */
static void test_pairing(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 21);
	enum { N = 5000 };
	static struct ow_sighting a[N], b[N];
	static uint32_t of_a[N], of_b[N];
	for (int run = 0; run < RUN_COUNT(60); run++) {
		size_t as = 0, bs = 0;
		double loss = run % 4 == 0 ? 0 : run % 4 == 1 ? 0.01 : run % 4 == 2 ? 0.3 : 0.97;
		for (uint64_t i = 1; i <= N; i++) {
			bool burst = run % 5 == 4 && i > 1000 && i < 3000;
			if (ow_random_unit(&random) >= loss)
				a[as++].id = ow_mix64(i);
			if (ow_random_unit(&random) >= loss && !burst)
				b[bs++].id = ow_mix64(i);
		}
		size_t swaps = run < 20 ? 0 : run < 40 ? 50 : 10 * N;
		for (size_t i = 0; i < swaps && bs > 1; i++) {
			size_t x = ow_random_below(&random, bs), y = ow_random_below(&random, bs);
			struct ow_sighting t = b[x];
			b[x] = b[y];
			b[y] = t;
		}
		assert_int_equal(ow_pairing(a, as, b, bs, of_a, of_b), 0);
		for (size_t j = 0; j < bs; j++) {
			if (of_b[j] != OW_PAIRING_NONE)
				assert_true(a[of_b[j]].id == b[j].id && of_a[of_b[j]] == j);
		}
		/* Nothing is overlooked: what has no counterpart is really not there. */
		size_t paired_a = 0, paired_b = 0, common = 0;
		for (size_t i = 0; i < as; i++)
			paired_a += of_a[i] != OW_PAIRING_NONE;
		for (size_t j = 0; j < bs; j++)
			paired_b += of_b[j] != OW_PAIRING_NONE;
		for (size_t i = 0; run % 10 < 5 && i < as; i++) {
			for (size_t j = 0; j < bs; j++)
				common += a[i].id == b[j].id;
		}
		assert_int_equal(paired_a, paired_b);
		if (run % 10 < 5)
			assert_int_equal(paired_a, common);
	}
}

struct packet {
	int64_t sent, received; /* -1 = lost */
};

/* RFC 4737 by its definition, over the whole run. */
static uint64_t reordered_of(const struct packet *p, size_t n, const size_t *by_arrival)
{
	uint64_t count = 0;
	int64_t newest = -1;
	for (size_t k = 0; k < n; k++) {
		const struct packet *q = p + by_arrival[k];
		if (q->sent < newest)
			count++;
		else
			newest = q->sent;
	}
	return count;
}

static const struct packet *sorting;
static int by_received(const void *x, const void *y)
{
	int64_t a = sorting[*(const size_t *)x].received, b = sorting[*(const size_t *)y].received;
	return (a > b) - (a < b);
}

/* An interval's numbers are those of the packets that it sent. */
static void check_interval(const struct ow_interval_result *r, int64_t interval, int64_t length, const struct packet *p,
                           size_t n)
{
	uint64_t sent = 0, matched = 0, late = 0, lost = 0;
	double sum = 0, square = 0, low = INFINITY, high = -INFINITY;
	for (size_t i = 0; i < n; i++) {
		if (p[i].sent / length != interval)
			continue;
		sent++;
		lost += p[i].received < 0;
		if (p[i].received < 0)
			continue;
		matched += p[i].received / length == interval;
		late += p[i].received / length != interval;
		double d = (double)(p[i].received - p[i].sent);
		sum += d;
		square += d * d;
		low = fmin(low, d);
		high = fmax(high, d);
	}
	assert_int_equal(r->interval, interval);
	assert_true(r->final && r->status == OW_RESULT_MEASURED);
	assert_true(r->sent == sent && r->matched == matched && r->late == late && r->lost == lost);
	assert_true(r->pending == 0 && r->extra == 0 && r->ambiguous == 0 && r->samples == sent - lost);
	if (!r->samples) {
		assert_int_equal(r->mean_ns.status, OW_VALUE_NONE);
		return;
	}
	double count = (double)r->samples, mu = sum / count;
	assert_int_equal(r->mean_ns.status, OW_VALUE_EXACT);
	assert_true(close_to(r->mean_ns.value, mu));
	assert_true(fabs(r->stddev_ns.value - sqrt(fmax(0, square / count - mu * mu))) < 1e-3);
	assert_true(r->min_ns.value == low && r->max_ns.value == high);
	assert_true(close_to(r->loss_ratio.value, (double)lost / (double)sent));
}

/* Distinct packets with loss and long delays. */
static void test_truth(void **state)
{
	(void)state;
	enum { N = 4000, LENGTH = 1000, INTERVALS = 24 };
	struct ow_random random;
	ow_random_seed(&random, 22);
	for (int run = 0; run < RUN_COUNT(40); run++) {
		static struct packet p[N];
		static struct ow_sighting a[N], b[N];
		static size_t order[N];
		size_t bs = 0, n = 100 + ow_random_below(&random, N - 100);
		double loss = run % 3 == 0 ? 0 : 0.1, mean = run % 2 ? 40 : 700;
		const uint32_t horizon = 3;
		for (size_t i = 0; i < n; i++) {
			int64_t delay = 1 + (int64_t)(-mean * log(1 - ow_random_unit(&random)));
			delay = delay < 3 * LENGTH ? delay : 3 * LENGTH;
			p[i].sent = (int64_t)(i * 20 * LENGTH / n);
			p[i].received = ow_random_unit(&random) < loss ? -1 : p[i].sent + delay;
			a[i] = (struct ow_sighting){ow_mix64(i + 1), p[i].sent};
			if (p[i].received >= 0)
				order[bs++] = i;
		}
		sorting = p;
		qsort(order, bs, sizeof *order, by_received);
		for (size_t k = 0; k < bs; k++)
			b[k] = (struct ow_sighting){a[order[k]].id, p[order[k]].received};
		struct history history;
		history_play(&history, a, n, b, bs, LENGTH, INTERVALS, horizon);
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		assert_int_equal(history.finals, INTERVALS);
		uint64_t reordered = 0;
		for (int64_t k = 0; k < INTERVALS; k++) {
			check_interval(history.final + k, k, LENGTH, p, n);
			reordered += history.final[k].reordered;
		}
		struct ow_interval_result total;
		ow_run_total(history.settle, &total);
		assert_true(total.sent == n && total.received == bs && total.lost == n - bs && total.matched == bs &&
		            total.extra == 0);
		assert_int_equal(reordered, reordered_of(p, bs, order));
		assert_int_equal(total.reordered, reordered);
		assert_true(total.exact && total.mean_ns.status == OW_VALUE_EXACT && total.interval == INTERVALS);
		history_done(&history);
	}
}

/*
 * Every history of up to three identical packets: sent at any of six times, lost or delayed by up to three, in
 * intervals of two. Losses are exact, nothing is extra, and delays that are not called ambiguous are true.
 */
static void play_identical(const int64_t sent[3], const int64_t delay[3], size_t n)
{
	enum { LENGTH = 2, INTERVALS = 8 };
	struct ow_sighting a[3], b[3];
	size_t bs = 0;
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		a[i] = (struct ow_sighting){77, sent[i]};
		if (delay[i] < 0)
			continue;
		b[bs++] = (struct ow_sighting){77, sent[i] + delay[i]};
		sum += (double)delay[i];
	}
	history_sort(b, bs);
	struct history history;
	struct ow_interval_result total;
	history_play(&history, a, n, b, bs, LENGTH, INTERVALS, 2);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	ow_run_total(history.settle, &total);
	assert_true(total.sent == n && total.received == bs && total.matched == bs && total.lost == n - bs);
	assert_true(total.extra == 0 && total.pending == 0 && total.duplicated == 0);
	assert_int_equal(total.samples + total.ambiguous, bs);
	if (total.samples == bs && bs)
		assert_true(close_to(total.mean_ns.value, sum / (double)bs));
	history_done(&history);
}

static void test_identical(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		int step = n == 3 && RUN_STEP > 1 ? 7 : 1; /* has no factor of 30 */
		for (int code = 0; code < (n == 1 ? 30 : n == 2 ? 900 : 27000); code += step) {
			int64_t sent[3], delay[3];
			bool ordered = true;
			for (size_t i = 0, rest = (size_t)code; i < n; i++, rest /= 30) {
				sent[i] = (int64_t)(rest % 6);
				delay[i] = (int64_t)(rest / 6 % 5) - 1;
				ordered &= i == 0 || sent[i] >= sent[i - 1];
			}
			if (ordered)
				play_identical(sent, delay, n);
		}
	}
}

/* Keep-alives, one every 100 ms, that cross the ends of intervals: certain, because each arrives before the next. */
static void test_keepalives(void **state)
{
	(void)state;
	enum { N = 100 };
	struct ow_sighting a[N], b[N];
	for (int i = 0; i < N; i++) {
		a[i] = (struct ow_sighting){5, i * 100 + 95};
		b[i] = (struct ow_sighting){5, i * 100 + 95 + 10};
	}
	struct history history;
	struct ow_interval_result total;
	history_play(&history, a, N, b, N, 1000, 12, 2);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	ow_run_total(history.settle, &total);
	assert_true(total.matched == N && total.lost == 0 && total.extra == 0 && total.ambiguous == 0);
	assert_true(total.mean_ns.value == 10 && total.max_ns.value == 10 && total.reordered == 0);
	assert_int_equal(history.final[3].late, 1);
	history_done(&history);
}

/* RFC 5560: a packet that arrives three times has the delay of its first arrival, also over a boundary. */
static void test_duplicates(void **state)
{
	(void)state;
	const struct ow_sighting a[] = {{1, 10}, {2, 20}, {3, 95}};
	const struct ow_sighting b[] = {{1, 15}, {2, 22}, {1, 40}, {3, 101}, {3, 102}, {2, 103}, {9, 104}, {3, 201}};
	struct history history;
	struct ow_interval_result total;
	history_play(&history, a, 3, b, 8, 100, 4, 2);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	ow_run_total(history.settle, &total);
	assert_true(total.sent == 3 && total.received == 8 && total.matched == 3 && total.extra == 5);
	assert_int_equal(total.ambiguous, 0);
	assert_int_equal(total.duplicated, 4);
	assert_true(close_to(total.mean_ns.value, (5 + 2 + 6) / 3.));
	history_done(&history);
}

/* Two identical ones sent, one arrived when both had been sent: it is not known which delay it has. */
static void test_ambiguous(void **state)
{
	(void)state;
	const struct ow_sighting a[] = {{1, 10}, {1, 20}, {2, 30}}, b[] = {{1, 25}, {2, 33}};
	struct history history;
	history_play(&history, a, 3, b, 2, 100, 3, 1);
	const struct ow_interval_result *r = history.final;
	assert_true(r->matched == 2 && r->lost == 1 && r->ambiguous == 1 && r->samples == 1 && r->mean_ns.value == 3);
	history_done(&history);
}

/* A mirror port, or two interfaces of a router, show the sender's packets twice: those that count as lost may be copies, and the
 * result says so, also where many are shown again in the next interval. Where hosts send twice, and a tenth is lost, it does not. */
static void test_shown_twice(void **state)
{
	(void)state;
	enum { N = 400, INTERVALS = 4 };
	static const int64_t period = 2500000, apart[] = {3000, 900000, 5000000, 20000000};
	static const int64_t delay[] = {100000, 100000, 100000, 12000000};
	static struct ow_sighting a[2 * N * INTERVALS], b[2 * N * INTERVALS];
	for (int run = 0; run < 8; run++) {
		bool mirror = run % 2;
		size_t as = 0, bs = 0;
		for (int64_t i = 0; i < N * (INTERVALS - 1); i++) {
			uint64_t id = ow_mix64((uint64_t)i + 1);
			a[as++] = (struct ow_sighting){id, i * period};
			a[as++] = (struct ow_sighting){id, i * period + apart[run / 2]};
			if (i % 10)
				b[bs++] = (struct ow_sighting){id, i * period + delay[run / 2]};
			if (!mirror && i % 10 != 1)
				b[bs++] = (struct ow_sighting){id, i * period + apart[run / 2] + delay[run / 2]};
		}
		history_sort(a, as);
		history_sort(b, bs);
		struct history history;
		history_play(&history, a, as, b, bs, period * N, INTERVALS, 1);
		for (int i = 0; i < INTERVALS - 1; i++) {
			const struct ow_interval_result *r = &history.final[i];
			/* Among others only its name has room. */
			bool told = strstr(r->cause, "seen twice at the sender") || strstr(r->cause, "identical_twice");
			assert_int_equal(told, mirror);
			assert_true(!mirror || (r->status == OW_RESULT_PARTIAL && r->loss_ratio.low <= .11));
		}
		history_done(&history);
	}
}

/* Random traffic with everything at once: whatever happens, packets are conserved (asserted in the sink). */
static void test_conservation(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 23);
	enum { N = 400 };
	static struct ow_sighting a[N], b[2 * N];
	for (int run = 0; run < RUN_COUNT(300); run++) {
		size_t as = 1 + ow_random_below(&random, N - 1), bs = 0;
		uint64_t names = 1 + ow_random_below(&random, run % 2 ? 10 : 2 * N);
		for (size_t i = 0; i < as; i++) {
			a[i] = (struct ow_sighting){ow_mix64(1 + ow_random_below(&random, names)),
			                            (int64_t)ow_random_below(&random, 900)};
			for (unsigned copies = (unsigned)ow_random_below(&random, 3); copies; copies--)
				b[bs++] = (struct ow_sighting){a[i].id,
				                               a[i].time_ns + (int64_t)ow_random_below(&random, 250)};
		}
		history_sort(a, as);
		history_sort(b, bs);
		struct history history;
		struct ow_interval_result total;
		history_play(&history, a, as, b, bs, 100, 12, 1 + (uint32_t)ow_random_below(&random, 3));
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		ow_run_total(history.settle, &total);
		assert_true(history.firsts == 12 && history.finals == 12);
		assert_true(total.sent == as && total.received == bs);
		assert_true(total.sent == total.matched + total.lost + total.pending);
		history_done(&history);
	}
}

static struct ow_interval_packets make_page(size_t count, uint64_t skip, uint64_t seed, bool shuffle, int64_t shift_ns)
{
	struct ow_interval_packets page = {.length_ns = 1000000000,
	                                   .sighting = malloc((count + 1) * sizeof *page.sighting)};
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (uint64_t i = 1; i <= count; i++) {
		if (skip && i % skip == 0)
			continue;
		page.sighting[page.count++] = (struct ow_sighting){ow_mix64(i), (int64_t)i * 900 + shift_ns};
	}
	for (size_t i = page.count - 1; shuffle && i > 0; i--) {
		size_t j = ow_random_below(&random, i + 1);
		uint64_t id = page.sighting[i].id;
		page.sighting[i].id = page.sighting[j].id;
		page.sighting[j].id = id;
	}
	page.total_packets = page.count;
	return page;
}

/*
 * Identical packets, one every 5 ms, on a path of ten times that, run already when the points begin: they look as if they took
 * no time, which is said. Other packets, which begin later, show it: no interval is measured with delays that are too short. With
 * two clocks, too.
 */
static void test_others_later(void **state)
{
	(void)state;
	enum { INTERVALS = 9, PACKETS = 4096 };
	static struct ow_sighting a[PACKETS], b[PACKETS];
	const int64_t ms = 1000000, second = 1000 * ms, path = 50 * ms;
	struct ow_random random;
	ow_random_seed(&random, 5);
	for (int run = 0; run < RUN_COUNT(30); run++) {
		struct history history;
		size_t as = 0, bs = 0;
		bool two_clocks = run % 3;
		int64_t ahead_ns = run % 3 == 2 ? -80 * ms : 0;
		for (int64_t i = -200; i < INTERVALS * 200; i++) {
			int64_t sent_ns = i * 5 * ms + (int64_t)ow_random_below(&random, 50000),
				other_ns = sent_ns + 2 * ms;
			int64_t delay_ns = path + (int64_t)ow_random_below(&random, 300000);
			bool lost = run % 2 && ow_random_below(&random, 50) == 0;
			if (sent_ns >= 0)
				a[as++] = (struct ow_sighting){77, sent_ns, 0};
			if (sent_ns + delay_ns + ahead_ns >= 0 && !lost)
				b[bs++] = (struct ow_sighting){77, sent_ns + delay_ns + ahead_ns, 0};
			if (i < 700 || i % 4)
				continue;
			a[as++] = (struct ow_sighting){ow_mix64((uint64_t)i), other_ns, 0};
			b[bs++] = (struct ow_sighting){ow_mix64((uint64_t)i), other_ns + delay_ns + ahead_ns, 0};
		}
		history_sort(a, as);
		history_sort(b, bs);
		history_play_running(&history, a, as, b, bs, second, INTERVALS, 2, two_clocks);
		for (int i = 0; i < INTERVALS - 3; i++) {
			const struct ow_interval_result *r = &history.final[i];
			bool known = r->status == OW_RESULT_MEASURED && r->mean_ns.status != OW_VALUE_NONE;
			assert_true(!known || r->mean_ns.value >= (double)(path + ahead_ns));
			assert_true(!known || r->mean_ns.value <= (double)(path + ahead_ns + ms));
			assert_true(i >= 3 || r->status == OW_RESULT_PARTIAL);
		}
		history_done(&history);
	}
}

/* One identical packet every `period`, and unique ones every `others`. */
struct beats_case {
	int64_t length_ms, period_ms, path_ms, others_ms;
	unsigned loss;  /* one in so many; 0 = none */
	bool later;     /* identical ones begin later than the points; else they were sent already */
	unsigned least; /* intervals that are measured */
};

#define BEATS_INTERVALS 200
#define BEATS_PACKETS   100000
#define BEATS_JITTER_NS 300000

struct beats {
	struct ow_sighting *a, *b;
	size_t as, bs;
	uint64_t lost[BEATS_INTERVALS];
};

static void add_beat(const struct beats_case *c, struct beats *beats, struct ow_sighting sent, struct ow_random *random)
{
	const int64_t ms = 1000000, length = c->length_ms * ms;
	int64_t received_ns = sent.time_ns + c->path_ms * ms + (int64_t)ow_random_below(random, BEATS_JITTER_NS);
	bool lost = c->loss && ow_random_below(random, c->loss) == 0;
	if (sent.time_ns >= 0) {
		beats->a[beats->as++] = sent;
		beats->lost[sent.time_ns / length] += lost;
	}
	if (received_ns >= 0 && !lost)
		beats->b[beats->bs++] = (struct ow_sighting){sent.id, received_ns, 0};
}

static void make_beats(const struct beats_case *c, struct beats *beats, struct ow_random *random)
{
	const int64_t ms = 1000000, end = BEATS_INTERVALS * c->length_ms * ms, path = c->path_ms * ms;
	for (int unique = 0; unique < 2; unique++) {
		int64_t every = ms * (unique ? c->others_ms : c->period_ms);
		for (int64_t i = -2 * path / every - 2, sent; (sent = i * every + every / 3) < end; i++) {
			uint64_t id = unique ? ow_mix64((uint64_t)(i + BEATS_PACKETS)) : 77;
			if (unique || !c->later || sent >= 2 * path)
				add_beat(c, beats, (struct ow_sighting){id, sent, 0}, random);
		}
	}
	history_sort(beats->a, beats->as);
	history_sort(beats->b, beats->bs);
}

static void play_beats(const struct beats_case *c, bool two_clocks, struct ow_random *random)
{
	static struct ow_sighting a[BEATS_PACKETS], b[BEATS_PACKETS];
	struct beats beats = {.a = a, .b = b};
	struct history history;
	double path = (double)c->path_ms * 1e6;
	unsigned measured = 0;
	make_beats(c, &beats, random);
	history_play_running(&history, a, beats.as, b, beats.bs, c->length_ms * 1000000, BEATS_INTERVALS,
	                     (uint32_t)(2 * c->path_ms / c->length_ms + 2), two_clocks);
	for (size_t i = 0; i < history.finals; i++) {
		const struct ow_interval_result *r = &history.final[i];
		if (r->status != OW_RESULT_MEASURED)
			continue;
		measured++;
		assert_int_equal(r->lost, beats.lost[i]);
		assert_true(r->mean_ns.status == OW_VALUE_NONE ||
		            (r->min_ns.value >= path && r->max_ns.value <= path + BEATS_JITTER_NS));
	}
	printf("interval %d ms, one every %d ms, path %d ms, %d clock(s): %u of %zu measured\n", (int)c->length_ms,
	       (int)c->period_ms, (int)c->path_ms, 1 + two_clocks, measured, history.finals);
	assert_true(two_clocks || measured >= c->least);
	history_done(&history);
}

/*
 * No interval has two packets of a stream in which all are identical, and several of them are on their way at a time: delays are
 * right, or the result says that they may be longer. Those that arrive before the next one is sent are measured.
 */
static void test_beats(void **state)
{
	(void)state;
	static const struct beats_case cases[] = {
		{10, 10, 50, 7, 0, false, 0},        {10, 10, 50, 7, 20, false, 0},
		{10, 10, 50, 1, 20, false, 0},       {10, 20, 50, 7, 0, false, 0},
		{10, 5, 50, 7, 0, false, 0},         {10, 30, 50, 7, 0, false, 0},
		{20, 20, 50, 7, 0, false, 0},        {10, 100, 150, 7, 0, false, 0},
		{10, 10, 9, 7, 0, false, 0},         {10, 10, 12, 7, 0, false, 0},
		{1000, 1000, 700, 7, 0, false, 0},   {10, 10, 1, 7, 0, false, 190},
		{10, 100, 50, 7, 0, false, 150},     {1000, 1000, 50, 7, 0, false, 190},
		{1000, 1000, 100, 7, 0, false, 190}, {10, 10, 50, 7, 0, true, 0},
		{10, 10, 50, 7, 20, true, 0},        {10, 30, 50, 7, 20, true, 0},
		{10, 100, 50, 7, 20, true, 120},     {1000, 1000, 50, 7, 20, true, 190},
		{1000, 1000, 700, 7, 20, true, 0},
	};
	struct ow_random random;
	for (uint64_t seed = 0; seed < RUN_COUNT(4); seed++) {
		ow_random_seed(&random, 41 + seed);
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
			play_beats(&cases[k], seed % 2, &random);
	}
}

/* CPU time, whatever else the machine does. */
static int64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The same packets once more in the next interval, when it is known how long they take: few can be copies of those before. */
static double play_next(struct history *history, struct ow_interval_packets *a, struct ow_interval_packets *b)
{
	struct ow_interval_results_input input;
	struct ow_joined joined;
	a->interval = b->interval = 1;
	a->start_ns = b->start_ns = a->length_ns;
	for (size_t i = 0; i < a->count; i++)
		a->sighting[i].id = ow_mix64(a->sighting[i].id);
	for (size_t j = 0; j < b->count; j++)
		b->sighting[j].id = ow_mix64(b->sighting[j].id);
	int64_t before = cpu_ns();
	assert_int_equal(ow_interval_match_pair(a, b,
	                                        &(struct ow_interval_match_past){.results = history->settle,
	                                                                         .copies = history->copies},
	                                        &input, &joined),
	                 0);
	int64_t after = cpu_ns();
	ow_joined_done(&joined);
	return (double)(after - before) / 1e6;
}

/* How long a million packets take; printed, not judged. */
static void test_speed(void **state)
{
	(void)state;
	const size_t n = 1000000;
	for (int shuffle = 0; shuffle < 2; shuffle++) {
		struct ow_interval_packets a = make_page(n, 0, 1, false, 0), b = make_page(n, 100, 2, shuffle, 50000);
		struct ow_interval_results_input input;
		struct ow_joined joined;
		struct history history;
		history_open(&history, 2, 4);
		int64_t before = cpu_ns();
		assert_int_equal(ow_interval_match_pair(&a, &b,
		                                        &(struct ow_interval_match_past){.results = history.settle,
		                                                                         .copies = history.copies},
		                                        &input, &joined),
		                 0);
		int64_t between = cpu_ns();
		assert_int_equal(ow_interval_results_step(history.settle, &input), 0);
		int64_t after = cpu_ns();
		printf("%zu packets, 1 %% lost, %s: join %.1f ms, settle %.1f ms\n", n,
		       shuffle ? "in no order" : "in order", (double)(between - before) / 1e6,
		       (double)(after - between) / 1e6);
		assert_int_equal(history.first[0].matched, n - n / 100);
		ow_joined_done(&joined);
		printf("the next %zu: join %.1f ms\n", n, play_next(&history, &a, &b));
		free(a.sighting);
		free(b.sighting);
		history_done(&history);
	}
}

/* A flood of packets of which nearly all are copies of others. */
static void test_flood(void **state)
{
	(void)state;
	enum { N = 300000, NAMES = 20000 };
	struct ow_sighting *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
	size_t bs = 0;
	for (int i = 0; i < N; i++) {
		a[i] = (struct ow_sighting){ow_mix64(1 + (uint64_t)i % NAMES), (int64_t)i * 3000};
		if (i % 100)
			b[bs++] = (struct ow_sighting){a[i].id, a[i].time_ns + 2000};
	}
	struct history history;
	int64_t before = cpu_ns();
	history_play(&history, a, N, b, bs, 1000000000, 2, 1);
	printf("%d packets of %d names: %.1f ms with the ledgers\n", N, NAMES, (double)(cpu_ns() - before) / 1e6);
	/* Each arrives long before the next one like it is sent: where one is lost, that is not clear any more. */
	const struct ow_interval_result *r = history.final;
	assert_true(r->sent == N && r->matched == bs && r->lost + r->pending == N - bs);
	history_done(&history);
	free(a);
	free(b);
}

/* One is lost, the next two are not: the second arrival may be either's, and so may the first. */
static void test_late_or_next(void **state)
{
	(void)state;
	static const struct ow_sighting a[] = {{7, 50}, {7, 110}, {7, 150}}, b[] = {{7, 111}, {7, 151}};
	struct history h;
	history_play(&h, a, 3, b, 2, 100, 4, 2);
	assert_int_equal(ow_interval_results_finish(h.settle), 0);
	assert_int_equal(h.final[0].late, 1);
	assert_int_equal(h.final[0].ambiguous, 1);
	assert_int_equal(h.final[0].mean_ns.status, OW_VALUE_NONE);
	assert_int_equal(h.final[0].lost + h.final[1].lost, 1);
	history_done(&h);
}

struct copies_case {
	double period_ns, jitter; /* of sending; jitter as a share of the period */
	double delay_ns, spread_ns, loss;
	unsigned least; /* intervals of 24 that are measured */
};

struct copies_sums {
	unsigned measured, wrong;
};

/* Identical packets alone on a path that keeps order, some of them lost: for 6 s, in intervals of a second. */
static void play_copies(const struct copies_case *c, struct ow_random *random, struct copies_sums *sums)
{
	enum { INTERVALS = 8, PACKETS = 6000 };
	static const int64_t length = 1000000000;
	static struct ow_sighting a[PACKETS], b[PACKETS];
	uint64_t lost[INTERVALS] = {0};
	size_t as = 0, bs = 0;
	double last = 0;
	for (double at = c->period_ns; at < 6e9; at += c->period_ns) {
		double sent = at + c->jitter * c->period_ns * (ow_random_unit(random) - .5);
		last = fmax(last, sent + c->delay_ns - c->spread_ns * log(1 - ow_random_unit(random)));
		a[as++] = (struct ow_sighting){5, (int64_t)sent};
		if (ow_random_unit(random) < c->loss)
			lost[(int64_t)sent / length]++;
		else
			b[bs++] = (struct ow_sighting){5, (int64_t)last};
	}
	struct history history;
	struct ow_interval_result total;
	history_play(&history, a, as, b, bs, length, INTERVALS, 2);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	ow_run_total(history.settle, &total);
	assert_true(total.sent == as && total.lost == as - bs && total.extra == 0 && total.pending == 0);
	for (int i = 0; i < INTERVALS; i++) {
		const struct ow_interval_result *r = history.final + i;
		sums->measured += r->sent && r->status == OW_RESULT_MEASURED;
		sums->wrong += r->lost != lost[i] && r->status == OW_RESULT_MEASURED;
	}
	history_done(&history);
}

/* Each loss is in the interval in which it arose, or the result says that it may be in another. An assignment is left out
 * of account if it is e^6 times less likely than the best: at the ends of 200 intervals, that is half a case. */
static void test_copies(void **state)
{
	(void)state;
	static const struct copies_case cases[] = {
		{5e6, .1, 10e3, 5e3, .05, 22},  {5e6, 0, 10e3, 5e3, .05, 12}, {20e6, .02, 1e6, 1e5, .05, 22},
		{100e6, .02, 1e6, 1e6, .2, 12}, {2e6, .5, 3e6, 1e5, .01, 20}, {20e6, 1, 30e6, 1e6, .2, 12},
		{5e6, .1, 50e6, 1e5, .05, 0},   {5e6, .1, 10e6, 1e6, .01, 0},
	};
	struct ow_random random;
	unsigned wrong = 0;
	ow_random_seed(&random, 31);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct copies_sums sums = {0};
		for (int run = 0; run < 4; run++)
			play_copies(&cases[k], &random, &sums);
		printf("one every %g ms, delay %g ms: %u of 24 intervals measured, %u wrong\n",
		       cases[k].period_ns / 1e6, cases[k].delay_ns / 1e6, sums.measured, sums.wrong);
		assert_true(sums.measured >= cases[k].least);
		wrong += sums.wrong;
	}
	assert_true(wrong <= 4); /* two intervals each */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairing),      cmocka_unit_test(test_truth),
		cmocka_unit_test(test_identical),    cmocka_unit_test(test_keepalives),
		cmocka_unit_test(test_others_later), cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_ambiguous),    cmocka_unit_test(test_shown_twice),
		cmocka_unit_test(test_conservation), cmocka_unit_test(test_speed),
		cmocka_unit_test(test_flood),        cmocka_unit_test(test_late_or_next),
		cmocka_unit_test(test_copies),       cmocka_unit_test(test_beats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
