/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes with scope in which nothing is sent: several intervals have one message of each kind, and whichever point has
 * something is answered at once. Two exchanges, frames in order, no time passes on the way.
 */
#include "base/hash.h"
#include "exchange/exchange.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND    INT64_C(1000000000)
#define T0        (1600000000 * SECOND)
#define INTERVALS 40
#define STALLED   300 /* intervals of a run with a connection that stalls */
#define FRAMES    1024
#define PACKETS   5

struct pair;

struct end {
	struct pair *pair;
	int side;
	struct ow_exchange *x;
	unsigned provisional, final; /* results, in order */
	struct ow_interval_result last[STALLED];
};

struct pair {
	struct end end[2];
	int64_t length_ns; /* of an interval */
	bool stalls;       /* frames wait */
	struct {
		uint8_t *bytes;
		size_t size;
		int to;
	} frame[FRAMES];
	size_t frames, sent[OW_MESSAGE_TYPES];
	uint64_t bytes;
};

static void on_send(void *arg, const uint8_t *bytes, size_t size)
{
	struct end *end = arg;
	struct pair *p = end->pair;
	enum ow_message_type type;
	uint32_t lane;
	assert_true(p->frames < FRAMES);
	assert_int_equal(ow_message_peek(bytes, size, &type, &lane, NULL), 0);
	p->sent[type]++;
	p->bytes += size + 4;
	p->frame[p->frames].bytes = malloc(size);
	memcpy(p->frame[p->frames].bytes, bytes, size);
	p->frame[p->frames].size = size;
	p->frame[p->frames++].to = !end->side;
}

static void on_result(void *arg, const struct ow_interval_result *r)
{
	struct end *end = arg;
	assert_int_equal(r->interval, r->final ? end->final : end->provisional);
	*(r->final ? &end->final : &end->provisional) += 1;
	end->last[r->interval] = *r;
	assert_true(r->status == OW_RESULT_MEASURED);
}

static void create(struct pair *p, int64_t length_ns, unsigned intervals_max)
{
	memset(p, 0, sizeof *p);
	p->length_ns = length_ns;
	for (int side = 0; side < 2; side++) {
		struct end *end = &p->end[side];
		struct ow_exchange_options options = {.lane = 1,
		                                      .sending = side == 0,
		                                      .from = "a",
		                                      .to = "b",
		                                      .seed = 3,
		                                      .shared = true,
		                                      .identity = {.level = OW_LEVEL_IP},
		                                      .t0_ns = T0,
		                                      .length_ns = length_ns,
		                                      .horizon = 2,
		                                      .patience_ns = 100 * SECOND,
		                                      .intervals_max = intervals_max};
		struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result, .arg = end};
		end->pair = p;
		end->side = side;
		assert_int_equal(ow_exchange_create(&options, &sinks, &end->x), 0);
	}
}

static void deliver(struct pair *p, int64_t now_ns)
{
	struct ow_error err = {""};
	for (size_t i = 0; i < p->frames; i++) {
		if (ow_exchange_frame(p->end[p->frame[i].to].x, p->frame[i].bytes, p->frame[i].size, now_ns, &err) < 0)
			fail_msg("%s", err.text);
		free(p->frame[i].bytes);
	}
	p->frames = 0;
}

/* flow: of the packets, if there are any. */
static void close_interval(struct pair *p, int side, int64_t interval, size_t packets, uint64_t flow)
{
	struct ow_interval_packets *page = calloc(1, sizeof *page);
	page->interval = interval;
	page->start_ns = T0 + interval * p->length_ns;
	page->length_ns = p->length_ns;
	page->sighting = calloc(packets + 1, sizeof *page->sighting);
	struct ow_scope_flow key = {.flow = ow_mix64(flow), .pair = ow_mix64(flow + 1), .dest = ow_mix64(flow + 2)};
	uint32_t number = packets ? ow_lane_flows_add(&page->flows, &key, 5) : 0;
	for (size_t i = 0; i < packets; i++)
		page->sighting[i] = (struct ow_sighting){ow_mix64(flow + i + (uint64_t)interval * 100),
		                                         (int64_t)(1000 * i) + 100 * side, number};
	page->count = page->total_packets = packets;
	int64_t now_ns = T0 + (interval + 1) * p->length_ns;
	assert_int_equal(ow_exchange_packets(p->end[side].x, page, &(struct ow_clock_state){true, 1000}, now_ns), 0);
	/* All that follows from it, before the other point closes its interval. */
	while (p->frames && !p->stalls)
		deliver(p, now_ns);
}

static void destroy(struct pair *p)
{
	ow_exchange_finish(p->end[0].x, NULL);
	while (p->frames)
		deliver(p, T0 + INTERVALS * SECOND);
	ow_exchange_finish(p->end[1].x, NULL);
	while (p->frames)
		deliver(p, T0 + INTERVALS * SECOND);
	for (int side = 0; side < 2; side++) {
		assert_true(ow_exchange_done(p->end[side].x));
		assert_int_equal(p->end[side].final, p->end[side].provisional);
		ow_exchange_free(p->end[side].x);
	}
}

static void test_runs(void **state)
{
	(void)state;
	struct pair p;
	create(&p, SECOND, 5);
	for (int64_t i = 0; i < INTERVALS; i++) {
		close_interval(&p, i % 2, i, 0, 0);
		close_interval(&p, !(i % 2), i, 0, 0);
	}
	destroy(&p);
	uint64_t cost = 0;
	for (int side = 0; side < 2; side++)
		assert_int_equal(p.end[side].final, INTERVALS);
	for (unsigned i = 0; i < INTERVALS; i++) {
		const struct ow_interval_result *a = &p.end[0].last[i], *b = &p.end[1].last[i];
		assert_true(a->final && b->final && !a->sent && !b->sent);
		assert_int_equal(a->cost.bytes, b->cost.bytes);
		cost += a->cost.bytes;
	}
	/* The cost is that of the frames. One message of each kind for four intervals, but for the first ones. */
	assert_int_equal(cost, p.bytes);
	assert_in_range(p.sent[OW_MESSAGE_SCOPE], INTERVALS / 4, INTERVALS / 4 + 4);
	assert_in_range(p.sent[OW_MESSAGE_SYNOPSIS], INTERVALS / 4, INTERVALS / 4 + 4);
	assert_in_range(p.sent[OW_MESSAGE_RESULT], INTERVALS / 4, INTERVALS / 4 + 4);
	assert_int_equal(p.sent[OW_MESSAGE_ASK], 0);
}

/* In some interval of a run one of the points has packets, or both: no later than it is closed by both, it is told. */
static void test_something(void **state)
{
	(void)state;
	size_t asked = 0;
	for (int64_t at = 8; at < 16; at++) {
		for (int who = 1; who < 4; who++) {
			for (int first = 0; first < 2; first++) {
				struct pair p;
				create(&p, SECOND, 5);
				for (int64_t i = 0; i < 24; i++) {
					for (int k = 0; k < 2; k++) {
						int side = k ^ first;
						bool has = i == at && (who >> side & 1);
						close_interval(&p, side, i, has ? PACKETS : 0, 7);
					}
					if (i == at)
						assert_int_equal(p.end[0].provisional, at + 1);
				}
				destroy(&p);
				const struct ow_interval_result *r = &p.end[0].last[at];
				assert_int_equal(p.end[1].last[at].matched, r->matched);
				assert_int_equal(r->matched, who == 3 ? PACKETS : 0);
				assert_int_equal(r->lost, 0); /* its flow does not pass the other point */
				assert_int_equal(r->total_sent, who & 1 ? PACKETS : 0);
				asked += p.sent[OW_MESSAGE_ASK];
			}
		}
	}
	assert_true(asked > 0);
}

/* A connection that breaks in a run. */
static void test_reconnect(void **state)
{
	(void)state;
	struct pair p;
	create(&p, SECOND, 5);
	for (int64_t i = 0; i < INTERVALS; i++) {
		close_interval(&p, 0, i, 0, 0);
		close_interval(&p, 1, i, 0, 0);
		if (i % 5 == 3) {
			int64_t now_ns = T0 + (i + 1) * SECOND;
			for (int side = 0; side < 2; side++)
				ow_exchange_disconnected(p.end[side].x);
			for (int side = 0; side < 2; side++)
				ow_exchange_connected(p.end[side].x, now_ns);
			while (p.frames)
				deliver(&p, now_ns);
			assert_int_equal(p.end[1].provisional, i + 1);
		}
	}
	destroy(&p);
	assert_int_equal(p.end[0].final, INTERVALS);
	assert_int_equal(p.end[1].final, INTERVALS);
}

/* Packets take another way while the connection stalls for more intervals than are under way at a time: the receiving point
 * has nothing of them, and all are told when frames pass again. */
static void test_stall(void **state)
{
	(void)state;
	struct pair p;
	create(&p, SECOND / 100, STALLED);
	for (int64_t i = 0; i < STALLED; i++) {
		p.stalls = i >= 20 && i < 220;
		close_interval(&p, 0, i, PACKETS, 7);
		close_interval(&p, 1, i, i < 20 || i > 250 ? PACKETS : 0, 7);
		if (!p.stalls)
			assert_int_equal(p.end[0].provisional, i + 1);
	}
	destroy(&p);
	assert_int_equal(p.end[1].final, STALLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_something),
		cmocka_unit_test(test_reconnect),
		cmocka_unit_test(test_stall),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
