/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The station on synthetic results: the right place is named, nothing is named if nothing is wrong, and unknown facts
 * are not stated. On Sprint's map (315 routers, 45 of them upgraded) if it exists, otherwise on a random network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../effort.h"
#include "plane/monitor_private.h"
#include "plane/plan.h"
#include "plane/sets.h"
#include <errno.h>
#include <time.h>
#include "network.h"

#define S INT64_C(1000000000)

static double normal(struct ow_random *random)
{
	return sqrt(-2 * log(1 - ow_random_unit(random))) * cos(2 * M_PI * ow_random_unit(random));
}

/* -- a whole network --------------------------------------------------------------------------------------------------
 */

struct part {
	char name[OW_PLACE_TEXT];
	double usual_ns, spread_ns;
};

struct network {
	struct ow_topology *topology;
	bool *is_mrouter;
	struct part *part; /* all places: segments of all m-sets, insides of all m-routers */
	uint32_t parts;
	struct ow_monitor *monitor;
	struct ow_random random;
	int64_t now_ns;
};

static void add_part(struct network *network, const char *name, double usual_ns)
{
	if ((network->parts & (network->parts - 1)) == 0) /* full */
		network->part =
			realloc(network->part, (network->parts ? 2 * network->parts : 1) * sizeof(*network->part));
	assert_non_null(network->part);
	struct part *part = &network->part[network->parts++];
	snprintf(part->name, sizeof(part->name), "%s", name);
	part->usual_ns = usual_ns * (0.5 + ow_random_unit(&network->random));
	part->spread_ns = part->usual_ns * 0.01 * (0.5 + ow_random_unit(&network->random));
}

static void add_segments(struct network *network, uint32_t owner)
{
	char name[OW_PLACE_TEXT];
	struct ow_paths *segments;
	assert_int_equal(ow_mset_find(network->topology, owner, network->is_mrouter, &segments, NULL), 0);
	for (uint32_t i = 0; i < ow_paths_count(segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(segments, i, &nodes);
		struct ow_way way = {.node = (uint16_t *)node, .nodes = nodes};
		assert_true(ow_place_text(network->topology, &way, &(struct ow_place){false, 0, nodes}, name));
		add_part(network, name, 1e6 * (nodes - 1));
	}
	ow_paths_free(segments);
}

static void add_insides(struct network *network, uint32_t router)
{
	uint32_t count;
	const struct ow_link *link = ow_topology_from(network->topology, router, &count);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < count; k++) {
			char name[OW_PLACE_TEXT];
			struct ow_way way = {
				.node = (uint16_t[]){(uint16_t)link[i].to, (uint16_t)router, (uint16_t)link[k].to},
				.nodes = 3};
			assert_true(ow_place_text(network->topology, &way, &(struct ow_place){true, 0, 3}, name));
			if (i != k && network->parts < 9900)
				add_part(network, name, 2e4);
		}
	}
}

static void make_network(struct network *network, uint64_t seed)
{
	*network = (struct network){.now_ns = 1000 * S};
	ow_random_seed(&network->random, seed);
	network->topology = network_rocketfuel("1239");
	if (!network->topology)
		network->topology = network_random(&network->random, 150, 250);
	uint32_t nodes = ow_topology_nodes(network->topology), count;
	struct ow_plan_options options = {.planner = OW_PLANNER_PAPER, .steps = nodes / 7};
	struct ow_plan_step *steps;
	assert_int_equal(ow_plan(network->topology, &options, &steps, &count, NULL), 0);
	network->is_mrouter = calloc(nodes, sizeof(bool));
	for (uint32_t i = 1; i < count; i++)
		network->is_mrouter[steps[i].router] = true;
	free(steps);
	for (uint32_t i = 0; i < nodes; i++)
		add_segments(network, i);
	for (uint32_t i = 0; i < nodes; i++)
		if (network->is_mrouter[i])
			add_insides(network, i);
	assert_int_equal(ow_monitor_create(&(struct ow_monitor_options){0}, &network->monitor), 0);
	for (int i = 0; i < 200; i++) {
		uint32_t from = (uint32_t)ow_random_below(&network->random, nodes),
			 to = (from + 1 + (uint32_t)i) % nodes;
		struct ow_target target = {"path",
		                           ow_topology_name(network->topology, from),
		                           ow_topology_name(network->topology, to),
		                           NULL,
		                           NAN,
		                           NAN};
		if (from != to)
			assert_int_equal(ow_monitor_add_target(network->monitor, &target, NULL), 0);
	}
	assert_int_equal(
		ow_monitor_set_network(network->monitor, network->topology, network->is_mrouter, network->now_ns, NULL),
		0);
}

static void done_network(struct network *network)
{
	ow_monitor_free(network->monitor);
	ow_topology_free(network->topology);
	free(network->is_mrouter);
	free(network->part);
}

/* One interval of all places; `hop` (if not NULL) and all places over it are slower by `sigmas`. */
static void interval(struct network *network, const struct part *faulty, double sigmas)
{
	network->now_ns += S;
	for (uint32_t i = 0; i < network->parts; i++) {
		const struct part *part = &network->part[i];
		double shift = part == faulty ? sigmas : 0;
		struct ow_watch_sample sample = {.start_ns = network->now_ns,
		                                 .length_ns = S,
		                                 .has_delay = true,
		                                 .has_loss = true,
		                                 .mean_ns = part->usual_ns +
		                                            part->spread_ns * (normal(&network->random) + shift),
		                                 .stddev_ns = part->spread_ns,
		                                 .samples = 1000,
		                                 .sent = 1000};
		assert_int_equal(ow_monitor_add(network->monitor, part->name, &sample, NULL), 0);
	}
}

static double now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* How many places have changed, and the name of one. */
static uint32_t changed(const struct network *network, const char **ret_place)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < network->monitor->places; i++) {
		const struct place *place = network->monitor->place[i];
		const struct ow_plane_watch *watch = ow_monitor_watch_of(network->monitor, place, network->now_ns);
		if (!watch || (!watch->delay.changed && !watch->loss.changed))
			continue;
		*ret_place = place->name;
		count++;
	}
	return count;
}

/*
 * Quiet: at most one false alarm in 1000 intervals is asked for; in 150, four or more would happen in 1 of 40,000 runs.
 * Faults: three sigma on one place each, judged when anything is named: it must be that place, and it alone.
 */
static void sprint(void **state)
{
	(void)state;
	struct network network;
	make_network(&network, 31);
	const char *many = getenv("OW_MONITOR_RUNS");
	int quiet = many ? 1000 : RUN_COUNT(150), faults = many ? 500 : RUN_COUNT(60);
	int alarms = 0, right = 0;
	const char *place;
	uint32_t last = 0;
	double start_ms = now_ms();
	for (int i = 0; i < quiet; i++) {
		interval(&network, NULL, 0);
		const struct ow_monitor_verdict *verdict;
		uint32_t count;
		assert_int_equal(ow_monitor_judge(network.monitor, network.now_ns, &verdict, &count, NULL), 0);
		uint32_t found = changed(&network, &place);
		alarms += found > last;
		last = found;
	}
	double each_ms = (now_ms() - start_ms) / quiet;
	for (int i = 0; i < faults; i++) {
		const struct part *faulty = &network.part[ow_random_below(&network.random, network.parts)];
		/* Whatever was named before the fault is forgotten first. */
		for (int n = 0; n < 20 && changed(&network, &place); n++)
			interval(&network, NULL, 0);
		uint32_t count = 0;
		for (int n = 0; n < 30 && count == 0; n++) {
			interval(&network, faulty, 3);
			count = changed(&network, &place);
		}
		char hops[256];
		assert_int_equal(ow_monitor_locate(network.monitor, network.now_ns, hops, sizeof(hops), NULL), 0);
		right += count == 1 && strcmp(place, faulty->name) == 0;
	}
	print_message("%u places: %d false alarms in %d intervals; the right place, and no other, in %d of %d faults; "
	              "%.1f ms an interval\n",
	              network.parts, alarms, quiet, right, faults, each_ms);
	assert_true(alarms < (many ? 6 : 4));
	assert_true(right >= faults * 99 / 100 - (many ? 3 : 1));
	done_network(&network);
}

/* -- small ones
 * -------------------------------------------------------------------------------------------------------- */

struct small {
	struct ow_topology *topology;
	struct ow_monitor *monitor;
	bool is_mrouter[6];
	struct ow_random random;
	int64_t now_ns;
};

static const char *const places[] = {"A>F", "F[A>C]", "F>C", "C[F>D]", "C>D", "F[A>E]", "F>E>D"};

static void make_small(struct small *small, double max_mean_ns, double max_loss)
{
	*small = (struct small){.topology = network_parse(figure_7)};
	ow_random_seed(&small->random, 1);
	small->is_mrouter[ow_topology_find(small->topology, "C")] = true;
	small->is_mrouter[ow_topology_find(small->topology, "F")] = true;
	assert_int_equal(ow_monitor_create(&(struct ow_monitor_options){.stale_ns = 2 * S}, &small->monitor), 0);
	struct ow_target target = {"A to D", "A", "D", NULL, max_mean_ns, max_loss};
	assert_int_equal(ow_monitor_add_target(small->monitor, &target, NULL), 0);
	assert_int_equal(ow_monitor_set_network(small->monitor, small->topology, small->is_mrouter, 0, NULL), 0);
}

static void done_small(struct small *small)
{
	ow_monitor_free(small->monitor);
	ow_topology_free(small->topology);
}

/* n intervals; the place `slow` has 1 ms more, `lossy` loses a tenth, `silent` says nothing. */
static void intervals(struct small *small, int n, const char *slow, const char *lossy, const char *silent)
{
	while (n-- > 0) {
		small->now_ns += S;
		for (int i = 0; i < 7; i++) {
			struct ow_watch_sample sample = {.start_ns = small->now_ns,
			                                 .length_ns = S,
			                                 .has_delay = true,
			                                 .has_loss = true,
			                                 .mean_ns = 1e5 + 1e3 * normal(&small->random),
			                                 .sent = 1000};
			sample.mean_ns += slow && strcmp(slow, places[i]) == 0 ? 1e6 : 0;
			sample.lost = lossy && strcmp(lossy, places[i]) == 0 ? 100 : 0;
			if (!silent || strcmp(silent, places[i]) != 0)
				assert_int_equal(ow_monitor_add(small->monitor, places[i], &sample, NULL), 0);
		}
	}
}

static const struct ow_monitor_verdict *verdict_of(struct small *small)
{
	const struct ow_monitor_verdict *verdict;
	uint32_t count;
	assert_int_equal(ow_monitor_judge(small->monitor, small->now_ns, &verdict, &count, NULL), 0);
	assert_int_equal(count, 1);
	return verdict;
}

/* A fault on each place in turn, delay and loss: named, and forgotten when it is over. */
static void each_place(void **state)
{
	(void)state;
	struct small small;
	make_small(&small, NAN, NAN);
	assert_int_equal(verdict_of(&small)->state, OW_PATH_UNKNOWN);
	assert_string_equal(verdict_of(&small)->cause, "no result of A>F and others");
	intervals(&small, 40, NULL, NULL, NULL);
	assert_int_equal(verdict_of(&small)->state, OW_PATH_OK);
	for (int i = 0; i < 14; i++) {
		intervals(&small, 5, i < 7 ? places[i] : NULL, i < 7 ? NULL : places[i - 7], NULL);
		const struct ow_monitor_verdict *verdict = verdict_of(&small);
		assert_int_equal(verdict->state, OW_PATH_BROKEN);
		assert_int_equal(verdict->findings, 1);
		assert_string_equal(verdict->finding[0].place, places[i % 7]);
		assert_int_equal(verdict->finding[0].delay, i < 7);
		assert_int_equal(verdict->finding[0].loss, i >= 7);
		assert_int_equal(verdict->finding[0].since_ns, small.now_ns - 4 * S);
		assert_true(verdict->finding[0].share == (i % 7 == 0 ? 1 : 0.5));
		intervals(&small, 10, NULL, NULL, NULL);
		assert_int_equal(verdict_of(&small)->state, OW_PATH_OK);
	}
	done_small(&small);
}

static void targets(void **state)
{
	(void)state;
	struct small small;
	/* 100 us a place, 5 places one way and 3 the other: 400 us on average. */
	make_small(&small, 350e3, 0.01);
	intervals(&small, 40, NULL, NULL, NULL);
	const struct ow_monitor_verdict *verdict = verdict_of(&small);
	assert_int_equal(verdict->state, OW_PATH_BROKEN);
	assert_non_null(strstr(verdict->cause, "above its target of 350 us; but no part of it has changed"));
	done_small(&small);
	make_small(&small, 500e3, 0.04);
	intervals(&small, 40, NULL, NULL, NULL);
	assert_int_equal(verdict_of(&small)->state, OW_PATH_OK);
	intervals(&small, 5, NULL, "F>C", NULL);
	verdict = verdict_of(&small);
	assert_int_equal(verdict->state, OW_PATH_BROKEN);
	assert_string_equal(verdict->cause, "loses 5 %, above its target of 4 %");
	assert_string_equal(verdict->finding[0].place, "F>C");
	intervals(&small, 20, NULL, NULL, NULL);
	intervals(&small, 5, NULL, NULL, "C>D");
	verdict = verdict_of(&small);
	assert_int_equal(verdict->state, OW_PATH_UNKNOWN);
	assert_string_equal(verdict->cause, "no result of C>D");
	/* A result, without packets. */
	struct ow_watch_sample empty = {.start_ns = small.now_ns - S, .length_ns = S};
	assert_int_equal(ow_monitor_add(small.monitor, "C>D", &empty, NULL), 0);
	assert_string_equal(verdict_of(&small)->cause, "no packet of C>D was compared");
	/* With a gap, but too slow already. */
	intervals(&small, 5, "A>F", NULL, "C>D");
	verdict = verdict_of(&small);
	assert_int_equal(verdict->state, OW_PATH_BROKEN);
	assert_string_equal(verdict->finding[0].place, "A>F");
	assert_non_null(strstr(verdict->cause, "at least"));
	done_small(&small);
}

/* A link goes: the path is another, its old places stay for a while; routers that do not exist are said so. */
static void network_changes(void **state)
{
	(void)state;
	struct small small;
	make_small(&small, NAN, NAN);
	struct ow_target nowhere = {"A to X", "A", "X", NULL, NAN, NAN};
	assert_int_equal(ow_monitor_add_target(small.monitor, &nowhere, NULL), 0);
	intervals(&small, 40, NULL, NULL, NULL);
	struct ow_topology *without =
		network_parse("A B 3\nB A 3\nA F 2\nF A 2\nB F 2\nF B 2\nF C 2\nC F 2\nF E 4\nE F 4\n"
	                      "E D 1\nD E 1\nC E 3\nE C 3\n");
	bool is_mrouter[6] = {false};
	is_mrouter[ow_topology_find(without, "C")] = is_mrouter[ow_topology_find(without, "F")] = true;
	assert_int_equal(ow_monitor_set_network(small.monitor, without, is_mrouter, small.now_ns, NULL), 0);
	intervals(&small, 1, NULL, NULL, NULL);
	const struct ow_monitor_verdict *verdict;
	uint32_t count;
	assert_int_equal(ow_monitor_judge(small.monitor, small.now_ns, &verdict, &count, NULL), 0);
	assert_int_equal(verdict[0].state, OW_PATH_OK);
	assert_int_equal(verdict[0].composed.places, 3);
	assert_string_equal(verdict[1].cause, "the network has no router X");
	struct ow_monitor_count counts;
	ow_monitor_count(small.monitor, small.now_ns, &counts);
	assert_int_equal(counts.places, 7);
	assert_int_equal(counts.old, 4);
	ow_topology_free(without);
	done_small(&small);
}

/* F>E>D is slow; so is C>E>D, and F>E is not: it is E>D. */
static void located(void **state)
{
	(void)state;
	struct ow_monitor *monitor;
	static const char *const name[] = {"F>E>D", "C>E>D", "F>E", "C>E", "D[E>G]"};
	char hops[64];
	assert_int_equal(ow_monitor_create(&(struct ow_monitor_options){0}, &monitor), 0);
	for (int t = 1; t <= 60; t++) {
		for (int i = 0; i < 5; i++) {
			struct ow_watch_sample sample = {.start_ns = t * S,
			                                 .length_ns = S,
			                                 .has_delay = true,
			                                 .mean_ns = 1e5 + (t * 7 + i * 3) % 11};
			sample.mean_ns += t > 50 && i < 2 ? 1e3 : 0;
			assert_int_equal(ow_monitor_add(monitor, name[i], &sample, NULL), 0);
		}
		assert_int_equal(ow_monitor_locate(monitor, t * S, hops, sizeof(hops), NULL), 0);
		assert_true(t == 51 || t == 52 || strcmp(hops, t > 50 ? "E>D" : "") == 0);
	}
	ow_monitor_free(monitor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_place), cmocka_unit_test(targets),
	                                   cmocka_unit_test(network_changes), cmocka_unit_test(located),
	                                   cmocka_unit_test(sprint)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
