/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The join against simulated networks whose truth is known: test_simulation [--long|--scale]
 * Random networks with what can go wrong, and Rocketfuel's maps in ../shared/topologies if they are there. The short form
 * takes some seconds, --long a minute (make fleet-test).
 */
#include "simulation.h"
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(bool good, const char *what)
{
	if (good)
		return;
	failures++;
	printf("FAILED: %s\n", what);
}

static void print(const char *name, const struct simulation_score *s, unsigned runs)
{
	static const char *const class[] = {">= 30 %", "3-30 %", "1-3 %", ".3-1 %", "less"};
	printf("%s: firm right %lu of %lu (%lu reversed), provisional %lu of %lu, unknown order %lu; order wrong %lu "
	       "of %lu\n",
	       name, s->firm_right, s->firm, s->firm_reversed, s->provisional_right, s->provisional, s->unknown_order,
	       s->order_wrong, s->ordered);
	printf("  found");
	for (int i = 0; i < 5; i++)
		printf(" %s %lu/%lu%s", class[i], s -> found[i], s -> edges[i], i < 4 ? "," : "\n");
	printf("  in 95 %% intervals: share %.3f of %lu, loss %.3f of %lu, delay %.3f of %lu; accused %lu of %lu; "
	       "offsets out %lu of %lu\n",
	       (double)s->shares_in / (double)(s->shares + !s->shares), s->shares,
	       (double)s->losses_in / (double)(s->losses + !s->losses), s->losses,
	       (double)s->delays_in / (double)(s->delays + !s->delays), s->delays, s->accused, s->clean, s->offsets_out,
	       s->offsets);
	printf("  changes %lu; %.3f s an epoch, %.0f bytes a message; dropped %lu copies %lu repeats %lu spans %lu "
	       "loops, %lu clock contradictions\n",
	       s->changes, s->seconds / runs, s->bytes / runs, s->counts.copies, s->counts.repeats, s->counts.spans,
	       s->counts.loops, s->counts.clock_contradictions);
}

#define FEW   .vantages = 80, .epochs = 8, .packets = 60000, .lossy = 0.5, .loss_max = 0.05, .clock_s = 0.5
#define USUAL FEW, .k = 512

/* What discovery.md calls stress: name, options, least share of firm edges that are right, and most wrong ones. */
static const struct stress {
	const char *name;
	struct simulation_options options;
	double right;
} stresses[] = {
	{"random networks", {USUAL}, 0.998},
	{"a third of the points are taps", {USUAL, .taps = 0.33}, 0.99},
	{"NAT at a third of the routers", {USUAL, .nat = 0.33}, 0.998},
	{"1 % of the messages are lost", {USUAL, .missing = 0.01}, 0.998},
	{"10 % of the messages are lost", {USUAL, .missing = 0.1}, 0.998},
	{"captures drop 1 %", {USUAL, .drops = 0.01}, 0.99},
	{"captures drop 10 %", {USUAL, .drops = 0.1}, 0.84},
	{"a fifth of the clocks are set", {USUAL, .clock_steps = 0.2}, 0.998},
	{"loss in bursts of 20", {USUAL, .bursts = 20}, 0.998},
	{"routes change inside an epoch", {USUAL, .reroute_s = 45}, 0.998},
	{"1 % of the packets twice", {USUAL, .copies = 0.01}, 0.998},
	{"k = 128", {FEW, .k = 128}, 0.995},
};

static void run_stress(const struct stress *stress, unsigned runs)
{
	struct simulation_score score = {0};
	char what[200];
	for (unsigned i = 0; i < runs; i++) {
		struct ow_topology *topology = random_topology(40, i + 1);
		struct simulation_options options = stress->options;
		options.seed = i + 1;
		simulate(topology, &options, &score);
		ow_topology_free(topology);
	}
	print(stress->name, &score, runs);
	snprintf(what, sizeof what, "%s: firm edges", stress->name);
	expect(score.firm > 50 && (double)score.firm_right >= stress->right * (double)score.firm, what);
	snprintf(what, sizeof what, "%s: order", stress->name);
	expect((double)score.order_wrong <= 0.001 * (double)score.ordered, what);
	snprintf(what, sizeof what, "%s: loss where there is none", stress->name);
	expect(score.accused == 0 || stress->options.drops > 0, what); /* drops look like loss, and are said to */
}

static bool within(uint64_t in, uint64_t of, double least, double most)
{
	return of == 0 || ((double)in >= least * (double)of && (double)in <= most * (double)of);
}

/* What discovery was designed by. Pairs of one network are not independent, so few networks have wide limits. */
static void check_all(const struct simulation_score *s, double least, double most)
{
	expect((double)s->firm_right >= 0.999 * (double)s->firm, "maps: firm edges");
	expect((double)s->order_wrong <= 0.001 * (double)s->ordered, "maps: order");
	uint64_t found = s->found[0] + s->found[1] + s->found[2], edges = s->edges[0] + s->edges[1] + s->edges[2];
	expect((double)found >= 0.99 * (double)edges, "maps: edges with 1 % of the traffic are found");
	expect(within(s->shares_in, s->shares, least, most), "maps: intervals of shares");
	expect(within(s->losses_in, s->losses, least, most), "maps: intervals of loss");
	expect(within(s->delays_in, s->delays, least, most), "maps: intervals of delay");
	expect(s->accused == 0, "maps: loss where there is none");
	expect(s->offsets_out == 0, "maps: clock offsets");
}

static void run_map(const struct ow_topology *topology, unsigned runs, struct simulation_score *all)
{
	for (unsigned i = 0; i < runs; i++) {
		struct simulation_options options = {.seed = i + 1,
		                                     .vantages = 200,
		                                     .epochs = 8,
		                                     .packets = 200000,
		                                     .k = 512,
		                                     .lossy = 0.5,
		                                     .loss_max = 0.05,
		                                     .clock_s = 0.5};
		simulate(topology, &options, all);
	}
}

static void run_maps(bool more)
{
	static const char *const maps[] = {"1755", "1221", "1239", "3257", "3967", "6461"};
	struct simulation_score all = {0};
	unsigned count = more ? 6 : 1, runs = more ? 3 : 1;
	for (unsigned i = 0; i < count; i++) {
		char path[4096];
		struct ow_topology *topology;
		snprintf(path, sizeof path, OW_SHARED "/topologies/rocketfuel-%s.weights.intra", maps[i]);
		if (ow_topology_read(path, 0, &topology, NULL) < 0) {
			printf("no maps: %s cannot be read\n", path);
			return;
		}
		run_map(topology, runs, &all);
		ow_topology_free(topology);
	}
	print("all maps", &all, count * runs);
	check_all(&all, more ? 0.93 : 0.88, more ? 0.97 : 0.99);
}

/* How long the join of an epoch takes with so many vantages; only for people. */
static void run_scale(void)
{
	struct ow_topology *topology = random_topology(1000, 1);
	struct simulation_options options = {USUAL, .seed = 1};
	struct simulation_score score = {0};
	options.vantages = 2000;
	options.packets = 1000000;
	simulate(topology, &options, &score);
	print("2000 vantages", &score, 1);
	ow_topology_free(topology);
}

int main(int argc, char **argv)
{
	bool more = argc > 1 && strcmp(argv[1], "--long") == 0;
	if (argc > 1 && strcmp(argv[1], "--scale") == 0) {
		run_scale();
		return 0;
	}
	for (size_t i = 0; i < (more ? sizeof stresses / sizeof *stresses : 1); i++)
		run_stress(&stresses[i], more ? 6 : 2);
	run_maps(more);
	return failures > 0;
}
