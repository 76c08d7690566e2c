/* SPDX-License-Identifier: Apache-2.0 */
/* The direction of flows, and which packets without a counterpart are lost: the rules one by one. */
#include "packet/flow.h"
#include "reconcile/directions.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define US 1000

struct world {
	struct ow_directions *directions;
	struct ow_flow_table *table[OW_SIDES];
};

static int setup(void **state)
{
	static struct world world;
	*state = &world;
	if (ow_directions_create(&world.directions) < 0)
		return -1;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (ow_flow_table_create(1, &world.table[side]) < 0)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	ow_directions_free(w->directions);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_table_free(w->table[side]);
	return 0;
}

static uint32_t number(struct world *w, enum ow_side side, const char *src, uint16_t sport, const char *dst,
                       uint16_t dport)
{
	struct ow_flow_key key = {.sport = sport, .dport = dport, .proto = 17};
	key.version = strchr(src, ':') ? 6 : 4;
	int family = key.version == 6 ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(family, src, key.src), 1);
	assert_int_equal(inet_pton(family, dst, key.dst), 1);
	return ow_flow_table_number(w->table[side], &key);
}

static struct ow_flow_evidence *evidence(struct world *w, enum ow_side side, const char *src, uint16_t sport,
                                         const char *dst, uint16_t dport)
{
	struct ow_flow_evidence *e = ow_directions_flow(w->directions, side, number(w, side, src, sport, dst, dport));
	assert_non_null(e);
	return e;
}

/* Packets that matched, seen at both sides. delay_ns: B minus A. */
static void matched(struct world *w, const char *src, uint16_t sport, const char *dst, uint16_t dport, unsigned packets,
                    int64_t delay_ns)
{
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_evidence_vote(evidence(w, side, src, sport, dst, dport), delay_ns, packets);
}

static struct ow_flow_repeats *repeats(struct world *w, enum ow_side side, const char *src, uint16_t sport,
                                       const char *dst, uint16_t dport)
{
	(void)evidence(w, side, src, sport, dst, dport);
	return ow_directions_repeats(w->directions, side, number(w, side, src, sport, dst, dport));
}

static void unmatched(struct world *w, enum ow_side side, const char *src, uint16_t sport, const char *dst,
                      uint16_t dport, unsigned packets)
{
	struct ow_flow_evidence *e = evidence(w, side, src, sport, dst, dport);
	uint32_t flow = number(w, side, src, sport, dst, dport);
	for (unsigned i = 0; i < packets; i++) {
		e->unmatched++;
		assert_int_equal(ow_directions_missed(w->directions, side, flow, (int64_t)e->unmatched * 20000 * US),
		                 0);
	}
}

static int64_t decide(struct world *w, bool one_direction)
{
	const struct ow_flow_table *const keys[OW_SIDES] = {w->table[OW_SIDE_A], w->table[OW_SIDE_B]};
	return ow_directions_decide(w->directions, keys, one_direction ? OW_ALL_FORWARD : OW_BY_VOTES, OW_A_TO_B, 0);
}

#define assert_way(w, side, src, sport, dst, dport, way) \
	assert_int_equal(evidence(w, side, src, sport, dst, dport)->direction, way)

static void a_flow_goes_the_way_of_most_of_its_packets(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 90, 20 * US);
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 10, -5 * US); /* timestamps that are a little off */
	matched(w, "10.2.0.1", 1, "10.3.0.1", 80, 10, -20 * US);
	assert_int_equal(decide(w, false), 0);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_way(w, side, "10.0.0.1", 1, "10.1.0.1", 80, OW_A_TO_B);
		assert_way(w, side, "10.2.0.1", 1, "10.3.0.1", 80, OW_B_TO_A);
		assert_true(evidence(w, side, "10.0.0.1", 1, "10.1.0.1", 80)->decided);
	}
}

/* The flows between two hosts share their direction: one with few, unlucky packets is outvoted. */
static void flows_of_a_pair_of_hosts_go_one_way(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 1000, 20 * US);
	matched(w, "10.0.0.1", 2, "10.1.0.1", 80, 1, -1 * US);
	matched(w, "10.1.0.1", 80, "10.0.0.1", 1, 500, -30 * US);
	decide(w, false);
	assert_way(w, OW_SIDE_A, "10.0.0.1", 2, "10.1.0.1", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_A, "10.1.0.1", 80, "10.0.0.1", 1, OW_B_TO_A);
}

/* B's clock is far ahead, or behind: both directions have the same sign, but different values. */
static void clocks_apart_do_not_turn_a_direction(void **state)
{
	struct world *w = *state;
	static const int64_t offsets[] = {1000 * US, -1000 * US};
	for (unsigned i = 0; i < 2; i++) {
		char a[16], b[16];
		(void)snprintf(a, sizeof a, "10.0.%u.1", i);
		(void)snprintf(b, sizeof b, "10.1.%u.1", i);
		matched(w, a, 1, b, 80, 1000, 20 * US + offsets[i]);
		matched(w, b, 80, a, 1, 10, -20 * US + offsets[i]);
	}
	decide(w, false);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_way(w, side, "10.0.0.1", 1, "10.1.0.1", 80, OW_A_TO_B);
		assert_way(w, side, "10.1.0.1", 80, "10.0.0.1", 1, OW_B_TO_A);
		assert_way(w, side, "10.0.1.1", 1, "10.1.1.1", 80, OW_A_TO_B);
		assert_way(w, side, "10.1.1.1", 80, "10.0.1.1", 1, OW_B_TO_A);
	}
}

static void without_any_delay_the_busier_way_is_taken_for_a_to_b(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 10, 0);
	matched(w, "10.1.0.1", 80, "10.0.0.1", 1, 20, 0);
	decide(w, false);
	assert_way(w, OW_SIDE_A, "10.1.0.1", 80, "10.0.0.1", 1, OW_A_TO_B);
	assert_way(w, OW_SIDE_B, "10.0.0.1", 1, "10.1.0.1", 80, OW_B_TO_A);
}

/* The clock offset is estimated, and may be off by 50 ms: a shorter delay of hosts with one direction shows nothing. */
static void delays_below_the_error_of_the_clock_show_no_direction(void **state)
{
	struct world *w = *state;
	const struct ow_flow_table *const keys[OW_SIDES] = {w->table[OW_SIDE_A], w->table[OW_SIDE_B]};
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 1000, 700000 * US);
	matched(w, "10.1.0.1", 80, "10.0.0.1", 1, 1000, -100000 * US);
	matched(w, "10.1.0.1", 1, "10.0.0.7", 23, 20, 40000 * US);      /* its networks are known, */
	matched(w, "10.0.0.1", 1, "10.1.0.8", 23, 1, -60000 * US);      /* it is longer, */
	matched(w, "192.0.2.1", 1, "198.51.100.1", 23, 20, 40000 * US); /* nothing else is known */
	assert_true(ow_directions_decide(w->directions, keys, OW_BY_VOTES, OW_A_TO_B, 50000 * US) >= 0);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_way(w, side, "10.1.0.1", 1, "10.0.0.7", 23, OW_B_TO_A);
		assert_way(w, side, "10.0.0.1", 1, "10.1.0.8", 23, OW_B_TO_A);
		assert_way(w, side, "192.0.2.1", 1, "198.51.100.1", 23, OW_A_TO_B);
	}
}

/* A nanosecond and a microsecond clock, and a delay below a tick: single packets seem to come before they were sent. */
static void delays_of_a_tick_are_no_evidence_against_the_network(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 1000, 20 * US);
	matched(w, "10.1.0.1", 80, "10.0.0.1", 1, 1000, -20 * US);
	matched(w, "10.0.0.2", 1, "10.1.0.2", 80, 1, -900);
	matched(w, "10.0.0.3", 1, "10.1.0.3", 80, 2, -900); /* two of three votes, but not by their mean */
	matched(w, "10.0.0.3", 1, "10.1.0.3", 80, 1, 30 * US);
	matched(w, "10.1.0.4", 1, "10.0.0.4", 80, 1, 0);
	matched(w, "10.0.0.5", 1, "10.1.0.5", 80, 5, -100 * US); /* this is no matter of ticks */
	matched(w, "192.0.2.1", 1, "198.51.100.1", 80, 1, -900); /* nothing else is known of these */
	decide(w, false);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_way(w, side, "10.0.0.2", 1, "10.1.0.2", 80, OW_A_TO_B);
		assert_way(w, side, "10.0.0.3", 1, "10.1.0.3", 80, OW_A_TO_B);
		assert_way(w, side, "10.1.0.4", 1, "10.0.0.4", 80, OW_B_TO_A);
		assert_way(w, side, "10.0.0.5", 1, "10.1.0.5", 80, OW_B_TO_A);
		assert_way(w, side, "192.0.2.1", 1, "198.51.100.1", 80, OW_B_TO_A);
	}
}

/* A flow that lost all it had, between hosts of which more is known. */
static void a_lost_flow_takes_the_way_of_its_pair(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 1000, 20 * US);
	unmatched(w, OW_SIDE_A, "10.0.0.1", 1, "10.1.0.1", 80, 10);
	unmatched(w, OW_SIDE_A, "10.0.0.1", 2, "10.1.0.1", 80, 1);
	unmatched(w, OW_SIDE_B, "10.1.0.1", 80, "10.0.0.1", 3, 1); /* nothing goes back: that may be another way */
	decide(w, false);
	assert_way(w, OW_SIDE_A, "10.0.0.1", 2, "10.1.0.1", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_B, "10.1.0.1", 80, "10.0.0.1", 3, OW_DIRECTIONS);
}

/* New hosts are where their neighbours are: the smallest network that is known decides. Nothing is lost of networks that
 * never pass. */
static void networks_have_sides(void **state)
{
	struct world *w = *state;
	for (uint16_t port = 1; port <= 50; port++) {
		matched(w, "10.0.1.1", port, "10.1.0.1", 80, 100, 20 * US);
		matched(w, "10.1.0.1", 80, "10.0.1.1", port, 100, -20 * US);
		unmatched(w, OW_SIDE_A, "10.0.1.1", port, "10.1.0.1", 80, 2); /* losses are usual */
		unmatched(w, OW_SIDE_B, "10.1.0.1", 80, "10.0.1.1", port, 2);
	}
	matched(w, "10.1.5.1", 1, "10.0.5.1", 80, 50, -20 * US); /* 10.1.0.0/16 is at B's side */
	matched(w, "2001:db8:1::1", 1, "2001:db8:2::1", 80, 10, 20 * US);
	unmatched(w, OW_SIDE_A, "10.0.1.99", 1, "10.1.0.99", 80, 1);
	unmatched(w, OW_SIDE_A, "10.0.99.1", 1, "10.1.0.98", 80, 1);
	unmatched(w, OW_SIDE_B, "10.1.99.9", 1, "10.0.99.9", 80, 1);
	unmatched(w, OW_SIDE_A, "2001:db8:1::99", 1, "2001:db8:2::99", 80, 1);
	unmatched(w, OW_SIDE_A, "10.0.1.98", 1, "192.0.2.1", 80, 1); /* to the unknown */
	unmatched(w, OW_SIDE_B, "192.0.2.1", 80, "10.0.1.97", 1, 1); /* and back */
	unmatched(w, OW_SIDE_A, "10.0.1.96", 1, "10.0.1.95", 80, 1); /* neighbours: need not pass */
	decide(w, false);
	assert_way(w, OW_SIDE_A, "10.0.1.99", 1, "10.1.0.99", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_A, "10.0.99.1", 1, "10.1.0.98", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_B, "10.1.99.9", 1, "10.0.99.9", 80, OW_DIRECTIONS);
	assert_way(w, OW_SIDE_A, "2001:db8:1::99", 1, "2001:db8:2::99", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_A, "10.0.1.98", 1, "192.0.2.1", 80, OW_DIRECTIONS);
	assert_way(w, OW_SIDE_B, "192.0.2.1", 80, "10.0.1.97", 1, OW_B_TO_A); /* to a network that others reach */
	assert_way(w, OW_SIDE_A, "10.0.1.96", 1, "10.0.1.95", 80, OW_DIRECTIONS);
}

/* A conversation of which one point saw both directions was not lost on the way to the other. */
static void answered_flows_pass_by(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 100, 20 * US);
	unmatched(w, OW_SIDE_A, "10.0.0.2", 1, "10.1.0.2", 80, 3);
	unmatched(w, OW_SIDE_A, "10.1.0.2", 80, "10.0.0.2", 1, 3);
	unmatched(w, OW_SIDE_A, "10.0.0.1", 9, "10.1.0.1", 80, 1); /* also between known hosts */
	unmatched(w, OW_SIDE_A, "10.1.0.1", 80, "10.0.0.1", 9, 1);
	decide(w, false);
	assert_way(w, OW_SIDE_A, "10.0.0.2", 1, "10.1.0.2", 80, OW_DIRECTIONS);
	assert_way(w, OW_SIDE_A, "10.1.0.2", 80, "10.0.0.2", 1, OW_DIRECTIONS);
	assert_way(w, OW_SIDE_A, "10.0.0.1", 9, "10.1.0.1", 80, OW_DIRECTIONS);
}

static void what_stays_on_the_link_is_no_loss(void **state)
{
	struct world *w = *state;
	static const char *const stays[][2] = {
		{"10.0.0.2", "224.0.0.251"}, {"10.0.0.2", "255.255.255.255"}, {"0.0.0.0", "10.1.0.1"},
		{"169.254.1.1", "10.1.0.9"}, {"fe80::1", "ff02::fb"},         {"2001:db8::1", "fe80::2"},
	};
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 100, 20 * US);
	for (unsigned i = 0; i < sizeof stays / sizeof *stays; i++)
		unmatched(w, OW_SIDE_A, stays[i][0], 5353, stays[i][1], 5353, 1);
	decide(w, false);
	for (unsigned i = 0; i < sizeof stays / sizeof *stays; i++)
		assert_way(w, OW_SIDE_A, stays[i][0], 5353, stays[i][1], 5353, OW_DIRECTIONS);
}

static const char *host(char text[16], uint8_t network, uint16_t i)
{
	(void)snprintf(text, 16, "10.%u.%u.%u", network, i / 200, 1 + i % 200);
	return text;
}

/*
 * ECMP: half of the flows take another path. A flow of many packets that never matched passes by; that of one packet
 * may be lost or pass by, and passing by is likelier.
 */
static void flows_on_another_path_are_not_lost(void **state)
{
	struct world *w = *state;
	char a[16], b[16];
	for (unsigned i = 0; i < 200; i++) {
		if (i % 2)
			matched(w, host(a, 0, i), 1, host(b, 1, i), 80, 100, 20 * US);
		else
			unmatched(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, i % 4 ? 100 : 1);
	}
	decide(w, false);
	for (unsigned i = 0; i < 200; i++)
		assert_way(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, i % 2 ? OW_A_TO_B : OW_DIRECTIONS);
}

/*
 * Flows of three packets, half of them on another path: nobody loses three packets where nothing else is lost. Flows of
 * one packet to networks that never pass are not lost either.
 */
static void small_flows_on_another_path_are_not_lost(void **state)
{
	struct world *w = *state;
	char a[16], b[16];
	for (unsigned i = 0; i < 200; i++) {
		if (i % 2)
			matched(w, host(a, 0, i), 1, host(b, 1, i), 80, 3, 20 * US);
		else
			unmatched(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, 3);
		unmatched(w, OW_SIDE_A, host(a, 0, i), 2, host(b, 2, i), 53, 1);
	}
	decide(w, false);
	for (unsigned i = 0; i < 200; i++) {
		assert_way(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, i % 2 ? OW_A_TO_B : OW_DIRECTIONS);
		assert_way(w, OW_SIDE_A, host(a, 0, i), 2, host(b, 2, i), 53, OW_DIRECTIONS);
	}
}

/* All packets are lost for a moment: then flows that had all of theirs in it are lost as well. */
static void flows_within_a_burst_are_lost(void **state)
{
	struct world *w = *state;
	char a[16], b[16];
	for (unsigned i = 0; i < 200; i++) {
		matched(w, host(a, 0, i), 1, host(b, 1, i), 80, 100, 20 * US);
		for (int64_t k = 0; k < 100; k++)
			ow_directions_sent(w->directions, OW_A_TO_B, k * 20000 * US, 1, k >= 1 && k <= 3);
	}
	unmatched(w, OW_SIDE_A, host(a, 0, 3), 2, host(b, 1, 4), 80, 3);
	decide(w, false);
	assert_way(w, OW_SIDE_A, host(a, 0, 3), 2, host(b, 1, 4), 80, OW_A_TO_B);
}

/* No flow passes by, one packet in a hundred is lost: then a flow of one packet that is missing was lost. */
static void flows_of_one_packet_can_be_lost(void **state)
{
	struct world *w = *state;
	char a[16], b[16];
	for (unsigned i = 0; i < 300; i++) {
		if (i % 30) {
			matched(w, host(a, 0, i), 1, host(b, 1, i), 80, 99, 20 * US);
			unmatched(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, 1);
		} else {
			unmatched(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, 1);
		}
	}
	decide(w, false);
	for (unsigned i = 0; i < 300; i++)
		assert_way(w, OW_SIDE_A, host(a, 0, i), 1, host(b, 1, i), 80, OW_A_TO_B);
}

/* Unknown hosts may be anywhere: their packets are not lost, even if all traffic goes one way. */
static void strangers_are_unclassified(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "20.0.0.1", 80, 100, 20 * US);
	unmatched(w, OW_SIDE_A, "30.0.0.1", 1, "40.0.0.1", 80, 1);
	decide(w, false);
	assert_way(w, OW_SIDE_A, "30.0.0.1", 1, "40.0.0.1", 80, OW_DIRECTIONS);
	matched(w, "20.0.0.1", 80, "10.0.0.1", 1, 100, -20 * US);
	decide(w, false);
	assert_way(w, OW_SIDE_A, "30.0.0.1", 1, "40.0.0.1", 80, OW_DIRECTIONS);
}

static void one_direction_leaves_no_question(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 100, -20 * US);
	unmatched(w, OW_SIDE_A, "10.0.0.2", 1, "224.0.0.1", 80, 3);
	unmatched(w, OW_SIDE_B, "10.9.0.2", 1, "10.8.0.1", 80, 3);
	decide(w, true);
	assert_way(w, OW_SIDE_A, "10.0.0.1", 1, "10.1.0.1", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_A, "10.0.0.2", 1, "224.0.0.1", 80, OW_A_TO_B);
	assert_way(w, OW_SIDE_B, "10.9.0.2", 1, "10.8.0.1", 80, OW_A_TO_B);
}

static void miscounted_matches_are_told_and_a_restart_keeps_decisions(void **state)
{
	struct world *w = *state;
	matched(w, "10.0.0.1", 1, "10.1.0.1", 80, 100, 20 * US);
	struct ow_flow_evidence *e = evidence(w, OW_SIDE_A, "10.0.0.1", 1, "10.1.0.1", 80);
	e->counted[OW_A_TO_B] = 93;
	e->counted[OW_B_TO_A] = 7;
	assert_int_equal(decide(w, false), 7);
	ow_directions_restart(w->directions);
	e = evidence(w, OW_SIDE_A, "10.0.0.1", 1, "10.1.0.1", 80);
	assert_int_equal(e->matched, 0);
	assert_int_equal(e->counted[OW_B_TO_A], 0);
	assert_true(e->decided);
	assert_int_equal(e->direction, OW_A_TO_B);
}

static void many_flows(void **state)
{
	struct world *w = *state;
	char a[16], b[16];
	for (unsigned i = 0; i < 30000; i++)
		matched(w, host(a, 0, i), 1, host(b, 1, i), 80, 1, i % 3 ? 5 * US : -5 * US);
	assert_int_equal(decide(w, false), 0);
	for (unsigned i = 0; i < 30000; i++)
		assert_way(w, OW_SIDE_B, host(a, 0, i), 1, host(b, 1, i), 80, i % 3 ? OW_A_TO_B : OW_B_TO_A);
}

/* Matched packets that are identical to others: their delays may be wrong. */
static void matched_alike(struct world *w, const char *src, uint16_t sport, const char *dst, uint16_t dport,
                          unsigned packets, int64_t delay_ns)
{
	matched(w, src, sport, dst, dport, packets, delay_ns);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_repeats_vote(repeats(w, side, src, sport, dst, dport), delay_ns, packets);
}

static void identical_packets_do_not_decide(void **state)
{
	struct world *w = *state;
	const struct ow_flow_table *const keys[OW_SIDES] = {w->table[OW_SIDE_A], w->table[OW_SIDE_B]};
	/* Few unique packets between neighbours, and the one that answers. */
	matched(w, "10.1.0.1", 1, "10.2.0.1", 514, 20, 300 * US);
	matched_alike(w, "10.1.0.2", 2, "10.2.0.2", 502, 500, -9000 * US);
	matched_alike(w, "10.2.0.1", 514, "10.1.0.1", 1, 500, 9000 * US);
	/* One of them was no identical packet, after all. */
	matched_alike(w, "10.1.0.3", 3, "10.2.0.3", 3, 1, 300 * US);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_repeats_vote(repeats(w, side, "10.1.0.3", 3, "10.2.0.3", 3), 300 * US, -1);
	assert_true(ow_directions_decide(w->directions, keys, OW_BY_VOTES, OW_A_TO_B, 0) >= 0);
	assert_int_equal(evidence(w, OW_SIDE_A, "10.1.0.1", 1, "10.2.0.1", 514)->direction, OW_A_TO_B);
	assert_int_equal(evidence(w, OW_SIDE_A, "10.1.0.2", 2, "10.2.0.2", 502)->direction, OW_A_TO_B);
	assert_int_equal(evidence(w, OW_SIDE_A, "10.2.0.1", 514, "10.1.0.1", 1)->direction, OW_B_TO_A);
	assert_int_equal(repeats(w, OW_SIDE_A, "10.1.0.3", 3, "10.2.0.3", 3)->matched, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_flow_goes_the_way_of_most_of_its_packets),
		CASE(flows_of_a_pair_of_hosts_go_one_way),
		CASE(clocks_apart_do_not_turn_a_direction),
		CASE(without_any_delay_the_busier_way_is_taken_for_a_to_b),
		CASE(delays_of_a_tick_are_no_evidence_against_the_network),
		CASE(delays_below_the_error_of_the_clock_show_no_direction),
		CASE(a_lost_flow_takes_the_way_of_its_pair),
		CASE(networks_have_sides),
		CASE(answered_flows_pass_by),
		CASE(what_stays_on_the_link_is_no_loss),
		CASE(flows_on_another_path_are_not_lost),
		CASE(small_flows_on_another_path_are_not_lost),
		CASE(flows_within_a_burst_are_lost),
		CASE(flows_of_one_packet_can_be_lost),
		CASE(strangers_are_unclassified),
		CASE(one_direction_leaves_no_question),
		CASE(miscounted_matches_are_told_and_a_restart_keeps_decisions),
		CASE(many_flows),
		CASE(identical_packets_do_not_decide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
