/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "discovery/join.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MS     INT64_C(1000000)
#define FIRST  1750000000
#define EPOCHS 8

/* -- a few vantages and what they see ------------------------------------------------------------------------------ */

struct place {
	const char *point, *interface;
	enum ow_vantage_kind kind;
	int64_t offset_ns;
};

struct scene {
	const struct place *place;
	unsigned places;
	struct ow_random random;
	struct ow_sample_record *seen[8][EPOCHS]; /* in any order */
	uint32_t count[8][EPOCHS];
	bool missing[8][EPOCHS];
	uint64_t generation[8][EPOCHS], tau[8][EPOCHS], drops[8][EPOCHS];
};

static void scene_init(struct scene *scene, const struct place *place, unsigned places)
{
	memset(scene, 0, sizeof *scene);
	scene->place = place;
	scene->places = places;
	ow_random_seed(&scene->random, 1);
	memset(scene->tau, 0xff, sizeof scene->tau);
	for (unsigned i = 0; i < places; i++) {
		for (unsigned e = 0; e < EPOCHS; e++)
			scene->seen[i][e] = calloc(OW_SAMPLE_RECORDS_MAX, sizeof(struct ow_sample_record));
	}
}

/* The vantage sees the packet at a true time since the start, in ns. */
static void see(struct scene *scene, unsigned place, uint64_t id, int64_t at_ns, uint8_t ttl, uint32_t flow)
{
	int64_t time_ns = at_ns + scene->place[place].offset_ns;
	unsigned epoch = (unsigned)(time_ns / SECOND);
	if (time_ns < 0 || epoch >= EPOCHS || id >= scene->tau[place][epoch])
		return;
	scene->seen[place][epoch][scene->count[place][epoch]++] = (struct ow_sample_record){
		.id = id, .time_ns = FIRST * SECOND + time_ns, .flow = flow, .ttl = ttl, .copies = 1};
}

static int by_id(const void *a, const void *b)
{
	const struct ow_sample_record *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct ow_vantage_sample sample_of(struct scene *scene, unsigned place, unsigned epoch)
{
	struct ow_vantage_sample sample = {.kind = scene->place[place].kind,
	                                   .clock_generation = scene->generation[place][epoch],
	                                   .epoch = FIRST + epoch,
	                                   .epoch_ns = SECOND,
	                                   .start_ns = (FIRST + epoch) * SECOND,
	                                   .end_ns = (FIRST + epoch + 1) * SECOND,
	                                   .packets = scene->count[place][epoch],
	                                   .drops = scene->drops[place][epoch],
	                                   .tau = scene->tau[place][epoch],
	                                   .count = scene->count[place][epoch],
	                                   .record = scene->seen[place][epoch]};
	snprintf(sample.point, sizeof sample.point, "%s", scene->place[place].point);
	snprintf(sample.interface, sizeof sample.interface, "%s", scene->place[place].interface);
	qsort(sample.record, sample.count, sizeof *sample.record, by_id);
	scene->seen[place][epoch] = NULL;
	return sample;
}

/* Joins all; frees the scene. */
static struct ow_map join_scene(struct scene *scene)
{
	struct ow_join *join;
	struct ow_map map;
	assert_int_equal(ow_join_create(SECOND, &join), 0);
	for (unsigned e = 0; e < EPOCHS; e++) {
		for (unsigned i = 0; i < scene->places; i++) {
			struct ow_vantage_sample sample = sample_of(scene, i, e);
			if (!scene->missing[i][e])
				assert_int_equal(ow_join_add(join, &sample), 0);
			ow_vantage_sample_done(&sample);
		}
		assert_int_equal(ow_join_settle(join, FIRST + e), 0);
	}
	assert_int_equal(ow_join_map(join, &map), 0);
	ow_join_free(join);
	return map;
}

static const struct ow_map_pair *pair_of(const struct ow_map *map, const char *from, const char *to)
{
	uint32_t at[2] = {UINT32_MAX, UINT32_MAX};
	for (uint32_t i = 0; i < map->vantages; i++) {
		char name[200];
		snprintf(name, sizeof name, "%s %s", map->vantage[i].point, ow_vantage_kind_name[map->vantage[i].kind]);
		at[0] = strcmp(name, from) == 0 ? i : at[0];
		at[1] = strcmp(name, to) == 0 ? i : at[1];
	}
	assert_true(at[0] != UINT32_MAX && at[1] != UINT32_MAX);
	for (uint32_t i = 0; i < map->pairs; i++)
		if (map->pair[i].from == at[0] && map->pair[i].to == at[1])
			return &map->pair[i];
	return NULL;
}

static enum ow_adjacency adjacency(const struct ow_map *map, const char *from, const char *to)
{
	const struct ow_map_pair *pair = pair_of(map, from, to);
	return pair ? pair->adjacency : OW_NOT_ADJACENT;
}

/* -- three routers in a row ---------------------------------------------------------------------------------------- */

static const struct place row[] = {
	{"a", "e1", OW_VANTAGE_OUT, 0},
	{"b", "e0", OW_VANTAGE_IN, 400 * MS},
	{"b", "e1", OW_VANTAGE_OUT, 400 * MS},
	{"c", "e0", OW_VANTAGE_IN, -300 * MS},
};

/* A packet from a to c, seen where `seen` has a bit; 2 ms for each link. */
static void pass_row(struct scene *scene, int64_t at_ns, unsigned seen, uint32_t flow)
{
	uint64_t id = ow_random_u64(&scene->random);
	int64_t late_ns[] = {0, 2 * MS, 2 * MS + 1000, 4 * MS};
	uint8_t ttl[] = {63, 63, 62, 62};
	for (unsigned i = 0; i < 4; i++) {
		if (seen >> i & 1)
			see(scene, i, id, at_ns + late_ns[i], ttl[i], flow);
	}
}

static void routers_in_a_row(void **state)
{
	(void)state;
	static struct scene scene;
	scene_init(&scene, row, 4);
	for (int i = 0; i < 700; i++)
		pass_row(&scene, SECOND / 2 + i * 10 * MS, i % 20 == 7 ? 3 : 15,
		         (uint32_t)i % 10); /* 5 % lost behind b */
	struct ow_map map = join_scene(&scene);
	assert_int_equal(adjacency(&map, "a out", "b in"), OW_FIRM);
	assert_int_equal(adjacency(&map, "b in", "b out"), OW_FIRM);
	assert_int_equal(adjacency(&map, "b out", "c in"), OW_FIRM);
	assert_int_equal(adjacency(&map, "a out", "c in"), OW_NOT_ADJACENT);
	assert_int_equal(adjacency(&map, "c in", "a out"), OW_NOT_ADJACENT);
	const struct ow_map_pair *pair = pair_of(&map, "a out", "c in");
	assert_true(pair->hops_known && pair->hops == 1);
	assert_true(pair->share.low <= 0.95 && pair->share.high >= 0.95);
	assert_true(pair->loss.low <= 0.05 && pair->loss.high >= 0.05);
	/* By their clocks: 4 ms, and 300 ms less. */
	assert_true(fabs(pair->delay_ns.value - (4.0 - 300) * MS) < 1000);
	/* Nothing comes back, so the offset has a bound from above only. */
	assert_true(pair->offset_most_ns >= -300 * (int64_t)MS && pair->offset_least_ns == INT64_MIN);
	assert_int_equal(pair_of(&map, "a out", "b in")->lost, 0);
	ow_map_done(&map);
}

/* While b says nothing, a and c look like neighbours: that is not concluded. */
static void missing_messages(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		static struct scene scene;
		scene_init(&scene, row, 4);
		for (int i = 0; i < 700; i++)
			pass_row(&scene, SECOND / 2 + i * 10 * MS, 15, (uint32_t)i % 10);
		for (unsigned e = 4; e < EPOCHS; e++) {
			for (unsigned i = 1; i < 3; i++) {
				scene.missing[i][e] = how == 0;
				scene.generation[i][e] = how == 1 ? e : 0; /* the clock is set again and again */
				if (how == 2)
					scene.count[i][e] = 0, scene.tau[i][e] = 0; /* too busy for any packet */
			}
		}
		struct ow_map map = join_scene(&scene);
		assert_int_equal(adjacency(&map, "a out", "c in"), OW_NOT_ADJACENT);
		assert_int_equal(adjacency(&map, "a out", "b in"), OW_FIRM);
		assert_true(how != 0 || map.counts.missing == 8);
		assert_true(how != 1 || map.counts.clock_steps == 8);
		ow_map_done(&map);
	}
}

/* What came before the first message of a vantage is not missing, and the map does not begin before it. */
static void before_the_first_message(void **state)
{
	(void)state;
	static struct scene scene;
	struct ow_join *join;
	struct ow_map map;
	scene_init(&scene, row, 4);
	for (int i = 0; i < 700; i++)
		pass_row(&scene, SECOND / 2 + i * 10 * MS, 15, (uint32_t)i % 10);
	assert_int_equal(ow_join_create(SECOND, &join), 0);
	for (int e = -3; e < EPOCHS; e++) {
		for (unsigned i = 0; i < 4; i++) {
			/* Messages come one epoch before it is settled; those of c begin two epochs later. */
			if (e + 1 >= EPOCHS || e + 1 < (i < 3 ? 0 : 2))
				continue;
			struct ow_vantage_sample sample = sample_of(&scene, i, (unsigned)(e + 1));
			assert_int_equal(ow_join_add(join, &sample), 0);
			ow_vantage_sample_done(&sample);
		}
		assert_int_equal(ow_join_settle(join, FIRST + e), 0);
	}
	assert_int_equal(ow_join_map(join, &map), 0);
	assert_int_equal(map.counts.missing, 0);
	assert_int_equal(map.counts.epochs, EPOCHS - 1);
	assert_int_equal(map.from_ns, FIRST * SECOND);
	assert_int_equal(map.until_ns, (FIRST + EPOCHS - 1) * SECOND);
	ow_map_done(&map);
	ow_join_free(join);
	for (unsigned e = 0; e < 2; e++)
		free(scene.seen[3][e]);
}

/* A coarse sample between: the pair is provisional, with the vantage that may lie between. */
static void coarse(void **state)
{
	(void)state;
	static const struct place places[] = {
		{"a", "e1", OW_VANTAGE_OUT, 0}, {"b", "e0", OW_VANTAGE_IN, 0}, {"c", "e0", OW_VANTAGE_IN, 0}};
	static struct scene scene;
	scene_init(&scene, places, 3);
	for (unsigned e = 0; e < EPOCHS; e++)
		scene.tau[1][e] = UINT64_MAX / 10000;
	for (int i = 0; i < 700; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		int64_t at = SECOND / 2 + i * 10 * MS;
		see(&scene, 0, id, at, 63, 1);
		see(&scene, 2, id, at + 2 * MS, 62, 1);
		/* b sees other packets from a, and others to c, as TTLs would allow; all of them small. */
		if (i % 70 == 0) {
			see(&scene, 0, 2 * (uint64_t)i + 2, at, 63, 2);
			see(&scene, 1, 2 * (uint64_t)i + 2, at + MS, 63, 2);
			see(&scene, 1, 2 * (uint64_t)i + 3, at, 63, 3);
			see(&scene, 2, 2 * (uint64_t)i + 3, at + MS, 62, 3);
		}
	}
	struct ow_map map = join_scene(&scene);
	const struct ow_map_pair *pair = pair_of(&map, "a out", "c in");
	assert_int_equal(pair->adjacency, OW_PROVISIONAL);
	assert_string_equal(map.vantage[pair->between].point, "b");
	ow_map_done(&map);
}

/* -- rules of order ------------------------------------------------------------------------------------------------- */

/* Two taps on one link, packets of both directions: only the clocks' twins tell which is which. */
static void twins(void **state)
{
	(void)state;
	static const struct place places[] = {{"x", "right", OW_VANTAGE_TAP, 0},
	                                      {"x", "left", OW_VANTAGE_TAP, 0},
	                                      {"y", "right", OW_VANTAGE_TAP, 450 * MS},
	                                      {"y", "left", OW_VANTAGE_TAP, 450 * MS}};
	for (int both = 0; both < 2; both++) {
		static struct scene scene;
		scene_init(&scene, places, 4);
		for (int i = 0; i < 600; i++) {
			int64_t at = SECOND / 2 + i * 10 * MS,
				late = 3 * MS + (int64_t)ow_random_below(&scene.random, 100000);
			uint64_t id = ow_random_u64(&scene.random);
			bool left = both && i % 2;
			see(&scene, left ? 3 : 0, id, at, 60, 1);
			see(&scene, left ? 1 : 2, id, at + late, 60, 1);
		}
		struct ow_map map = join_scene(&scene);
		const struct ow_map_pair *edge = NULL;
		unsigned edges = 0;
		for (uint32_t i = 0; i < map.pairs; i++) {
			if (map.pair[i].adjacency != OW_NOT_ADJACENT) {
				edges++;
				edge = &map.pair[i];
				bool right = strcmp(map.vantage[edge->from].interface, "right") == 0;
				const char *from = map.vantage[edge->from].point;
				assert_int_equal(edge->adjacency, both ? OW_FIRM : OW_UNKNOWN_ORDER);
				if (both)
					assert_string_equal(from, right ? "x" : "y");
			}
		}
		assert_int_equal(edges, both ? 2 : 1);
		ow_map_done(&map);
	}
}

/* A bridge shows packets in and out with the same TTL: it lies between its neighbours. */
static void bridge(void **state)
{
	(void)state;
	static const struct place places[] = {{"a", "e1", OW_VANTAGE_OUT, 0},
	                                      {"br", "p0", OW_VANTAGE_IN, 100 * MS},
	                                      {"br", "p1", OW_VANTAGE_OUT, 100 * MS},
	                                      {"c", "e0", OW_VANTAGE_IN, -50 * MS}};
	static struct scene scene;
	scene_init(&scene, places, 4);
	for (int i = 0; i < 600; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		for (unsigned k = 0; k < 4; k++)
			see(&scene, k, id, SECOND / 2 + i * 10 * MS + k * 10000, 60, 1);
	}
	struct ow_map map = join_scene(&scene);
	assert_int_equal(adjacency(&map, "a out", "br in"), OW_FIRM);
	assert_int_equal(adjacency(&map, "br in", "br out"), OW_FIRM);
	assert_int_equal(adjacency(&map, "br out", "c in"), OW_FIRM);
	assert_int_equal(adjacency(&map, "a out", "c in"), OW_NOT_ADJACENT);
	ow_map_done(&map);
}

/* A device between sets all TTLs to 255: they mean nothing, and the side where they do not vary is behind it. */
static void rewritten_ttl(void **state)
{
	(void)state;
	static const struct place places[] = {{"a", "e1", OW_VANTAGE_TAP, 200 * MS}, {"b", "e0", OW_VANTAGE_TAP, 0}};
	static struct scene scene;
	scene_init(&scene, places, 2);
	for (int i = 0; i < 600; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		see(&scene, 0, id, SECOND / 2 + i * 10 * MS, (uint8_t)(30 + i % 90), 1);
		see(&scene, 1, id, SECOND / 2 + i * 10 * MS + MS, 255, 1);
	}
	struct ow_map map = join_scene(&scene);
	const struct ow_map_pair *pair = pair_of(&map, "a tap", "b tap");
	assert_int_equal(pair->adjacency, OW_FIRM);
	assert_true(pair->ttl_void && !pair->hops_known);
	assert_int_equal(adjacency(&map, "b tap", "a tap"), OW_NOT_ADJACENT);
	ow_map_done(&map);
}

/* A firewall sets TTLs to 64, which senders use as well: behind it packets look as if they had not passed anything. */
static void raised_ttl(void **state)
{
	(void)state;
	static const struct place places[] = {{"a", "e1", OW_VANTAGE_OUT, 0},
	                                      {"fw", "e0", OW_VANTAGE_IN, 0},
	                                      {"fw", "e1", OW_VANTAGE_OUT, 0},
	                                      {"c", "e0", OW_VANTAGE_IN, 300 * MS}};
	static const uint8_t there[] = {64, 63, 64, 64}, back[] = {60, 61, 62, 62};
	static struct scene scene;
	scene_init(&scene, places, 4);
	for (int i = 0; i < 300; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		for (unsigned k = 0; k < 4; k++)
			see(&scene, k, id, SECOND / 2 + i * 10 * MS + k * 10000, there[k], 1);
		/* Another protocol, whose TTLs it leaves: c to a. */
		id = ow_random_u64(&scene.random);
		see(&scene, 3, id, SECOND / 2 + i * 10 * MS, back[3], 2);
		see(&scene, 0, id, SECOND / 2 + i * 10 * MS + 30000, back[0], 2);
	}
	struct ow_map map = join_scene(&scene);
	assert_int_equal(map.counts.rewritten, 300);
	for (uint32_t i = 0; i < map.pairs; i++)
		assert_string_equal(map.vantage[map.pair[i].from].point, "c");
	ow_map_done(&map);
}

/* Packets that are seen twice, or that take longer than any path, tell nothing. */
static void not_used(void **state)
{
	(void)state;
	static struct scene scene;
	scene_init(&scene, row, 4);
	for (int i = 0; i < 60; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		see(&scene, 0, id, 1400 * MS + i * 10 * MS, 63, 1);
		see(&scene, 3, id, 1400 * MS + i * 10 * MS + (i % 2 ? 7 * SECOND / 2 : 0), 62, 1);
		if (i % 2 == 0)
			see(&scene, 0, id, 2400 * MS + i * 10 * MS, 63, 1);
	}
	struct ow_map map = join_scene(&scene);
	assert_int_equal(map.pairs, 0);
	assert_int_equal(map.counts.repeats, 30);
	ow_map_done(&map);
}

/* -- flows ---------------------------------------------------------------------------------------------------------- */

/* Half of the flows take another way from 4 s on: a change, and not loss. */
static void route_change(void **state)
{
	(void)state;
	static struct scene scene;
	scene_init(&scene, row, 4);
	for (int i = 0; i < 700; i++) {
		int64_t at = SECOND / 2 + i * 10 * MS;
		bool gone = at > 4 * SECOND && i % 10 < 6;
		pass_row(&scene, at, gone ? 1 : 15, (uint32_t)i % 10);
	}
	struct ow_map map = join_scene(&scene);
	assert_true(map.changes >= 1);
	for (uint32_t i = 0; i < map.changes; i++) {
		assert_string_equal(map.vantage[map.change[i].from].point, "a");
		assert_true(map.change[i].epoch >= FIRST + 4 && map.change[i].epoch <= FIRST + 5);
		assert_true(map.change[i].missing * 2 > map.change[i].packets);
	}
	const struct ow_map_pair *pair = pair_of(&map, "a out", "b in");
	assert_int_equal(pair->lost, 0);
	assert_true(pair->loss_packets > 100);
	ow_map_done(&map);
}

/* Six packets of ten of all flows take a link that nobody watches, at random: that is so from the begin, and no change. */
static void spray(void **state)
{
	(void)state;
	static struct scene scene;
	scene_init(&scene, row, 4);
	for (int i = 0; i < 700; i++)
		pass_row(&scene, SECOND / 2 + i * 10 * MS, ow_random_below(&scene.random, 10) < 6 ? 9 : 15,
		         (uint32_t)i % 10);
	struct ow_map map = join_scene(&scene);
	assert_int_equal(map.changes, 0);
	ow_map_done(&map);
}

/* Behind a NAT a flow has another hash: it is the same flow, so loss is seen. */
static void nat(void **state)
{
	(void)state;
	static const struct place places[] = {{"a", "e1", OW_VANTAGE_OUT, 0}, {"c", "e0", OW_VANTAGE_IN, 0}};
	static struct scene scene;
	scene_init(&scene, places, 2);
	for (int i = 0; i < 700; i++) {
		uint64_t id = ow_random_u64(&scene.random);
		see(&scene, 0, id, SECOND / 2 + i * 10 * MS, 63, (uint32_t)i % 5);
		if (i % 10)
			see(&scene, 1, id, SECOND / 2 + i * 10 * MS + MS, 60, 1000 - (uint32_t)i % 5);
	}
	struct ow_map map = join_scene(&scene);
	const struct ow_map_pair *pair = pair_of(&map, "a out", "c in");
	assert_true(pair->loss_packets > 200);
	assert_true(pair->loss.low <= 0.1 && pair->loss.high >= 0.1);
	assert_int_equal(pair->hops, 3);
	ow_map_done(&map);
}

/* -- messages ------------------------------------------------------------------------------------------------------- */

static int add(struct ow_join *join, const char *point, unsigned interface, int64_t epoch)
{
	struct ow_vantage_sample sample = {
		.kind = OW_VANTAGE_IN, .epoch = epoch, .epoch_ns = SECOND, .tau = UINT64_MAX};
	sample.start_ns = epoch * SECOND;
	sample.end_ns = sample.start_ns + SECOND;
	snprintf(sample.point, sizeof sample.point, "%s", point);
	snprintf(sample.interface, sizeof sample.interface, "e%u", interface);
	return ow_join_add(join, &sample);
}

static void limits(void **state)
{
	(void)state;
	struct ow_join *join;
	struct ow_map map;
	assert_int_equal(ow_join_create(1, &join), -EINVAL);
	assert_int_equal(ow_join_create(SECOND, &join), 0);
	for (unsigned i = 0; i < 2 * OW_JOIN_POINT_VANTAGES; i++)
		assert_int_equal(add(join, "greedy", i, FIRST), 0);
	assert_int_equal(add(join, "other", 0, FIRST), 0);
	assert_int_equal(ow_join_settle(join, FIRST), 0);
	assert_int_equal(add(join, "other", 0, FIRST), 0);        /* late */
	assert_int_equal(add(join, "other", 0, FIRST + 1000), 0); /* its clock is wrong */
	assert_int_equal(ow_join_map(join, &map), 0);
	assert_int_equal(map.vantages, OW_JOIN_POINT_VANTAGES + 1);
	assert_int_equal(map.counts.refused, OW_JOIN_POINT_VANTAGES);
	assert_int_equal(map.counts.late, 1);
	assert_int_equal(map.counts.ahead, 1);
	ow_map_done(&map);
	/* A vantage that is gone is forgotten; another takes its place. */
	for (int64_t e = FIRST + 1; e < FIRST + OW_JOIN_FORGETS + 5; e++) {
		assert_int_equal(add(join, "other", 0, e), 0);
		assert_int_equal(ow_join_settle(join, e), 0);
	}
	assert_int_equal(add(join, "third", 0, FIRST + OW_JOIN_FORGETS + 5), 0);
	assert_int_equal(ow_join_map(join, &map), 0);
	assert_int_equal(map.vantages, 2);
	ow_map_done(&map);
	ow_join_free(join);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routers_in_a_row),
		cmocka_unit_test(missing_messages),
		cmocka_unit_test(before_the_first_message),
		cmocka_unit_test(coarse),
		cmocka_unit_test(twins),
		cmocka_unit_test(bridge),
		cmocka_unit_test(rewritten_ttl),
		cmocka_unit_test(raised_ttl),
		cmocka_unit_test(not_used),
		cmocka_unit_test(route_change),
		cmocka_unit_test(spray),
		cmocka_unit_test(nat),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
