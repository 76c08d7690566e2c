/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's wire in virtual time: fates by their models, and the counts of them. */
#include "lab/impair.h"
#include "lab/wiretruth.h"

#include "base/time.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED    42
#define PACKETS 100000
#define GAP_NS  10000

static void defaults(struct ow_impair_options *options, const char *delay)
{
	struct ow_error err;
	memset(options, 0, sizeof *options);
	ow_sim_defaults(&options->path);
	options->path.seed = SEED;
	assert_int_equal(ow_sim_delay_parse(delay, &options->path.delay, &err), 0);
}

static void loss_and_copies(void **state)
{
	(void)state;
	struct ow_impair_options options;
	struct ow_impair impair;
	defaults(&options, "constant:1ms");
	options.path.loss.ratio = 0.01;
	options.path.duplicate = 0.05;
	assert_int_equal(ow_impair_init(&impair, &options, OW_A_TO_B, 0), 0);
	unsigned lost = 0, copies = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		struct ow_impaired fate;
		ow_impair_pass(&impair, i * GAP_NS, 500, 1, &fate);
		lost += fate.fate == OW_IMPAIR_LOST;
		assert_int_not_equal(fate.fate, OW_IMPAIR_QUEUE_FULL);
		assert_int_equal(fate.due_ns, i * GAP_NS + OW_NS_PER_MS);
		assert_true(!fate.copy_ns || fate.copy_ns > fate.due_ns);
		copies += fate.copy_ns > 0;
	}
	/* Binomial: 5 standard deviations. */
	assert_true(fabs(lost - 0.01 * PACKETS) < 5 * sqrt(0.01 * PACKETS));
	assert_true(fabs(copies - 0.05 * PACKETS) < 5 * sqrt(0.05 * PACKETS) + 0.01 * 0.05 * PACKETS);
	ow_impair_done(&impair);
}

static void bandwidth_spaces_and_drops(void **state)
{
	(void)state;
	struct ow_impair_options options;
	struct ow_impair impair;
	defaults(&options, "constant:0s");
	/* 1000 bytes take 80 us at 100 Mbit/s and come every 40 us: half of them find no room. */
	options.bandwidth_bps = 100e6;
	options.buffer_bytes = 10000;
	assert_int_equal(ow_impair_init(&impair, &options, OW_B_TO_A, OW_NS_PER_S), 0);
	int64_t last_ns = 0;
	unsigned full = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		struct ow_impaired fate;
		int64_t now_ns = OW_NS_PER_S + i * 40000;
		ow_impair_pass(&impair, now_ns, 1000, 1, &fate);
		if (fate.fate == OW_IMPAIR_QUEUE_FULL) {
			full++;
			continue;
		}
		assert_int_equal(fate.fate, OW_IMPAIR_PASSES);
		assert_true(!last_ns || fate.due_ns - last_ns >= 80000);
		assert_true(fate.due_ns - now_ns <= 800000);
		last_ns = fate.due_ns;
	}
	assert_true(abs((int)full - PACKETS / 2) <= 10);
	ow_impair_done(&impair);
}

static void held_back(void **state)
{
	(void)state;
	struct ow_impair_options options;
	struct ow_impair impair;
	defaults(&options, "constant:1ms");
	options.reorder = 0.1;
	options.hold_ns = OW_NS_PER_MS;
	assert_int_equal(ow_impair_init(&impair, &options, OW_A_TO_B, 0), 0);
	unsigned held = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		struct ow_impaired fate;
		ow_impair_pass(&impair, i * GAP_NS, 500, 1, &fate);
		int64_t delay_ns = fate.due_ns - i * GAP_NS;
		assert_in_range(delay_ns, OW_NS_PER_MS, 2 * OW_NS_PER_MS);
		held += delay_ns > OW_NS_PER_MS;
	}
	assert_true(fabs(held - 0.1 * PACKETS) < 5 * sqrt(0.1 * PACKETS));
	ow_impair_done(&impair);
}

/* Packets with fates of all kinds: the intervals add up to the run, and each is complete when it is reported. */
static void books(void **state)
{
	(void)state;
	const int64_t length_ns = 100 * OW_NS_PER_MS, start_ns = INT64_C(1700000000050000000);
	struct ow_wiretruth *truth;
	struct ow_wiretruth_report report, total;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	assert_int_equal(ow_wiretruth_create(length_ns, start_ns, &truth), 0);
	struct waiting {
		int64_t in_ns, out_ns, interval;
		uint64_t number;
	} ring[64];
	uint64_t sent[16] = {0}, lost[16] = {0}, copies = 0, reordered = 0, newest = 0, seen = 0;
	struct ow_result sum = {0};
	for (uint64_t i = 0; i < 10000 + 64; i++) {
		struct waiting *w = &ring[i % 64];
		/* What came in 64 packets ago goes out, or is lost; times of going out are in order. */
		if (i >= 64 && w->number % 7 == 0) {
			ow_wiretruth_lost(truth, w->interval, w->number % 14 == 0);
		} else if (i >= 64) {
			ow_wiretruth_out(truth, w->interval, w->number, w->in_ns, w->out_ns);
			if (w->number % 11 == 0) {
				ow_wiretruth_copy(truth, w->interval);
				copies++;
			}
			reordered += w->number < newest;
			newest = w->number > newest ? w->number : newest;
		}
		if (i < 10000) {
			w->in_ns = start_ns + (int64_t)i * 100 * OW_NS_PER_US;
			w->out_ns = w->in_ns + 7 * OW_NS_PER_MS;
			w->number = i ^ 1; /* neighbours change places */
			size_t k = (size_t)(w->in_ns / length_ns - start_ns / length_ns);
			sent[k]++;
			lost[k] += w->number % 7 == 0;
			assert_int_equal(ow_wiretruth_in(truth, w->in_ns, 100, &w->interval), 0);
		}
		while (ow_wiretruth_next(truth, w->in_ns, &report)) {
			assert_int_equal(report.start_ns, (start_ns / length_ns + (int64_t)seen) * length_ns);
			assert_int_equal(report.result.sent, sent[seen]);
			assert_int_equal(report.result.lost, lost[seen]);
			assert_int_equal(report.result.sent, report.result.matched + report.result.lost);
			assert_int_equal(report.bytes, 100 * sent[seen]);
			assert_int_equal(report.result.delay.samples, report.result.matched);
			if (report.result.matched)
				assert_int_equal(report.result.delay.max_ns, 7 * OW_NS_PER_MS);
			sum.sent += report.result.sent;
			sum.duplicated += report.result.duplicated;
			sum.reordered += report.result.reordered;
			seen++;
		}
	}
	/* The last interval, which no later packet ended, and an empty one after it. */
	for (int i = 0; i < 2; i++) {
		assert_true(ow_wiretruth_next(truth, start_ns + 13 * length_ns, &report));
		sum.sent += report.result.sent;
		sum.duplicated += report.result.duplicated;
		sum.reordered += report.result.reordered;
	}
	assert_int_equal(report.result.sent, 0);
	ow_wiretruth_total(truth, &total);
	assert_int_equal(total.result.sent, 10000);
	assert_int_equal(total.result.sent, sum.sent);
	assert_int_equal(total.result.duplicated, copies);
	assert_int_equal(sum.duplicated, copies);
	assert_int_equal(total.result.reordered, reordered);
	assert_int_equal(sum.reordered, reordered);
	assert_int_equal(total.start_ns, start_ns);
	ow_wiretruth_free(truth);
}

/* A packet that takes very long keeps its interval open, and the following ones with it; nothing is miscounted. */
static void slow_packet(void **state)
{
	(void)state;
	struct ow_wiretruth *truth;
	struct ow_wiretruth_report report;
	int64_t slow, interval;
	assert_int_equal(ow_wiretruth_create(1000, 0, &truth), 0);
	assert_int_equal(ow_wiretruth_in(truth, 5, 100, &slow), 0);
	for (int64_t i = 1; i < 2000; i++) {
		assert_int_equal(ow_wiretruth_in(truth, i * 1000, 100, &interval), 0);
		ow_wiretruth_out(truth, interval, (uint64_t)i, i * 1000, i * 1000 + 1);
	}
	assert_false(ow_wiretruth_next(truth, 2000000, &report));
	ow_wiretruth_lost(truth, slow, false);
	uint64_t sent = 0;
	while (ow_wiretruth_next(truth, 2000000, &report))
		sent += report.result.sent;
	assert_int_equal(sent, 2000);
	/* One that comes late, for an interval that was reported, counts in the first that is open. */
	assert_int_equal(ow_wiretruth_in(truth, 5, 100, &interval), 0);
	assert_int_equal(interval, 2000);
	ow_wiretruth_lost(truth, interval, false);
	assert_true(ow_wiretruth_next(truth, 2001000, &report));
	assert_int_equal(report.result.lost, 1);
	ow_wiretruth_free(truth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss_and_copies), cmocka_unit_test(bandwidth_spaces_and_drops),
		cmocka_unit_test(held_back),       cmocka_unit_test(books),
		cmocka_unit_test(slow_packet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
