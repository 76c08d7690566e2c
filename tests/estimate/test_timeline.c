/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/timeline.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PACKETS 20000

struct packet {
	int64_t time_ns, delay_ns;
	int kind; /* 0 measured, 1 lost, 2 unmeasured */
};

static struct ow_timeline *create(void)
{
	struct ow_timeline *timeline = NULL;
	assert_int_equal(ow_timeline_create(&timeline), 0);
	return timeline;
}

static void add(struct ow_timeline *timeline, const struct packet *packet)
{
	int r = packet->kind == 0   ? ow_timeline_add(timeline, packet->time_ns, packet->delay_ns, 1)
	        : packet->kind == 1 ? ow_timeline_add_lost(timeline, packet->time_ns, 1)
	                            : ow_timeline_add_unmeasured(timeline, packet->time_ns, 1);
	assert_int_equal(r, 0);
}

static void make(struct packet *packet, uint64_t seed, double span_ns, double scale_ns)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (int i = 0; i < PACKETS; i++) {
		packet[i].time_ns = INT64_C(1700000000000000000) + (int64_t)(ow_random_unit(&random) * span_ns);
		packet[i].delay_ns = (int64_t)(-log(1 - ow_random_unit(&random)) * scale_ns) - 50;
		packet[i].kind = ow_random_below(&random, 10) < 8 ? 0 : (int)ow_random_below(&random, 3);
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Every bin against the packets that fall into it. */
static void check_bins(const struct ow_timeline_bin *bin, size_t bins, const struct packet *packet)
{
	int64_t *delay = malloc(PACKETS * sizeof *delay);
	uint64_t total = 0;
	for (size_t b = 0; b < bins; b++) {
		size_t samples = 0;
		uint64_t sent = 0, lost = 0;
		for (int i = 0; i < PACKETS; i++) {
			if (packet[i].time_ns < bin[b].start_ns || packet[i].time_ns >= bin[b].end_ns)
				continue;
			sent++;
			lost += packet[i].kind == 1;
			if (packet[i].kind == 0)
				delay[samples++] = packet[i].delay_ns;
		}
		assert_int_equal(bin[b].sent, sent);
		assert_int_equal(bin[b].lost, lost);
		assert_int_equal(bin[b].samples, samples);
		total += sent;
		if (!samples)
			continue;
		qsort(delay, samples, sizeof *delay, by_value);
		size_t half = (samples + 1) / 2, most = (size_t)ceil(0.99 * (double)samples);
		double median = (double)delay[half - 1], p99 = (double)delay[most - 1];
		assert_int_equal(bin[b].min_ns, delay[0]);
		assert_int_equal(bin[b].max_ns, delay[samples - 1]);
		assert_true(fabs(bin[b].median_ns - median) <= fabs(median) / 512);
		assert_true(fabs(bin[b].p99_ns - p99) <= fabs(p99) / 512);
	}
	assert_int_equal(total, PACKETS);
	free(delay);
}

static void bins_against_packets(void **state)
{
	(void)state;
	static const double spans[] = {1, 1e5, 1e9, 1e13}, scales[] = {100, 1e6};
	struct packet *packet = malloc(PACKETS * sizeof *packet);
	struct ow_timeline_bin *bin = malloc(OW_TIMELINE_BINS * sizeof *bin);
	for (size_t i = 0; i < 8; i++) {
		struct ow_timeline *timeline = create();
		make(packet, i + 1, spans[i / 2], scales[i % 2]);
		for (int k = 0; k < PACKETS; k++)
			add(timeline, &packet[k]);
		size_t bins = ow_timeline_bins(timeline, bin);
		assert_in_range(bins, 1, OW_TIMELINE_BINS);
		/* Enough of them for a picture, whatever the span. */
		assert_true(spans[i / 2] < 1e6 || bins >= OW_TIMELINE_BINS / 2);
		check_bins(bin, bins, packet);
		ow_timeline_free(timeline);
	}
	free(packet);
	free(bin);
}

/* The same packets in reverse give the same bins. */
static void order_is_no_matter(void **state)
{
	(void)state;
	struct packet *packet = malloc(PACKETS * sizeof *packet);
	struct ow_timeline_bin *a = calloc(OW_TIMELINE_BINS, sizeof *a), *b = calloc(OW_TIMELINE_BINS, sizeof *b);
	struct ow_timeline *forward = create(), *backward = create();
	make(packet, 42, 1e10, 1e5);
	for (int k = 0; k < PACKETS; k++) {
		add(forward, &packet[k]);
		add(backward, &packet[PACKETS - 1 - k]);
	}
	size_t bins = ow_timeline_bins(forward, a);
	assert_int_equal(bins, ow_timeline_bins(backward, b));
	assert_memory_equal(a, b, bins * sizeof *a);
	ow_timeline_free(forward);
	ow_timeline_free(backward);
	free(packet);
	free(a);
	free(b);
}

/* Nothing that a file can claim breaks it (the sanitizer build watches). */
static void extremes(void **state)
{
	(void)state;
	static const int64_t values[] = {0, INT64_MIN, INT64_MAX, -1, 1, INT64_C(1) << 62};
	struct ow_timeline_bin *bin = calloc(OW_TIMELINE_BINS, sizeof *bin);
	struct ow_timeline *timeline = create();
	assert_int_equal(ow_timeline_bins(timeline, bin), 0);
	for (size_t i = 0; i < 6; i++) {
		for (size_t k = 0; k < 6; k++)
			assert_int_equal(ow_timeline_add(timeline, values[i], values[k], 3), 0);
		assert_int_equal(ow_timeline_add_lost(timeline, values[i], 1), 0);
	}
	size_t bins = ow_timeline_bins(timeline, bin);
	uint64_t sent = 0;
	for (size_t i = 0; i < bins; i++)
		sent += bin[i].sent;
	assert_int_equal(sent, 6 * 6 * 3 + 6);
	ow_timeline_free(timeline);
	ow_timeline_free(NULL);
	free(bin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_against_packets),
		cmocka_unit_test(order_is_no_matter),
		cmocka_unit_test(extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
