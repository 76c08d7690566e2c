/* SPDX-License-Identifier: Apache-2.0 */
/* Queues compared with a simulation that keeps every packet, and RED with its published parameters. */
#include "sim/queue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Every packet in the queue with the bytes that are left of it; the link eats from the front. */
struct reference {
	double left[4096];
	size_t first, last;
	double now_ns, rate_bps, limit;
};

static double work(const struct reference *r)
{
	double sum = 0;
	for (size_t i = r->first; i != r->last; i = (i + 1) % 4096)
		sum += r->left[i];
	return sum;
}

static double reference_pass(struct reference *r, double now_ns, double len)
{
	double bytes = (now_ns - r->now_ns) * r->rate_bps / 8e9;
	r->now_ns = now_ns;
	while (r->first != r->last && bytes >= r->left[r->first]) {
		bytes -= r->left[r->first];
		r->first = (r->first + 1) % 4096;
	}
	if (r->first != r->last)
		r->left[r->first] -= bytes;
	if (r->limit > 0 && work(r) + len > r->limit)
		return -1;
	r->left[r->last] = len;
	r->last = (r->last + 1) % 4096;
	return work(r) * 8e9 / r->rate_bps;
}

static void fifo_against_reference(void **state)
{
	(void)state;
	const double limits[] = {0, 3000, 20000, 100000};
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct ow_random random;
		struct ow_queue queue;
		struct reference reference = {.rate_bps = 1e9 / 3, .limit = limits[seed]};
		ow_random_seed(&random, seed);
		ow_queue_init_fifo(&queue, (double)(uint64_t)(1e9 / 3), limits[seed]);
		reference.rate_bps = (double)queue.rate_bps;
		int64_t now = 0;
		unsigned drops = 0;
		for (int i = 0; i < 20000; i++) {
			/* A little less than the link carries, or more where there is a limit. */
			now += (int64_t)ow_random_below(&random, limits[seed] > 0 ? 30000 : 40000);
			uint32_t len = 64 + (uint32_t)ow_random_below(&random, 1450);
			double want = reference_pass(&reference, (double)now, len);
			int64_t got = ow_queue_pass(&queue, now, len, &random);
			assert_int_equal(got < 0, want < 0);
			if (want >= 0)
				assert_true(fabs((double)got - want) <= 1);
			drops += got < 0;
		}
		if (limits[seed])
			assert_true(drops > 10);
		else
			assert_int_equal(drops, 0);
	}
}

static void a_lone_packet_takes_its_transmission_time(void **state)
{
	(void)state;
	struct ow_queue queue;
	ow_queue_init_fifo(&queue, 1e9, 0);
	assert_int_equal(ow_queue_pass(&queue, 0, 1250, NULL), 10000);
	assert_int_equal(ow_queue_pass(&queue, 4000, 1250, NULL), 16000);
	assert_int_equal(ow_queue_pass(&queue, 1000000, 1250, NULL), 10000);
}

/* Floyd and Jacobson's figure 2, written as they wrote it, on the queue's own length. */
static void red_follows_the_paper(void **state)
{
	(void)state;
	struct ow_random random, other;
	struct ow_queue queue;
	double rate = 1e7, size = 0.5 * rate / 8, avg = 0, free_ns = 0;
	long count = -1;
	unsigned early = 0, passed = 0;
	ow_random_seed(&random, 4);
	ow_random_seed(&other, 4);
	ow_queue_init_red(&queue, rate);
	assert_true(queue.limit_bytes == size);
	int64_t now = 0;
	for (int i = 0; i < 200000; i++) {
		/* Overload for the first half, then light load with long gaps. */
		now += i < 100000 ? 300000 : 900000;
		uint32_t len = 500;
		double backlog = free_ns > (double)now ? (free_ns - (double)now) * rate / 8e9 : 0;
		if (backlog > 0)
			avg = (1 - 0.002) * avg + 0.002 * backlog;
		else
			avg *= pow(1 - 0.002, ((double)now - free_ns) / (500 * 8e9 / rate));
		bool drop = false;
		if (0.475 * size <= avg && avg < 0.95 * size) {
			count++;
			double pb = 0.02 * (avg - 0.475 * size) / (0.95 * size - 0.475 * size);
			double pa = pb / (1 - (double)count * pb);
			drop = (double)count * pb >= 1 || ow_random_unit(&other) < pa;
			early += drop;
			count = drop ? 0 : count;
		} else if (avg >= 0.95 * size) {
			drop = true;
			count = 0;
		} else {
			count = -1;
		}
		if (!drop && backlog + len > size) {
			drop = true;
			count = 0;
		}
		int64_t got = ow_queue_pass(&queue, now, len, &random);
		assert_int_equal(got < 0, drop);
		if (!drop) {
			free_ns = (free_ns > (double)now ? free_ns : (double)now) + len * 8e9 / rate;
			assert_true(fabs((double)got - (free_ns - (double)now)) <= 1);
			passed++;
		}
	}
	assert_true(early > 50);
	assert_true(passed > 100000);
}

static void red_keeps_the_average_between_the_thresholds(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_queue queue;
	ow_random_seed(&random, 9);
	ow_queue_init_red(&queue, 1e8);
	/* 1 % more than the link carries: early drops of at most 1/50 suffice, no packet is dropped by force. */
	double gap_ns = 500 * 8e9 / 1e8 / 1.01;
	uint64_t dropped = 0;
	double most = 0;
	for (uint64_t i = 0; i < 3000000; i++) {
		dropped += ow_queue_pass(&queue, (int64_t)((double)i * gap_ns), 500, &random) < 0;
		if (queue.average_bytes > most)
			most = queue.average_bytes;
	}
	assert_true(most < OW_RED_MAX_TH * queue.limit_bytes);
	assert_true(queue.average_bytes > OW_RED_MIN_TH * queue.limit_bytes);
	/* In the steady state the excess is dropped: 1 - 1/1.01; the first 25 s fill the queue to the threshold. */
	assert_true(dropped > 3000 && dropped < 29704);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifo_against_reference),
		cmocka_unit_test(a_lone_packet_takes_its_transmission_time),
		cmocka_unit_test(red_follows_the_paper),
		cmocka_unit_test(red_keeps_the_average_between_the_thresholds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
