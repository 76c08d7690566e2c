/* SPDX-License-Identifier: Apache-2.0 */
/* What an unmatched packet means, and what a person is told: flows that stop, come back, are rerouted or sprayed. */
#include "scope_world.h"

#include "base/random.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static struct ow_scope_flow flow(uint32_t source, uint32_t dest, uint16_t port)
{
	struct ow_scope_hash hash;
	struct ow_scope_flow ret;
	struct ow_flow_key key = {.proto = 6, .version = 4, .sport = port};
	ow_scope_hash_seed(&hash, 7);
	memcpy(key.src, (uint8_t[]){192, 168, (uint8_t)source, 1}, 4);
	memcpy(key.dst, (uint8_t[]){10, (uint8_t)(dest >> 8), (uint8_t)dest, 1}, 4);
	ow_scope_flow_of(&hash, &key, &ret);
	ret.ttl = 60;
	return ret;
}

#define FLOWS   40
#define SECONDS 60
#define RATE    20 /* packets a second of a flow */

struct story {
	struct scope_world world;
	struct ow_scope_flow flows[FLOWS];
	struct trip trips[FLOWS * SECONDS * RATE];
	struct scope_account account;
};

/* Flows of 10.1.0.0/24, ..., each steady. `fate` decides about each packet. Half of the flows have one of `sparse` packets
 * only, and share their networks with others. */
static struct story *tell_sparse(enum trip_fate (*fate)(uint32_t flow, int64_t packet, struct ow_random *random),
                                 uint8_t (*ttl)(uint32_t flow, int64_t packet), int64_t sparse)
{
	struct story *s = calloc(1, sizeof *s);
	struct ow_random random;
	size_t n = 0;
	ow_random_seed(&random, 11);
	for (uint32_t f = 0; f < FLOWS; f++) {
		s->flows[f] = flow(f % 4, 256 + f % 8, (uint16_t)f);
		for (int64_t p = 0; p < SECONDS * RATE; p++) {
			int64_t sent_ns = p * SECOND / RATE + (int64_t)f * 1000000;
			if (f < FLOWS / 2 && p % sparse)
				continue;
			s->trips[n++] = (struct trip){.flow = f,
			                              .sent_ns = sent_ns,
			                              .arrived_ns = sent_ns + 1000000,
			                              .fate = fate(f, p, &random),
			                              .ttl_b = ttl ? ttl(f, p) : 57};
		}
	}
	s->world = (struct scope_world){.flows = s->flows,
	                                .flow_count = FLOWS,
	                                .trips = s->trips,
	                                .trip_count = n,
	                                .length_ns = SECOND,
	                                .horizon = 2,
	                                .hold = 1,
	                                .intervals = SECONDS + 4};
	scope_world_run(&s->world, &s->account);
	assert_int_equal(s->account.strays, 0);
	return s;
}

static struct story *tell(enum trip_fate (*fate)(uint32_t flow, int64_t packet, struct ow_random *random),
                          uint8_t (*ttl)(uint32_t flow, int64_t packet))
{
	return tell_sparse(fate, ttl, 1);
}

static const struct ow_scope_event *find(const struct story *s, enum ow_scope_event_kind kind)
{
	for (size_t i = 0; i < s->account.events; i++) {
		if (s->account.event[i].kind == kind)
			return &s->account.event[i];
	}
	return NULL;
}

static enum trip_fate all_arrive(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)f, (void)packet, (void)random;
	return TRIP_ARRIVES;
}

static enum trip_fate some_lost(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)f, (void)packet;
	return ow_random_unit(random) < .1 ? TRIP_LOST : TRIP_ARRIVES;
}

/* Loss by chance is lost, all of it, and no event. */
static void test_loss(void **state)
{
	(void)state;
	struct story *s = tell(some_lost, NULL);
	assert_true(s->account.lost > 1000);
	assert_int_equal(s->account.missed, 0);
	assert_int_equal(s->account.false_lost, 0);
	assert_int_equal(s->account.events, 0);
	assert_true(s->account.sums.whole * 100 <= s->account.lost);
	free(s);
}

/* The last packet of two networks in a second, each 7 s; flows of others come after it. */
static enum trip_fate last_lost(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)random;
	return f == 32 && packet % (7 * RATE) == RATE - 1 ? TRIP_LOST : TRIP_ARRIVES;
}

/* A single lost packet is not of a whole flow, though its networks have no other in its interval after it, and the next
 * intervals have no loss at all. */
static void test_single_losses(void **state)
{
	(void)state;
	struct story *s = tell(last_lost, NULL);
	assert_int_equal(s->account.lost, (SECONDS + 6) / 7);
	assert_int_equal(s->account.missed, 0);
	assert_int_equal(s->account.sums.whole, 0);
	assert_int_equal(s->account.events, 0);
	free(s);
}

/* A half of the flows takes another way for 30 s. */
static enum trip_fate half_detoured(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)random;
	return f % 8 < 4 && packet >= 20 * RATE + 5 && packet < 50 * RATE ? TRIP_ELSEWHERE : TRIP_ARRIVES;
}

static void test_stopped(void **state)
{
	(void)state;
	struct story *s = tell(half_detoured, NULL);
	const struct ow_scope_event *stopped = find(s, OW_SCOPE_STOPPED), *back = find(s, OW_SCOPE_BACK);
	assert_non_null(stopped);
	assert_int_equal(stopped->interval, 20);
	assert_in_range(stopped->time_ns, SECOND / 4, SECOND / 4 + 50000000);
	assert_int_equal(stopped->flows, FLOWS / 2);
	/* 10.1.0.0/24 to 10.1.3.0/24 */
	assert_int_equal(stopped->bits, 22);
	assert_memory_equal(stopped->network, ((uint8_t[]){10, 1, 0}), 3);
	assert_non_null(back);
	assert_int_equal(back->interval, 50);
	assert_int_equal(back->flows, FLOWS / 2);
	/* Lost for 10 s, as whole flows, then unshared; and lost again in the 2 s before they are back, when their
	 * destinations pass again. */
	assert_in_range(s->account.false_lost, 10 * RATE * FLOWS / 2, 13 * RATE * FLOWS / 2);
	assert_int_equal(s->account.false_whole, s->account.false_lost);
	free(s);
}

static enum trip_fate all_detoured(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)random;
	(void)f;
	return packet >= 20 * RATE + 3 && packet < 28 * RATE ? TRIP_ELSEWHERE : TRIP_ARRIVES;
}

/* All of it goes another way for 8 s and is back: what was lost is of whole flows, up to the last packet; also of flows
 * with one packet in 6 s, which go the way of their networks. */
static void test_detour(void **state)
{
	(void)state;
	struct story *s = tell_sparse(all_detoured, NULL, 6 * RATE);
	assert_int_equal(s->account.false_whole, s->account.false_lost);
	assert_true(s->account.false_lost >= 7 * RATE * FLOWS / 2);
	free(s);
}

/* A route flaps: every 2 s, all packets take another way for 300 ms. */
static enum trip_fate flapping(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)f, (void)random;
	return packet >= 20 * RATE && packet < 40 * RATE && (packet + 7) % (2 * RATE) < 6 ? TRIP_ELSEWHERE
	                                                                                  : TRIP_ARRIVES;
}

/* Some flows move to and fro every 2 s, others of their networks do not. */
static enum trip_fate moving(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)random;
	return f % 3 == 0 && packet / (2 * RATE) % 2 ? TRIP_ELSEWHERE : TRIP_ARRIVES;
}

/* What may have taken another way for a moment is said; and random losses besides are not. */
static void test_flaps(void **state)
{
	(void)state;
	struct story *s = tell_sparse(flapping, NULL, 6 * RATE);
	assert_true(s->account.false_lost > 20 * RATE);
	assert_int_equal(s->account.false_whole, s->account.false_lost);
	free(s);
	s = tell(moving, NULL);
	assert_true(s->account.false_lost > 10 * RATE * FLOWS / 3);
	assert_int_equal(s->account.false_whole, s->account.false_lost);
	free(s);
}

static uint8_t another_route(uint32_t f, int64_t packet)
{
	return f % 8 == 3 && packet >= 30 * RATE ? 55 : 57;
}

static void test_rerouted(void **state)
{
	(void)state;
	struct story *s = tell(all_arrive, another_route);
	const struct ow_scope_event *event = find(s, OW_SCOPE_REROUTED);
	assert_non_null(event);
	assert_int_equal(event->interval, 30);
	assert_int_equal(event->ttl_change, -2);
	assert_int_equal(event->bits, 24);
	assert_memory_equal(event->network, ((uint8_t[]){10, 1, 3}), 3);
	assert_int_equal(s->account.events, 1);
	free(s);
}

static enum trip_fate every_second(uint32_t f, int64_t packet, struct ow_random *random)
{
	(void)random;
	return f % 8 == 5 && (packet + f) % 2 ? TRIP_ELSEWHERE : TRIP_ARRIVES;
}

static void test_sprayed(void **state)
{
	(void)state;
	struct story *s = tell(every_second, NULL);
	const struct ow_scope_event *event = find(s, OW_SCOPE_SPRAYED);
	assert_non_null(event);
	assert_memory_equal(event->network, ((uint8_t[]){10, 1, 5}), 3);
	assert_true(event->share > .45 && event->share < .55);
	assert_true(event->flows >= 4);
	free(s);
}

/* -- by hand ------------------------------------------------------------------------------------------------------- */

/* Nothing matches at all: nothing is lost. */
static void test_unshared(void **state)
{
	(void)state;
	struct ow_scope_verdict_options options = {SECOND, 2, 0};
	struct ow_scope_verdict *v;
	struct ow_scope_flow flows[2] = {flow(1, 1, 1), flow(1, 2, 1)};
	struct ow_scope_packet packets[4] = {{0, 0, false}, {1, 10, false}, {0, 20, false}, {1, 30, false}};
	struct ow_sighting sightings[4] = {{1, 0, 1}, {2, 10, 2}, {3, 20, 1}, {4, 30, 2}};
	uint8_t matched[4] = {0}, fate[4];
	struct ow_scope_sums sums;
	flows[0].packets = flows[1].packets = 2;
	assert_int_equal(ow_scope_verdict_create(&options, &v), 0);
	for (int64_t i = 0; i < 5; i++) {
		assert_int_equal(ow_scope_verdict_note(v, i, flows, 2, sightings, matched, 4), 0);
		assert_int_equal(ow_scope_verdict_judge(v, i, flows, 2, packets, 4, fate, &sums), 0);
		assert_int_equal(sums.unshared, 4);
		assert_int_equal(sums.networks, 2);
		assert_int_equal(sums.lost + sums.absent + sums.whole, 0);
		for (int k = 0; k < 4; k++)
			assert_int_equal(fate[k], OW_SCOPE_UNSHARED);
	}
	/* A packet of an unknown flow that matched says nothing of other flows. */
	sightings[2].flow = 0;
	matched[2] = 1;
	assert_int_equal(ow_scope_verdict_note(v, 5, flows, 2, sightings, matched, 4), 0);
	assert_int_equal(ow_scope_verdict_judge(v, 5, flows, 2, packets, 4, fate, &sums), 0);
	assert_int_equal(sums.unshared, 4);
	/* Not in order; a flow that is not there. */
	assert_int_equal(ow_scope_verdict_note(v, 5, flows, 2, sightings, matched, 4), -EINVAL);
	sightings[3].flow = 3;
	assert_int_equal(ow_scope_verdict_note(v, 6, flows, 2, sightings, matched, 4), -EINVAL);
	packets[3].flow = 2;
	assert_int_equal(ow_scope_verdict_judge(v, 4, flows, 2, packets, 4, fate, &sums), -EINVAL);
	ow_scope_verdict_free(v);
	options.horizon = 0;
	assert_int_equal(ow_scope_verdict_create(&options, &v), -EINVAL);
}

/* Fragments that are not the first may have been joined on the way: they are lost only where such fragments arrive. */
static void test_later_fragments(void **state)
{
	(void)state;
	struct ow_scope_verdict_options options = {SECOND, 2, 0};
	struct ow_scope_verdict *v;
	struct ow_scope_flow flows[2] = {flow(1, 1, 1), flow(1, 1, 2)};
	struct ow_scope_packet packets[2] = {{0, 10, true}, {1, 10, true}};
	struct ow_sighting sightings[4] = {{1, 10, 1}, {2, 10, 2}, {3, 20, 1}, {4, 20, 2}};
	uint8_t matched[4] = {[2] = 1}, fate[2];
	struct ow_scope_sums sums;
	flows[0].packets = flows[1].packets = 2;
	flows[1].later = true;
	assert_int_equal(ow_scope_verdict_create(&options, &v), 0);
	for (int64_t i = 0; i < 20; i++) {
		/* Half of the packets are lost, so that all of a flow may well be. */
		matched[3] = i >= 10;
		assert_int_equal(ow_scope_verdict_note(v, i, flows, 2, sightings, matched, 4), 0);
		assert_int_equal(ow_scope_verdict_judge(v, i, flows, 2, packets, 2, fate, &sums), 0);
		/* Before the first packet of the networks nothing arrived. */
		assert_int_equal(fate[0], i ? OW_SCOPE_LOST : OW_SCOPE_LOST_WHOLE);
		if (i != 10) /* there it is the end of a run in which nothing arrived */
			assert_int_equal(fate[1], i > 10 ? OW_SCOPE_LOST : OW_SCOPE_ABSENT);
	}
	ow_scope_verdict_free(v);
}

/* 200 flows of one packet a second, and after them 20 long ones. */
static void judge_short_flows(bool long_absent, int64_t since, struct ow_scope_sums *ret_sums)
{
	enum { SHORT = 200, LONG = 20, PACKETS = 10 };
	struct ow_scope_verdict_options options = {SECOND, 2, 0};
	struct ow_scope_verdict *v;
	static struct ow_scope_flow flows[SHORT + LONG];
	static struct ow_sighting sightings[PACKETS * (SHORT + LONG)];
	static struct ow_scope_packet packets[PACKETS * (SHORT + LONG)];
	static uint8_t matched[PACKETS * (SHORT + LONG)], fate[PACKETS * (SHORT + LONG)];
	assert_int_equal(ow_scope_verdict_create(&options, &v), 0);
	*ret_sums = (struct ow_scope_sums){0};
	for (int64_t i = 0; i < 20; i++) {
		size_t n = 0, unmatched = 0;
		for (uint32_t f = 0; f < SHORT + LONG; f++)
			flows[f] = flow(1, 1, (uint16_t)(f >= SHORT ? f : 1000 + f + i * SHORT));
		for (uint32_t p = 0; p < PACKETS; p++) {
			for (uint32_t f = 0; f < SHORT + LONG; f++) {
				int64_t time_ns = p * (SECOND / PACKETS) + f * 100000;
				if (f < SHORT && f % PACKETS != p)
					continue;
				matched[n] = f >= SHORT ? !long_absent || f % 2 : (f / 4 + i) % 10 != 0;
				if (!matched[n])
					packets[unmatched++] = (struct ow_scope_packet){f, time_ns, true};
				flows[f].packets++;
				sightings[n++] = (struct ow_sighting){n, time_ns, f + 1};
			}
		}
		struct ow_scope_sums sums;
		assert_int_equal(ow_scope_verdict_note(v, i, flows, SHORT + LONG, sightings, matched, n), 0);
		assert_int_equal(ow_scope_verdict_judge(v, i, flows, SHORT + LONG, packets, unmatched, fate, &sums), 0);
		assert_int_equal(sums.lost + sums.unshared, unmatched);
		if (i < since)
			continue;
		ret_sums->lost += sums.lost;
		ret_sums->absent += sums.absent;
		ret_sums->unsure += sums.unsure;
	}
	ow_scope_verdict_free(v);
}

/* One in ten flows of one packet does not arrive, and long flows lose nothing: that may be loss of another kind, or another
 * way. If long flows are absent, too, there is another way. */
static void test_short_flows(void **state)
{
	struct ow_scope_sums sums;
	(void)state;
	judge_short_flows(false, 5, &sums);
	assert_int_equal(sums.lost + sums.unsure, 15 * 20);
	assert_true(sums.unsure >= 14 * 20);
	/* From the first interval on: long flows are judged before short ones. */
	judge_short_flows(true, 0, &sums);
	assert_int_equal(sums.unsure, 0);
	assert_int_equal(sums.lost, 0);
}

#define NEIGHBOURS 20 /* flows of each kind between the two networks */

struct interval_packets {
	struct ow_scope_flow flows[2 + 2 * NEIGHBOURS];
	struct ow_sighting sightings[200];
	struct ow_scope_packet unmatched[200];
	uint8_t matched[200];
	size_t packets, unmatched_packets;
};

static void put(struct interval_packets *p, uint32_t f, int64_t time_ns, bool matched)
{
	p->matched[p->packets] = matched;
	p->sightings[p->packets] = (struct ow_sighting){p->packets, time_ns, f + 1};
	p->flows[f].packets++;
	p->packets++;
	if (!matched)
		p->unmatched[p->unmatched_packets++] = (struct ow_scope_packet){f, time_ns, true};
}

/* Half of the flows take another way. So does the last one, which has one packet, sent when 2 of 10 are lost: that it
 * is not lost follows from the flows of its own interval, whatever new flows arrive in the next ones. */
static void test_share_of_an_interval(void **state)
{
	(void)state;
	enum { STEADY, PRESENT, ABSENT = PRESENT + NEIGHBOURS, LAST = ABSENT + NEIGHBOURS, AFTER = 3 };
	static const int64_t ms = 1000000;
	struct ow_scope_verdict_options options = {SECOND, AFTER, 0};
	struct ow_scope_verdict *v;
	static struct interval_packets p, next;
	static uint8_t fate[200];
	struct ow_scope_sums sums;
	for (uint32_t f = 0; f <= LAST; f++)
		p.flows[f] = flow(1, 1, (uint16_t)f);
	for (uint32_t k = 0; k < NEIGHBOURS; k++)
		put(&p, PRESENT + k, (k + 1) * ms, true);
	for (int64_t round = 1; round <= 4; round++) {
		for (uint32_t k = 0; k < NEIGHBOURS; k++)
			put(&p, ABSENT + k, 100 * round * ms + k * ms, false);
	}
	for (int i = 0; i < 10; i++)
		put(&p, STEADY, 900 * ms + i * ms / 10, i != 3 && i != 7);
	put(&p, LAST, 901 * ms, false);
	assert_int_equal(ow_scope_verdict_create(&options, &v), 0);
	assert_int_equal(ow_scope_verdict_note(v, 0, p.flows, LAST + 1, p.sightings, p.matched, p.packets), 0);
	for (int64_t i = 1; i <= AFTER; i++) {
		next = (struct interval_packets){0};
		for (uint32_t f = 0; f < LAST; f++) {
			next.flows[f] = flow(1, 1, (uint16_t)(1000 * i + f));
			put(&next, f, f * ms, true);
		}
		assert_int_equal(
			ow_scope_verdict_note(v, i, next.flows, LAST, next.sightings, next.matched, next.packets), 0);
	}
	assert_int_equal(ow_scope_verdict_judge(v, 0, p.flows, LAST + 1, p.unmatched, p.unmatched_packets, fate, &sums),
	                 0);
	assert_int_equal(sums.lost, 2);
	assert_int_equal(sums.absent, 4 * NEIGHBOURS + 1);
	ow_scope_verdict_free(v);
}

/* More flows than the tables hold: bounded, conserved, and no loss of what does not pass. */
static void test_flood(void **state)
{
	(void)state;
	enum { FLOOD = 120000, PASSING = 50 };
	struct ow_scope_verdict_options options = {SECOND, 2, 0};
	struct ow_scope_verdict *v;
	struct ow_scope_flow *flows = calloc(FLOOD + PASSING, sizeof *flows);
	struct ow_sighting *sightings = calloc(FLOOD + PASSING, sizeof *sightings);
	struct ow_scope_packet *packets = calloc(FLOOD, sizeof *packets);
	uint8_t *matched = calloc(FLOOD + PASSING, 1), *fate = calloc(FLOOD, 1);
	struct ow_scope_sums sums;
	assert_int_equal(ow_scope_verdict_create(&options, &v), 0);
	for (int64_t i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < FLOOD + PASSING; k++) {
			/* The last ones pass, to other networks. */
			flows[k] = k < FLOOD ? flow(k, 300 + k % 60000, (uint16_t)(i * 7 + k)) : flow(1, k - FLOOD, 1);
			flows[k].flow ^= k < FLOOD ? (uint64_t)(i + 1) << 32 ^ k : 0;
			flows[k].packets = 1;
			sightings[k] = (struct ow_sighting){k + 1, (int64_t)k * 5000, k + 1};
			matched[k] = k >= FLOOD;
			if (k < FLOOD)
				packets[k] = (struct ow_scope_packet){k, (int64_t)k * 5000, true};
		}
		assert_int_equal(
			ow_scope_verdict_note(v, i, flows, FLOOD + PASSING, sightings, matched, FLOOD + PASSING), 0);
		assert_int_equal(ow_scope_verdict_judge(v, i, flows, FLOOD + PASSING, packets, FLOOD, fate, &sums), 0);
		assert_int_equal(sums.lost, 0);
		assert_int_equal(sums.unshared, FLOOD);
	}
	ow_scope_verdict_free(v);
	free(flows);
	free(sightings);
	free(packets);
	free(matched);
	free(fate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),     cmocka_unit_test(test_single_losses),
		cmocka_unit_test(test_stopped),  cmocka_unit_test(test_detour),
		cmocka_unit_test(test_flaps),    cmocka_unit_test(test_short_flows),
		cmocka_unit_test(test_rerouted), cmocka_unit_test(test_sprayed),
		cmocka_unit_test(test_unshared), cmocka_unit_test(test_later_fragments),
		cmocka_unit_test(test_flood),    cmocka_unit_test(test_share_of_an_interval)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
