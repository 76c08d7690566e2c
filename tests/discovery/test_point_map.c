/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/point_map.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Points a, b, c, each with out 0 and in 1 of eth0: vantages 0 to 5. */
static struct ow_map_vantage vantages[] = {
	{"a", "eth0", OW_VANTAGE_OUT, false, 1, 0, 1, 0}, {"a", "eth0", OW_VANTAGE_IN, false, 1, 0, 1, 0},
	{"b", "eth0", OW_VANTAGE_OUT, false, 1, 0, 1, 0}, {"b", "eth0", OW_VANTAGE_IN, false, 1, 0, 1, 0},
	{"c", "eth0", OW_VANTAGE_OUT, false, 1, 0, 1, 0}, {"c", "eth0", OW_VANTAGE_IN, false, 1, 0, 1, 0},
};

static struct ow_map_pair pair(uint32_t from, uint32_t to, enum ow_adjacency adjacency, double share, uint8_t hops)
{
	return (struct ow_map_pair){.from = from,
	                            .to = to,
	                            .adjacency = adjacency,
	                            .packets = 100,
	                            .hops_known = true,
	                            .hops = hops,
	                            .share = {OW_VALUE_ESTIMATED, share, share, share, OW_NO_REASON},
	                            .between = UINT32_MAX};
}

static struct ow_point_map points_of(struct ow_map *map, struct ow_map_pair *pairs, uint32_t count)
{
	struct ow_point_map points;
	*map = (struct ow_map){.vantage = vantages, .vantages = 6, .pair = pairs, .pairs = count};
	assert_int_equal(ow_point_map_make(map, &points), 0);
	return points;
}

static struct ow_topology *topology(const char *text)
{
	struct ow_topology *one;
	assert_int_equal(ow_topology_parse_rocketfuel("test", text, strlen(text), &one, NULL), 0);
	return one;
}

static void edges(void **state)
{
	(void)state;
	struct ow_map map;
	struct ow_map_pair pairs[] = {pair(0, 3, OW_PROVISIONAL, 0.5, 0), pair(0, 5, OW_NOT_ADJACENT, 0.5, 1),
	                              pair(1, 0, OW_FIRM, 0.5, 1), pair(1, 3, OW_FIRM, 0.5, 1),
	                              pair(4, 3, OW_UNKNOWN_ORDER, 0.5, 0)};
	pairs[3].packets = 50;
	struct ow_point_map points = points_of(&map, pairs, 5);
	assert_int_equal(points.points, 3);
	assert_int_equal(points.edges, 2);
	assert_int_equal(points.edge[0].adjacency, OW_FIRM);
	assert_int_equal(points.edge[0].packets, 150);
	assert_int_equal(points.edge[0].pair, 0);
	assert_int_equal(points.edge[0].links, 1); /* out and in again, without a router between */
	/* An edge without direction begins at the first name. */
	assert_string_equal(points.point[points.edge[1].from], "b");
	assert_string_equal(points.point[points.edge[1].to], "c");
	ow_point_map_done(&points);
}

static void disagreements(void **state)
{
	(void)state;
	static const struct {
		const char *topology;
		enum ow_disagreement_kind kind[4];
		size_t count;
	} cases[] = {
		{"a b 1\nb a 1\nb c 1\nc b 1\n", {OW_DISAGREE_NOT_SEEN, OW_DISAGREE_NOT_SEEN}, 2}, /* the ways back */
		{"a b 1\nb c 1\n", {0}, 0},
		{"a x 1\nx b 1\nb c 1\n", {OW_DISAGREE_NO_LINK}, 1},
		{"a b 1\nb c 1\na c 1\n", {OW_DISAGREE_NOT_SEEN}, 1},
		{"a b 1\nb x 1\n", {OW_DISAGREE_NO_ROUTER}, 1},
		{"a b 1\nb x 1\nx c 1\n", {OW_DISAGREE_NO_LINK}, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_map map;
		struct ow_map_pair pairs[] = {pair(0, 3, OW_FIRM, 0.5, 0), pair(2, 5, OW_FIRM, 0.5, 0)};
		struct ow_point_map points = points_of(&map, pairs, 2);
		struct ow_topology *t = topology(cases[i].topology);
		struct ow_disagreement *list;
		size_t count;
		assert_int_equal(ow_point_map_compare(&points, t, &list, &count), 0);
		assert_int_equal(count, cases[i].count);
		for (size_t k = 0; k < count; k++) {
			char text[OW_DISAGREEMENT_TEXT];
			assert_int_equal(list[k].kind, cases[i].kind[k]);
			ow_disagreement_text(&points, &list[k], text);
			assert_true(strlen(text) > 10);
		}
		free(list);
		ow_topology_free(t);
		ow_point_map_done(&points);
	}
	/* Three links where shortest paths have two. */
	struct ow_map map;
	struct ow_map_pair pairs[] = {pair(0, 5, OW_FIRM, 0.5, 2)};
	struct ow_point_map points = points_of(&map, pairs, 1);
	struct ow_topology *t = topology("a x 1\nx c 1\nb y 1\n");
	struct ow_disagreement *list;
	size_t count;
	assert_int_equal(ow_point_map_compare(&points, t, &list, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(list[0].kind, OW_DISAGREE_LENGTH);
	assert_true(list[0].found == 3 && list[0].expected == 2);
	free(list);
	ow_topology_free(t);
	ow_point_map_done(&points);
}

/* -- segments ------------------------------------------------------------------------------------------------------- */

struct list {
	struct ow_discovered_segment *segment;
	size_t count;
};

static struct list discover(struct ow_map_pair *pairs, uint32_t count, const struct ow_discover_limits *limits,
                            struct list before)
{
	struct ow_map map;
	struct list next;
	struct ow_point_map points = points_of(&map, pairs, count);
	assert_int_equal(
		ow_discover_segments(&points, limits, before.segment, before.count, &next.segment, &next.count), 0);
	ow_point_map_done(&points);
	free(before.segment);
	return next;
}

static void segments(void **state)
{
	(void)state;
	struct ow_discover_limits limits = {.segments = 2, .point_segments = 2, .least_share = 0.01, .patience = 3};
	struct list list = {NULL, 0};
	/* Both directions are one segment; the highest share first. */
	struct ow_map_pair all[] = {pair(0, 3, OW_FIRM, 0.2, 0), pair(0, 5, OW_PROVISIONAL, 0.9, 0),
	                            pair(2, 1, OW_FIRM, 0.3, 0), pair(2, 5, OW_FIRM, 0.1, 0)};
	list = discover(all, 4, &limits, list);
	assert_int_equal(list.count, 2);
	assert_true(strcmp(list.segment[0].a.point, "a") == 0 && strcmp(list.segment[0].b.point, "b") == 0);
	assert_true(strcmp(list.segment[1].a.point, "b") == 0 && strcmp(list.segment[1].b.point, "c") == 0);
	assert_true(list.segment[0].share == 0.3);
	/* The provisional one is as good as firm now, and has more: those that exist stay. */
	all[1].adjacency = OW_FIRM;
	all[3].share.value = 0.001;
	list = discover(all, 4, &limits, list);
	assert_string_equal(list.segment[1].a.point, "b");
	/* b to c is not seen any more: it ends after the third map, and a to c takes its place. */
	for (int i = 0; i < 2; i++) {
		list = discover(all, 3, &limits, list);
		assert_int_equal(list.count, 2);
		assert_string_equal(list.segment[1].a.point, "b");
		assert_int_equal(list.segment[1].without, i + 1);
	}
	list = discover(all, 3, &limits, list);
	assert_int_equal(list.count, 2);
	assert_true(strcmp(list.segment[1].a.point, "a") == 0 && strcmp(list.segment[1].b.point, "c") == 0);
	free(list.segment);
	/* Too little traffic for a new segment; too many for a point. */
	list = discover(&(struct ow_map_pair){0}, 0, &limits, (struct list){NULL, 0});
	assert_int_equal(list.count, 0);
	all[0].share.value = 0.001;
	limits.point_segments = 1;
	all[2].share.value = 0.5;
	list = discover(all, 4, &limits, list);
	assert_int_equal(list.count, 1);
	free(list.segment);
}

/* Routers a, b and c in a row, each with an interface to either side: a packet passes all of them. What a segment
 * watches is the side of its other end: at b, packets from a also leave to c, where they would look like those to a. */
static void sides(void **state)
{
	(void)state;
	static struct ow_map_vantage row[] = {
		{"a", "left", OW_VANTAGE_OUT, false, 1, 0, 1, 0},  {"a", "left", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"a", "right", OW_VANTAGE_OUT, false, 1, 0, 1, 0}, {"a", "right", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"b", "left", OW_VANTAGE_OUT, false, 1, 0, 1, 0},  {"b", "left", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"b", "right", OW_VANTAGE_OUT, false, 1, 0, 1, 0}, {"b", "right", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"b", "wan", OW_VANTAGE_OUT, false, 1, 0, 1, 0},   {"b", "wan", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"c", "left", OW_VANTAGE_OUT, false, 1, 0, 1, 0},  {"c", "left", OW_VANTAGE_IN, false, 1, 0, 1, 0},
		{"c", "b/d", OW_VANTAGE_OUT, false, 1, 0, 1, 0},
	};
	/* c watches only its far side, and b has two links to it, of which one has few packets. */
	struct ow_map_pair all[] = {pair(1, 2, OW_FIRM, 1, 1),  pair(2, 5, OW_FIRM, 1, 0),  pair(4, 3, OW_FIRM, 1, 0),
	                            pair(5, 4, OW_FIRM, 1, 0),  pair(6, 10, OW_FIRM, 1, 1), pair(8, 10, OW_FIRM, 1, 1),
	                            pair(11, 7, OW_FIRM, 1, 1), pair(6, 12, OW_FIRM, 1, 1)};
	struct ow_map map = {
		.vantage = row, .vantages = sizeof row / sizeof *row, .pair = all, .pairs = sizeof all / sizeof *all};
	struct ow_discover_limits limits = OW_DISCOVER_LIMITS;
	struct ow_point_map points;
	struct list list = {NULL, 0};
	for (int few = 0; few < 3; few++) {
		struct list before = list;
		all[5].packets = few == 1 ? 100 : 1;
		assert_int_equal(ow_point_map_make(&map, &points), 0);
		assert_int_equal(ow_discover_segments(&points, &limits, before.segment, before.count, &list.segment,
		                                      &list.count),
		                 0);
		ow_point_map_done(&points);
		free(before.segment);
		assert_int_equal(list.count, 2);
		const struct ow_discovered_segment *ab = &list.segment[0], *bc = &list.segment[1];
		assert_true(ab->a.interfaces == 1 && strcmp(ab->a.interface[0], "right") == 0 && !ab->a.away);
		assert_true(ab->b.interfaces == 1 && strcmp(ab->b.interface[0], "left") == 0 && !ab->b.away);
		assert_true(strcmp(bc->a.interface[0], "right") == 0 && !bc->a.away);
		assert_true(bc->b.interfaces == 1 && strcmp(bc->b.interface[0], "left") == 0 && bc->b.away);
		/* What is there stays while packets pass. */
		assert_int_equal(bc->a.interfaces, few == 0 ? 1 : 2);
	}
	free(list.segment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),
		cmocka_unit_test(disagreements),
		cmocka_unit_test(segments),
		cmocka_unit_test(sides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
