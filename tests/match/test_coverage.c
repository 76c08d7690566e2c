/* SPDX-License-Identifier: Apache-2.0 */
/* The time that captures cover: holes, late starts and early ends are not loss; outages of one direction are. */
#include "match/coverage.h"

#include "pair_maker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static struct pair_maker pair;

static int set_up(void **state)
{
	(void)state;
	pair_init(&pair, 13);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_done(&pair);
	return 0;
}

static void the_longest_silences_are_kept(void **state)
{
	(void)state;
	struct ow_silences s;
	int64_t t = 0, previous_ns = INT64_MIN;
	ow_silences_init(&s);
	ow_silences_note(&s, 0, OW_SILENCE_LEAST_NS);
	assert_int_equal(s.count, 0);
	for (int i = 1; i <= 3 * OW_SILENCES_MAX; i++) {
		/* Each is different: 12289 is prime, and 1 more than 3 * OW_SILENCES_MAX. */
		int64_t length = OW_SILENCE_LEAST_NS + (i * INT64_C(3701) % 12289) * MS;
		ow_silences_note(&s, t, t + length);
		t += length + S;
	}
	assert_int_equal(s.count, OW_SILENCES_MAX);
	/* 1..12288 in another order: the longest third is 8193..12288. */
	ow_silences_sort(&s);
	for (unsigned i = 0; i < s.count; i++) {
		assert_in_range(s.silence[i].to_ns - s.silence[i].from_ns, OW_SILENCE_LEAST_NS + 8193 * MS,
		                OW_SILENCE_LEAST_NS + 12288 * MS);
		assert_true(s.silence[i].from_ns >= previous_ns);
		previous_ns = s.silence[i].to_ns;
	}
}

static void gaps_are_found_by_time(void **state)
{
	(void)state;
	const struct ow_gap gap[] = {{.silence = {10, 20}}, {.silence = {30, 40}}, {.silence = {50, 60}}};
	assert_int_equal(ow_gaps_after(gap, 3, 0), 0);
	assert_int_equal(ow_gaps_after(gap, 3, 19), 0);
	assert_int_equal(ow_gaps_after(gap, 3, 20), 1);
	assert_int_equal(ow_gaps_after(gap, 3, 59), 2);
	assert_int_equal(ow_gaps_after(gap, 3, 60), 3);
	assert_int_equal(ow_gaps_after(gap, 0, 0), 0);
}

/* Packets that another capture showed between those before and after a silence passed in it. */
static void gaps_hold_what_passes_between(void **state)
{
	(void)state;
	struct ow_gap gap[2];
	ow_gap_init(&gap[0], (struct ow_silence){100, 200}, OW_NO_HOLE);
	ow_gap_init(&gap[1], (struct ow_silence){300, 400}, OW_NO_HOLE);
	assert_false(ow_gap_between(&gap[0], OW_A_TO_B, 60, 150)); /* nothing is known before it */
	ow_gaps_note(gap, 2, OW_A_TO_B, 90, 50);
	ow_gaps_note(gap, 2, OW_A_TO_B, 80, 40);
	assert_true(ow_gap_between(&gap[0], OW_A_TO_B, 60, 200));
	assert_false(ow_gap_between(&gap[0], OW_A_TO_B, 60, 201)); /* it may arrive after the silence */
	ow_gaps_note(gap, 2, OW_A_TO_B, 210, 70);
	ow_gaps_note(gap, 2, OW_A_TO_B, 220, 80);
	assert_true(ow_gap_between(&gap[0], OW_A_TO_B, 60, 1000));
	assert_false(ow_gap_between(&gap[0], OW_A_TO_B, 50, 1000));
	assert_false(ow_gap_between(&gap[0], OW_A_TO_B, 70, 1000));
	assert_false(ow_gap_between(&gap[0], OW_B_TO_A, 60, 1000));
	assert_true(ow_gap_between(&gap[1], OW_A_TO_B, 81, 400));
	ow_gap_init(&gap[0], gap[0].silence, OW_HOLE);
	assert_int_equal(gap[0].verdict, OW_HOLE);
	assert_false(ow_gap_between(&gap[0], OW_A_TO_B, 60, 1000));
}

static void verdicts(void **state)
{
	(void)state;
	struct ow_gap gap = {.from = {5, 0, 200 * MS}};
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000000), OW_HOLE);
	assert_int_equal(ow_gap_judge(&gap, 0.1, 0, 1000000), OW_NO_HOLE); /* that capture drops one in ten anyway */
	/* Few packets, of both kinds, where hardly any is missing elsewhere. */
	gap = (struct ow_gap){.from = {3, 0, 200 * MS}, .to = {3, 0, 300 * MS}};
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000), OW_HOLE);
	gap = (struct ow_gap){.from = {1, 0, 0}, .to = {1, 300 * MS, 300 * MS}};
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000), OW_HOLE_SHORT);
	assert_int_equal(ow_gap_judge(&gap, 0.05, 0.05, 1000), OW_NO_HOLE);
	gap = (struct ow_gap){.to = {2, 0, 300 * MS}}; /* networks lose packets, but hardly two in a row here */
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000), OW_HOLE_SHORT);
	assert_int_equal(ow_gap_judge(&gap, 0, 0.01, 1000), OW_NO_HOLE);
	gap.to.packets = 1;
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 10), OW_NO_HOLE);
	gap.unusual = true; /* a single one in a silence like no other */
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000), OW_HOLE_SHORT);
	assert_int_equal(ow_gap_judge(&gap, 0, 0.01, 1000), OW_NO_HOLE);
	gap = (struct ow_gap){.from = {1, 0, 0}};
	assert_int_equal(ow_gap_judge(&gap, 0, 0, 1000), OW_HOLE_SHORT);
	assert_int_equal(ow_gap_judge(&gap, 0.01, 0, 1000), OW_NO_HOLE);
	gap = (struct ow_gap){.to = {40, 0, 2 * S}};
	assert_int_equal(ow_gap_judge(&gap, 0, 0.01, 1000000), OW_HOLE_OR_OUTAGE);
	assert_int_equal(ow_gap_judge(&gap, 0, 0.5, 1000000), OW_NO_HOLE); /* every other one is lost anyway */
	gap.to.last_ns = 500 * MS;
	assert_int_equal(ow_gap_judge(&gap, 0, 0.01, 1000000), OW_HOLE_SHORT);
	gap.to.last_ns = 10 * MS; /* a burst, and silence after it */
	assert_int_equal(ow_gap_judge(&gap, 0, 0.01, 1000000), OW_NO_HOLE);
	gap.to = (struct ow_missed){6, 0, 3 * S}; /* too few for a hole: retransmissions, perhaps */
	assert_int_equal(ow_gap_judge(&gap, 0, 0.001, 1000000), OW_HOLE_SHORT);
}

/* 12 s both ways or one way, 20 to 21 ms, with loss. Returns the losses of A to B by a hole of the arrivals. */
struct truth {
	uint64_t lost[OW_DIRECTIONS], near[OW_DIRECTIONS]; /* lost; near: of which it cannot be said */
};

static struct truth make(bool both, double loss, int64_t from_ns, int64_t to_ns, enum ow_side side)
{
	struct truth truth = {{0}, {0}};
	for (unsigned i = 0; i < 12000; i++) {
		for (unsigned way = 0; way <= (unsigned)both; way++) {
			int64_t sent = i * MS + way * 300000, delay = pair_between(&pair, 20 * MS, 21 * MS);
			bool lost = pair_chance(&pair, loss);
			/* Where `side` sees it. */
			int64_t there = (way == OW_A_TO_B) == (side == OW_SIDE_A) ? sent : sent + delay;
			pair_send(&pair, way, sent, delay, lost);
			if (lost && (there < from_ns || there >= to_ns))
				truth.lost[way]++;
			if (lost && (llabs(there - from_ns) < 2 * MS || llabs(there - to_ns) < 2 * MS))
				truth.near[way]++;
		}
	}
	pair_cut(&pair, side, from_ns, to_ns);
	return truth;
}

static void a_hole(enum ow_side side, bool both)
{
	struct truth truth = make(both, 0.01, 4 * S, 8 * S, side);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	for (unsigned way = 0; way <= (unsigned)both; way++) {
		assert_in_range(report->direction[way].lost + truth.near[way], truth.lost[way],
		                truth.lost[way] + 2 * truth.near[way]);
		assert_int_equal(report->direction[way].extra, 0);
	}
	assert_int_equal(report->holes, 1);
	assert_int_equal(report->hole[0].side, side);
	assert_true(llabs(report->hole[0].start_ns - PAIR_START_S * S - 4 * S) < 5 * MS);
	assert_true(llabs(report->hole[0].length_ns - 4 * S) < 5 * MS);
	assert_int_equal(report->hole[0].packets, report->outside_overlap[!side]);
	assert_in_range(report->hole[0].packets, both ? 7900 : 3950, both ? 8000 : 4000);
	/* What came from there and arrived proves that the capture missed it. */
	assert_int_equal(report->hole[0].certain, both || side == OW_SIDE_A);
	assert_true(pair_warns(report, "shows no packet at all for 4.00"));
	assert_int_equal(pair_warns(report, "cannot be told apart"), !report->hole[0].certain);
}

static void a_hole_at_b(void **state)
{
	(void)state;
	a_hole(OW_SIDE_B, true);
}

static void a_hole_at_a(void **state)
{
	(void)state;
	a_hole(OW_SIDE_A, true);
}

static void a_hole_at_b_of_traffic_one_way(void **state)
{
	(void)state;
	a_hole(OW_SIDE_B, false);
}

static void a_hole_at_a_of_traffic_one_way(void **state)
{
	(void)state;
	a_hole(OW_SIDE_A, false);
}

/* B's capture stops for 2 s again and again: 5 * count seconds, 50 packets a second. */
static const struct ow_match_report *many_holes(unsigned count)
{
	for (unsigned i = 0; i < count * 250; i++)
		pair_send(&pair, OW_A_TO_B, i * 20 * MS, 20 * MS, i % 250 >= 100 && i % 250 < 200);
	return pair_match(&pair, NULL);
}

static void holes_again_and_again(void **state)
{
	(void)state;
	const struct ow_match_report *report = many_holes(300);
	assert_int_equal(report->holes, 300);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->outside_overlap[OW_SIDE_A], 300 * 100);
	assert_true(pair_warns(report, "296 more times: 29600 packets of A do not count as lost"));
	assert_false(pair_warns(report, "only the longest times"));
}

static void more_holes_than_are_looked_at(void **state)
{
	(void)state;
	const struct ow_match_report *report = many_holes(OW_SILENCES_MAX + 10);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 10 * 100);
	assert_true(pair_warns(report, "only the longest times were looked at"));
}

/* The clocks are apart by hours, and drift: holes are where they are. */
static void a_hole_and_a_clock(void **state)
{
	(void)state;
	struct ow_match_options options;
	ow_match_defaults(&options);
	options.clock = OW_CLOCK_ESTIMATED;
	pair.offset_ns = 7200 * S;
	pair.drift = 5e-5;
	make(true, 0, 7204 * S, 7208 * S, OW_SIDE_B);
	const struct ow_match_report *report = pair_match(&pair, &options);
	assert_int_equal(report->direction[OW_A_TO_B].lost + report->direction[OW_B_TO_A].lost, 0);
	assert_int_equal(report->direction[OW_A_TO_B].extra + report->direction[OW_B_TO_A].extra, 0);
	assert_int_equal(report->holes, 1);
	assert_true(llabs(report->hole[0].start_ns - PAIR_START_S * S - 4 * S) < 5 * MS);
}

/* A queue that grows to seconds: the delays of the capture are no guide to when the packets of a hole arrived. */
static void a_hole_while_a_queue_grows(void **state)
{
	(void)state;
	uint64_t missing = 0;
	for (unsigned i = 0; i < 1000; i++) {
		int64_t sent = i * 5 * MS, delay = i < 40 ? 100 * MS + i * 30 * MS : 1300 * MS + i % 7 * MS;
		pair_send(&pair, OW_A_TO_B, sent, delay, false);
		missing += sent + delay >= 300 * MS && sent + delay < 1400 * MS;
	}
	pair_cut(&pair, OW_SIDE_B, 300 * MS, 1400 * MS);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	/* They were sent within 0.2 s: too short for a hole. */
	assert_true(missing >= 10);
	assert_int_equal(report->direction[OW_A_TO_B].lost, missing);
	assert_true(pair_warns(report, "they count as lost, but its capture may have stalled"));
}

/* B goes on to send: an outage of one direction, which is loss. */
static void an_outage_of_one_direction(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 12000; i++) {
		pair_send(&pair, OW_A_TO_B, i * MS, 20 * MS, i >= 4000 && i < 8000);
		pair_send(&pair, OW_B_TO_A, i * MS, 20 * MS, false);
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 4000);
	assert_int_equal(report->holes, 0);
	assert_false(pair_warns(report, "no packet at all"));
}

/* 300 ms without anything are counted as loss, with a word. */
static void a_short_outage(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		pair_send(&pair, OW_A_TO_B, i * MS, 20 * MS, i >= 2000 && i < 2300);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 300);
	assert_int_equal(report->holes, 0);
	assert_true(pair_warns(report, "they count as lost, but its capture may have stalled"));
}

/* Traffic that pauses, and whose last packets before the pause are lost. */
static void a_pause_after_a_burst_of_losses(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		pair_send(&pair, OW_A_TO_B, i * MS + (i >= 2000) * 10 * S, 20 * MS, i >= 1960 && i < 2000);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 40);
	assert_int_equal(report->holes, 0);
}

/* Slow traffic of which many packets are lost has many silences, and no hole. */
static void heavy_loss_of(double loss)
{
	uint64_t lost = 0;
	for (unsigned i = 0; i < 2000; i++) {
		bool gone = i > 0 && i < 1999 && pair_chance(&pair, loss);
		pair_send(&pair, OW_A_TO_B, i * 150 * MS, 20 * MS, gone);
		lost += gone;
	}
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, lost);
	assert_int_equal(report->holes, 0);
}

static void heavy_loss(void **state)
{
	(void)state;
	heavy_loss_of(0.5);
}

static void heaviest_loss(void **state)
{
	(void)state;
	heavy_loss_of(0.95);
}

/* Delays of 13 to 45 ms, independent: packets overtake each other. B's capture ends, or starts, within the traffic. */
static void overtaking(bool early, double loss)
{
	uint64_t lost = 0, unsure = 0;
	for (unsigned i = 0; i < 3000; i++) {
		int64_t sent = i * MS, delay = pair_between(&pair, 13 * MS, 45 * MS), there = sent + delay;
		bool gone = pair_chance(&pair, loss);
		pair_send(&pair, OW_A_TO_B, sent, delay, gone);
		lost += gone && (early ? there < 2 * S : there >= S);
		int64_t edge = early ? 2 * S : S;
		unsure += gone && sent + 46 * MS > edge && sent < edge;
	}
	pair_cut(&pair, OW_SIDE_B, early ? 2 * S : INT64_MIN, early ? INT64_MAX : S);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	/* Losses that may have arrived too late, or too early, and a tenth as many that did. */
	assert_in_range(report->direction[OW_A_TO_B].lost + unsure, lost, lost + 2 * unsure + (loss > 0 ? 5 : 0));
	assert_int_equal(report->direction[OW_A_TO_B].extra, 0);
}

static void an_early_end(void **state)
{
	(void)state;
	overtaking(true, 0);
}

static void an_early_end_with_loss(void **state)
{
	(void)state;
	overtaking(true, 0.05);
}

static void a_late_start(void **state)
{
	(void)state;
	overtaking(false, 0);
}

static void a_late_start_with_loss(void **state)
{
	(void)state;
	overtaking(false, 0.05);
}

/* Packets that keep their order: what was sent before one that arrived is lost. */
static void an_early_end_of_a_path_that_keeps_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2000; i++)
		pair_send(&pair, OW_A_TO_B, i * MS, 40 * MS + i % 7 * 100000, i == 1950);
	pair_cut(&pair, OW_SIDE_B, 2 * S, INT64_MAX);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 1);
}

/* A path that keeps order and holds packets up for 600 ms now and then, the last time when B's capture ends. */
static const struct ow_match_report *held_up(int64_t last_ns)
{
	for (unsigned i = 0; i < 4000; i++) {
		int64_t sent = i * MS, until = i >= 1000 && i < 1600 ? 1600 * MS : sent;
		until = sent >= last_ns ? 10 * S : until;
		pair_send(&pair, OW_A_TO_B, sent, until - sent + 20 * MS + i % 7, false);
		pair_send(&pair, OW_B_TO_A, sent, 20 * MS + i % 5, false);
	}
	pair_cut(&pair, OW_SIDE_B, 4 * S, INT64_MAX);
	return pair_match(&pair, NULL);
}

static void packets_in_flight_at_the_end(void **state)
{
	(void)state;
	/* No delay was longer than 620 ms, but one of 1 s is likelier than a thousand losses. */
	const struct ow_match_report *report = held_up(3 * S);
	assert_int_equal(report->direction[OW_A_TO_B].matched, 3000);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->outside_overlap[OW_SIDE_A], 1000);
}

static void an_interruption_until_the_end(void **state)
{
	(void)state;
	/* Twice the longest delay before the end: lost, as far as can be said, and that is said. */
	const struct ow_match_report *report = held_up(2 * S);
	assert_int_equal(report->direction[OW_A_TO_B].matched, 2000);
	assert_in_range(report->direction[OW_A_TO_B].lost, 700, 900);
	assert_int_equal(report->direction[OW_A_TO_B].lost + report->outside_overlap[OW_SIDE_A], 2000);
	assert_true(pair_warns(report, "2000 packets sent in the last "));
	assert_true(pair_warns(report, "in flight for longer than any other, which took up to 620"));
}

/* The end of a capture with losses, each by itself: nothing to say. */
static void losses_at_the_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4000; i++)
		pair_send(&pair, OW_A_TO_B, i * MS, 20 * MS + i % 7 * 100000, i % 4 == 0 || i >= 3998);
	pair_send(&pair, OW_B_TO_A, 5 * S, MS, false);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 1001); /* the first may be from before B started */
	assert_false(pair_warns(report, "in flight"));
}

/* Single packets to a network that never passes B, among traffic that does: as DNS by another uplink. They are not lost. */
static void queries_that_go_elsewhere(void **state)
{
	struct pair_maker *p = &pair;
	(void)state;
	for (int64_t i = 0; i < 5000; i++)
		pair_send(p, OW_A_TO_B, i * MS, MS, false);
	for (uint16_t i = 0; i < 500; i++) {
		struct pair_frame frame = p->frame[OW_SIDE_A][10 * i];
		const uint8_t resolver[4] = {192, 0, 2, (uint8_t)(i % 4)};
		memcpy(frame.ip + 16, resolver, sizeof resolver);
		frame.ip[20] = (uint8_t)(0x80 | i >> 8);
		frame.ip[21] = (uint8_t)i;
		pair_show(p, OW_SIDE_A, &frame);
	}
	const struct ow_match_report *report = pair_match(p, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].sent, 5000);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->unclassified[OW_SIDE_A] + report->outside_overlap[OW_SIDE_A], 500);
	assert_true(pair_warns(report, "does not pass both points"));
}

/* B's capture ends, and goes on to send the same every 19 ms: none of it is a duplicate of the last that it showed. */
static void polls_after_the_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		pair_poll(&pair, OW_B_TO_A, 1, i * 19 * MS + pair_between(&pair, 0, MS), 12 * MS, false);
		pair_send(&pair, OW_A_TO_B, i * 19 * MS, 12 * MS, false);
		pair_send(&pair, OW_B_TO_A, i * 19 * MS, 12 * MS, false);
	}
	pair_cut(&pair, OW_SIDE_B, 4 * S, INT64_MAX);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_B_TO_A].extra, 0);
	assert_int_equal(report->direction[OW_A_TO_B].lost + report->direction[OW_B_TO_A].lost, 0);
}

/*
 * A queue grows by seconds, and each packet is sent again and again while the first one waits. Which of them arrived
 * cannot be said, but those that did not may be in flight.
 */
static void copies_in_flight_at_the_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		pair_send(&pair, OW_B_TO_A, i * 50 * MS, MS, false);
		if (i < 45)
			pair_send(&pair, OW_A_TO_B, i * 50 * MS, 100 * MS + i * 90 * MS, false);
	}
	static const int64_t again_ns[] = {0, 400 * MS, 1300 * MS, 3100 * MS};
	for (unsigned k = 0; k < 10; k++) {
		for (unsigned i = 0; i < 4; i++)
			pair_poll(&pair, OW_A_TO_B, (uint8_t)(k + 1), 2400 * MS + k * MS + again_ns[i],
			          i ? 20 * S : 4 * S, false);
	}
	pair_cut(&pair, OW_SIDE_B, 10 * S, INT64_MAX);
	const struct ow_match_report *report = pair_match(&pair, NULL);
	assert_int_equal(report->direction[OW_A_TO_B].matched, 55);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->outside_overlap[OW_SIDE_A], 30);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_silences_are_kept),
		cmocka_unit_test(gaps_are_found_by_time),
		cmocka_unit_test(gaps_hold_what_passes_between),
		cmocka_unit_test(verdicts),
		CASE(a_hole_at_b),
		CASE(a_hole_at_a),
		CASE(a_hole_at_b_of_traffic_one_way),
		CASE(a_hole_at_a_of_traffic_one_way),
		CASE(holes_again_and_again),
		CASE(more_holes_than_are_looked_at),
		CASE(a_hole_and_a_clock),
		CASE(a_hole_while_a_queue_grows),
		CASE(an_outage_of_one_direction),
		CASE(a_short_outage),
		CASE(a_pause_after_a_burst_of_losses),
		CASE(heavy_loss),
		CASE(heaviest_loss),
		CASE(an_early_end),
		CASE(an_early_end_with_loss),
		CASE(a_late_start),
		CASE(a_late_start_with_loss),
		CASE(an_early_end_of_a_path_that_keeps_order),
		CASE(packets_in_flight_at_the_end),
		CASE(an_interruption_until_the_end),
		CASE(losses_at_the_end),
		CASE(queries_that_go_elsewhere),
		CASE(polls_after_the_end),
		CASE(copies_in_flight_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
