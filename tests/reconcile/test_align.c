/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment of identical packets compared with the truth of each: queues that fill and drain, losses, copies, captures
 * that start late at either side. The truth must be between the bounds.
 */
#include "../effort.h"
#include "base/random.h"
#include "reconcile/align_private.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS        1e6
#define COPIES    600
#define SEEDS     6
#define OVERTAKEN (15 * MS)
#define CHUNK     160 /* arrivals that are aligned at a time; three quarters of them are decided */

/* A capture that misses the first, or the last, third. */
enum part { ALL, SENDER_LATE, RECEIVER_LATE, BOTH_LATE, SENDER_EARLY, RECEIVER_EARLY, PARTS };

struct traffic {
	double period_ns, jitter, loss, copies;
	enum part part;
	bool reorders;
};

struct copies {
	int64_t sent[COPIES], received[2 * COPIES];
	int64_t truth[2 * COPIES]; /* which packet an arrival is; -1 - packet: a copy */
	uint32_t sents, receiveds, first_sent, first_received;
	int64_t sent_from, received_from, sent_to, received_to, reorder;
};

static double exponential(struct ow_random *random)
{
	return -log(1 - ow_random_unit(random));
}

/* By time; there are few that overtook others. */
static void sort_arrivals(struct copies *c)
{
	for (uint32_t j = 1; j < c->receiveds; j++) {
		int64_t at = c->received[j], truth = c->truth[j];
		uint32_t k = j;
		for (; k > 0 && c->received[k - 1] > at; k--) {
			c->received[k] = c->received[k - 1];
			c->truth[k] = c->truth[k - 1];
		}
		c->received[k] = at;
		c->truth[k] = truth;
	}
}

/* A queue gets 50 ms of other traffic every other second, and drains. Packets stay in order. */
static void make(const struct traffic *t, uint64_t seed, struct copies *c)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	double queue = 0, last_sent = 0, last = 0, sent = 0;
	*c = (struct copies){.sents = COPIES,
	                     .sent_from = INT64_MIN,
	                     .received_from = INT64_MIN,
	                     .sent_to = INT64_MAX,
	                     .received_to = INT64_MAX};
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
		if (t->reorders && ow_random_unit(&random) < 0.02)
			at += OVERTAKEN * ow_random_unit(&random);
		c->received[c->receiveds] = (int64_t)at;
		c->truth[c->receiveds++] = i;
		if (ow_random_unit(&random) >= t->copies)
			continue;
		last += exponential(&random) * 0.1 * MS;
		c->received[c->receiveds] = (int64_t)last;
		c->truth[c->receiveds++] = -1 - (int64_t)i;
	}
	sort_arrivals(c);
	int64_t third = c->sent[COPIES / 3], two_thirds = c->sent[2 * COPIES / 3];
	if (t->part == SENDER_LATE || t->part == BOTH_LATE) {
		c->first_sent = COPIES / 3;
		c->sent_from = third;
	}
	if (t->part == RECEIVER_LATE || t->part == BOTH_LATE) {
		c->received_from = third;
		while (c->received[c->first_received] < third)
			c->first_received++;
	}
	if (t->part == SENDER_EARLY) {
		c->sents = 2 * COPIES / 3;
		c->sent_to = two_thirds - 1;
	}
	if (t->part == RECEIVER_EARLY) {
		c->received_to = two_thirds;
		while (c->received[c->receiveds - 1] > two_thirds)
			c->receiveds--;
	}
	c->reorder = t->reorders ? (int64_t)OVERTAKEN : 0;
}

/* What was reported for all copies, and the truth. */
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
	double usual_change = 0;
	for (uint32_t i = c->first_sent, j = c->first_received; j < c->receiveds;) {
		uint32_t count = c->receiveds - j < CHUNK ? c->receiveds - j : CHUNK, sents = 0, decided = 0;
		bool ends = count < CHUNK, crowded;
		while (i + sents < c->sents && (ends || c->sent[i + sents] <= c->received[j + count - 1]))
			sents++;
		struct ow_align_model model = {
			.window_ns = 2000000000,
			.soonest_ns = -2000,
			.sigma_ns = usual_change > 0 ? usual_change : period_of(c, j, count),
			.jump = OW_ALIGN_JUMP,
			.loss = t->loss > 0 ? fmin(7, -log(t->loss)) : 7,
			.copy = t->copies > 0 ? 7 - log(t->copies) : 40,
			.causal = true,
			.sent_from_ns = c->sent_from,
			.sent_to_ns = c->sent_to,
			.received_from_ns = c->received_from,
			.received_to_ns = c->received_to,
			.reorder_ns = c->reorder,
			.ends = ends,
		};
		for (int run = 0; run < 4; run++) {
			assert_int_equal(ow_align(aligner, &model, carry, c->sent + i, sents, c->received + j, count,
			                          run < 3 ? NULL : arrival, &crowded),
			                 0);
			double sigma = ow_align_sigma(aligner);
			model.sigma_ns = sigma > 1000 ? sigma : sigma < 0 ? model.sigma_ns : 1000;
			usual_change = sigma < 0 ? usual_change : model.sigma_ns;
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
		if (c->truth[j] < (int64_t)c->first_sent || c->truth[j] >= (int64_t)c->sents)
			continue;
		double d = (double)(c->received[j] - c->sent[c->truth[j]]);
		told->true_pairs++;
		told->true_sum += d;
		told->true_max = fmax(told->true_max, d);
	}
}

static const struct traffic usual[] = {
	{20 * MS, 0, 0, 0, ALL, false},        {20 * MS, 0.02, 0, 0, ALL, false},
	{100 * MS, 0.02, 0, 0, ALL, false},    {10 * MS, 0.3, 0, 0, ALL, false},
	{20 * MS, 1, 0, 0, ALL, false},        {20 * MS, 0.02, 0.01, 0, ALL, false},
	{100 * MS, 0.02, 0.01, 0, ALL, false}, {10 * MS, 0.3, 0.01, 0, ALL, false},
	{20 * MS, 1, 0.01, 0, ALL, false},     {20 * MS, 0.02, 0.05, 0, ALL, false},
	{100 * MS, 0.02, 0.05, 0, ALL, false}, {20 * MS, 1, 0.05, 0, ALL, false},
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
			    loss[] = {0, 0.01, 0.05, 0.2, 0.3}, copies[] = {0, 0.01};
	static struct copies c;
	/* A part of all combinations; all of them with SHOW. */
	unsigned cases = 0, wrong = 0, step = getenv("SHOW") ? 1 : 7;
	for (unsigned k = 0; k < 3 * 4 * 5 * 2 * PARTS * 2; k += step) {
		struct traffic t = {period[k % 3],
		                    jitter[k / 3 % 4],
		                    loss[k / 12 % 5],
		                    copies[k / 60 % 2],
		                    (enum part)(k / 120 % PARTS),
		                    k / 120 / PARTS};
		struct told told;
		make(&t, k + 1, &c);
		align_all(&t, &c, &told);
		double mean = told.true_sum / told.true_pairs, n = told.pairs;
		bool holds = mean >= 0.99 * told.least_sum / n && mean <= 1.01 * told.most_sum / n &&
		             told.true_max >= 0.99 * told.least_max && told.true_max <= 1.01 * told.most_max;
		if (getenv("SHOW") && !holds)
			print_message("%u: %.0f ms %.2f loss %.2f copies %.2f part %d reorders %d: mean %.3f [%.3f "
			              "%.3f] max %.1f "
			              "[%.1f %.1f]\n",
			              k, t.period_ns / MS, t.jitter, t.loss, t.copies, (int)t.part, t.reorders,
			              mean / MS, told.least_sum / n / MS, told.most_sum / n / MS, told.true_max / MS,
			              told.least_max / MS, told.most_max / MS);
		cases++;
		wrong += !holds;
	}
	print_message("%u of %u out of bounds\n", wrong, cases);
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
	                               .jump = OW_ALIGN_JUMP,
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

/* The same where the path keeps order, and unique packets arrive between them: nothing is open. */
static void marks_close_a_period(void **state)
{
	(void)state;
	enum { N = 100 };
	int64_t sent[N + 5], received[N], not_before[N], not_after[N];
	struct ow_align_arrival arrival[N];
	struct ow_aligner *aligner;
	bool crowded;
	for (int i = 0; i < N + 5; i++)
		sent[i] = INT64_C(20000000) * i;
	for (int i = 0; i < N; i++) {
		received[i] = sent[i] + 30000000;
		not_before[i] = i % 3 ? INT64_MIN : sent[i] - 3000000;
		not_after[i] = i % 2 ? INT64_MAX : sent[i] + 4000000;
	}
	struct ow_align_model model = {.window_ns = 200000000,
	                               .soonest_ns = -2000,
	                               .sigma_ns = 1000,
	                               .jump = OW_ALIGN_JUMP,
	                               .loss = 7,
	                               .copy = 40,
	                               .causal = true,
	                               .sent_from_ns = 0,
	                               .received_from_ns = received[0],
	                               .sent_to_ns = INT64_MAX,
	                               .received_to_ns = INT64_MAX,
	                               .not_before_ns = not_before,
	                               .not_after_ns = not_after};
	assert_int_equal(ow_aligner_create(&aligner), 0);
	assert_int_equal(ow_align(aligner, &model, NULL, sent, N + 5, received, N, arrival, &crowded), 0);
	for (int j = 0; j < N; j++)
		assert_true(arrival[j].sent == (uint32_t)j && arrival[j].less_ns == 0 && arrival[j].more_ns == 0);
	ow_aligner_free(aligner);
}

/* A queue of a second holds a flood and releases it at once. Its packets may have been sent before the capture started;
 * but a unique one that was sent after that arrived before them. */
static void a_mark_keeps_a_burst_inside(void **state)
{
	(void)state;
	enum { N = 300 };
	int64_t sent[N], received[N], not_before[N], not_after[N];
	struct ow_align_arrival arrival[N];
	struct ow_aligner *aligner;
	bool crowded;
	for (int i = 0; i < N; i++) {
		sent[i] = INT64_C(1000000) * i;
		received[i] = 1000000000 + INT64_C(300) * i;
		not_before[i] = -10000000;
		not_after[i] = INT64_MAX;
	}
	struct ow_align_model model = {.window_ns = 10000000000,
	                               .soonest_ns = -2000,
	                               .sigma_ns = 1000,
	                               .jump = OW_ALIGN_JUMP,
	                               .loss = 7,
	                               .copy = OW_ALIGN_NO_COPIES,
	                               .causal = true,
	                               .sent_from_ns = -20000000,
	                               .received_from_ns = -100000000,
	                               .sent_to_ns = INT64_MAX,
	                               .received_to_ns = INT64_MAX,
	                               .ends = true,
	                               .not_before_ns = not_before,
	                               .not_after_ns = not_after};
	assert_int_equal(ow_aligner_create(&aligner), 0);
	assert_int_equal(ow_align_fit(aligner, &model, NULL, sent, N, received, N, &crowded), 0);
	assert_int_equal(ow_align(aligner, &model, NULL, sent, N, received, N, arrival, &crowded), 0);
	for (int j = 0; j < N; j++)
		assert_int_equal(arrival[j].sent, j);
	ow_aligner_free(aligner);
}

/* Queues that stall and drain: delays jump up, and fall step by step. No packet is lost, and none was sent before the
 * captures started, though fewer jumps would be needed then. */
static void jumps_are_usual_in_a_queue(void **state)
{
	(void)state;
	enum { N = 300 };
	int64_t sent[N], received[N];
	struct ow_align_arrival arrival[N];
	struct ow_aligner *aligner;
	bool crowded;
	for (int i = 0; i < N; i++) {
		sent[i] = INT64_C(1000000) * i + i * 7919 % 400000;
		/* Packets of 15 ms arrive together, 40 ms after the first of them was sent; the first ones sooner. */
		received[i] = i < 2 ? sent[i] + 12000000 : i / 15 * INT64_C(15000000) + 40000000 + i * INT64_C(300);
	}
	struct ow_align_model model = {.window_ns = 2000000000,
	                               .soonest_ns = -2000,
	                               .sigma_ns = 1000000,
	                               .jump = OW_ALIGN_JUMP,
	                               .loss = 7,
	                               .copy = 40,
	                               .ranged = true,
	                               .least_ns = 10000000,
	                               .low_ns = 5000000,
	                               .high_ns = 100000000,
	                               .causal = true,
	                               .sent_from_ns = sent[0],
	                               .received_from_ns = received[0],
	                               .sent_to_ns = INT64_MAX,
	                               .received_to_ns = INT64_MAX,
	                               .ends = true};
	assert_int_equal(ow_aligner_create(&aligner), 0);
	for (int run = 0; run < 4; run++) {
		assert_int_equal(ow_align(aligner, &model, NULL, sent, N, received, N, arrival, &crowded), 0);
		model.sigma_ns = ow_align_sigma(aligner);
		model.jump = ow_align_jump(aligner);
	}
	assert_true(model.jump < OW_ALIGN_JUMP);
	for (int j = 0; j < N; j++)
		assert_int_equal(arrival[j].sent, j);
	ow_aligner_free(aligner);
}

/* Forty packets in a row are lost. Those after them are no slow ones. */
static void an_outage(void **state)
{
	(void)state;
	enum { N = 200, FROM = 60, TO = 100 };
	int64_t sent[N], received[N];
	int truth[N];
	uint32_t receiveds = 0;
	struct ow_align_arrival arrival[N];
	struct ow_aligner *aligner;
	bool crowded;
	for (int i = 0; i < N; i++) {
		sent[i] = INT64_C(20000000) * i;
		if (i >= FROM && i < TO)
			continue;
		truth[receiveds] = i;
		received[receiveds++] = sent[i] + 8000000 + i * 7919 % 100000;
	}
	struct ow_align_model model = {.window_ns = 2000000000,
	                               .soonest_ns = -2000,
	                               .sigma_ns = 30000,
	                               .jump = OW_ALIGN_JUMP,
	                               .loss = 7,
	                               .copy = 40,
	                               .ranged = true,
	                               .least_ns = 8000000,
	                               .low_ns = 4000000,
	                               .high_ns = 20000000,
	                               .causal = true,
	                               .sent_from_ns = INT64_MIN,
	                               .sent_to_ns = INT64_MAX,
	                               .received_from_ns = INT64_MIN,
	                               .received_to_ns = INT64_MAX,
	                               .ends = true};
	assert_int_equal(ow_aligner_create(&aligner), 0);
	assert_int_equal(ow_align(aligner, &model, NULL, sent, N, received, receiveds, arrival, &crowded), 0);
	for (uint32_t j = 0; j < receiveds; j++)
		assert_int_equal(arrival[j].sent, truth[j]);
	ow_aligner_free(aligner);
}

/* -- all assignments of a few copies --------------------------------------------------------------------------------
 *
 * An oracle that knows formulas section 4 and nothing of the lattice: it lists every assignment that keeps order and
 * adds up what it costs. */

#define FEW       5
#define LAMBDA    4.0
#define COPY      14.0
#define CAP       10.0 /* most that a change of the delay costs */
#define NEAR      16.0 /* assignments that cost this much more than the best are not plausible */
#define UNCERTAIN 6.0
#define UNSENT    60.0 /* an arrival that is neither a packet nor a copy */
#define SLOT      3e6
#define EARLIEST  (-2000.0)

struct few {
	int64_t sent[FEW], received[FEW];
	int sents, receiveds;
	double sigma;
};

static double copy_price(const struct few *f, int j)
{
	double price = j ? COPY + (double)(f->received[j] - f->received[j - 1]) / 1e6 : UNSENT;
	return fmin(price, UNSENT);
}

/* packet[j]: which packet arrival j is, or -1. */
static double price_of(const struct few *f, const int packet[FEW])
{
	double price = LAMBDA * f->sents, copies = 0, last_delay = 0;
	int last = -1, skipped = 0;
	for (int j = 0; j < f->receiveds; j++) {
		if (packet[j] < 0) {
			price += copy_price(f, j);
			copies += copy_price(f, j);
			skipped++;
			continue;
		}
		double delay = (double)(f->received[j] - f->sent[packet[j]]);
		price -= LAMBDA; /* not lost */
		/* After many copies, or an arrival that nobody sent, the delay is not known. */
		bool known = skipped < OW_ALIGN_KEPT && copies <= UNSENT;
		if (last >= 0)
			price += known ? fmin(fabs(delay - last_delay) / f->sigma, CAP) : CAP;
		last = j;
		last_delay = delay;
		skipped = 0;
		copies = 0;
	}
	return price;
}

/* Calls `each` with every assignment. */
static void list_all(const struct few *f, int packet[FEW], int j, int next,
                     void (*each)(const struct few *f, const int packet[FEW], void *arg), void *arg)
{
	if (j == f->receiveds || j == FEW) {
		each(f, packet, arg);
		return;
	}
	packet[j] = -1;
	list_all(f, packet, j + 1, next, each, arg);
	for (int i = next; i < f->sents; i++) {
		if ((double)(f->received[j] - f->sent[i]) < EARLIEST)
			break;
		packet[j] = i;
		list_all(f, packet, j + 1, i + 1, each, arg);
	}
}

static int pairs_of(const struct few *f, const int packet[FEW])
{
	int pairs = 0;
	for (int j = 0; j < f->receiveds; j++)
		pairs += packet[j] >= 0;
	return pairs;
}

static void keep_best(const struct few *f, const int packet[FEW], void *arg)
{
	double *best = arg, price = price_of(f, packet);
	if (pairs_of(f, packet) && price < *best)
		*best = price;
}

/* The least that the lattice found. */
static double least_cost(const struct ow_aligner *a)
{
	double least = INFINITY;
	const struct ow_align_view view = {.sign = 1};
	for (uint32_t j = 0; j < a->receiveds; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		for (uint32_t k = 0; k < row->count; k++)
			least = fmin(least, a->plain.cost[row->at + k] + ow_align_tail(a, &view, row->low + k, j));
	}
	return least;
}

struct stated {
	double best;
	struct ow_align_arrival arrival[FEW];
	int pairs;
	double least, most; /* sums of the bounds */
	double least_min, most_min, least_max, most_max;
};

static void state(const struct few *f, struct stated *s)
{
	s->pairs = 0;
	s->least = s->most = 0;
	s->least_min = s->most_min = INFINITY;
	s->least_max = s->most_max = -INFINITY;
	int last = -1;
	for (int j = 0; j < f->receiveds; j++) {
		const struct ow_align_arrival *out = &s->arrival[j];
		if (out->sent == OW_ALIGN_NONE)
			continue;
		assert_true((int)out->sent > last && (int)out->sent < f->sents);
		last = (int)out->sent;
		assert_true(out->less_ns >= 0 && out->more_ns >= 0);
		double d = (double)(f->received[j] - f->sent[out->sent]), least = d - (double)out->less_ns,
		       most = d + (double)out->more_ns;
		s->pairs++;
		s->least += least;
		s->most += most;
		s->least_min = fmin(s->least_min, least);
		s->most_min = fmin(s->most_min, most);
		s->least_max = fmax(s->least_max, least);
		s->most_max = fmax(s->most_max, most);
	}
}

/*
 * A plausible assignment with as many pairs lies within the bounds: always if it costs UNCERTAIN more than the best
 * one, which is what formulas section 4 asks for, and hardly ever not if it costs NEAR more. (Of two arrivals far
 * apart, one may take the place of the other, with all between them shifted.)
 */
static unsigned checked, outside;

static void check_plausible(const struct few *f, const int packet[FEW], void *arg)
{
	struct stated *s = arg;
	int pairs = pairs_of(f, packet);
	double price = price_of(f, packet);
	if (!pairs || pairs != s->pairs || price > s->best + NEAR - 1e-6)
		return;
	double sum = 0, min = INFINITY, max = -INFINITY;
	for (int j = 0; j < f->receiveds; j++) {
		if (packet[j] < 0)
			continue;
		double d = (double)(f->received[j] - f->sent[packet[j]]);
		sum += d;
		min = fmin(min, d);
		max = fmax(max, d);
	}
	bool inside = sum >= s->least - pairs && sum <= s->most + pairs && min >= s->least_min - 1 &&
	              min <= s->most_min + 1 && max >= s->least_max - 1 && max <= s->most_max + 1;
	assert_true(inside || price > s->best + UNCERTAIN);
	checked++;
	outside += !inside;
}

static struct ow_align_model model_of(const struct few *f)
{
	return (struct ow_align_model){.window_ns = INT64_C(1000000000),
	                               .soonest_ns = (int64_t)EARLIEST,
	                               .sigma_ns = f->sigma,
	                               .jump = OW_ALIGN_JUMP,
	                               .loss = LAMBDA,
	                               .copy = COPY,
	                               .causal = true,
	                               .sent_from_ns = INT64_MIN,
	                               .sent_to_ns = INT64_MAX,
	                               .received_from_ns = INT64_MIN,
	                               .received_to_ns = INT64_MAX,
	                               .ends = true};
}

static void hold_against_all(struct ow_aligner *aligner, const struct few *f)
{
	int packet[FEW];
	bool crowded;
	struct stated s = {.best = INFINITY};
	struct ow_align_model model = model_of(f);
	list_all(f, packet, 0, 0, keep_best, &s.best);
	assert_int_equal(ow_align(aligner, &model, NULL, f->sent, (uint32_t)f->sents, f->received,
	                          (uint32_t)f->receiveds, s.arrival, &crowded),
	                 0);
	assert_false(crowded);
	double found = least_cost(aligner);
	if (isinf(s.best)) {
		assert_true(isinf(found));
		return;
	}
	assert_true(fabs(found - s.best) < 1e-6);
	state(f, &s);
	assert_true(s.pairs > 0);
	list_all(f, packet, 0, 0, check_plausible, &s);
}

/* Every choice of up to four of six sending slots and of up to four of seven arrival slots. */
static void all_assignments_of_few_copies(void **state)
{
	(void)state;
	static const double sigma[] = {0.2e6, 2e6};
	struct ow_aligner *aligner;
	unsigned cases = 0;
	checked = outside = 0;
	assert_int_equal(ow_aligner_create(&aligner), 0);
	for (unsigned mask = 0; mask < 1u << 14; mask++) {
		struct few f = {.sigma = sigma[mask >> 13]};
		for (int slot = 0; slot < 6 && f.sents <= 4; slot++) {
			if (mask >> slot & 1)
				f.sent[f.sents++] = (int64_t)(slot * SLOT);
		}
		for (int slot = 0; slot < 7 && f.receiveds <= 4; slot++) {
			if (mask >> (6 + slot) & 1)
				f.received[f.receiveds++] = (int64_t)(slot * SLOT + 0.4 * SLOT) + slot % 3 * 100000;
		}
		if (!f.sents || !f.receiveds || f.sents > 4 || f.receiveds > 4)
			continue;
		hold_against_all(aligner, &f);
		cases++;
	}
	print_message("%u cases, %u plausible assignments, %u out of bounds\n", cases, checked, outside);
	assert_true(checked > cases && outside * 1000 <= checked);
	ow_aligner_free(aligner);
}

/* Five of each at any time. */
static void all_assignments_at_random_times(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_aligner *aligner;
	ow_random_seed(&random, 5);
	checked = outside = 0;
	assert_int_equal(ow_aligner_create(&aligner), 0);
	for (int run = 0; run < RUN_COUNT(3000); run++) {
		struct few f = {.sents = FEW, .receiveds = FEW, .sigma = 1e5 * exponential(&random) + 1e4};
		double sent = 0, received = 1e6 * ow_random_unit(&random);
		for (int i = 0; i < FEW; i++) {
			f.sent[i] = (int64_t)(sent += 2e6 * exponential(&random));
			f.received[i] = (int64_t)(received += 2e6 * exponential(&random));
		}
		hold_against_all(aligner, &f);
	}
	print_message("%u plausible assignments, %u out of bounds\n", checked, outside);
	assert_true(checked > RUN_COUNT(3000) && outside * 1000 <= checked);
	ow_aligner_free(aligner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_assignments_of_few_copies),
		cmocka_unit_test(all_assignments_at_random_times),
		cmocka_unit_test(most_are_paired_rightly),
		cmocka_unit_test(the_truth_is_between_the_bounds),
		cmocka_unit_test(a_period_stays_open),
		cmocka_unit_test(marks_close_a_period),
		cmocka_unit_test(a_mark_keeps_a_burst_inside),
		cmocka_unit_test(jumps_are_usual_in_a_queue),
		cmocka_unit_test(an_outage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
