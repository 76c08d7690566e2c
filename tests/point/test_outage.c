/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outages of the connection, up to an hour, with a synthetic clock: intervals that fit into memory are compared
 * afterwards as usual, the others are unknown, and none of their packets is ever lost.
 */
#include "base/random.h"
#include "base/time.h"
#include "exchange/exchange.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED      20261115
#define PACKETS   300
#define LOSS      0.01
#define T0_NS     (INT64_C(1700000000) * OW_NS_PER_S)
#define NOTICE_NS (5 * OW_NS_PER_S)
#define QUEUE     1024

struct frame {
	uint8_t *bytes;
	size_t size;
	int to;
};

struct world {
	struct ow_exchange *x[2]; /* 0 sends the packets */
	bool cut[2];              /* what this one says gets lost */
	bool blind[2];            /* its interface is away: it sees half of the packets */
	int first;                /* the one whose intervals are closed first */
	struct frame queue[QUEUE];
	size_t head, count;
	size_t most; /* frames under way at a time */
	int64_t interval, now_ns;
	struct ow_random random;
	uint64_t *lost; /* by interval */
	struct ow_interval_result *final[2];
	unsigned noticed[2]; /* results that say that there is no answer yet */
};

struct end {
	struct world *world;
	int side;
};

static void on_send(void *arg, const uint8_t *bytes, size_t size)
{
	const struct end *end = arg;
	struct world *w = end->world;
	if (w->cut[end->side])
		return;
	assert_true(w->count < QUEUE);
	uint8_t *copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	w->queue[(w->head + w->count++) % QUEUE] = (struct frame){copy, size, !end->side};
	w->most = w->count > w->most ? w->count : w->most;
}

static void on_result(void *arg, const struct ow_interval_result *r)
{
	const struct end *end = arg;
	struct world *w = end->world;
	struct ow_interval_result *last = &w->final[end->side][r->interval];
	assert_int_equal(r->sent, r->matched + r->late + r->lost + r->pending);
	assert_int_equal(r->received, r->matched + r->late_received + r->extra);
	assert_false(last->final);
	assert_int_equal(r->waiting, strstr(r->cause, "yet") != NULL);
	w->noticed[end->side] += r->waiting;
	*last = *r;
}

static void deliver(struct world *w)
{
	struct ow_error err = {""};
	while (w->count) {
		struct frame f = w->queue[w->head];
		w->head = (w->head + 1) % QUEUE;
		w->count--;
		if (ow_exchange_frame(w->x[f.to], f.bytes, f.size, w->now_ns, &err) < 0)
			fail_msg("%s", err.text);
		free(f.bytes);
	}
}

static struct ow_interval_packets *make_page(const struct world *w, int64_t length_ns)
{
	struct ow_interval_packets *page = calloc(1, sizeof *page);
	assert_non_null(page);
	page->sighting = calloc(PACKETS, sizeof *page->sighting);
	assert_non_null(page->sighting);
	page->interval = w->interval;
	page->start_ns = T0_NS + w->interval * length_ns;
	page->length_ns = length_ns;
	return page;
}

/* One interval passes: each packet has 1 ms of delay and stays within it. */
static void pass(struct world *w, int64_t length_ns)
{
	struct ow_interval_packets *page[2] = {make_page(w, length_ns), make_page(w, length_ns)};
	const struct ow_clock_state clock = {true, 1000};
	for (unsigned i = 0; i < PACKETS; i++) {
		struct ow_sighting stamp = {ow_random_u64(&w->random), (int64_t)i * OW_NS_PER_US};
		page[0]->sighting[page[0]->count++] = stamp;
		stamp.time_ns += OW_NS_PER_MS;
		if (ow_random_unit(&w->random) < LOSS)
			w->lost[w->interval]++;
		else
			page[1]->sighting[page[1]->count++] = stamp;
	}
	w->now_ns = page[0]->start_ns + length_ns;
	for (int k = 0; k < 2; k++) {
		int i = k ^ w->first;
		if (w->blind[i]) {
			page[i]->count /= 2;
			snprintf(page[i]->blind, sizeof page[i]->blind, "eth%d was down", i);
		}
		page[i]->total_packets = page[i]->count;
		assert_int_equal(ow_exchange_packets(w->x[i], page[i], &clock, w->now_ns), 0);
		deliver(w);
	}
	for (int i = 0; i < 2; i++)
		ow_exchange_tick(w->x[i], w->now_ns);
	deliver(w);
	w->interval++;
}

static void begin(struct world *w, struct end end[2], unsigned intervals, int64_t length_ns, size_t retain)
{
	struct ow_exchange_options o = {.lane = 1,
	                                .seed = SEED,
	                                .t0_ns = T0_NS,
	                                .length_ns = length_ns,
	                                .horizon = 2,
	                                .patience_ns = 4 * NOTICE_NS,
	                                .notice_ns = NOTICE_NS,
	                                .intervals_max = 6,
	                                .from = "london",
	                                .to = "paris"};
	*w = (struct world){.lost = calloc(intervals, sizeof *w->lost)};
	ow_random_seed(&w->random, SEED);
	ow_identity_seed(&o.identity, SEED);
	for (int i = 0; i < 2; i++) {
		end[i] = (struct end){w, i};
		w->final[i] = calloc(intervals, sizeof **w->final);
		assert_non_null(w->final[i]);
		struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result, .arg = &end[i]};
		o.sending = i == 0;
		assert_int_equal(ow_exchange_create(&o, &sinks, &w->x[i]), 0);
		ow_exchange_retain(w->x[i], retain);
	}
}

static void finish(struct world *w)
{
	for (int i = 0; i < 2; i++)
		ow_exchange_finish(w->x[i], NULL);
	deliver(w);
	for (int i = 0; i < 2; i++) {
		assert_true(ow_exchange_done(w->x[i]));
		ow_exchange_free(w->x[i]);
	}
}

static void done(struct world *w)
{
	free(w->lost);
	free(w->final[0]);
	free(w->final[1]);
}

struct outage {
	unsigned before, length, after;
	int64_t length_ns;
	size_t retain;
	bool cut[2];
	bool known; /* the points find out that the connection is lost */
};

/* Returns how many intervals are unknown at each point; all others are measured, and what is lost is the truth. */
static void run(const struct outage *o, unsigned ret_unknown[2], unsigned ret_noticed[2])
{
	struct world w;
	struct end end[2];
	unsigned intervals = o->before + o->length + o->after;
	begin(&w, end, intervals, o->length_ns, o->retain);
	for (unsigned i = 0; i < o->before; i++)
		pass(&w, o->length_ns);
	for (int i = 0; i < 2; i++) {
		w.cut[i] = o->cut[i];
		if (o->known)
			ow_exchange_disconnected(w.x[i]);
	}
	for (unsigned i = 0; i < o->length; i++)
		pass(&w, o->length_ns);
	w.cut[0] = w.cut[1] = false;
	for (int i = 0; i < 2; i++)
		ow_exchange_connected(w.x[i], w.now_ns);
	deliver(&w);
	for (unsigned i = 0; i < o->after; i++)
		pass(&w, o->length_ns);
	finish(&w);
	for (int side = 0; side < 2; side++) {
		ret_unknown[side] = 0;
		ret_noticed[side] = w.noticed[side];
		for (unsigned i = 0; i < intervals; i++) {
			const struct ow_interval_result *r = &w.final[side][i];
			assert_true(r->final);
			if (r->status == OW_RESULT_UNKNOWN) {
				assert_true(r->cause[0]);
				ret_unknown[side]++;
				continue;
			}
			assert_int_equal(r->sent, PACKETS);
			/* Next to an unknown interval packets may be undecided. */
			assert_true(r->lost == w.lost[i] || (r->status == OW_RESULT_PARTIAL && r->lost <= w.lost[i]));
			assert_true(r->status == OW_RESULT_MEASURED || r->pending > 0);
		}
	}
	printf("seed %d: %u intervals of outage: %u and %u unknown, %u and %u noticed, %zu frames at a time\n", SEED,
	       o->length, ret_unknown[0], ret_unknown[1], ret_noticed[0], ret_noticed[1], w.most);
	done(&w);
}

/* A second, a minute and an hour within the budget. */
static void test_retained(void **state)
{
	(void)state;
	static const unsigned lengths[] = {1, 60, 3600};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct outage o = {20, lengths[i], 20, OW_NS_PER_S, 64 << 20, {true, true}, true};
		unsigned unknown[2], noticed[2];
		run(&o, unknown, noticed);
		assert_int_equal(unknown[0] + unknown[1], 0);
		/* During the outage the results show it, except for the last seconds. */
		for (int side = 0; side < 2; side++)
			assert_true(noticed[side] + 7 >= lengths[i] && noticed[side] <= lengths[i] + 2);
	}
}

/* One direction only, and not detected yet: within the patience no packet is lost either. */
static void test_one_way(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct outage o = {20, 12, 20, OW_NS_PER_S, 64 << 20, {way == 0, way == 1}, false};
		unsigned unknown[2], noticed[2];
		run(&o, unknown, noticed);
		assert_int_equal(unknown[0] + unknown[1], 0);
	}
}

/* An hour that does not fit: the last part of it does. */
static void test_beyond(void **state)
{
	(void)state;
	struct outage o = {20, 3600, 20, OW_NS_PER_S, 1 << 20, {true, true}, true};
	unsigned unknown[2], noticed[2];
	run(&o, unknown, noticed);
	for (int side = 0; side < 2; side++)
		assert_true(unknown[side] > 3300 && unknown[side] < 3595);
	/* Without any, what intervals_max holds. */
	o.retain = 0;
	run(&o, unknown, noticed);
	for (int side = 0; side < 2; side++)
		assert_true(unknown[side] >= 3590 && unknown[side] <= 3596);
}

/* An interface that is away: these intervals are unknown at both points, with the cause, and no others. */
static void test_blind(void **state)
{
	(void)state;
	static const char *const causes[] = {"london: eth0 was down", "paris: eth1 was down"};
	for (int kind = 0; kind < 12; kind++) {
		struct world w;
		struct end end[2];
		bool cut = kind >= 6;
		begin(&w, end, 30, OW_NS_PER_S, 64 << 20);
		w.first = kind % 2;
		for (unsigned i = 0; i < 30; i++) {
			bool away = i >= 10 && i < 15;
			w.blind[0] = away && kind / 2 % 3 != 1;
			w.blind[1] = away && kind / 2 % 3 != 0;
			/* The connection, too. */
			if (cut && i == 8)
				for (int side = 0; side < 2; side++)
					ow_exchange_disconnected(w.x[side]);
			w.cut[0] = w.cut[1] = cut && i >= 8 && i < 20;
			if (cut && i == 20)
				for (int side = 0; side < 2; side++)
					ow_exchange_connected(w.x[side], w.now_ns);
			pass(&w, OW_NS_PER_S);
		}
		finish(&w);
		for (unsigned i = 0; i < 60; i++) {
			const struct ow_interval_result *r = &w.final[i / 30][i % 30];
			bool away = i % 30 >= 10 && i % 30 < 15;
			assert_true(r->final);
			assert_int_equal(r->status == OW_RESULT_UNKNOWN, away);
			if (away && strcmp(r->cause, causes[0]) != 0 && strcmp(r->cause, causes[1]) != 0)
				fail_msg("%s", r->cause);
			if (away && kind / 2 % 3 < 2)
				assert_string_equal(r->cause, causes[kind / 2 % 3]);
			assert_true(away || r->lost == w.lost[i % 30]);
		}
		done(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retained),
		cmocka_unit_test(test_one_way),
		cmocka_unit_test(test_beyond),
		cmocka_unit_test(test_blind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
