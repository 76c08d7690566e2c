/* SPDX-License-Identifier: Apache-2.0 */
/* Ways, their shares and places; composed results compared with packets that are sent over the ways one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "plane/compose.h"
#include <errno.h>
#include "network.h"

static void expect_way(const struct ow_topology *topology, const struct ow_way *way, double share, const char *expected)
{
	char all[8 * OW_PLACE_TEXT] = "", one[OW_PLACE_TEXT];
	for (uint32_t i = 0; i < way->places; i++) {
		assert_true(ow_place_text(topology, way, &way->place[i], one));
		size_t used = strlen(all);
		snprintf(all + used, sizeof(all) - used, "%s%s", used ? " " : "", one);
	}
	assert_string_equal(all, expected);
	assert_true(fabs(way->share - share) < 1e-12);
}

static void figure_7_ways(void **state)
{
	(void)state;
	struct ow_topology *topology = network_parse(figure_7);
	bool is_mrouter[6] = {false};
	is_mrouter[ow_topology_find(topology, "C")] = is_mrouter[ow_topology_find(topology, "F")] = true;
	struct ow_route route;
	assert_int_equal(ow_route_find(topology, is_mrouter, ow_topology_find(topology, "A"),
	                               ow_topology_find(topology, "D"), &route, NULL),
	                 0);
	assert_int_equal(route.ways, 2);
	expect_way(topology, &route.way[0], 0.5, "A>F F[A>C] F>C C[F>D] C>D");
	expect_way(topology, &route.way[1], 0.5, "A>F F[A>E] F>E>D");
	ow_route_done(&route);
	ow_topology_free(topology);
	topology = network_parse("A B 1\nC D 1\n");
	struct ow_error err;
	assert_int_equal(ow_route_find(topology, is_mrouter, 0, 3, &route, &err), -ENOENT);
	assert_string_equal(err.text, "there is no path from A to D");
	ow_topology_free(topology);
}

/* Whatever the network: shares add up to 1, and a hop's share is that of a router that splits evenly. */
static void shares(void **state)
{
	(void)state;
	enum { NODES = 12 };
	struct ow_random random;
	ow_random_seed(&random, 9);
	bool is_mrouter[NODES] = {false};
	for (int run = 0; run < 50; run++) {
		struct ow_topology *topology = network_random(&random, NODES, 16);
		uint32_t from = (uint32_t)ow_random_below(&random, NODES), to = (from + 1) % NODES;
		struct ow_route route;
		assert_int_equal(ow_route_find(topology, is_mrouter, from, to, &route, NULL), 0);
		double sum = 0, at[NODES][NODES] = {{0}};
		for (uint32_t w = 0; w < route.ways; w++) {
			sum += route.way[w].share;
			for (uint32_t i = 0; i + 1 < route.way[w].nodes; i++)
				at[route.way[w].node[i]][route.way[w].node[i + 1]] += route.way[w].share;
		}
		assert_true(fabs(sum - 1) < 1e-9);
		for (uint32_t a = 0; a < NODES; a++) {
			double one = 0;
			for (uint32_t b = 0; b < NODES; b++) {
				one = one > 0 || at[a][b] == 0 ? one : at[a][b];
				assert_true(at[a][b] == 0 || fabs(at[a][b] - one) < 1e-9);
			}
		}
		ow_route_done(&route);
		ow_topology_free(topology);
	}
}

/* Samples by place: a number that its name gives. */
struct samples {
	struct ow_topology *topology;
	struct ow_watch_sample sample[8];
	const char *name[8];
};

static const struct ow_watch_sample *find(void *arg, const struct ow_way *way, const struct ow_place *place)
{
	struct samples *samples = arg;
	char text[OW_PLACE_TEXT];
	assert_true(ow_place_text(samples->topology, way, place, text));
	for (int i = 0; i < 8; i++)
		if (samples->name[i] && strcmp(samples->name[i], text) == 0)
			return &samples->sample[i];
	return NULL;
}

/* 10^6 packets, exponential delays: the mean is within 5 standard errors, the spread within 1 %. */
static void composed_as_sent(void **state)
{
	(void)state;
	static const char *const names[] = {"A>F", "F[A>C]", "F>C", "C[F>D]", "C>D", "F[A>E]", "F>E>D"};
	static const double usual[] = {100, 20, 70, 30, 50, 25, 400};
	static const double loss[] = {0.01, 0.002, 0, 0.03, 0.01, 0.005, 0.1};
	struct samples samples = {.topology = network_parse(figure_7)};
	for (int i = 0; i < 7; i++) {
		samples.name[i] = names[i];
		samples.sample[i] = (struct ow_watch_sample){.has_delay = true,
		                                             .has_loss = true,
		                                             .mean_ns = usual[i],
		                                             .stddev_ns = usual[i],
		                                             .mean_error_ns = 1,
		                                             .clock_error_ns = 3,
		                                             .sent = 1000000,
		                                             .lost = (uint64_t)(loss[i] * 1e6)};
	}
	bool is_mrouter[6] = {false};
	is_mrouter[ow_topology_find(samples.topology, "C")] = is_mrouter[ow_topology_find(samples.topology, "F")] =
		true;
	struct ow_route route;
	assert_int_equal(
		ow_route_find(samples.topology, is_mrouter, 0, ow_topology_find(samples.topology, "D"), &route, NULL),
		0);
	struct ow_composed composed;
	ow_compose(&route, find, &samples, &composed);
	struct ow_random random;
	ow_random_seed(&random, 2);
	double sum = 0, squares = 0, arrived = 0, lost = 0;
	/* As in the formulas delay and loss are apart: every packet has a delay, whether it is lost or not. */
	for (int i = 0; i < 1000000; i++) {
		const struct ow_way *way = &route.way[ow_random_below(&random, 2)];
		double delay = 0;
		bool is_lost = false;
		for (uint32_t p = 0; p < way->places; p++) {
			const struct ow_watch_sample *sample = find(&samples, way, &way->place[p]);
			delay -= sample->mean_ns * log(1 - ow_random_unit(&random));
			is_lost |= ow_random_unit(&random) < (double)sample->lost / 1e6;
		}
		sum += delay;
		squares += delay * delay;
		arrived++;
		lost += is_lost;
	}
	double mean = sum / arrived, spread = sqrt(squares / arrived - mean * mean), ratio = lost / arrived;
	assert_true(fabs(composed.mean_ns.value - mean) < 5 * spread / 1000);
	assert_true(fabs(composed.stddev_ns.value / spread - 1) < 0.01);
	assert_true(fabs(composed.loss_ratio.value - ratio) < 5 * sqrt(ratio / 1e6));
	assert_true(composed.mean_ns.low < composed.mean_ns.value && composed.clock_error_ns == 6);
	/* The first place is on both ways: errors of 1 are 1 + 4 / 4 + 2 / 4 in squares, bounded by 5 / 2 + 3 / 2. */
	double half = (composed.mean_ns.high - composed.mean_ns.low) / 2 / 1.96;
	assert_true(half * half > 2.5 && half * half < 4.01);
	assert_int_equal(composed.missing, 0);
	/* A place with a mean, but without a standard deviation: that of the path is not known. */
	samples.sample[3].stddev_ns = NAN;
	ow_compose(&route, find, &samples, &composed);
	assert_int_equal(composed.mean_ns.status, OW_VALUE_ESTIMATED);
	assert_int_equal(composed.stddev_ns.status, OW_VALUE_NONE);
	assert_int_equal(composed.missing, 0);
	samples.sample[3].stddev_ns = usual[3];
	samples.name[6] = NULL;
	ow_compose(&route, find, &samples, &composed);
	assert_int_equal(composed.mean_ns.status, OW_VALUE_NONE);
	assert_int_equal(composed.missing, 1);
	assert_int_equal(composed.missing_way, 1);
	assert_int_equal(composed.missing_place, 2);
	ow_route_done(&route);
	ow_topology_free(samples.topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(figure_7_ways), cmocka_unit_test(shares),
	                                   cmocka_unit_test(composed_as_sent)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
