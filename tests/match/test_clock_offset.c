/* SPDX-License-Identifier: Apache-2.0 */
/* The estimated clock offset and its error, and the direction of traffic that goes one way, against the truth. */
#include "pair_maker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US INT64_C(1000)
#define MS (1000 * US)
#define S  (1000 * MS)

static struct pair_maker pair;
static struct ow_match_options options;

static int set_up(void **state)
{
	(void)state;
	pair_init(&pair, 5);
	ow_match_defaults(&options);
	options.clock = OW_CLOCK_ESTIMATED;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_done(&pair);
	return 0;
}

/* 10 s both ways: floors, and what queues add on average. */
static void talk(int64_t there_ns, int64_t back_ns, int64_t queue_ns, double loss)
{
	for (unsigned i = 0; i < 2000; i++) {
		pair_send(&pair, OW_A_TO_B, i * 5 * MS, pair_queue(&pair, there_ns, queue_ns),
		          pair_chance(&pair, loss));
		pair_send(&pair, OW_B_TO_A, i * 5 * MS + 2 * MS, pair_queue(&pair, back_ns, queue_ns),
		          pair_chance(&pair, loss));
	}
}

/* What is said of the offset holds; B's clock is ahead, so the right offset is the negative of that. */
static void offset_holds(const struct ow_match_report *report)
{
	int64_t truth = -pair.offset_ns;
	assert_true(report->offset_low_ns <= truth && truth <= report->offset_high_ns);
	assert_true(report->offset_error_ns >= llabs(report->offset_ns - truth));
}

static void asymmetric_delays(void **state)
{
	(void)state;
	static const struct {
		int64_t offset_ns, there_ns, back_ns, queue_ns;
	} tried[] = {{0, 5 * MS, 5 * MS, MS},
	             {37 * MS, 5 * MS, 5 * MS, 100 * US},
	             {-3 * S, 1 * MS, 40 * MS, 3 * MS},
	             {3600 * S, 40 * MS, 1 * MS, 10 * MS},
	             {70 * US, 20 * US, 25 * US, 10 * US}};
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		pair_done(&pair);
		pair_init(&pair, i);
		pair.offset_ns = tried[i].offset_ns;
		talk(tried[i].there_ns, tried[i].back_ns, tried[i].queue_ns, 0.01);
		const struct ow_match_report *report = pair_match(&pair, &options);
		int64_t trip = tried[i].there_ns + tried[i].back_ns;
		offset_holds(report);
		/* Of 2000 exponential queues the least is below 1 % of the mean. */
		assert_in_range(report->offset_error_ns, trip / 2, trip / 2 + tried[i].queue_ns / 100 + 1);
		assert_true(pair_warns(report, "half of the least round trip"));
		assert_false(pair_warns(report, "no clock offset fits"));
	}
}

/* Longer than the usual waiting time, one way or both: both directions show that it is not the clocks. */
static void delays_of_seconds(void **state)
{
	(void)state;
	for (int both = 0; both < 2; both++) {
		pair_done(&pair);
		pair_init(&pair, 9);
		talk(both ? 5 * S : MS, 5 * S, 100 * US, 0);
		const struct ow_match_report *report = pair_match(&pair, NULL);
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			const struct ow_result *result = &report->direction[d];
			assert_int_equal(result->lost, 0);
			assert_int_equal(result->sent, 2000);
			assert_in_range(result->delay.min_ns, d == OW_A_TO_B && !both ? MS : 5 * S, 5 * S + MS);
		}
		assert_in_range(report->window_ns, 10 * S, 11 * S);
	}
}

/* One packet in a thousand with a bad stamp does not move all others. */
static void an_outlier(void **state)
{
	(void)state;
	pair.offset_ns = 37 * MS;
	talk(5 * MS, 5 * MS, 100 * US, 0);
	pair.frame[OW_SIDE_B][1000].time_ns -= pair.frame[OW_SIDE_B][1000].ip[15] == 1 ? 10 * MS : -10 * MS;
	const struct ow_match_report *report = pair_match(&pair, &options);
	offset_holds(report);
	assert_true(llabs(report->offset_ns + 37 * MS) < 10 * US);
	assert_true(pair_warns(report, "a few packets are faster"));
}

/* Fast packets that are many are no outliers. */
static void a_fast_path(void **state)
{
	(void)state;
	pair.offset_ns = 37 * MS;
	talk(5 * MS, 5 * MS, 100 * US, 0);
	for (unsigned i = 0; i < 20; i++)
		pair_send(&pair, OW_A_TO_B, i * 500 * MS + MS, 2 * MS, false);
	const struct ow_match_report *report = pair_match(&pair, &options);
	offset_holds(report);
	assert_in_range(report->offset_error_ns, 3500 * US, 3510 * US);
	assert_false(pair_warns(report, "a few packets are faster"));
}

/* A clock that is set by 10 ms in the middle: no offset fits, and that is said. */
static void no_offset_fits(void **state)
{
	(void)state;
	talk(MS, MS, 100 * US, 0);
	for (size_t i = 0; i < pair.frames[OW_SIDE_B]; i++)
		pair.frame[OW_SIDE_B][i].time_ns += pair.frame[OW_SIDE_B][i].time_ns > 5 * S ? 10 * MS : 0;
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_true(report->offset_low_ns > report->offset_high_ns);
	assert_int_equal(report->offset_error_ns, -1);
	assert_true(pair_warns(report, "no clock offset fits"));
	/* With clocks as they are, too. */
	report = pair_match(&pair, NULL);
	assert_true(pair_warns(report, "no clock offset fits"));
}

/* Whatever the step, packets go the way they went, and are lost on it. */
static void a_step_turns_no_direction(void **state)
{
	(void)state;
	static const int64_t step_ns[] = {-1900 * MS, -900 * MS, -50 * MS, 50 * MS, 900 * MS, 3 * S};
	for (unsigned k = 0; k < 36; k++) {
		pair_done(&pair);
		pair_init(&pair, 5 + k);
		int64_t at_ns = (int64_t)(4900 + k / 12 * 100) * MS;
		for (unsigned i = 0; i < 2000; i++) {
			bool back = pair_chance(&pair, 0.5),
			     lost = !back && i > 200 && i < 600 && pair_chance(&pair, 0.1);
			pair_send(&pair, back ? OW_B_TO_A : OW_A_TO_B, i * 5 * MS, pair_queue(&pair, 5 * MS, MS), lost);
		}
		for (size_t i = 0; i < pair.frames[OW_SIDE_B]; i++)
			pair.frame[OW_SIDE_B][i].time_ns +=
				pair.frame[OW_SIDE_B][i].time_ns > at_ns ? step_ns[k % 6] : 0;
		const struct ow_match_report *report = pair_match(&pair, k / 6 % 2 ? &options : NULL);
		assert_true(report->direction[OW_A_TO_B].lost > 5);
		assert_int_equal(report->direction[OW_B_TO_A].lost, 0);
		assert_int_equal(report->direction[OW_A_TO_B].extra + report->direction[OW_B_TO_A].extra, 0);
		assert_true(pair_warns(report, "a clock was set while it captured"));
	}
}

static void a_drift(void **state)
{
	(void)state;
	pair.drift = 8e-5;
	pair.offset_ns = 250 * MS;
	talk(5 * MS, 5 * MS, 100 * US, 0.01);
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_true(report->drift_ppb > 79000 && report->drift_ppb < 81000);
	/* The offset is that of the start of the captures, which the drift moves by microseconds. */
	assert_true(llabs(report->offset_ns + pair.offset_ns) < 100 * US);
	assert_true(report->offset_error_ns >= llabs(report->offset_ns + pair.offset_ns));
}

/* Most packets become slower, the fastest do not: no clock drifts, and what is left of the first estimate is no drift. */
static void queues_that_grow(void **state)
{
	(void)state;
	pair.offset_ns = 37 * MS;
	for (unsigned i = 0; i < 2000; i++) {
		int64_t grown_ns = i % 10 ? (int64_t)i * 500 : 0;
		pair_send(&pair, OW_A_TO_B, i * 5 * MS, pair_queue(&pair, 5 * MS, 2 * US) + grown_ns, false);
		if (i % 5 == 0)
			pair_send(&pair, OW_B_TO_A, i * 5 * MS + 2 * MS, pair_queue(&pair, 5 * MS, 2 * US), false);
	}
	const struct ow_match_report *report = pair_match(&pair, &options);
	offset_holds(report);
	assert_true(report->drift_ppb == 0);
	assert_false(pair_warns(report, "gains"));
}

/* Only identical packets: an offset of more than their period cannot be found. */
static void only_polls(void **state)
{
	(void)state;
	pair.offset_ns = 1300 * MS;
	for (unsigned i = 0; i < 400; i++) {
		pair_poll(&pair, OW_A_TO_B, 1, i * 60 * MS, 5 * MS, pair_chance(&pair, 0.02));
		pair_poll(&pair, OW_B_TO_A, 2, i * 60 * MS + 20 * MS, 5 * MS, pair_chance(&pair, 0.02));
	}
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_int_equal(report->offset_error_ns, -1);
	assert_true(report->offset_low_ns == INT64_MIN && report->offset_high_ns == INT64_MAX);
	assert_true(pair_warns(report, "packets that are all alike, sent about every 60 ms"));
}

/* Among others they say nothing of the clocks. */
static void polls_among_others(void **state)
{
	(void)state;
	pair.offset_ns = 37 * MS;
	talk(5 * MS, 5 * MS, 100 * US, 0);
	for (unsigned i = 0; i < 1001; i++)
		pair_poll(&pair, OW_A_TO_B, 1, i * 6 * MS + pair_between(&pair, 0, 5 * MS),
		          pair_between(&pair, 5 * MS, 6 * MS), pair_chance(&pair, 0.05));
	const struct ow_match_report *report = pair_match(&pair, &options);
	offset_holds(report);
	assert_true(llabs(report->offset_ns + 37 * MS) < 10 * US);
}

static void round_times(enum ow_side side, int64_t tick_ns)
{
	for (size_t i = 0; i < pair.frames[side]; i++)
		pair.frame[side][i].time_ns -= pair.frame[side][i].time_ns % tick_ns;
}

/* A device that reads its clock at 64 Hz, and writes nanoseconds: seen, told, and part of the error. */
static void coarse_timestamps(void **state)
{
	(void)state;
	const int64_t tick_ns = 15625 * US;
	int64_t t = 0;
	for (unsigned i = 0; i < 2000; i++) {
		t += pair_queue(&pair, 0, 5 * MS);
		pair_send(&pair, i % 2 ? OW_A_TO_B : OW_B_TO_A, t, pair_queue(&pair, 5 * MS, MS), false);
	}
	round_times(OW_SIDE_B, tick_ns);
	const struct ow_match_report *report = pair_match(&pair, &options);
	offset_holds(report);
	assert_int_equal(report->capture[OW_SIDE_A].resolution_ns, 1);
	assert_int_equal(report->capture[OW_SIDE_B].resolution_ns, tick_ns);
	assert_true(pair_warns(report, "B: all timestamps are multiples of 15.62 ms"));
}

/* Packets that are sent at a period have the times of a coarse clock, but not its pattern. */
static void periodic_packets_are_not_coarse(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 500; i++)
		pair_send(&pair, OW_A_TO_B, i * 20 * MS, i == 250 ? 60 * MS : 40 * MS, false);
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_int_equal(report->capture[OW_SIDE_A].resolution_ns, 1);
	assert_int_equal(report->capture[OW_SIDE_B].resolution_ns, 1);
}

/*
 * Polls at an exact period of 20 ms, in a queue of 17 ms on average: of 400, many are faster than the fastest of 140 other
 * packets. They are not those of the period before.
 */
static void polls_faster_than_others(void **state)
{
	(void)state;
	int64_t free_ns = 0; /* when the queue is empty: it keeps the order */
	double sum = 0;
	for (unsigned i = 0; i < 700; i++)
		pair_send(&pair, OW_A_TO_B, i * 50 * MS, pair_queue(&pair, 2 * MS, MS), false);
	for (unsigned i = 0; i < 400; i++) {
		int64_t sent = 10 * S + i * 20 * MS, arrives = sent + pair_queue(&pair, 2 * MS, 10 * MS);
		arrives = arrives > free_ns ? arrives : free_ns + 1;
		free_ns = arrives;
		pair_poll(&pair, OW_B_TO_A, 1, sent, arrives - sent, false);
		sum += (double)(arrives - sent);
	}
	for (unsigned i = 0; i < 140; i++) {
		int64_t delay = pair_queue(&pair, 3 * MS, 20 * MS);
		pair_send(&pair, OW_B_TO_A, i * 250 * MS, delay, false);
		sum += (double)delay;
	}
	options.clock = OW_CLOCK_NONE;
	const struct ow_match_report *report = pair_match(&pair, &options);
	const struct ow_result *back = &report->direction[OW_B_TO_A];
	assert_int_equal(back->lost, 0);
	assert_int_equal(back->extra, 0);
	assert_true(back->delay.min_ns < 3 * MS);
	double low = back->delay.uncertain ? back->delay.low.mean_ns : back->delay.mean_ns,
	       high = back->delay.uncertain ? back->delay.high.mean_ns : back->delay.mean_ns;
	assert_true(low <= sum / 540 + 1 && sum / 540 - 1 <= high);
}

/* -- one direction only ------------------------------------------------------------------------------------------- */

/* 3 s of one direction with delays of 5 ms and a queue. Returns how many are lost. */
static uint64_t stream(enum ow_direction way, int64_t queue_ns, double loss)
{
	uint64_t lost = 0;
	for (unsigned i = 0; i < 3000; i++) {
		bool gone = i > 200 && i < 2800 && pair_chance(&pair, loss);
		pair_send(&pair, way, i * MS, pair_queue(&pair, 5 * MS, queue_ns), gone);
		lost += gone;
	}
	return lost;
}

static void one_bound_only(void **state)
{
	(void)state;
	stream(OW_A_TO_B, MS, 0);
	pair.offset_ns = 0;
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_int_equal(report->offset_error_ns, -1);
	assert_int_equal(report->offset_high_ns, INT64_MAX);
	assert_true(report->offset_low_ns <= 0);
	assert_int_equal(report->direction[OW_A_TO_B].delay.min_ns, 0);
	assert_true(pair_warns(report, "only the variation of the delay is meaningful"));
}

/* Loss of a sender, at whichever point, with a clock that makes delays of both signs, or all negative. */
static void loss_shows_the_sender(void **state)
{
	(void)state;
	static const int64_t offset_ns[] = {-20 * MS, -500 * MS};
	for (unsigned i = 0; i < 4; i++) {
		enum ow_direction way = i & 1 ? OW_B_TO_A : OW_A_TO_B;
		pair_done(&pair);
		pair_init(&pair, i);
		pair.offset_ns = way == OW_A_TO_B ? offset_ns[i / 2] : -offset_ns[0];
		uint64_t lost = stream(way, 20 * MS, 0.075);
		for (unsigned estimated = 0; estimated < 2; estimated++) {
			const struct ow_match_report *report = pair_match(&pair, estimated ? &options : NULL);
			assert_int_equal(report->direction[!way].sent + report->direction[!way].received, 0);
			assert_int_equal(report->direction[way].lost, lost);
			assert_int_equal(report->direction[way].extra, 0);
			assert_true(pair_warns(report, "all packets go one way"));
			assert_false(pair_warns(report, "every packet is later"));
		}
	}
}

/* Routers show the way without any loss. */
static void hops_show_the_way(void **state)
{
	(void)state;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		pair_done(&pair);
		pair_init(&pair, way);
		pair.hops = 3;
		pair.offset_ns = way == OW_A_TO_B ? -100 * MS : 100 * MS;
		stream(way, 0, 0);
		for (unsigned estimated = 0; estimated < 2; estimated++) {
			const struct ow_match_report *report = pair_match(&pair, estimated ? &options : NULL);
			assert_int_equal(report->direction[way].matched, 3000);
			assert_true(pair_warns(report, "because their TTL is lower there"));
		}
	}
}

/* Queues do, if the clocks contradict themselves. */
static void queues_show_the_way(void **state)
{
	(void)state;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		pair_done(&pair);
		pair_init(&pair, way);
		pair.offset_ns = way == OW_A_TO_B ? -20 * MS : 20 * MS;
		stream(way, 20 * MS, 0);
		const struct ow_match_report *report = pair_match(&pair, NULL);
		assert_int_equal(report->direction[way].matched, 3000);
		assert_true(pair_warns(report, "queues make packets slower"));
	}
}

/* A capture that drops packets, and clocks that are right: the clocks are believed. */
static void the_sending_capture_drops(void **state)
{
	(void)state;
	stream(OW_A_TO_B, MS, 0);
	for (size_t i = 100; i < pair.frames[OW_SIDE_A]; i += 10)
		pair.frame[OW_SIDE_A][i] = pair.frame[OW_SIDE_A][--pair.frames[OW_SIDE_A]];
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].matched, pair.frames[OW_SIDE_A]);
	assert_int_equal(report->direction[OW_B_TO_A].matched, 0);
	assert_true(pair_warns(report, "that capture dropped packets"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(asymmetric_delays),
		CASE(delays_of_seconds),
		CASE(an_outlier),
		CASE(a_fast_path),
		CASE(no_offset_fits),
		CASE(a_step_turns_no_direction),
		CASE(a_drift),
		CASE(queues_that_grow),
		CASE(only_polls),
		CASE(polls_among_others),
		CASE(polls_faster_than_others),
		CASE(coarse_timestamps),
		CASE(periodic_packets_are_not_coarse),
		CASE(one_bound_only),
		CASE(loss_shows_the_sender),
		CASE(hops_show_the_way),
		CASE(queues_show_the_way),
		CASE(the_sending_capture_drops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
