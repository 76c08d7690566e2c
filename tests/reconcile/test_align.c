/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment of identical packets against the truth of each: queues that fill and drain, losses, copies, captures that
 * start late at either side. What is stated has to hold: the truth is between the bounds.
 */
#include "base/random.h"
#include "reconcile/align.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS     1e6
#define COPIES 600
#define SEEDS  6
#define CHUNK  160 /* arrivals that are aligned at a time; three quarters of them are decided */

enum late { ON_TIME, SENDER_LATE, RECEIVER_LATE, BOTH_LATE };

struct traffic {
	double period_ns, jitter, loss, copies;
	enum late late;
};

struct copies {
	int64_t sent[COPIES], received[2 * COPIES];
	int64_t truth[2 * COPIES]; /* which packet an arrival is; -1 - packet: a copy */
	uint32_t sents, receiveds, first_sent, first_received;
	int64_t sent_from, received_from;
};

static double exponential(struct ow_random *random)
{
	return -log(1 - ow_random_unit(random));
}

/* A queue gets 50 ms of other traffic every other second, and drains. Packets stay in order. */
static void make(const struct traffic *t, uint64_t seed, struct copies *c)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	double queue = 0, last_sent = 0, last = 0, sent = 0;
	*c = (struct copies){.sents = COPIES, .sent_from = INT64_MIN, .received_from = INT64_MIN};
	for (uint32_t i = 0; i < COPIES; i++) {
		sent = t->jitter >= 1 ? sent + exponential(&random) * t->period_ns
		                      : (i + (ow_random_unit(&random) - 0.5) * t->jitter) * t->period_ns;
		queue = fmax(0, queue - (sent - last_sent));
		if (ow_random_unit(&random) < (sent - last_sent) / (2000 * MS))
			queue += exponential(&random) * 50 * MS;
		last_sent = sent;
		c->sent[i] = (int64_t)sent;
		double at = fmax(sent + 2 * MS + queue + exponential(&random) * 0.2 * MS, last + 1000);
		last = at;
		if (ow_random_unit(&random) < t->loss)
			continue;
		c->received[c->receiveds] = (int64_t)at;
		c->truth[c->receiveds++] = i;
		if (ow_random_unit(&random) >= t->copies)
			continue;
		last += exponential(&random) * 0.1 * MS;
		c->received[c->receiveds] = (int64_t)last;
		c->truth[c->receiveds++] = -1 - (int64_t)i;
	}
	int64_t third = c->sent[COPIES / 3];
	if (t->late == SENDER_LATE || t->late == BOTH_LATE) {
		c->first_sent = COPIES / 3;
		c->sent_from = third;
	}
	if (t->late == RECEIVER_LATE || t->late == BOTH_LATE) {
		c->received_from = third;
		while (c->received[c->first_received] < third)
			c->first_received++;
	}
}

/* What was told of all copies, and what is true. */
struct told {
	uint32_t pairs, right, outside_bounds;
	double sum, least_sum, most_sum, max, least_max, most_max;
	double true_sum, true_max;
	uint32_t true_pairs;
};

static void note(const struct copies *c, uint32_t i, uint32_t j, const struct ow_align_arrival *arrival,
                 struct told *told)
{
	double d = (double)(c->received[j] - c->sent[i]), least = d - (double)arrival->less_ns,
	       most = d + (double)arrival->more_ns;
	int64_t packet = c->truth[j] < 0 ? -1 - c->truth[j] : c->truth[j];
	double truth = (double)(c->received[j] - c->sent[packet]);
	told->pairs++;
	told->right += c->truth[j] == (int64_t)i;
	told->outside_bounds += truth < least || truth > most;
	told->sum += d;
	told->least_sum += least;
	told->most_sum += most;
	told->max = fmax(told->max, d);
	told->least_max = fmax(told->least_max, least);
	told->most_max = fmax(told->most_max, most);
}

static double period_of(const struct copies *c, uint32_t j, uint32_t count)
{
	return count > 1 ? (double)(c->received[j + count - 1] - c->received[j]) / (count - 1) : MS;
}

/* Aligns part by part, as the matcher does. */
static void align_all(const struct traffic *t, const struct copies *c, struct told *told)
{
	static struct ow_align_arrival arrival[CHUNK];
	struct ow_aligner *aligner;
	struct ow_align_carry *carry = NULL;
	assert_int_equal(ow_aligner_create(&aligner), 0);
	*told = (struct told){0};
	for (uint32_t i = c->first_sent, j = c->first_received; j < c->receiveds;) {
		uint32_t count = c->receiveds - j < CHUNK ? c->receiveds - j : CHUNK, sents = 0, decided = 0;
		bool ends = count < CHUNK, crowded;
		while (i + sents < c->sents && (ends || c->sent[i + sents] <= c->received[j + count - 1]))
			sents++;
		struct ow_align_model model = {
			.window_ns = 2000000000,
			.soonest_ns = -2000,
			.sigma_ns = period_of(c, j, count),
			.loss = t->loss > 0 ? fmin(7, -log(t->loss)) : 7,
			.copy = t->copies > 0 ? 7 - log(t->copies) : 40,
			.causal = true,
			.sent_from_ns = c->sent_from,
			.sent_to_ns = INT64_MAX,
			.received_from_ns = c->received_from,
			.received_to_ns = INT64_MAX,
			.ends = ends,
		};
		for (int run = 0; run < 4; run++) {
			assert_int_equal(ow_align(aligner, &model, carry, c->sent + i, sents, c->received + j, count,
			                          run < 3 ? NULL : arrival, &crowded),
			                 0);
			double sigma = ow_align_sigma(aligner);
			model.sigma_ns = sigma > 1000 ? sigma : sigma < 0 ? model.sigma_ns : 1000;
		}
		assert_false(crowded);
		uint32_t told_rows = ends ? count : count - count / 4, last = 0;
		for (uint32_t k = 0; k < told_rows; k++) {
			if (arrival[k].sent == OW_ALIGN_NONE)
				continue;
			/* In order, each once. */
			assert_true(arrival[k].sent >= last && arrival[k].sent < sents);
			last = decided = arrival[k].sent + 1;
			note(c, i + arrival[k].sent, j + k, &arrival[k], told);
		}
		assert_int_equal(ow_align_decide(aligner, decided, told_rows, &carry), 0);
		i += decided;
		j += told_rows;
	}
	ow_align_carry_free(carry);
	ow_aligner_free(aligner);
	for (uint32_t j = c->first_received; j < c->receiveds; j++) {
		if (c->truth[j] < (int64_t)c->first_sent)
			continue;
		double d = (double)(c->received[j] - c->sent[c->truth[j]]);
		told->true_pairs++;
		told->true_sum += d;
		told->true_max = fmax(told->true_max, d);
	}
}

static const struct traffic usual[] = {
	{20 * MS, 0, 0, 0, ON_TIME},        {20 * MS, 0.02, 0, 0, ON_TIME},     {100 * MS, 0.02, 0, 0, ON_TIME},
	{10 * MS, 0.3, 0, 0, ON_TIME},      {20 * MS, 1, 0, 0, ON_TIME},        {20 * MS, 0.02, 0.01, 0, ON_TIME},
	{100 * MS, 0.02, 0.01, 0, ON_TIME}, {10 * MS, 0.3, 0.01, 0, ON_TIME},   {20 * MS, 1, 0.01, 0, ON_TIME},
	{20 * MS, 0.02, 0.05, 0, ON_TIME},  {100 * MS, 0.02, 0.05, 0, ON_TIME}, {20 * MS, 1, 0.05, 0, ON_TIME},
};

/* The share of packets that are paired rightly: formulas, section 4. */
static void most_are_paired_rightly(void **state)
{
	(void)state;
	static struct copies c;
	for (size_t k = 0; k < sizeof usual / sizeof *usual; k++) {
		uint32_t pairs = 0, right = 0;
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct told told;
			make(&usual[k], seed, &c);
			align_all(&usual[k], &c, &told);
			pairs += told.pairs;
			right += told.right;
			/* None is left out. */
			assert_true(told.pairs <= told.true_pairs && told.pairs + 3 >= told.true_pairs);
		}
		if (getenv("SHOW"))
			print_message("%.0f ms %.2f loss %.2f: %.4f\n", usual[k].period_ns / MS, usual[k].jitter,
			              usual[k].loss, (double)right / pairs);
		assert_true((double)right >= (usual[k].loss > 0 ? 0.97 : 0.995) * pairs);
	}
}

/* Mean and maximum are between the bounds, whatever the captures miss. */
static void the_truth_is_between_the_bounds(void **state)
{
	(void)state;
	static const double period[] = {10 * MS, 20 * MS, 100 * MS}, jitter[] = {0, 0.02, 0.3, 1},
			    loss[] = {0, 0.01, 0.05}, copies[] = {0, 0.01};
	static struct copies c;
	unsigned cases = 0, wrong = 0;
	for (unsigned k = 0; k < 3 * 4 * 3 * 2 * 4; k++) {
		struct traffic t = {period[k % 3], jitter[k / 3 % 4], loss[k / 12 % 3], copies[k / 36 % 2],
		                    (enum late)(k / 72)};
		struct told told;
		make(&t, k + 1, &c);
		align_all(&t, &c, &told);
		double mean = told.true_sum / told.true_pairs, n = told.pairs;
		bool holds = mean >= 0.99 * told.least_sum / n && mean <= 1.01 * told.most_sum / n &&
		             told.true_max >= 0.99 * told.least_max && told.true_max <= 1.01 * told.most_max;
		if (getenv("SHOW") && !holds)
			print_message("%u: %.0f ms %.2f loss %.2f copies %.2f late %d: mean %.3f [%.3f %.3f] max %.1f "
			              "[%.1f %.1f]\n",
			              k, t.period_ns / MS, t.jitter, t.loss, t.copies, (int)t.late, mean / MS,
			              told.least_sum / n / MS, told.most_sum / n / MS, told.true_max / MS,
			              told.least_max / MS, told.most_max / MS);
		cases++;
		wrong += !holds;
	}
	/* Plausible is not certain. */
	assert_true(wrong * 50 <= cases);
}

/* Exactly periodic packets in captures that started late: the shortest delay, and open by whole periods. */
static void a_period_stays_open(void **state)
{
	(void)state;
	enum { N = 100 };
	int64_t sent[N + 5], received[N]; /* sending goes on */
	struct ow_align_arrival arrival[N];
	struct ow_aligner *aligner;
	bool crowded;
	for (int i = 0; i < N + 5; i++)
		sent[i] = INT64_C(20000000) * i;
	for (int i = 0; i < N; i++)
		received[i] = sent[i] + 30000000; /* longer than the period */
	struct ow_align_model model = {.window_ns = 200000000,
	                               .soonest_ns = -2000,
	                               .sigma_ns = 1000,
	                               .loss = 7,
	                               .copy = 40,
	                               .causal = true,
	                               .sent_from_ns = 0,
	                               .received_from_ns = received[0],
	                               .sent_to_ns = INT64_MAX,
	                               .received_to_ns = INT64_MAX};
	assert_int_equal(ow_aligner_create(&aligner), 0);
	assert_int_equal(ow_align(aligner, &model, NULL, sent, N + 5, received, N, arrival, &crowded), 0);
	for (int j = 0; j < N / 2; j++) {
		int64_t delay = received[j] - sent[arrival[j].sent];
		assert_true(delay == 10000000 || delay == 30000000);
		assert_true(delay - arrival[j].less_ns <= 30000000 && delay + arrival[j].more_ns >= 30000000);
		assert_int_equal(arrival[j].step_ns, 20000000);
	}
	ow_aligner_free(aligner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_are_paired_rightly),
		cmocka_unit_test(the_truth_is_between_the_bounds),
		cmocka_unit_test(a_period_stays_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
