/* SPDX-License-Identifier: Apache-2.0 */
/* Provisional and final results: what is late, lost or undecided, and the delays of late packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "result/result_clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "estimate/pool.h"
#include "../point/history.h"
#include "reconcile/late_packets.h"
#include "result/cause.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH INT64_C(1000)
#define SECOND INT64_C(1000000000)

static bool close_to(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* An interval of one host: `matched` packets that took 10 each, and the lists. */
static int step(struct history *history, int64_t interval, uint64_t matched, const struct ow_sighting *a, size_t as,
                const struct ow_sighting *b, size_t bs)
{
	static const int64_t ten[] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
	assert_true(matched <= 10);
	struct ow_interval_results_input input = {
		.only_a = a, .only_b = b, .only_as = as, .only_bs = bs, .delay_ns = ten};
	input.delays = matched;
	input.result = (struct ow_interval_result){
		.from = "a",
		.to = "b",
		.interval = interval,
		.start_ns = interval * LENGTH,
		.length_ns = LENGTH,
		.exact = true,
		.sent = matched + as,
		.received = matched + bs,
		.matched = matched,
		.total_sent = matched + as,
		.total_received = matched + bs,
		.clock_from = {true, 0},
		.clock_to = {true, 0},
	};
	return ow_interval_results_step(history->settle, &input);
}

/* One packet late, one lost: pending at first, decided in the end, and the late one's delay is in. */
static void test_example(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 1, 10);
	assert_int_equal(step(&history, 5, 3, (struct ow_sighting[]){{1, 990}, {2, 400}}, 2, NULL, 0), 0);
	const struct ow_interval_result *r = history.first;
	assert_true(r->sent == 5 && r->pending == 2 && r->lost == 0 && !r->final && r->samples == 3);
	assert_true(r->loss_ratio.value == 0 && r->loss_ratio.low == 0 && r->mean_ns.value == 10);
	assert_true(r->loss_ratio.status == OW_VALUE_ESTIMATED && close_to(r->loss_ratio.high, 0.4));
	assert_true(close_to(r->coverage, 0.6));
	assert_int_equal(ow_interval_results_waits(history.settle, 1), 1);
	assert_int_equal(ow_interval_results_waits(history.settle, 3), 0);
	assert_int_equal(step(&history, 6, 1, NULL, 0, (struct ow_sighting[]){{1, 20}, {9, 30}}, 2), 0);
	r = history.final;
	assert_true(history.finals == 1 && r->interval == 5 && r->late == 1 && r->lost == 1 && r->pending == 0);
	assert_true(r->samples == 4 && r->mean_ns.value == (3 * 10 + 30) / 4. && r->max_ns.value == 30);
	assert_true(r->status == OW_RESULT_MEASURED && r->coverage == 1 && close_to(r->loss_ratio.value, 0.2));
	assert_int_equal(r->loss_ratio.status, OW_VALUE_EXACT);
	assert_true(history.first[1].late_received == 1 && history.first[1].extra == 1);
	assert_int_equal(ow_interval_results_waiting(history.settle), 0);
	/* Refused: an interval again, contradicting counts. Nothing changes. */
	assert_int_equal(step(&history, 6, 1, NULL, 0, NULL, 0), -EINVAL);
	struct ow_interval_results_input bad = {
		.result = {.interval = 7, .sent = 3, .received = 2, .matched = 2, .length_ns = 1}};
	assert_int_equal(ow_interval_results_step(history.settle, &bad), -EINVAL);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	struct ow_interval_result total;
	ow_run_total(history.settle, &total);
	assert_true(total.interval == 2 && total.start_ns == 5 * LENGTH && total.length_ns == 2 * LENGTH);
	assert_true(total.sent == 6 && total.matched == 5 && total.lost == 1 && total.extra == 1);
	assert_true(total.received == 6 && total.mean_ns.value == (4 * 10 + 30) / 5.);
	history_done(&history);
}

/* An interval of one flow with scope: 4 packets matched, `as` only at a, `bs` only at b. */
static void step_drops(struct history *history, int64_t interval, uint64_t ring_drops_from, const struct ow_sighting *a,
                       size_t as, const struct ow_sighting *b, size_t bs)
{
	static const int64_t ten[] = {10, 10, 10, 10};
	struct ow_scope_flow flow = {.flow = 77, .pair = 78, .dest = 79, .packets = (uint32_t)(4 + as), .version = 4};
	struct ow_sighting packet[16];
	uint8_t matched[16] = {1, 1, 1, 1};
	for (size_t i = 0; i < 4; i++)
		packet[i] = (struct ow_sighting){100 + i, (int64_t)i, 1};
	for (size_t i = 0; i < as; i++)
		packet[4 + i] = a[i];
	struct ow_interval_results_input input = {.only_a = a,
	                                          .only_b = b,
	                                          .only_as = as,
	                                          .only_bs = bs,
	                                          .delay_ns = ten,
	                                          .delays = 4,
	                                          .packet = packet,
	                                          .is_matched = matched,
	                                          .packets = 4 + as,
	                                          .flow = &flow,
	                                          .flows = 1};
	input.result = (struct ow_interval_result){.from = "a",
	                                           .to = "b",
	                                           .interval = interval,
	                                           .start_ns = interval * SECOND,
	                                           .length_ns = SECOND,
	                                           .sent = 4 + as,
	                                           .received = 4 + bs,
	                                           .matched = 4,
	                                           .ring_drops_from = ring_drops_from};
	assert_int_equal(ow_interval_results_step(history->settle, &input), 0);
}

static void step_flow(struct history *history, int64_t interval, const struct ow_sighting *a, size_t as,
                      const struct ow_sighting *b, size_t bs)
{
	step_drops(history, interval, 0, a, as, b, bs);
}

/* What the ring of the sending point missed is extra, and nothing was changed on the way: what is missing is lost, in this
 * interval and the next ones. */
static void test_missed_is_not_changed(void **state)
{
	(void)state;
	const struct ow_sighting a[] = {{1, 500, 1}, {2, 600, 1}};
	const struct ow_sighting b[] = {{5, 10, 1}, {6, 110, 1}, {7, 210, 1}, {8, 610, 1}, {9, 710, 1}};
	struct history history;
	history_open(&history, 1, 10);
	assert_int_equal(ow_interval_results_share(history.settle, SECOND, NULL), 0);
	step_flow(&history, 0, NULL, 0, NULL, 0);
	step_flow(&history, 1, a, 2, b, 5); /* counted in the next one */
	step_drops(&history, 2, 10, a, 2, b, 5);
	step_flow(&history, 3, a, 2, NULL, 0);
	step_flow(&history, 4, NULL, 0, NULL, 0);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	const struct ow_interval_result *r = history.final;
	for (int i = 1; i <= 3; i++)
		assert_true(r[i].lost == 2 && r[i].pending == 0);
	assert_int_equal(ow_cause_of(r[2].cause), OW_CAUSE_RING_FULL_SENDING);
	assert_int_equal(r[3].status, OW_RESULT_MEASURED);
	history_done(&history);
}

/* b does not show what a received from it, up to both delays later: what is missing there is in doubt. Not so what may have
 * been sent before the first interval. */
static void test_missed_the_other_way(void **state)
{
	(void)state;
	const struct ow_sighting late[] = {{1, 990}}, *none = NULL;
	for (int when = 0; when <= 9; when++) {
		struct ow_sighting missing[8];
		struct history history;
		history_open(&history, 4, 16);
		for (size_t i = 0; i < 8; i++)
			missing[i] = (struct ow_sighting){100 + i, (int64_t)i};
		assert_int_equal(step(&history, 0, 3, late, 1, none, 0), 0);
		assert_int_equal(step(&history, 1, 3, none, 0, (struct ow_sighting[]){{1, 900}}, 1), 0);
		/* Of the interval 4, before and after it is there. */
		if (when >= 6)
			ow_interval_results_missed(history.settle, when, 50, 50);
		for (int64_t k = 2; k <= 4; k++)
			assert_int_equal(step(&history, k, 3, missing, k == 4 ? 8 : 0, none, 0), 0);
		ow_interval_results_missed(history.settle, when, 50, 50);
		for (int64_t k = 5; k < 12; k++)
			assert_int_equal(step(&history, k, 3, none, 0, none, 0), 0);
		const struct ow_interval_result *r = &history.final[4];
		/* The late packet took 910. */
		bool doubted = when >= 4 && when <= 6;
		assert_true(r->interval == 4 && r->lost == (doubted ? 0 : 8) && r->pending == (doubted ? 8 : 0));
		assert_int_equal(ow_cause_of(r->cause), doubted ? OW_CAUSE_CAPTURE_MISSED : OW_NO_CAUSE);
		assert_int_equal(history.final[0].lost, 0);
		history_done(&history);
	}
}

/* A flow of which packets are missing at b, and others are extra there: the network may have changed them. */
static void test_changed(void **state)
{
	(void)state;
	const struct ow_sighting a[] = {{1, 500, 1}, {2, 600, 1}, {3, 700, 1}};
	const struct ow_sighting b[] = {{8, 610, 1}, {9, 710, 1}}, early = {7, 5, 1};
	struct history history;
	history_open(&history, 1, 10);
	assert_int_equal(ow_interval_results_share(history.settle, SECOND, NULL), 0);
	/* Sent before the first interval, because no packet is so fast: nothing says that those that are missing arrived. */
	step_flow(&history, 0, a, 1, &early, 1);
	step_flow(&history, 1, a, 3, b, 2);
	step_flow(&history, 2, a, 3, NULL, 0);
	step_flow(&history, 3, NULL, 0, NULL, 0);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	const struct ow_interval_result *r = history.final;
	assert_true(r[0].status == OW_RESULT_MEASURED && r[0].lost == 1 && r[0].extra == 0 && r[0].late_received == 1);
	assert_true(r[1].status == OW_RESULT_PARTIAL && r[1].lost == 0 && r[1].pending == 3 && r[1].extra == 2);
	assert_int_equal(ow_cause_of(r[1].cause), OW_CAUSE_PACKETS_CHANGED);
	assert_true(r[1].loss_ratio.value == 0 && close_to(r[1].coverage, 4 / 7.));
	/* A second later it is over. */
	assert_true(r[2].status == OW_RESULT_MEASURED && r[2].lost == 3);
	history_done(&history);
}

#define SHORT_FLOWS 40

/* An interval of flows with one packet each, of the same networks. Every second one is only at a. */
static void step_short_flows(struct history *history, int64_t interval)
{
	struct ow_scope_flow flow[SHORT_FLOWS];
	struct ow_sighting packet[SHORT_FLOWS], a[SHORT_FLOWS / 2];
	uint8_t matched[SHORT_FLOWS];
	int64_t delay_ns[SHORT_FLOWS / 2];
	for (uint32_t i = 0; i < SHORT_FLOWS; i++) {
		uint64_t number = ow_mix64((uint64_t)interval * SHORT_FLOWS + i + 1);
		flow[i] = (struct ow_scope_flow){
			.flow = number, .pair = UINT64_MAX / 3, .dest = UINT64_MAX / 5, .packets = 1, .version = 4};
		packet[i] = (struct ow_sighting){number, (int64_t)i * 20000000, i + 1};
		matched[i] = i % 2;
		a[i / 2] = packet[i / 2 * 2];
		delay_ns[i / 2] = 10;
	}
	struct ow_interval_results_input input = {.only_a = a,
	                                          .only_as = SHORT_FLOWS / 2,
	                                          .delay_ns = delay_ns,
	                                          .delays = SHORT_FLOWS / 2,
	                                          .packet = packet,
	                                          .is_matched = matched,
	                                          .packets = SHORT_FLOWS,
	                                          .flow = flow,
	                                          .flows = SHORT_FLOWS};
	input.result = (struct ow_interval_result){.from = "a",
	                                           .to = "b",
	                                           .interval = interval,
	                                           .start_ns = interval * SECOND,
	                                           .length_ns = SECOND,
	                                           .sent = SHORT_FLOWS,
	                                           .received = SHORT_FLOWS / 2,
	                                           .matched = SHORT_FLOWS / 2};
	assert_int_equal(ow_interval_results_step(history->settle, &input), 0);
}

/* Flows of one packet that are not at b: lost, or on another way. Where there are other peers, nothing of it is lost. */
static void test_short_flows(void **state)
{
	(void)state;
	for (int one_of_several = 0; one_of_several < 2; one_of_several++) {
		struct history history;
		history_open(&history, 1, 10);
		assert_int_equal(ow_interval_results_share(history.settle, SECOND, NULL), 0);
		if (one_of_several)
			ow_interval_results_one_of_several(history.settle);
		for (int64_t interval = 0; interval < 6; interval++)
			step_short_flows(&history, interval);
		const struct ow_interval_result *r = &history.final[4];
		assert_int_equal(r->sent + r->unshared_sent, SHORT_FLOWS);
		assert_int_equal(r->lost, 0);
		assert_int_equal(r->status, one_of_several ? OW_RESULT_MEASURED : OW_RESULT_PARTIAL);
		if (!one_of_several)
			assert_int_equal(ow_cause_of(r->cause), OW_CAUSE_FLOWS_UNDECIDED);
		history_done(&history);
	}
}

/* Packets that should have arrived in an unknown interval are not lost; those that should have before are. Nor are
 * those extra that may have been sent in it. */
static void test_unknown(void **state)
{
	(void)state;
	for (int gap = 0; gap < 2; gap++) {
		struct history history;
		history_open(&history, 2, 10);
		/* Delays of 10: the packet at 995 should have arrived in interval 1, the one at 100 in interval 0. */
		assert_int_equal(step(&history, 0, 3, (struct ow_sighting[]){{1, 995}, {2, 100}}, 2, NULL, 0), 0);
		struct ow_interval_result unknown = {.interval = 1, .start_ns = LENGTH, .length_ns = LENGTH, .sent = 7};
		snprintf(unknown.cause, sizeof unknown.cause, "no answer");
		if (!gap)
			assert_int_equal(ow_interval_results_unknown(history.settle, &unknown, false), 0);
		/* Up to 20 after the start they may come from interval 1. */
		assert_int_equal(
			step(&history, 2, 1, NULL, 0, (struct ow_sighting[]){{7, 3}, {8, 19}, {9, 20}, {10, 600}}, 4),
			0);
		const struct ow_interval_result *r = history.first + history.firsts - 1;
		assert_true(r->interval == 2 && r->received == 5 && r->late_received == 2 && r->extra == 2);
		assert_int_equal(r->status, OW_RESULT_MEASURED);
		r = history.final;
		assert_true(history.finals == 1 && r->lost == 1 && r->pending == 1);
		assert_int_equal(r->status, OW_RESULT_PARTIAL);
		assert_string_equal(r->cause, "1 packet undecided: interval 1 is unknown");
		assert_true(close_to(r->loss_ratio.value, 1 / 4.) && close_to(r->coverage, 4 / 5.));
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		if (!gap) {
			r = history.final + 1;
			assert_true(r->status == OW_RESULT_UNKNOWN && r->sent == 0 && r->coverage == 0);
			assert_string_equal(r->cause, "no answer");
		}
		r = history.final + history.finals - 1;
		assert_true(r->interval == 2 && r->late_received == 2 && r->extra == 2);
		struct ow_interval_result total;
		ow_run_total(history.settle, &total);
		assert_true(total.sent == 6 && total.pending == 1 && total.lost == 1 && total.extra == 2 &&
		            total.received == 6 && total.status == OW_RESULT_PARTIAL);
		assert_string_equal(total.cause, "of 3 intervals 1 unknown, 1 partial");
		history_done(&history);
	}
}

/* Without single delays (rda), mean and deviation show how long packets take, and not only the few that are late. */
static void test_reach_of_means(void **state)
{
	(void)state;
	const struct ow_sighting late[] = {{1, 995}}, last[] = {{2, 700}}, *none = NULL;
	struct history history;
	history_open(&history, 2, 10);
	for (int64_t k = 0; k < 5; k++) {
		struct ow_interval_results_input input = {.only_a = k == 2 ? last : late,
		                                          .only_as = k == 0 || k == 2,
		                                          .only_b = k == 1 ? (struct ow_sighting[]){{1, 5}} : none,
		                                          .only_bs = k == 1,
		                                          .result = {.interval = k,
		                                                     .start_ns = k * LENGTH,
		                                                     .length_ns = LENGTH,
		                                                     .sent = 9 + (k == 0 || k == 2),
		                                                     .received = 9 + (k == 1),
		                                                     .matched = 9,
		                                                     .mean_ns = {OW_VALUE_ESTIMATED, 90, 80, 100},
		                                                     .stddev_ns = {OW_VALUE_ESTIMATED, 80, 70, 90}}};
		snprintf(input.result.cause, sizeof input.result.cause, "no answer");
		if (k == 3)
			assert_int_equal(ow_interval_results_unknown(history.settle, &input.result, false), 0);
		input.result.cause[0] = 0;
		if (k != 3)
			assert_int_equal(ow_interval_results_step(history.settle, &input), 0);
	}
	assert_true(history.final[0].late == 1 && history.final[2].interval == 2);
	assert_true(history.final[2].pending == 1 && history.final[2].lost == 0);
	history_done(&history);
}

/* All that was sent last may be held up for longer than any packet before, and arrive in an unknown interval. Without flows (scope
 * all), the order of arrival shows what had arrived. */
static void test_unknown_after_silence(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		struct history history;
		struct ow_interval_results_input input = {
			.only_a = (struct ow_sighting[]){{1, 2}, {2, 600}},
			.only_as = 2,
			.delay_ns = (int64_t[]){10},
			.delays = 1,
			.newest_ns = (int64_t[]){3},
			.newest_at_end_ns = 3,
			.result = {.length_ns = SECOND, .sent = 3, .received = 1, .matched = 1}};
		history_open(&history, 2, 10);
		/* The last packet that arrived was sent at 3. */
		if (all)
			assert_int_equal(ow_interval_results_step(history.settle, &input), 0);
		else
			step_flow(&history, 0, (struct ow_sighting[]){{1, 2, 1}, {2, 600, 1}}, 2, NULL, 0);
		struct ow_interval_result unknown = {.interval = 1, .start_ns = SECOND, .length_ns = SECOND};
		snprintf(unknown.cause, sizeof unknown.cause, "no answer");
		assert_int_equal(ow_interval_results_unknown(history.settle, &unknown, false), 0);
		step_flow(&history, 2, NULL, 0, NULL, 0);
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		const struct ow_interval_result *r = history.final;
		assert_true(r->interval == 0 && r->lost == 1 && r->pending == 1);
		assert_string_equal(r->cause, "1 packet undecided: interval 1 is unknown");
		history_done(&history);
	}
}

/* A gap longer than anything can wait for, and one of 2^62 intervals. Not late by a hundred intervals, but perhaps of
 * one of them. */
static void test_long_gap(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 3, 10);
	assert_int_equal(step(&history, 0, 1, (struct ow_sighting[]){{1, 5}}, 1, NULL, 0), 0);
	assert_int_equal(step(&history, 100, 1, NULL, 0, (struct ow_sighting[]){{1, 5}}, 1), 0);
	assert_true(history.finals == 1 && history.final[0].lost == 1 && history.first[1].late_received == 1);
	struct ow_interval_results_input far = {.result = {.interval = INT64_C(1) << 62, .length_ns = LENGTH}};
	assert_int_equal(ow_interval_results_step(history.settle, &far), 0);
	assert_int_equal(history.firsts, 3);
	history_done(&history);
}

/* What the receiving point's ring dropped is not loss. */
static void test_drops(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 1, 10);
	const struct ow_sighting a[] = {{1, 500}};
	struct ow_interval_results_input in = {.only_a = a, .only_as = 1};
	in.result = (struct ow_interval_result){
		.to = "b", .length_ns = LENGTH, .sent = 1, .total_sent = 1, .ring_drops_to = 4, .exact = true};
	assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
	assert_int_equal(history.first[0].status, OW_RESULT_PARTIAL);
	assert_string_equal(history.first[0].cause, "b missed 4 frames (ring full)");
	assert_int_equal(step(&history, 1, 5, a, 1, NULL, 0), 0);
	assert_true(history.final[0].lost == 0 && history.final[0].pending == 1);
	/* Where nothing was dropped, what does not arrive is lost. */
	assert_int_equal(step(&history, 2, 5, NULL, 0, NULL, 0), 0);
	assert_true(history.final[1].lost == 1 && history.final[1].pending == 0);
	history_done(&history);
}

/* At the end of a run: lost is what should have arrived before. */
static void test_finish(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 4, 10);
	assert_int_equal(step(&history, 0, 5, NULL, 0, NULL, 0), 0);
	const struct ow_sighting a[] = {{1, 100}, {2, 979}, {3, 980}, {4, 999}};
	assert_int_equal(step(&history, 1, 5, a, 4, NULL, 0), 0);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	assert_int_equal(history.finals, 2);
	assert_true(history.final[1].lost == 2 && history.final[1].pending == 2);
	assert_string_equal(history.final[1].cause, "2 packets undecided: the run ended before they could arrive");
	history_done(&history);
}

/* Another identity is used from now on: what the old one did not recognise is undecided. */
static void test_distrust(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 4, 10);
	assert_int_equal(step(&history, 0, 5, NULL, 0, NULL, 0), 0);
	assert_int_equal(step(&history, 1, 5, (struct ow_sighting[]){{1, 100}, {2, 200}}, 2, NULL, 0), 0);
	ow_interval_results_distrust(history.settle);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	assert_true(history.finals == 2 && history.final[1].lost == 0 && history.final[1].pending == 2);
	assert_string_equal(history.final[1].cause, "2 packets undecided: possibly changed on the way (identity)");
	/* The next run begins without doubt. */
	assert_int_equal(step(&history, 2, 5, (struct ow_sighting[]){{3, 100}}, 1, NULL, 0), 0);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	assert_true(history.final[2].lost == 1 && history.final[2].pending == 0);
	history_done(&history);
}

/* Before and after the run: packets meet those of the run, and that is all. */
static void test_quiet(void **state)
{
	(void)state;
	struct history history;
	history_open(&history, 1, 10);
	const struct ow_sighting early = {1, 990}, arrives = {1, 5}, last = {2, 995}, after = {2, 3};
	struct ow_interval_results_input in = {.quiet = true, .only_a = &early, .only_as = 1};
	in.result = (struct ow_interval_result){.length_ns = LENGTH, .sent = 1};
	assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
	assert_int_equal(step(&history, 1, 2, &last, 1, &arrives, 1), 0);
	in = (struct ow_interval_results_input){.quiet = true, .only_b = &after, .only_bs = 1};
	in.result =
		(struct ow_interval_result){.interval = 2, .start_ns = 2 * LENGTH, .length_ns = LENGTH, .received = 1};
	assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	assert_true(history.firsts == 1 && history.finals == 1);
	assert_true(history.final[0].late_received == 1 && history.final[0].late == 1 && history.final[0].extra == 0);
	struct ow_interval_result total;
	ow_run_total(history.settle, &total);
	assert_true(total.interval == 1 && total.sent == 3 && total.received == 3 && total.matched == 3);
	history_done(&history);
}

/* The receiver's clock is behind: a packet arrives in the interval before the one that sent it. */
static void test_early(void **state)
{
	(void)state;
	for (int wrong = 0; wrong < 2; wrong++) {
		struct history history;
		history_open(&history, 2, 10);
		const struct ow_sighting b = {7, 990}, a = {7, wrong ? 200 : 5};
		struct ow_interval_results_input in = {.only_b = &b, .only_bs = 1};
		in.result = (struct ow_interval_result){.length_ns = LENGTH, .received = 1};
		in.result.clock_from.error_ns = in.result.clock_to.error_ns = 20;
		assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		in = (struct ow_interval_results_input){.only_a = &a, .only_as = 1, .result = in.result};
		in.result.interval = 1;
		in.result.start_ns = LENGTH;
		in.result.received = 0;
		in.result.sent = 1;
		assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		assert_true(history.first[0].extra == 1 && history.first[1].late == !wrong);
		assert_int_equal(step(&history, 2, 1, NULL, 0, NULL, 0), 0);
		assert_int_equal(step(&history, 3, 1, NULL, 0, NULL, 0), 0);
		/* By more than the clocks can be wrong: another packet. */
		assert_int_equal(history.final[0].extra, wrong);
		assert_int_equal(history.final[0].late_received, !wrong);
		assert_int_equal(history.final[1].lost, wrong);
		if (!wrong)
			assert_true(history.final[1].samples == 1 && history.final[1].mean_ns.value == -15);
		history_done(&history);
	}
}

/* The receiver's intervals are shifted by more than their length, as after a stall, and packets are fast again. */
static void test_faster_than_the_shift(void **state)
{
	(void)state;
	for (int64_t by = 1; by <= 3; by++) {
		struct history history;
		history_open(&history, 5, 10);
		/* Sent at the start of interval `by`, with a delay of 10. */
		const struct ow_sighting b = {7, by * LENGTH + 15}, a = {7, 5};
		for (int64_t i = 0; i <= 9; i++) {
			struct ow_interval_results_input in = {.only_b = &b,
			                                       .only_bs = i == 0,
			                                       .only_a = &a,
			                                       .only_as = i == by,
			                                       .shift_ns = by * LENGTH + 100};
			in.result = (struct ow_interval_result){.interval = i,
			                                        .start_ns = i * LENGTH,
			                                        .length_ns = LENGTH,
			                                        .sent = i == by,
			                                        .received = i == 0};
			in.result.clock_from.error_ns = in.result.clock_to.error_ns = 20;
			assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		}
		assert_true(history.final[0].extra == 0 && history.final[0].late_received == 1);
		assert_true(history.final[by].late == 1 && history.final[by].lost == 0);
		assert_true(history.final[by].samples == 1 && history.final[by].mean_ns.value == 10);
		history_done(&history);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/*
 * The protocol's way: mean exact, standard deviation with an interval, a sample; and late packets with long delays. The
 * final mean is exact, and quantiles hold the truth as often as they promise: 95 % of 200 runs are 190, and fewer than
 * 176 have a probability below 1e-5 (binomial).
 */
static void test_sampled(void **state)
{
	(void)state;
	enum { M = 20000, LATE = 300, K = 1000, RUNS = 200 };
	struct ow_random random;
	ow_random_seed(&random, 31);
	static double x[M + LATE];
	static int64_t sample[K];
	static struct ow_sighting a[LATE], b[LATE];
	int hits[OW_QUANTILES] = {0}, stddev_hits = 0;
	for (int run = 0; run < RUNS; run++) {
		double sum = 0, square = 0, all = 0, all_square = 0;
		for (int i = 0; i < M; i++) {
			x[i] = floor(1e6 + 2e6 * -log(1 - ow_random_unit(&random)));
			sum += x[i];
			square += x[i] * x[i];
		}
		for (int i = 0; i < K; i++) {
			/* The values are random in any order: the first are a uniform sample. */
			sample[i] = (int64_t)x[i];
		}
		for (int i = 0; i < LATE; i++) {
			int64_t sent = 990000000 + i * 100, delay = 10000000 + (int64_t)(1e7 * ow_random_unit(&random));
			a[i] = (struct ow_sighting){ow_mix64((uint64_t)i + 1), sent};
			b[i] = (struct ow_sighting){a[i].id, sent + delay - 1000000000};
			x[M + i] = (double)delay;
		}
		for (int i = 0; i < M + LATE; i++) {
			all += x[i];
			all_square += x[i] * x[i];
		}
		double mean = sum / M, s = sqrt(square / M - mean * mean), error = s * 0.03;
		/* A standard deviation that is off by a normal error and says so. */
		double estimate = s + error / 1.96 * sqrt(-2 * log(1 - ow_random_unit(&random))) *
		                              cos(6.283185307179586 * ow_random_unit(&random));
		struct history history;
		history_open(&history, 1, 4);
		struct ow_interval_results_input in = {.only_a = a, .only_as = LATE, .delay_ns = sample, .delays = K};
		in.result = (struct ow_interval_result){
			.length_ns = 1000000000,
			.sent = M + LATE,
			.received = M,
			.matched = M,
			.samples = M,
			.reordered = OW_RESULT_NOT_COUNTED,
			.mean_ns = {OW_VALUE_EXACT, mean, mean, mean, OW_NO_REASON},
			.above_min_ns = ow_value_exact(mean - 1e6),
			.round_trip_mean_ns = ow_value_exact(mean + 7e6),
			.stddev_ns = {OW_VALUE_ESTIMATED, estimate, estimate - error, estimate + error, OW_NO_REASON},
		};
		in.result.quantile_ns[OW_Q50] = (struct ow_value){OW_VALUE_ESTIMATED, 2.4e6, 2e6, 3e6, OW_NO_REASON};
		assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		/* As it came, as long as nothing is late. */
		assert_true(history.first[0].quantile_ns[OW_Q50].value == 2.4e6 && history.first[0].samples == M);
		in = (struct ow_interval_results_input){.only_b = b, .only_bs = LATE};
		in.result = (struct ow_interval_result){
			.interval = 1, .start_ns = 1000000000, .length_ns = 1000000000, .received = LATE};
		assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		const struct ow_interval_result *r = history.final;
		assert_true(r->late == LATE && r->samples == M + LATE && r->min_ns.status == OW_VALUE_NONE);
		assert_int_equal(r->mean_ns.status, OW_VALUE_EXACT);
		assert_true(close_to(r->mean_ns.value, all / (M + LATE)));
		assert_true(close_to(r->above_min_ns.value, all / (M + LATE) - 1e6));
		assert_true(close_to(r->round_trip_mean_ns.value, all / (M + LATE) + 7e6));
		double truth = sqrt(all_square / (M + LATE) - pow(all / (M + LATE), 2));
		stddev_hits += r->stddev_ns.low <= truth && truth <= r->stddev_ns.high;
		qsort(x, M + LATE, sizeof *x, by_value);
		for (int q = 0; q < OW_QUANTILES; q++) {
			double exact = x[(size_t)ceil(ow_quantile_level[q] * (M + LATE)) - 1];
			const struct ow_value *v = r->quantile_ns + q;
			assert_int_equal(v->status, OW_VALUE_ESTIMATED);
			/* Within the histogram's 0.05 %. */
			hits[q] += v->low * 0.9995 <= exact && exact <= v->high * 1.0005;
		}
		/* The run is this interval: the same numbers. */
		struct ow_interval_result total;
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		ow_run_total(history.settle, &total);
		assert_true(close_to(total.mean_ns.value, r->mean_ns.value) && total.matched == M + LATE);
		assert_true(close_to(total.stddev_ns.value, r->stddev_ns.value));
		history_done(&history);
	}
	for (int q = 0; q < OW_QUANTILES; q++)
		assert_true(hits[q] >= 176);
	assert_true(stddev_hits >= 176);
}

/* One packet in 2^shift: means, deviations, quantiles and loss are estimates with intervals that hold. */
static void test_shift(void **state)
{
	(void)state;
	enum { N = 16000, SHIFT = 3, RUNS = 200 };
	struct ow_random random;
	ow_random_seed(&random, 32);
	static int64_t delay[N];
	static double x[N];
	static struct ow_sighting a[N];
	int mean_hits = 0, stddev_hits = 0, loss_hits = 0, hits[OW_QUANTILES] = {0};
	for (int run = 0; run < RUNS; run++) {
		size_t matched = 0, as = 0, n = 0;
		uint64_t lost = 0;
		double sum = 0, square = 0;
		for (size_t i = 0; i < N; i++) {
			bool chosen = ow_random_below(&random, 1u << SHIFT) == 0,
			     drop = ow_random_below(&random, 10) == 0;
			double d = floor(1e6 + 1e6 * -log(1 - ow_random_unit(&random)));
			lost += drop;
			if (drop && chosen)
				a[as++] = (struct ow_sighting){ow_mix64(i + 1), 0};
			if (drop)
				continue;
			sum += d;
			square += d * d;
			x[n++] = d;
			if (chosen)
				delay[matched++] = (int64_t)d;
		}
		struct history history;
		history_open(&history, 1, 4);
		struct ow_interval_results_input in = {
			.only_a = a, .only_as = as, .delay_ns = delay, .delays = matched};
		in.result = (struct ow_interval_result){
			.length_ns = 1000000000,
			.sent = matched + as,
			.received = matched,
			.matched = matched,
			.sample_shift = SHIFT,
			.total_sent = N,
			.total_received = n,
		};
		assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
		assert_int_equal(ow_interval_results_finish(history.settle), 0);
		struct ow_interval_result r, total;
		r = history.final[0];
		ow_run_total(history.settle, &total);
		assert_true(r.sample_shift == SHIFT && r.lost == as && r.samples == matched);
		assert_true(close_to(r.coverage, (double)(matched + as) / N));
		assert_int_equal(r.mean_ns.status, OW_VALUE_ESTIMATED);
		assert_true(close_to(total.mean_ns.value, r.mean_ns.value) &&
		            close_to(total.mean_ns.low, r.mean_ns.low));
		double mean = sum / (double)n, s = sqrt(square / (double)n - mean * mean);
		mean_hits += r.mean_ns.low <= mean && mean <= r.mean_ns.high;
		stddev_hits += r.stddev_ns.low <= s && s <= r.stddev_ns.high;
		loss_hits += r.loss_ratio.low <= (double)lost / N && (double)lost / N <= r.loss_ratio.high;
		qsort(x, n, sizeof *x, by_value);
		for (int q = 0; q < OW_QUANTILES; q++) {
			double exact = x[(size_t)ceil(ow_quantile_level[q] * (double)n) - 1];
			const struct ow_value *v = r.quantile_ns + q;
			hits[q] += v->low * 0.9995 <= exact && exact <= v->high * 1.0005;
		}
		history_done(&history);
	}
	assert_true(mean_hits >= 176 && stddev_hits >= 176 && loss_hits >= 176);
	for (int q = 0; q < OW_QUANTILES; q++)
		assert_true(hits[q] >= 176);
}

/* More packets only at one point than can be remembered: unknown, not an error. */
static void test_too_many(void **state)
{
	(void)state;
	size_t n = OW_LATE_PACKETS_PENDING_MAX + (size_t)1;
	struct ow_sighting *a = calloc(n, sizeof *a);
	assert_non_null(a);
	struct history history;
	history_open(&history, 1, 4);
	struct ow_interval_results_input in = {.only_a = a, .only_as = n};
	in.result = (struct ow_interval_result){.length_ns = LENGTH, .sent = n, .total_sent = n};
	assert_int_equal(ow_interval_results_step(history.settle, &in), 0);
	assert_true(history.first[0].status == OW_RESULT_UNKNOWN && history.first[0].sent == 0);
	assert_int_equal(history.first[0].total_sent, n);
	assert_string_equal(history.first[0].cause, "more than 16777216 packets are at one point only");
	history_done(&history);
	free(a);
}

static void test_create(void **state)
{
	(void)state;
	struct ow_interval_results *settle = NULL;
	assert_int_equal(ow_interval_results_create(0, NULL, NULL, &settle), -EINVAL);
	assert_int_equal(ow_interval_results_create(OW_LATE_PACKETS_HORIZON_MAX + 1, NULL, NULL, &settle), -EINVAL);
	ow_interval_results_free(NULL);
	struct history history;
	struct ow_interval_result total;
	history_open(&history, 1, 1);
	ow_run_total(history.settle, &total);
	assert_true(total.interval == 0 && total.mean_ns.status == OW_VALUE_NONE);
	history_done(&history);
}

/* The interval of confidence of the mean contains what the clocks may add, once. */
static void clocks_widen(void **state)
{
	(void)state;
	struct ow_interval_result r;
	ow_result_blank(0, 0, 1000000000, &r);
	snprintf(r.clock_method, sizeof r.clock_method, "relative");
	r.clock_offset_ns = (struct ow_value){OW_VALUE_ESTIMATED, -100, -150, -20, OW_NO_REASON};
	r.mean_ns = ow_value_exact(1000);
	assert_true(ow_result_clock_added_ns(&r) == -100 && ow_result_clock_error_ns(&r) == 80);
	ow_result_clock_widen(&r);
	assert_true(r.mean_ns.value == 1000 && r.mean_ns.low == 950 && r.mean_ns.high == 1080);
	ow_result_clock_narrow(&r);
	assert_int_equal(r.mean_ns.status, OW_VALUE_EXACT);
	r.clock_offset_ns = ow_value_exact(0);
	ow_result_clock_widen(&r);
	assert_int_equal(r.mean_ns.status, OW_VALUE_EXACT);
	r.clock_offset_ns = ow_value_none(OW_REASON_CLOCK_ONE_WAY);
	assert_true(isnan(ow_result_clock_error_ns(&r)) && ow_result_clock_added_ns(&r) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_widen),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_missed_is_not_changed),
		cmocka_unit_test(test_missed_the_other_way),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_unknown_after_silence),
		cmocka_unit_test(test_reach_of_means),
		cmocka_unit_test(test_long_gap),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_faster_than_the_shift),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_distrust),
		cmocka_unit_test(test_short_flows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
