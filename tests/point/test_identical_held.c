/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical packets on a path of 50 ms, while a host is held up: what it sends or receives comes in one burst. Each interval
 * is right, or it says what it does not know. Other packets, one every 10 ms, show how long the path is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../effort.h"
#include "base/random.h"
#include "history.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS        INT64_C(1000000)
#define SECOND    (1000 * MS)
#define INTERVALS 8
#define PACKETS   4096
#define NEVER     INT64_MIN
#define ALIKE     UINT64_C(5)
#define SEED      57

enum held { NOTHING, SOURCE, WIRE, BOTH };

struct trial {
	const char *what;
	enum held held;
	double loss, twice;
	bool running; /* the source began a second before the points */
};

struct world {
	struct ow_sighting a[PACKETS], b[PACKETS];
	size_t as, bs;
	struct {
		int64_t sent_ns, received_ns; /* of identical packets; NEVER: lost */
	} packet[PACKETS];
	size_t packets;
	int64_t from_ns, to_ns; /* held up */
	int64_t last_ns;        /* the path keeps order */
};

struct sums {
	unsigned intervals, partial, loss_wrong, delays_wrong;
	uint64_t delays, possible;
};

static int64_t hold(const struct world *w, bool held, int64_t time_ns)
{
	return held && time_ns >= w->from_ns && time_ns < w->to_ns ? w->to_ns : time_ns;
}

static void arrive(struct world *w, uint64_t id, int64_t time_ns)
{
	if (time_ns >= 0)
		w->b[w->bs++] = (struct ow_sighting){id, time_ns};
}

/* One packet, due at this time; last_ns: the one before it was sent then. */
static int64_t send(struct world *w, const struct trial *t, struct ow_random *random, uint64_t id, int64_t due_ns,
                    int64_t last_ns)
{
	int64_t sent_ns =
		hold(w, t->held == SOURCE || t->held == BOTH, due_ns + (int64_t)ow_random_below(random, 50000));
	sent_ns = sent_ns > last_ns ? sent_ns : last_ns + 2000 + (int64_t)ow_random_below(random, 20000);
	int64_t received_ns = sent_ns + 50 * MS + (int64_t)ow_random_below(random, MS);
	received_ns = hold(w, t->held == WIRE || t->held == BOTH, received_ns);
	if (received_ns <= w->last_ns)
		received_ns = w->last_ns + 1000 + (int64_t)ow_random_below(random, 10000);
	bool lost = id == ALIKE && ow_random_unit(random) < t->loss;
	if (sent_ns >= 0)
		w->a[w->as++] = (struct ow_sighting){id, sent_ns};
	if (sent_ns >= 0 && id == ALIKE) {
		w->packet[w->packets].sent_ns = sent_ns;
		w->packet[w->packets++].received_ns = lost ? NEVER : received_ns;
	}
	if (lost)
		return sent_ns;
	w->last_ns = received_ns;
	arrive(w, id, received_ns);
	if (id == ALIKE && ow_random_unit(random) < t->twice)
		arrive(w, id, w->last_ns += 20000);
	return sent_ns;
}

static void make(struct world *w, const struct trial *t, struct ow_random *random)
{
	int64_t last_ns = -2 * SECOND, from_ns = t->running ? -SECOND : 10 * MS;
	int64_t other_ns = from_ns + 1300000;
	memset(w, 0, sizeof *w);
	w->last_ns = -2 * SECOND;
	w->from_ns = SECOND / 2 + (int64_t)ow_random_below(random, 5 * SECOND);
	w->to_ns = w->from_ns + 50 * MS + (int64_t)ow_random_below(random, 250 * MS);
	uint64_t id = 1000;
	for (int64_t due_ns = from_ns; due_ns < 6 * SECOND; due_ns += 5 * MS) {
		for (; other_ns < due_ns; other_ns += 10 * MS)
			last_ns = send(w, t, random, id++, other_ns, last_ns);
		last_ns = send(w, t, random, ALIKE, due_ns, last_ns);
	}
	history_sort(w->a, w->as);
	history_sort(w->b, w->bs);
}

/* -- truth -------------------------------------------------------------------------------------------------------- */

static bool is_alike(const struct world *w, int64_t sent_ns)
{
	size_t p = 0;
	while (p < w->packets && w->packet[p].sent_ns != sent_ns)
		p++;
	return p < w->packets;
}

/* The delay of what arrived at this time, or was the first of it. */
static double delay_of(const struct world *w, int64_t received_ns)
{
	double delay = INFINITY;
	int64_t last_ns = INT64_MIN;
	for (size_t p = 0; p < w->packets; p++) {
		if (w->packet[p].received_ns <= last_ns || w->packet[p].received_ns > received_ns)
			continue;
		last_ns = w->packet[p].received_ns;
		delay = (double)(last_ns - w->packet[p].sent_ns);
	}
	return fmin(delay, 1e12);
}

/* The largest error of delays of identical packets. Times to the nanosecond show which packets a delay is of. */
static double worst_delay(const struct world *w, const struct ow_interval_packets *a,
                          const struct ow_interval_packets *b, const struct ow_interval_results_input *in,
                          uint64_t *ret_delays)
{
	double worst = 0;
	size_t j = 0;
	for (size_t k = 0; k < in->delays; k++) {
		bool found = false;
		/* In order of arrival, identical ones last. */
		j = k + in->identical == in->delays ? 0 : j;
		for (; j < b->count && !found; j++) {
			size_t i = 0;
			while (i < a->count && a->sighting[i].time_ns != b->sighting[j].time_ns - in->delay_ns[k])
				i++;
			found = i < a->count;
			if (!found)
				continue;
			if (is_alike(w, a->start_ns + a->sighting[i].time_ns)) {
				worst = fmax(worst, fabs((double)in->delay_ns[k] -
				                         delay_of(w, b->start_ns + b->sighting[j].time_ns)));
				++*ret_delays;
			}
		}
		assert_true(found);
	}
	return worst;
}

/* All that arrive are within what identical packets and others, which are due at other times, can take. */
static void judge(const struct world *w, const struct ow_interval_result *r, double worst_ns, struct sums *sums)
{
	uint64_t lost = 0;
	double most = 0;
	for (size_t p = 0; p < w->packets; p++) {
		bool here = w->packet[p].sent_ns / SECOND == r->interval, never = w->packet[p].received_ns == NEVER;
		lost += here && never;
		most = fmax(most, here && !never ? (double)(w->packet[p].received_ns - w->packet[p].sent_ns) : 0);
	}
	if (!r->sent)
		return;
	double share = (double)lost / (double)r->sent;
	sums->intervals++;
	sums->partial += r->status != OW_RESULT_MEASURED;
	sums->loss_wrong += !(r->loss_ratio.low <= share + 1e-9 && share <= r->loss_ratio.high + 1e-9);
	if (r->samples && r->min_ns.status != OW_VALUE_NONE &&
	    (r->min_ns.value < 50e6 - 1e5 || r->max_ns.value > fmax(most, 52e6) + 1e7))
		worst_ns = fmax(worst_ns, fmax(50e6 - r->min_ns.value, r->max_ns.value - most));
	sums->delays_wrong += worst_ns > 1e5;
}

struct view {
	struct world *world;
	double worst_ns[INTERVALS];
	struct sums *sums;
};

static void look(void *arg, const struct ow_interval_packets *a, const struct ow_interval_packets *b,
                 const struct ow_interval_results_input *in)
{
	struct view *view = arg;
	view->worst_ns[a->interval] = worst_delay(view->world, a, b, in, &view->sums->delays);
}

static void play(const struct trial *t, struct ow_random *random, struct sums *sums)
{
	static struct world w;
	struct view view = {.world = &w, .sums = sums};
	struct history history;
	make(&w, t, random);
	history_play_seen(&history, w.a, w.as, w.b, w.bs, SECOND, INTERVALS, 2, look, &view);
	assert_int_equal(ow_interval_results_finish(history.settle), 0);
	for (int i = 0; i < INTERVALS; i++)
		judge(&w, &history.final[i], view.worst_ns[i], sums);
	sums->possible += w.packets;
	history_done(&history);
}

static void add(struct sums *all, const struct sums *one)
{
	all->intervals += one->intervals;
	all->partial += one->partial;
	all->loss_wrong += one->loss_wrong;
	all->delays_wrong += one->delays_wrong;
	all->delays += one->delays;
	all->possible += one->possible;
}

static struct sums play_many(const struct trial *t)
{
	struct ow_random random;
	struct sums sums = {0};
	ow_random_seed(&random, SEED);
	for (int run = 0; run < RUN_COUNT(20); run++)
		play(t, &random, &sums);
	printf("%s, %g %% lost, %g %% twice, %s held up: %u of %u intervals partial, loss %u wrong, delays %u wrong, "
	       "%.0f %% "
	       "of delays\n",
	       t->running ? "running" : "new", t->loss * 100, t->twice * 100, t->what, sums.partial, sums.intervals,
	       sums.loss_wrong, sums.delays_wrong, 100. * (double)sums.delays / (double)sums.possible);
	return sums;
}

/* Loss and duplicates in turn: none, some, many. */
static void check_held(enum held held, const char *what, bool running)
{
	static const double loss[] = {0, .01, .04}, twice[] = {0, .02};
	struct sums all = {0};
	for (int k = 0; k < 6; k++) {
		struct trial t = {what, held, loss[k % 3], twice[k / 3], running};
		struct sums sums = play_many(&t);
		/* Where nothing is held up, lost or doubled, all is known: only packets late for their interval may be
		 * ambiguous. */
		if (held == NOTHING && !running && k == 0)
			assert_true(!sums.partial && 10 * sums.delays > 9 * sums.possible);
		add(&all, &sums);
	}
	assert_int_equal(all.loss_wrong, 0);
	assert_int_equal(all.delays_wrong, 0);
}

static void test_new(void **state)
{
	(void)state;
	check_held(NOTHING, "nothing", false);
	check_held(SOURCE, "source", false);
	check_held(WIRE, "wire", false);
	check_held(BOTH, "both", false);
}

static void test_running(void **state)
{
	(void)state;
	check_held(NOTHING, "nothing", true);
	check_held(SOURCE, "source", true);
	check_held(WIRE, "wire", true);
	check_held(BOTH, "both", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_running),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
