/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that show packets twice, and packets that were sent twice: the verdict, and the result of a match. */
#include "match/duplicate_capture.h"

#include "pair_maker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US      INT64_C(1000)
#define MS      (1000 * US)
#define PACKETS 1000

static struct pair_maker pair;

static int start(void **state)
{
	(void)state;
	pair_init(&pair, 5);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	pair_done(&pair);
	return 0;
}

/* -- the judgement ------------------------------------------------------------------------------------------------ */

static struct ow_duplicate_capture_sample *sample;
static struct ow_duplicate_capture_verdict verdict[OW_SIDES];

static void judge(int64_t round_trip_ns)
{
	const struct ow_duplicate_capture_facts facts = {{0, 0}, {INT64_MAX / 2, INT64_MAX / 2}, round_trip_ns, {1, 1}};
	ow_duplicate_capture_judge(sample, &facts, verdict);
	ow_duplicate_capture_sample_free(sample);
}

static void begin(void)
{
	sample = ow_duplicate_capture_sample_create();
	assert_non_null(sample);
}

/* A packet that goes from A to B, with so many sightings at either side, lag_ns apart. */
static void show(uint64_t id, enum ow_direction way, unsigned a, unsigned b, int64_t lag_ns)
{
	const unsigned count[OW_SIDES] = {a, b};
	for (unsigned side = 0; side < OW_SIDES; side++) {
		int64_t arrives = (side == OW_SIDE_A) == (way == OW_A_TO_B) ? 0 : 5 * MS;
		for (unsigned i = 0; i < count[side]; i++)
			ow_duplicate_capture_sample_add(
				sample, &(struct ow_frame_sighting){id, (int64_t)id * MS + arrives + i * lag_ns,
			                                            (uint8_t)side, (uint8_t)way});
	}
}

/* One packet in twenty is enough; what arrives at the same lag is left out with it. */
static void few_copies_suffice(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 400; i++)
		show(i, i % 2 ? OW_A_TO_B : OW_B_TO_A, i % 20 < 2 ? 2 : 1, 1, (40 + (int64_t)i % 11) * US);
	judge(10 * MS);
	assert_true(verdict[OW_SIDE_A].twice);
	assert_false(verdict[OW_SIDE_B].twice);
	assert_true(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 45 * US));
	assert_false(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 20 * US));
	assert_false(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 200 * US));
	assert_int_equal(verdict[OW_SIDE_A].rule.most, 1);
}

/* Three ports are mirrored. */
static void shown_three_times(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 100; i++)
		show(i, OW_A_TO_B, 3, 1, 10 * US);
	judge(10 * MS);
	assert_true(verdict[OW_SIDE_A].twice);
	assert_int_equal(verdict[OW_SIDE_A].rule.most, 2);
	assert_true(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 20 * US));
}

/* All interfaces of a busy router: one copy in fifty is late. Packets that are sent again have copies of their own. */
static void late_copies(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 1000; i++) {
		bool again = i % 40 == 7;
		show(i, OW_A_TO_B, again ? 4 : 2, 1, again ? 30 * MS : i % 50 == 0 ? 180 * US : 3 * US);
	}
	judge(10 * US);
	assert_true(verdict[OW_SIDE_A].twice);
	assert_true(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 180 * US));
	assert_false(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 30 * MS));
	assert_true(verdict[OW_SIDE_A].unsure);
}

/* Half of the packets have copies, and a few late ones may be copies or not: said. */
static void late_copies_of_some(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 1000; i++)
		show(i, OW_A_TO_B, i % 2 ? 1 : 2, 1, i % 50 == 0 ? 180 * US : 3 * US);
	judge(10 * US);
	assert_true(verdict[OW_SIDE_A].twice);
	assert_false(ow_copy_rule_has(&verdict[OW_SIDE_A].rule, 180 * US));
	assert_true(verdict[OW_SIDE_A].unsure);
}

/* Everything is sent twice, and 20 % is lost: one or both of the two. No copy may hide that. */
static void sent_twice_is_no_copy(void **state)
{
	(void)state;
	for (int singles = 0; singles < 2; singles++) {
		begin();
		for (uint64_t i = 1; i <= 500; i++)
			show(i, OW_A_TO_B, 2, i % 25 == 0 ? 0 : i % 25 <= 8 ? 1 : 2, 10 * US);
		for (uint64_t i = 1001; i <= 1100 && singles; i++)
			show(i, OW_A_TO_B, 1, i % 5 != 0, 0);
		judge(10 * MS);
		assert_false(verdict[OW_SIDE_A].twice);
		assert_false(verdict[OW_SIDE_A].unsure);
	}
}

/* Packets that are sent again after a round trip, because the first one was lost. */
static void retransmissions_are_no_copies(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 1000; i++)
		show(i, i % 2 ? OW_A_TO_B : OW_B_TO_A, i % 20 == 1 ? 2 : 1, 1, 11 * MS);
	judge(10 * MS);
	assert_false(verdict[OW_SIDE_A].twice);
	assert_true(verdict[OW_SIDE_A].unsure);
}

/* All packets are shown twice, longer apart than a round trip: too many to be sent again, for none is lost twice. */
static void copies_after_a_round_trip(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 200; i++)
		show(i, OW_A_TO_B, i % 2 ? 2 : 1, 1, 11 * MS);
	judge(10 * MS);
	assert_true(verdict[OW_SIDE_A].twice);
	begin();
	for (uint64_t i = 1; i <= 200; i++)
		show(i, OW_A_TO_B, i % 2 ? 2 : 1, i % 4 != 1, 11 * MS);
	judge(10 * MS);
	assert_false(verdict[OW_SIDE_A].twice);
}

/* Packets that only arrive twice may be duplicated by the network: a warning if the lags are similar. */
static void arrivals_are_not_judged(void **state)
{
	(void)state;
	for (int alike = 0; alike < 2; alike++) {
		begin();
		for (uint64_t i = 1; i <= 1000; i++)
			show(i, OW_A_TO_B, 1, i % 10 == 0 ? 2 : 1, alike ? 10 * US : (int64_t)(i % 301) * 10 * US);
		judge(10 * MS);
		assert_false(verdict[OW_SIDE_B].twice);
		assert_int_equal(verdict[OW_SIDE_B].arrivals, alike);
		assert_false(verdict[OW_SIDE_A].arrivals);
	}
}

/* More sightings than the sample holds, most of them of one packet. */
static void floods_do_not_fill_the_sample(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 1; i <= 600000; i++) {
		show(7, OW_A_TO_B, 1, i % 10 != 0, 0);
		if (i % 4 == 0)
			show(1000 + i, OW_A_TO_B, i % 16 == 0 ? 2 : 1, 1, 5 * US);
	}
	judge(10 * MS);
	assert_true(verdict[OW_SIDE_A].twice);
	begin();
	for (uint64_t i = 1; i <= 600000; i++)
		show(7, OW_A_TO_B, 1, i % 2, 0);
	judge(10 * MS);
	assert_false(verdict[OW_SIDE_A].twice);
	assert_false(verdict[OW_SIDE_A].unsure);
}

/* -- matches ------------------------------------------------------------------------------------------------------ */

static uint64_t lost[OW_DIRECTIONS];

static void traffic(double loss)
{
	lost[OW_A_TO_B] = lost[OW_B_TO_A] = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		bool gone = i > 20 && i < PACKETS - 20 && pair_chance(&pair, loss);
		enum ow_direction way = pair_chance(&pair, 0.4) ? OW_B_TO_A : OW_A_TO_B;
		pair_send(&pair, way, i * MS, pair_queue(&pair, 2 * MS, 300 * US), gone);
		lost[way] += gone;
	}
}

static void expect_exact(const struct ow_match_report *report)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		assert_int_equal(report->direction[d].lost, lost[d]);
		assert_int_equal(report->direction[d].extra, 0);
		assert_true(report->direction[d].delay.min_ns >= 2 * MS);
	}
	assert_int_equal(report->direction[OW_A_TO_B].sent + report->direction[OW_B_TO_A].sent, PACKETS);
}

/* Shares, lags and sides of mirrors, with and without loss. */
static void mirrors_are_left_out(void **state)
{
	(void)state;
	static const double share[] = {0.05, 0.5, 1};
	static const int64_t lag_ns[] = {1 * US, 50 * US, 3 * MS};
	for (unsigned i = 0; i < 3 * 3 * 4; i++) {
		enum ow_side side = i & 1;
		pair_done(&pair);
		pair_init(&pair, 100 + i);
		traffic(i & 2 ? 0.05 : 0);
		int64_t lag = lag_ns[i / 4 % 3];
		size_t copies = pair_mirror(&pair, side, share[i / 12], lag, lag + 3 * US);
		const struct ow_match_report *report = pair_match(&pair, NULL);
		expect_exact(report);
		assert_int_equal(report->skipped[side], copies);
		assert_int_equal(report->skipped[!side], 0);
		assert_true(pair_warns(report, "left out"));
	}
}

static void mirrors_at_both_points(void **state)
{
	(void)state;
	traffic(0.02);
	size_t a = pair_mirror(&pair, OW_SIDE_A, 0.5, 5 * US, 8 * US),
	       b = pair_mirror(&pair, OW_SIDE_B, 0.3, 20 * US, 25 * US);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	expect_exact(report);
	assert_int_equal(report->skipped[OW_SIDE_A], a);
	assert_int_equal(report->skipped[OW_SIDE_B], b);
}

/* These cannot be distinguished from hosts that send everything twice; the result says so. */
static void everything_twice_at_both(void **state)
{
	(void)state;
	static const int64_t lag_ns[] = {5 * US, 30 * MS};
	for (unsigned i = 0; i < 2; i++) {
		pair_done(&pair);
		pair_init(&pair, 1 + i);
		traffic(0);
		pair_mirror(&pair, OW_SIDE_A, 1, lag_ns[i], lag_ns[i] + 3 * US);
		pair_mirror(&pair, OW_SIDE_B, 1, lag_ns[i], lag_ns[i] + 3 * US);
		assert_true(pair_warns(pair_match(&pair, NULL),
		                       "both captures show most packets of a direction more than once"));
	}
}

/* A host sends each packet twice, 8 us apart, and 10 % is lost: all of it is reported. */
static void loss_of_repeated_packets(void **state)
{
	(void)state;
	uint64_t gone = 0, copies = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		for (int64_t copy = 0; copy < 2; copy++) {
			bool is_lost = i > 20 && i < PACKETS - 20 && pair_chance(&pair, 0.1);
			pair.made = (uint32_t)i;
			pair_send(&pair, OW_A_TO_B, i * MS + copy * 8 * US, 2 * MS + pair_between(&pair, 0, 4 * US),
			          is_lost);
			gone += is_lost;
			copies++;
		}
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].sent, copies);
	assert_int_equal(report->direction[OW_A_TO_B].lost, gone);
	assert_int_equal(report->skipped[OW_SIDE_A], 0);
}

/* Only identical packets, every 5 us, of which 10 % are lost. */
static void loss_of_a_flood(void **state)
{
	(void)state;
	uint64_t gone = 0;
	for (int64_t i = 0; i < 20000; i++) {
		bool is_lost = pair_chance(&pair, 0.1);
		pair_poll(&pair, OW_A_TO_B, 1, i * 5 * US, 1 * MS, is_lost);
		gone += is_lost;
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	/* At the very ends a packet may be outside: of as many as are in flight. */
	assert_in_range(report->direction[OW_A_TO_B].lost, gone - 200, gone);
	assert_int_equal(report->skipped[OW_SIDE_A], 0);
	assert_false(pair_warns(report, "more than once"));
}

/* Half of the packets are mirrored, and a host repeats others as soon: these are matched, not left out. */
static void repeated_packets_stay(void **state)
{
	(void)state;
	traffic(0);
	pair_mirror(&pair, OW_SIDE_A, 0.5, 20 * US, 25 * US);
	for (int64_t i = 0; i < 100; i++) {
		for (int64_t copy = 0; copy < 2; copy++) {
			pair.made = (uint32_t)(PACKETS + i);
			pair_send(&pair, OW_A_TO_B, i * 10 * MS + 500 * US + copy * 22 * US, 2 * MS + 100 * US, false);
		}
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].sent + report->direction[OW_B_TO_A].sent, PACKETS + 200);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->direction[OW_A_TO_B].extra, 0);
	assert_true(pair_warns(report, "hosts repeat packets as soon as that"));
}

/* The network duplicates some packets: they are counted, and nothing is left out. */
static void duplicates_stay(void **state)
{
	(void)state;
	traffic(0.01);
	size_t frames = pair.frames[OW_SIDE_B], copies = 0;
	for (size_t i = 0; i < frames; i++) {
		struct pair_frame frame = pair.frame[OW_SIDE_B][i];
		if (frame.ip[15] != 1 || !pair_chance(&pair, 0.05)) /* from A */
			continue;
		frame.time_ns += pair_between(&pair, 2 * US, 3 * MS);
		pair_show(&pair, OW_SIDE_B, &frame);
		copies++;
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].duplicated, copies);
	assert_int_equal(report->direction[OW_A_TO_B].lost, lost[OW_A_TO_B]);
	assert_int_equal(report->skipped[OW_SIDE_B], 0);
	assert_false(pair_warns(report, "more than once"));
}

/* Two of many polls are shown twice, and nothing is lost: the result says that they may be copies. */
static void a_few_copies_are_said(void **state)
{
	(void)state;
	traffic(0);
	for (int64_t i = 0; i < 90; i++)
		pair_poll(&pair, OW_A_TO_B, 1, 5 * MS + i * 10 * MS, 3 * MS, false);
	for (int64_t i = 30; i <= 60; i += 30) {
		struct pair_frame frame = pair.frame[OW_SIDE_A][pair.frames[OW_SIDE_A] - 1];
		frame.time_ns = 5 * MS + i * 10 * MS + 50 * US;
		pair_show(&pair, OW_SIDE_A, &frame);
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 2);
	assert_true(pair_warns(report, "sent twice and one of them lost, or shown twice"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_copies_suffice),
		cmocka_unit_test(shown_three_times),
		cmocka_unit_test(late_copies),
		cmocka_unit_test(late_copies_of_some),
		cmocka_unit_test(sent_twice_is_no_copy),
		cmocka_unit_test(retransmissions_are_no_copies),
		cmocka_unit_test(copies_after_a_round_trip),
		cmocka_unit_test(arrivals_are_not_judged),
		cmocka_unit_test(floods_do_not_fill_the_sample),
		cmocka_unit_test_setup_teardown(mirrors_are_left_out, start, stop),
		cmocka_unit_test_setup_teardown(mirrors_at_both_points, start, stop),
		cmocka_unit_test_setup_teardown(everything_twice_at_both, start, stop),
		cmocka_unit_test_setup_teardown(loss_of_repeated_packets, start, stop),
		cmocka_unit_test_setup_teardown(loss_of_a_flood, start, stop),
		cmocka_unit_test_setup_teardown(repeated_packets_stay, start, stop),
		cmocka_unit_test_setup_teardown(a_few_copies_are_said, start, stop),
		cmocka_unit_test_setup_teardown(duplicates_stay, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
