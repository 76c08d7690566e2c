/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matcher against its contract: all small scenarios compared with brute force, and the rules for identical packets,
 * copies, expiry and doubts one by one. The true identity of every record is known here.
 */
#include "../effort.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/time.h"
#include "reconcile/matching.h"
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US     INT64_C(1000)
#define MS     INT64_C(1000000)
#define WINDOW (100 * MS)

static struct stage stage; /* too large for the stack */

/* -- all small scenarios ------------------------------------------------------------------------------------------ */

#define PACKETS 4
#define KINDS   3 /* ids */

enum fate { LOST, KEPT, DOUBLED, FATES };

/* Sending times are multiples of SPACING; none of these, nor with COPY added, makes one: no arrival meets a sending. */
#define SPACING (10 * US)
#define COPY    (3 * US)
static const int64_t delays[] = {5 * US, 14 * US, 26 * US};
#define DELAYS (sizeof delays / sizeof *delays)

struct scenario {
	unsigned packets;
	unsigned kind[PACKETS], fate[PACKETS], delay[PACKETS];
};

/* The next number in a mixed base; false when it wraps around. */
static bool count_up(unsigned digit[], unsigned digits, unsigned base)
{
	for (unsigned i = 0; i < digits; i++) {
		if (++digit[i] < base)
			return true;
		digit[i] = 0;
	}
	return false;
}

/* Kinds are named in the order of their first use: other namings are the same scenario. */
static bool canonical(const struct scenario *s)
{
	unsigned next = 0;
	for (unsigned i = 0; i < s->packets; i++) {
		if (s->kind[i] > next)
			return false;
		next += s->kind[i] == next;
	}
	return true;
}

struct arrival {
	int64_t time_ns;
	unsigned packet;
};

static int by_time(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static uint64_t id_of(uint64_t run, unsigned kind)
{
	return ow_mix64(run * KINDS + kind + 1);
}

static void put_scenario(const struct scenario *s, uint64_t run, int64_t start)
{
	struct arrival arrival[2 * PACKETS];
	unsigned arrivals = 0;
	for (unsigned i = 0; i < s->packets; i++) {
		/* A nanosecond of its own for each packet, so that no two arrive at the same time. */
		int64_t sent = start + i * SPACING, at = sent + delays[s->delay[i]] + i;
		stage_put(&stage, OW_SIDE_A, id_of(run, s->kind[i]), sent, i + 1);
		if (s->fate[i] != LOST)
			arrival[arrivals++] = (struct arrival){at, i};
		if (s->fate[i] == DOUBLED)
			arrival[arrivals++] = (struct arrival){at + COPY, i};
	}
	qsort(arrival, arrivals, sizeof *arrival, by_time);
	for (unsigned k = 0; k < arrivals; k++) {
		unsigned i = arrival[k].packet;
		stage_put(&stage, OW_SIDE_B, id_of(run, s->kind[i]), arrival[k].time_ns, i + 1);
	}
}

/* Most pairs of one id in which nothing arrives before it is sent, by more than inaccurate clocks show: over all
 * assignments, one A record at a time. */
static unsigned most_pairs(uint64_t id, unsigned from, uint32_t taken)
{
	if (from == stage.count[OW_SIDE_A])
		return 0;
	unsigned best = most_pairs(id, from + 1, taken);
	const struct ow_record *a = &stage.entry[OW_SIDE_A][from].record;
	for (uint32_t j = 0; a->id == id && j < stage.count[OW_SIDE_B]; j++) {
		const struct ow_record *b = &stage.entry[OW_SIDE_B][j].record;
		if (b->id != id || (taken >> j & 1) || b->time_ns < a->time_ns - 2 * US)
			continue;
		unsigned with = 1 + most_pairs(id, from + 1, taken | 1u << j);
		best = with > best ? with : best;
	}
	return best;
}

/* What is known of one id of a scenario. */
struct facts {
	unsigned at[OW_SIDES], pairs, wrong, certain; /* wrong: the truth is outside of what is told */
	bool in_order, doubled;
	int64_t delay_sum, true_sum;
};

/* Is the true delay of the packet that arrived as b within the bounds of the pair? */
static bool within(const struct stage_record *a, const struct stage_record *b)
{
	int64_t told = b->record.time_ns - a->record.time_ns;
	for (uint32_t i = 0; i < stage.count[OW_SIDE_A]; i++) {
		const struct stage_record *sent = &stage.entry[OW_SIDE_A][i];
		int64_t delay = b->record.time_ns - sent->record.time_ns;
		if (sent->record.id == a->record.id && sent->truth == b->truth)
			return delay >= told - a->less_ns && delay <= told + a->more_ns;
	}
	return false;
}

static struct facts facts_of(const struct scenario *s, unsigned kind, uint64_t id)
{
	struct facts f = {.in_order = true};
	uint64_t latest = 0;
	for (uint32_t i = 0; i < stage.count[OW_SIDE_A]; i++) {
		const struct stage_record *a = &stage.entry[OW_SIDE_A][i];
		if (a->record.id != id)
			continue;
		f.at[OW_SIDE_A]++;
		if (a->end != STAGE_MATCHED)
			continue;
		const struct stage_record *b = &stage.entry[OW_SIDE_B][a->partner];
		f.pairs++;
		f.certain += a->certainty == OW_CERTAIN;
		f.wrong += a->truth != b->truth && !within(a, b);
		f.delay_sum += b->record.time_ns - a->record.time_ns;
	}
	for (uint32_t i = 0; i < stage.count[OW_SIDE_B]; i++) {
		const struct stage_record *b = &stage.entry[OW_SIDE_B][i];
		if (b->record.id != id)
			continue;
		f.at[OW_SIDE_B]++;
		f.in_order &= b->truth >= latest;
		latest = b->truth;
	}
	for (unsigned i = 0; i < s->packets; i++) {
		if (s->kind[i] == kind) {
			f.doubled |= s->fate[i] == DOUBLED;
			f.true_sum += delays[s->delay[i]] + i;
		}
	}
	return f;
}

static void check_scenario(const struct scenario *s, uint64_t run)
{
	stage_check(&stage);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		uint64_t id = id_of(run, kind);
		struct facts f = facts_of(s, kind, id);
		/* A further copy and a loss may look like a late arrival, and the other way round. */
		if (!f.doubled)
			assert_int_equal(f.pairs, most_pairs(id, 0, 0));
		assert_true(f.pairs <= most_pairs(id, 0, 0));
		if (f.at[OW_SIDE_A] == 1 && f.at[OW_SIDE_B] == 1) {
			assert_int_equal(f.certain, 1);
			assert_int_equal(f.wrong, 0);
		}
		if (f.doubled)
			continue;
		if (f.in_order)
			assert_int_equal(f.wrong, 0);
		if (f.at[OW_SIDE_A] != f.at[OW_SIDE_B])
			continue;
		/* As many at B as at A: n-th with n-th, all samples; where they overtook each other the sum is right.
		 */
		assert_int_equal(f.pairs, f.at[OW_SIDE_A]);
		assert_int_equal(f.delay_sum, f.true_sum);
	}
}

/* Says which scenario failed. */
static void print_scenario(const struct scenario *s)
{
	print_message("scenario:");
	for (unsigned i = 0; i < s->packets; i++)
		print_message(" %c%c+%dus", 'x' + (char)s->kind[i], "-12"[s->fate[i]], (int)(delays[s->delay[i]] / US));
	print_message("\n");
}

/* Runs a scenario and then lets time pass, so that everything is decided and the matcher can take the next. */
static void run_scenario(const struct scenario *s, uint64_t run, int64_t start)
{
	stage_clear(&stage);
	put_scenario(s, run, start);
	stage_play(&stage, start + WINDOW);
	struct ow_record late = {.id = ow_mix64(~run), .time_ns = start + 3 * WINDOW};
	late.number = stage_put(&stage, OW_SIDE_A, late.id, late.time_ns, 100)->record.number;
	assert_int_equal(ow_matcher_push(stage.matcher, OW_SIDE_A, &late, late.time_ns + delays[0]), 0);
	late.time_ns += delays[0];
	late.number = stage_put(&stage, OW_SIDE_B, late.id, late.time_ns, 100)->record.number;
	assert_int_equal(ow_matcher_push(stage.matcher, OW_SIDE_B, &late, late.time_ns), 0);
}

static void for_all(unsigned packets, void (*each)(const struct scenario *s, uint64_t run))
{
	struct scenario s = {.packets = packets};
	uint64_t run = packets * UINT64_C(1000000);
	do {
		do {
			do {
				if (canonical(&s) && (++run % RUN_STEP == 0 || packets < PACKETS))
					each(&s, run);
			} while (count_up(s.delay, packets, DELAYS));
		} while (count_up(s.fate, packets, FATES));
	} while (count_up(s.kind, packets, KINDS));
}

static struct scenario current;
static uint64_t runs;

static void run_on(const struct scenario *s, uint64_t run)
{
	static int64_t start;
	current = *s;
	runs++;
	start += 10 * WINDOW;
	run_scenario(s, run, start);
	check_scenario(s, run);
}

static int say_scenario(void **state)
{
	(void)state;
	if (current.packets)
		print_scenario(&current);
	return 0;
}

/* One matcher for all: after the window has passed it must be as new, except for the delays that it has learned. */
static void all_scenarios_of_up_to_four_packets(void **state)
{
	(void)state;
	stage_open(&stage, WINDOW, OW_A_TO_B);
	ow_matcher_expect(stage.matcher, OW_A_TO_B, delays[0], 40 * US);
	for (unsigned packets = 0; packets <= PACKETS; packets++)
		for_all(packets, run_on);
	stage_close(&stage);
	current.packets = 0;
	/* Namings of up to 4 packets by up to 3 kinds: 1, 1, 2, 5, 14; 3 fates and 3 delays each. */
	assert_int_equal(runs, 1 + 9 + 2 * 81 + 5 * 729 + 14 * 6561 / RUN_STEP);
}

static void run_fresh(const struct scenario *s, uint64_t run)
{
	/* A matcher of its own costs time: a part of the larger ones must do. */
	if (s->packets == PACKETS - 1 && run % 7)
		return;
	current = *s;
	/* The plausible delays and the direction are unknown; then the direction is known. */
	stage_open(&stage, WINDOW, run % 2 ? OW_DIRECTIONS : OW_A_TO_B);
	put_scenario(s, run, 1000 * MS);
	stage_put(&stage, OW_SIDE_A, ow_mix64(~run), 2000 * MS, 100);
	stage_put(&stage, OW_SIDE_B, ow_mix64(~run), 2000 * MS + delays[0], 100);
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	stage_check(&stage);
	if (run % 2 == 0)
		check_scenario(s, run);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct facts f = facts_of(s, kind, id_of(run, kind));
		if (f.at[OW_SIDE_A] == 1 && f.at[OW_SIDE_B] == 1)
			assert_int_equal(f.certain, 1);
	}
	stage_close(&stage);
}

static void all_scenarios_of_up_to_three_packets_without_experience(void **state)
{
	(void)state;
	for (unsigned packets = 0; packets < PACKETS; packets++)
		for_all(packets, run_fresh);
	current.packets = 0;
}

/* -- the rules one by one ----------------------------------------------------------------------------------------- */

static const struct stage_record *at(enum ow_side side, unsigned i)
{
	return &stage.entry[side][i];
}

static void assert_pair(unsigned a, unsigned b, enum ow_certainty certainty)
{
	assert_int_equal(at(OW_SIDE_A, a)->end, STAGE_MATCHED);
	assert_int_equal(at(OW_SIDE_A, a)->partner, b);
	assert_int_equal(at(OW_SIDE_A, a)->certainty, certainty);
}

/* The captures go on after the packets of the test. */
static void put_end(int64_t time_ns)
{
	stage_put(&stage, OW_SIDE_A, ow_mix64(~UINT64_C(0)), time_ns, UINT64_MAX);
	stage_put(&stage, OW_SIDE_B, ow_mix64(~UINT64_C(0)), time_ns + 150 * US, UINT64_MAX);
}

static void play_to_the_end(void)
{
	stage_play(&stage, INT64_MAX);
	stage_finish(&stage);
	stage_check(&stage);
}

/* One lost poll must not shift the later ones by a period. */
static void a_lost_poll_shifts_nothing(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	ow_matcher_expect(stage.matcher, OW_A_TO_B, 100 * US, 200 * US);
	for (int i = 0; i < 100; i++) {
		stage_put(&stage, OW_SIDE_A, ow_mix64(7), 10000 * MS + i * 10 * MS, (uint64_t)i + 1);
		if (i % 10 != 3)
			stage_put(&stage, OW_SIDE_B, ow_mix64(7), 10000 * MS + i * 10 * MS + 150 * US, (uint64_t)i + 1);
	}
	put_end(20000 * MS);
	play_to_the_end();
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(at(OW_SIDE_A, i)->end, i % 10 == 3 ? STAGE_UNMATCHED : STAGE_MATCHED);
		if (i % 10 != 3) {
			assert_int_equal(at(OW_SIDE_B, at(OW_SIDE_A, i)->partner)->truth, i + 1);
			assert_int_equal(at(OW_SIDE_A, i)->certainty, OW_CERTAIN);
		}
	}
	stage_close(&stage);
}

/* Polls that are closer together than the delay may vary: a steady delay shows which was lost. */
static void a_steady_delay_tells_which_poll_was_lost(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	ow_matcher_expect(stage.matcher, OW_A_TO_B, 100 * US, 900 * US);
	for (int i = 0; i < 10; i++) {
		stage_put(&stage, OW_SIDE_A, 7, i * 100 * US, (uint64_t)i + 1);
		if (i != 4)
			stage_put(&stage, OW_SIDE_B, 7, i * 100 * US + 350 * US, (uint64_t)i + 1);
	}
	put_end(2000 * MS);
	play_to_the_end();
	for (unsigned i = 0; i < 10; i++) {
		const struct stage_record *a = at(OW_SIDE_A, i);
		assert_int_equal(a->end, i == 4 ? STAGE_UNMATCHED : STAGE_MATCHED);
		if (i != 4)
			assert_int_equal(at(OW_SIDE_B, a->partner)->truth, a->truth);
	}
	stage_close(&stage);
}

/* Delays that vary by as much as polls are apart leave open which was lost: the bounds hold the truth. */
static void a_loss_among_close_polls_is_uncertain(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	for (int i = 0; i < 200; i++) {
		int64_t delay = 300 * US + (int64_t)ow_random_below(&random, 90 * US);
		stage_put(&stage, OW_SIDE_A, 7, i * 100 * US, (uint64_t)i + 1);
		if (i % 20 != 4)
			stage_put(&stage, OW_SIDE_B, 7, i * 100 * US + delay, (uint64_t)i + 1);
	}
	put_end(2000 * MS);
	play_to_the_end();
	unsigned uncertain = 0;
	for (unsigned i = 0; i < 200; i++) {
		const struct stage_record *a = at(OW_SIDE_A, i);
		if (a->end != STAGE_MATCHED)
			continue;
		uncertain += a->certainty == OW_UNCERTAIN;
		assert_true(at(OW_SIDE_B, a->partner)->truth == a->truth || within(a, at(OW_SIDE_B, a->partner)));
	}
	assert_true(uncertain > 0);
	assert_int_equal(stage.pairs, 191);
	stage_close(&stage);
}

/* Nothing but identical packets, many on their way at a time, in order, none lost: the slow ones are not given up. */
static void a_crowd_of_identical_packets_is_matched_in_order(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	stage_open(&stage, 2000 * MS, OW_DIRECTIONS);
	uint64_t id = ow_mix64(7);
	int64_t sent = 0, arrived = 0;
	for (int i = 0; i < 4000; i++) {
		double u = ow_random_unit(&random);
		sent += 1 + (int64_t)ow_random_below(&random, 20 * US);
		stage_put(&stage, OW_SIDE_A, id, sent, (uint64_t)i + 1);
		int64_t at = sent + (int64_t)(u * u * u * 500e3); /* mostly soon, some late; none overtakes */
		arrived = at > arrived ? at : arrived + 1;
		stage_put(&stage, OW_SIDE_B, id, arrived, (uint64_t)i + 1);
	}
	put_end(sent + 100 * MS);
	play_to_the_end();
	/* Where several arrive at once after a long delay, a few may look like copies. */
	assert_in_range(stage.pairs, 3960, 4001);
	for (unsigned i = 0; i < 4000; i++) {
		const struct stage_record *a = at(OW_SIDE_A, i);
		if (a->end == STAGE_MATCHED)
			assert_true(a->partner == i || within(a, at(OW_SIDE_B, a->partner)));
	}
	stage_close(&stage);
}

/* Copies that the network makes pile up at B; the polls go on. */
static void copies_of_polls_hide_no_polls(void **state)
{
	(void)state;
	stage_open(&stage, 20000 * MS, OW_A_TO_B);
	ow_matcher_expect(stage.matcher, OW_A_TO_B, 100 * US, 200 * US);
	uint64_t id = ow_mix64(7);
	for (int i = 0; i < 2000; i++) {
		stage_put(&stage, OW_SIDE_A, id, i * MS, (uint64_t)i + 1);
		stage_put(&stage, OW_SIDE_B, id, i * MS + 150 * US, (uint64_t)i + 1);
		stage_put(&stage, OW_SIDE_B, id, i * MS + 170 * US, (uint64_t)i + 1);
	}
	play_to_the_end();
	assert_int_equal(stage.pairs, 2000);
	for (unsigned i = 0; i < 2000; i++)
		assert_pair(i, 2 * i, OW_CERTAIN);
	stage_close(&stage);
}

static void further_copies_are_told(void **state)
{
	(void)state;
	stage_open(&stage, WINDOW, OW_A_TO_B);
	uint64_t id = ow_mix64(1);
	stage_put(&stage, OW_SIDE_A, id, 0, 1);
	stage_put(&stage, OW_SIDE_B, id, 10 * US, 1);
	stage_put(&stage, OW_SIDE_B, id, 20 * US, 1);
	stage_put(&stage, OW_SIDE_B, id, 30 * US, 1);
	stage_put(&stage, OW_SIDE_B, ow_mix64(2), 40 * US, 2); /* never sent: no copy */
	play_to_the_end();
	assert_pair(0, 0, OW_CERTAIN);
	assert_true(at(OW_SIDE_B, 1)->copy && at(OW_SIDE_B, 2)->copy);
	assert_false(at(OW_SIDE_B, 3)->copy);
	stage_close(&stage);
}

/* The window is inclusive: what comes after exactly that time still matches. */
static void the_window_ends_waiting(void **state)
{
	(void)state;
	for (int64_t beyond = 0; beyond < 2; beyond++) {
		stage_open(&stage, WINDOW, OW_DIRECTIONS);
		stage_put(&stage, OW_SIDE_A, 1, 5, 1);
		stage_put(&stage, OW_SIDE_B, 1, 5 + WINDOW + beyond, 1);
		stage_play(&stage, INT64_MAX);
		stage_finish(&stage);
		stage_check(&stage);
		assert_int_equal(stage.pairs, !beyond);
		stage_close(&stage);
	}
}

/* Packets of either side may come first, and both directions mix. */
static void both_directions_match(void **state)
{
	(void)state;
	stage_open(&stage, WINDOW, OW_DIRECTIONS);
	for (int i = 0; i < 1000; i++) {
		uint64_t id = ow_mix64((uint64_t)i + 1);
		stage_put(&stage, i % 2 ? OW_SIDE_A : OW_SIDE_B, id, i * 10 * US, (uint64_t)i + 1);
		if (i >= 7) /* the answer to an earlier one, a delay of 7 later */
			stage_put(&stage, (i - 7) % 2 ? OW_SIDE_B : OW_SIDE_A, ow_mix64((uint64_t)i - 6), i * 10 * US,
			          (uint64_t)i - 6);
	}
	play_to_the_end();
	assert_int_equal(stage.pairs, 993);
	for (unsigned i = 0; i < stage.count[OW_SIDE_A]; i++) {
		if (at(OW_SIDE_A, i)->end == STAGE_MATCHED)
			assert_int_equal(at(OW_SIDE_A, i)->certainty, OW_CERTAIN);
	}
	stage_close(&stage);
}

/* A delay far beyond the usual is a delay, also when the same packet shows up again. */
static void an_unusual_delay_is_a_sample(void **state)
{
	(void)state;
	for (unsigned again = 0; again < 2; again++) {
		stage_open(&stage, 2000 * MS, OW_A_TO_B);
		ow_matcher_expect(stage.matcher, OW_A_TO_B, 100 * US, 200 * US);
		stage_put(&stage, OW_SIDE_A, 1, 0, 1);
		stage_put(&stage, OW_SIDE_B, 1, 500 * MS, 1);
		if (again) {
			stage_put(&stage, OW_SIDE_A, 1, 600 * MS, 2);
			stage_put(&stage, OW_SIDE_B, 1, 600 * MS + 150 * US, 2);
		}
		put_end(5000 * MS);
		play_to_the_end();
		assert_pair(0, 0, OW_CERTAIN);
		if (again)
			assert_pair(1, 1, OW_CERTAIN);
		stage_close(&stage);
	}
}

/* What arrives when the sender's capture is over, far later than usual, was rather sent again since then. */
static void what_was_sent_again_after_the_end_is_no_pair(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	ow_matcher_expect(stage.matcher, OW_A_TO_B, 100 * US, 200 * US);
	stage_put(&stage, OW_SIDE_A, 1, 0, 1);
	stage_put(&stage, OW_SIDE_A, 2, 10 * MS, 2); /* the last of A */
	stage_put(&stage, OW_SIDE_B, 2, 10 * MS + 150 * US, 2);
	stage_put(&stage, OW_SIDE_B, 1, 500 * MS, 3);
	play_to_the_end();
	assert_int_equal(stage.pairs, 1);
	assert_pair(1, 0, OW_CERTAIN);
	assert_int_equal(stage.unmatched[OW_SIDE_A], 1);
	assert_int_equal(stage.unmatched[OW_SIDE_B], 1);
	stage_close(&stage);
}

/* Two were sent, one arrived: the other is a copy, though both waited when it came. */
static void what_a_match_leaves_behind_is_a_copy(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	stage_put(&stage, OW_SIDE_A, 1, 0, 0);
	stage_put(&stage, OW_SIDE_A, 1, 5 * US, 0);
	stage_put(&stage, OW_SIDE_B, 1, 100 * US, 0);
	play_to_the_end();
	assert_int_equal(stage.pairs, 1);
	assert_int_equal(stage.unmatched[OW_SIDE_A], 1);
	assert_int_not_equal(at(OW_SIDE_A, 0)->copy, at(OW_SIDE_A, 1)->copy);
	stage_close(&stage);
}

/* It was probably sent again after the capture of the sender, or is late: the caller can say so. */
static void sent_again_after_the_capture(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_DIRECTIONS);
	for (int i = 0; i < 1000; i++) {
		stage_put(&stage, OW_SIDE_A, ow_mix64((uint64_t)i + 1), i * MS, (uint64_t)i + 1);
		stage_put(&stage, OW_SIDE_B, ow_mix64((uint64_t)i + 1), i * MS + 150 * US, (uint64_t)i + 1);
	}
	stage_put(&stage, OW_SIDE_A, 5, 990 * MS, 2001);
	stage_put(&stage, OW_SIDE_B, 5, 1170 * MS, 2000);
	play_to_the_end();
	assert_int_equal(stage.pairs, 1000);
	assert_true(stage.unmatched[OW_SIDE_A] == 1 && stage.unmatched[OW_SIDE_B] == 1);
	assert_int_equal(ow_matcher_sent_again(stage.matcher, OW_A_TO_B), 1);
	assert_int_equal(ow_matcher_sent_again(stage.matcher, OW_B_TO_A), 0);
	stage_close(&stage);
}

/* A packet that arrived long before it was sent, among many that did not, is another packet of the same bytes. */
static void the_impossible_is_no_sample(void **state)
{
	(void)state;
	stage_open(&stage, 2000 * MS, OW_A_TO_B);
	for (int i = 0; i < 1000; i++) {
		stage_put(&stage, OW_SIDE_A, ow_mix64((uint64_t)i + 1), i * MS, (uint64_t)i + 1);
		stage_put(&stage, OW_SIDE_B, ow_mix64((uint64_t)i + 1), i * MS + 150 * US, (uint64_t)i + 1);
	}
	stage_put(&stage, OW_SIDE_B, 5, 1000 * MS, 2000);
	stage_put(&stage, OW_SIDE_A, 5, 1500 * MS, 2001);
	play_to_the_end();
	assert_pair(1000, 1000, OW_AMBIGUOUS);
	assert_int_equal(stage.pairs, 1001);
	stage_close(&stage);
}

/* Times before 1970 and far in the future come from odd files: no overflow. */
static void times_at_the_ends_of_the_scale(void **state)
{
	(void)state;
	const int64_t far = INT64_C(1) << 62;
	const int64_t t[] = {-far, -1, 0, 1, far - 1};
	stage_open(&stage, WINDOW, OW_DIRECTIONS);
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		stage_put(&stage, OW_SIDE_A, i + 1, t[i], i + 1);
		stage_put(&stage, OW_SIDE_B, i + 1, t[i] + 1, i + 1);
	}
	play_to_the_end();
	assert_int_equal(stage.pairs, 5);
	stage_close(&stage);
	/* One side has ended long ago. */
	stage_open(&stage, WINDOW, OW_DIRECTIONS);
	stage_put(&stage, OW_SIDE_A, 1, -far, 1);
	stage_put(&stage, OW_SIDE_A, 2, far, 1);
	play_to_the_end();
	assert_int_equal(stage.unmatched[OW_SIDE_A], 2);
	stage_close(&stage);
}

static void waiting_follows_the_window(void **state)
{
	(void)state;
	stage_open(&stage, WINDOW, OW_A_TO_B);
	for (int i = 0; i < 4000; i++) /* nothing arrives; 100 are in a window */
		stage_put(&stage, OW_SIDE_A, ow_mix64((uint64_t)i + 1), i * MS, (uint64_t)i + 1);
	for (int i = 0; i < 4000; i++)
		stage_put(&stage, OW_SIDE_B, ow_mix64((uint64_t)i + 1000000), i * MS, (uint64_t)i + 1);
	play_to_the_end();
	assert_int_equal(stage.pairs, 0);
	assert_int_equal(stage.matcher->waiting.entries, 1024); /* as many as at the start */
	stage_close(&stage);
}

static uint64_t current_seed;

static int say_seed(void **state)
{
	(void)state;
	if (current_seed)
		print_message("seed %u\n", (unsigned)current_seed);
	return 0;
}

/* Random traffic of few ids, all mixed: whatever the order and the loss, all is accounted for. */
static void random_traffic_is_conserved(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUN_COUNT(60); seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		current_seed = seed;
		stage_open(&stage, WINDOW, (enum ow_direction)(seed % (OW_DIRECTIONS + 1)));
		uint64_t kinds = 1 + ow_random_below(&random, seed % 3 ? 1000 : 5);
		int64_t t[OW_SIDES] = {0, 0}, gap = 1 + (int64_t)ow_random_below(&random, 3 * (uint64_t)WINDOW / 100);
		for (int i = 0; i < 6000; i++) {
			unsigned side = ow_random_below(&random, 2);
			t[side] += (int64_t)ow_random_below(&random, (uint64_t)gap);
			if (stage.count[side] < STAGE_MAX)
				stage_put(&stage, side, 1 + ow_random_below(&random, kinds), t[side], 0);
		}
		play_to_the_end();
		stage_close(&stage);
	}
	current_seed = 0;
}

/* Puts on the stage: packets of both directions, some lost, some twice, some late, and many of one kind. */
static void put_mixed_traffic(uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	int64_t t[OW_SIDES] = {0, 0};
	for (uint64_t i = 1; i <= 3000; i++) {
		unsigned from = ow_random_below(&random, 2);
		int64_t sent = (int64_t)i * 20 * US, delay = (int64_t)ow_random_below(&random, 10) * US + 100 * US;
		if (ow_random_below(&random, 100) == 0)
			delay *= 5; /* and those behind it are as late */
		uint64_t id = ow_random_below(&random, 50) ? i : 1000000 + ow_random_below(&random, 3);
		int64_t at[OW_SIDES] = {from ? sent + delay : sent, from ? sent : sent + delay};
		for (unsigned side = 0; side < OW_SIDES; side++) {
			t[side] = at[side] > t[side] ? at[side] : t[side];
			for (uint64_t n = ow_random_below(&random, 30) ? 1 : ow_random_below(&random, 3); n > 0; n--)
				stage_put(&stage, side, id, t[side], 0);
		}
	}
}

/* By single pushes, or by merging blocks of a few records. */
static void play_by_merging(unsigned block)
{
	static int64_t order[OW_SIDES][STAGE_MAX + 1];
	static struct ow_record record[OW_SIDES][STAGE_MAX];
	struct ow_matcher_stream stream[OW_SIDES];
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < stage.count[side]; i++) {
			record[side][i] = stage.entry[side][i].record;
			order[side][i] = record[side][i].time_ns;
		}
		order[side][stage.count[side]] = INT64_MAX;
		stream[side] = (struct ow_matcher_stream){record[side], record[side], order[side]};
	}
	for (;;) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			size_t left = (size_t)(&record[side][stage.count[side]] - stream[side].next);
			if (stream[side].next == stream[side].end)
				stream[side].end += left < block ? left : block;
		}
		if (stream[OW_SIDE_A].next == stream[OW_SIDE_A].end && stream[OW_SIDE_B].next == stream[OW_SIDE_B].end)
			return;
		assert_int_equal(ow_matcher_merge(stage.matcher, stream), 0);
	}
}

static void merging_and_telling_late_change_nothing(void **state)
{
	(void)state;
	static struct stage_record expected[OW_SIDES][STAGE_MAX];
	for (uint64_t seed = 1; seed <= 10; seed++) {
		current_seed = seed;
		stage_open(&stage, WINDOW, OW_DIRECTIONS);
		put_mixed_traffic(seed);
		stage_play(&stage, INT64_MAX);
		stage_finish(&stage);
		stage_check(&stage);
		memcpy(expected, stage.entry, sizeof expected);
		assert_int_equal(stage.met, 0);
		stage_close(&stage);
		stage_open_late(&stage, WINDOW, OW_DIRECTIONS);
		put_mixed_traffic(seed);
		play_by_merging((unsigned)seed);
		stage_finish(&stage);
		stage_check(&stage);
		assert_in_range(stage.met, 1000, 3000);
		assert_memory_equal(stage.entry, expected, sizeof expected);
		stage_close(&stage);
	}
	current_seed = 0;
}

/* -- many identical packets --------------------------------------------------------------------------------------- */

struct counts {
	uint64_t matched, settled, unmatched;
};

static void count_match(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct counts *counts = arg;
	(void)pair, (void)certainty;
	counts->matched++;
}

static void count_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct counts *counts = arg;
	(void)pair, (void)certainty;
	counts->settled++;
}

static void count_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy)
{
	struct counts *counts = arg;
	(void)side, (void)record, (void)copy;
	counts->unmatched++;
}

static enum ow_direction forth(void *arg, enum ow_side side, uint32_t flow)
{
	(void)arg, (void)side, (void)flow;
	return OW_A_TO_B;
}

/* If delays may be below 0, all packets within the waiting time are possible. Not all are collected for each alignment:
 * the work would grow with the square of their number. */
static void the_work_grows_with_the_packets(void **state)
{
	(void)state;
	enum { MANY = 80000, FLYING = 50, WORK = 11 };
	struct counts counts = {0};
	const struct ow_matcher_calls calls = {.matched = count_match,
	                                       .settled = count_settled,
	                                       .unmatched = count_unmatched,
	                                       .direction = forth,
	                                       .arg = &counts};
	struct ow_matcher *m;
	assert_int_equal(ow_matcher_create(10000 * MS, &calls, &m), 0);
	ow_matcher_one_way(m, OW_A_TO_B);
	for (int64_t i = 0; i < MANY + FLYING; i++) {
		const struct ow_record sent = {.id = 7, .time_ns = i * US, .number = (uint64_t)i + 1},
				       received = {
					       .id = 7, .time_ns = i * US + 1, .number = (uint64_t)(i - FLYING) + 1};
		if (i < MANY)
			assert_int_equal(ow_matcher_push(m, OW_SIDE_A, &sent, received.time_ns), 0);
		if (i >= FLYING)
			assert_int_equal(ow_matcher_push(m, OW_SIDE_B, &received, (i + 1) * US), 0);
	}
	assert_int_equal(ow_matcher_finish(m), 0);
	assert_int_equal(2 * counts.matched + counts.unmatched, 2 * MANY);
	assert_true(m->collected >= 2 * MANY);
	assert_true(m->collected <= (uint64_t)WORK * MANY);
	ow_matcher_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_scenarios_of_up_to_four_packets, say_scenario),
		cmocka_unit_test_teardown(all_scenarios_of_up_to_three_packets_without_experience, say_scenario),
		cmocka_unit_test(a_lost_poll_shifts_nothing),
		cmocka_unit_test(a_steady_delay_tells_which_poll_was_lost),
		cmocka_unit_test(a_loss_among_close_polls_is_uncertain),
		cmocka_unit_test(a_crowd_of_identical_packets_is_matched_in_order),
		cmocka_unit_test(copies_of_polls_hide_no_polls),
		cmocka_unit_test(further_copies_are_told),
		cmocka_unit_test(the_window_ends_waiting),
		cmocka_unit_test(both_directions_match),
		cmocka_unit_test(an_unusual_delay_is_a_sample),
		cmocka_unit_test(what_was_sent_again_after_the_end_is_no_pair),
		cmocka_unit_test(what_a_match_leaves_behind_is_a_copy),
		cmocka_unit_test(the_impossible_is_no_sample),
		cmocka_unit_test(sent_again_after_the_capture),
		cmocka_unit_test(times_at_the_ends_of_the_scale),
		cmocka_unit_test(waiting_follows_the_window),
		cmocka_unit_test(the_work_grows_with_the_packets),
		cmocka_unit_test_teardown(random_traffic_is_conserved, say_seed),
		cmocka_unit_test_teardown(merging_and_telling_late_change_nothing, say_seed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
