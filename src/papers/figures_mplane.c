/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 9 of the paper on LDA and MPLANE: how many probe hops upgraded routers save on maps of networks. The paper
 * shows Sprint (AS 1239) and says that five others are similar; all six are here.
 */
#include "plane/plan.h"
#include "base/format.h"
#include "papers/figure.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPRINT    "1239"
#define MAP_MAX   (1u << 22) /* bytes of a map */
#define RUNS      5          /* random orders */
#define RUNS_FEW  2
#define SOME      0.15 /* of the routers: "about 15 %" */
#define ALGORITHM "Algorithm 1"
#define OURS      "beam"
#define RANDOM    "random"

static const char *const maps[] = {"1221", SPRINT, "1755", "3257", "3967", "6461"};
#define MAPS (sizeof maps / sizeof *maps)

/* One map and its plans: Algorithm 1, ours, random ones. */
struct study {
	struct ow_topology *topology;
	uint32_t routers;
	struct ow_plan_step *paper, *beam, *random[RUNS]; /* routers + 1 steps each */
	unsigned runs;
};

static void study_done(struct study *study)
{
	ow_topology_free(study->topology);
	free(study->paper);
	free(study->beam);
	for (unsigned i = 0; i < RUNS; i++)
		free(study->random[i]);
}

static int read_map(const char *folder, const char *as, struct ow_topology **ret_topology, struct ow_error *err)
{
	char path[1024];
	if (snprintf(path, sizeof path, "%s/rocketfuel-%s.weights.intra", folder, as) >= (int)sizeof path)
		return ow_error_set(err, ENAMETOOLONG, "%.60s...: %s", folder, strerror(ENAMETOOLONG));
	FILE *file = fopen(path, "re");
	if (!file)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	char *text = malloc(MAP_MAX);
	size_t size = text ? fread(text, 1, MAP_MAX, file) : 0;
	int r = 0;
	if (!text)
		r = ow_error_set(err, ENOMEM, "%s: out of memory", path);
	else if (ferror(file) || size == MAP_MAX)
		r = ow_error_set(err, EFBIG, "%s: cannot be read, or more than %u MiB", path, MAP_MAX >> 20);
	else
		r = ow_topology_parse_rocketfuel(path, text, size, ret_topology, err);
	fclose(file);
	free(text);
	return r;
}

static int plan(const struct study *study, enum ow_planner planner, uint64_t seed, struct ow_plan_step **ret_steps,
                struct ow_error *err)
{
	uint32_t count;
	return ow_plan(study->topology,
	               &(struct ow_plan_options){.planner = planner, .steps = UINT32_MAX, .seed = seed}, ret_steps,
	               &count, err);
}

static int study_make(struct ow_figure_run *run, const char *as, struct study *ret_study, struct ow_error *err)
{
	struct study study = {.runs = ow_figure_quick(run) ? RUNS_FEW : RUNS};
	int r = read_map(ow_figure_topologies(run), as, &study.topology, err);
	if (r < 0)
		return r;
	study.routers = ow_topology_nodes(study.topology);
	r = plan(&study, OW_PLANNER_PAPER, 0, &study.paper, err);
	if (r == 0)
		r = plan(&study, OW_PLANNER_BEAM, 0, &study.beam, err);
	for (unsigned i = 0; r == 0 && i < study.runs; i++)
		r = plan(&study, OW_PLANNER_RANDOM, ow_figure_seed(run) + i, &study.random[i], err);
	if (r < 0)
		study_done(&study);
	else
		*ret_study = study;
	return r;
}

/* Without maps nothing is computed, and the claim says so. */
static int claim_no_maps(struct ow_figure_run *run)
{
	return ow_figure_claim(run, "Rocketfuel's maps of six networks", false,
	                       "not computed: the maps are not here (--topologies DIR)");
}

/* A value of the random plans at a step: mean, smallest and largest over the runs. */
struct over_runs {
	double mean, low, high;
};

static double hops_of(const struct ow_plan_step *step)
{
	return (double)step->measure.probe_hops;
}

static struct over_runs random_hops(const struct study *study, uint32_t step)
{
	struct over_runs all = {0, INFINITY, 0};
	for (unsigned i = 0; i < study->runs; i++) {
		double hops = hops_of(&study->random[i][step]);
		all.mean += hops / study->runs;
		all.low = fmin(all.low, hops);
		all.high = fmax(all.high, hops);
	}
	return all;
}

/* The mean hops of a segment. */
static struct over_runs random_granularity(const struct study *study, uint32_t step)
{
	struct over_runs all = {0, INFINITY, 0};
	for (unsigned i = 0; i < study->runs; i++) {
		double mean = study->random[i][step].measure.mean;
		all.mean += mean / study->runs;
		all.low = fmin(all.low, mean);
		all.high = fmax(all.high, mean);
	}
	return all;
}

/* -- probe hops --------------------------------------------------------------------------------------------------- */

static int draw_hops(struct ow_figure_run *run, const struct study *study)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i <= study->routers; i++) {
		double paper = hops_of(&study->paper[i]), beam = hops_of(&study->beam[i]);
		struct over_runs random = random_hops(study, i);
		r = ow_figure_point(run, ALGORITHM, i, paper, paper, paper);
		if (r == 0)
			r = ow_figure_point(run, OURS, i, beam, beam, beam);
		if (r == 0)
			r = ow_figure_point(run, RANDOM, i, random.mean, random.low, random.high);
	}
	return r;
}

/* The first step with at most this many probe hops. */
static uint32_t first_below(const struct study *study, double hops)
{
	uint32_t i = 0;
	while (i < study->routers && hops_of(&study->paper[i]) > hops)
		i++;
	return i;
}

static int claim_sprint_hops(struct ow_figure_run *run, const struct study *study)
{
	char ours[200], a[OW_FORMAT], b[OW_FORMAT];
	uint32_t upgrades = 45;
	double none = hops_of(&study->paper[0]), with = hops_of(&study->paper[upgrades]);
	snprintf(ours, sizeof ours, "%s", ow_format_count((uint64_t)none, a));
	int r = ow_figure_claim(run, "about a million probe hops with none upgraded", fabs(none / 1e6 - 1) < 0.1, "%s",
	                        ours);
	if (r == 0)
		r = ow_figure_claim(
			run, "about 10,000 with 45 of 315: two orders of magnitude", with <= 1e4 && none / with >= 100,
			"Algorithm 1 %s, %.0f-fold fewer; beam %s; at most 10,000 with %u",
			ow_format_count((uint64_t)with, a), none / with,
			ow_format_count((uint64_t)hops_of(&study->beam[upgrades]), b), first_below(study, 1e4));
	return r;
}

/* The links are what remains after all upgrades. */
static int claim_some(struct ow_figure_run *run, const struct study *study)
{
	uint32_t upgrades = (uint32_t)lround(SOME * study->routers);
	double none = hops_of(&study->paper[0]), with = hops_of(&study->paper[upgrades]);
	struct over_runs random = random_hops(study, upgrades);
	char ours[240];
	snprintf(ours, sizeof ours,
	         "%u of %u: Algorithm 1 %.0f-fold, beam %.0f-fold, random %.1f-fold (%u runs); all: %.0f-fold",
	         upgrades, study->routers, none / with, none / hops_of(&study->beam[upgrades]), none / random.mean,
	         study->runs, none / hops_of(&study->paper[study->routers]));
	int r = ow_figure_claim(run, "15 % of the routers: two orders of magnitude fewer, on average of the maps",
	                        none / with >= 100, "%s", ours);
	return r < 0 ? r
	             : ow_figure_claim(run, "a random order is much slower", random.low > 2 * with,
	                               "with %u: %.0f times the probe hops of Algorithm 1", upgrades,
	                               random.mean / with);
}

static int claim_beam(struct ow_figure_run *run, const struct study *study)
{
	uint32_t better = 0, worse = 0, best = 0;
	double least = 1;
	for (uint32_t i = 0; i <= study->routers; i++) {
		double beam = hops_of(&study->beam[i]), paper = hops_of(&study->paper[i]);
		better += beam < paper;
		worse += beam > paper;
		if (paper > 0 && beam / paper < least) {
			least = beam / paper;
			best = i;
		}
	}
	return ow_figure_claim(run, "the beam beside Algorithm 1 is not in the paper", worse == 0,
	                       "fewer at %u steps, as many at %u, more at %u; at best %.1f %% fewer, with %u", better,
	                       study->routers + 1 - better - worse, worse, 100 * (1 - least), best);
}

static int show_hops(struct ow_figure_run *run, struct ow_error *err)
{
	const char *as = maps[ow_figure_part(run)];
	if (!ow_figure_topologies(run))
		return claim_no_maps(run);
	struct study study;
	int r = study_make(run, as, &study, err);
	if (r < 0)
		return r;
	r = draw_hops(run, &study);
	if (r == 0 && strcmp(as, SPRINT) == 0)
		r = claim_sprint_hops(run, &study);
	if (r == 0)
		r = claim_some(run, &study);
	if (r == 0)
		r = claim_beam(run, &study);
	study_done(&study);
	return r;
}

/* -- granularity -------------------------------------------------------------------------------------------------- */

/* The longest and the shortest segment; for the random orders, over all runs. */
static int draw_ends(struct ow_figure_run *run, const struct study *study, uint32_t step)
{
	const struct ow_paths_measure *paper = &study->paper[step].measure, *beam = &study->beam[step].measure;
	double longest = 0, shortest = fmin(paper->min, beam->min);
	for (unsigned i = 0; i < study->runs; i++) {
		longest = fmax(longest, study->random[i][step].measure.max);
		shortest = fmin(shortest, study->random[i][step].measure.min);
	}
	int r = ow_figure_point(run, ALGORITHM ", longest", step, paper->max, paper->max, paper->max);
	if (r == 0)
		r = ow_figure_point(run, OURS ", longest", step, beam->max, beam->max, beam->max);
	if (r == 0)
		r = ow_figure_point(run, RANDOM ", longest", step, longest, longest, longest);
	if (r == 0)
		r = ow_figure_point(run, "shortest of any order", step, shortest, shortest, shortest);
	return r;
}

static int draw_granularity(struct ow_figure_run *run, const struct study *study)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i <= study->routers; i++) {
		double paper = study->paper[i].measure.mean, beam = study->beam[i].measure.mean;
		struct over_runs random = random_granularity(study, i);
		r = ow_figure_point(run, ALGORITHM ", mean", i, paper, paper, paper);
		if (r == 0)
			r = ow_figure_point(run, OURS ", mean", i, beam, beam, beam);
		if (r == 0)
			r = ow_figure_point(run, RANDOM ", mean", i, random.mean, random.low, random.high);
		if (r == 0)
			r = draw_ends(run, study, i);
	}
	return r;
}

/* Counts each pair of routers once, over its shortest path with the fewest hops. */
static int mean_of_pairs(const struct study *study, double *ret_mean, struct ow_error *err)
{
	struct ow_paths *paths = NULL;
	size_t routers = study->routers;
	uint16_t *fewest = calloc(routers * routers + 1, sizeof *fewest);
	int r = fewest && ow_paths_create(study->routers, &paths) == 0 ? ow_paths_add_all(paths, study->topology, err)
	                                                               : -ENOMEM;
	double hops = 0, pairs = 0;
	for (uint32_t i = 0; r == 0 && i < ow_paths_count(paths); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(paths, i, &nodes);
		uint16_t *least = &fewest[node[0] * routers + node[nodes - 1]];
		pairs += *least == 0;
		hops -= *least;
		*least = *least && *least < nodes - 1 ? *least : (uint16_t)(nodes - 1);
		hops += *least;
	}
	ow_paths_free(paths);
	free(fewest);
	*ret_mean = pairs > 0 ? hops / pairs : 0;
	return r;
}

static int claim_sprint_granularity(struct ow_figure_run *run, const struct study *study, struct ow_error *err)
{
	double pairs = 0, paths = study->paper[0].measure.mean;
	uint32_t upgrades = 50;
	int r = mean_of_pairs(study, &pairs, err);
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "a segment has around 4 hops with none upgraded",
	                    lround(paths) == 4 || lround(pairs) == 4,
	                    "%.2f a path; %.2f a pair of routers, each over its path of the fewest hops", paths, pairs);
	return r < 0 ? r
	             : ow_figure_claim(run, "around 1.5 with 50 of about 300",
	                               fabs(study->paper[upgrades].measure.mean - 1.5) < 0.05,
	                               "Algorithm 1 %.2f, beam %.2f, random %.2f (%u runs)",
	                               study->paper[upgrades].measure.mean, study->beam[upgrades].measure.mean,
	                               random_granularity(study, upgrades).mean, study->runs);
}

static int claim_granularity(struct ow_figure_run *run, const struct study *study)
{
	uint32_t upgrades = (uint32_t)lround(study->routers / 6.0);
	const struct ow_paths_measure *none = &study->paper[0].measure, *with = &study->paper[upgrades].measure;
	double all = study->paper[study->routers].measure.mean, random = random_granularity(study, upgrades).mean;
	/* The share of the improvement from no router upgraded to all. */
	double share = (none->mean - with->mean) / (none->mean - all);
	double slower = (none->mean - random) / (none->mean - all);
	return ow_figure_claim(
		run, "on all maps a few routers achieve almost all the benefit, a random order much slower",
		share > 0.8 && slower < share / 2,
		"%.2f (%u to %u) to %.2f (%u to %u) with %u of %u: %.0f %% of the benefit; random %.0f %% (%u runs)",
		none->mean, none->min, none->max, with->mean, with->min, with->max, upgrades, study->routers,
		100 * share, 100 * slower, study->runs);
}

static int show_granularity(struct ow_figure_run *run, struct ow_error *err)
{
	const char *as = maps[ow_figure_part(run)];
	if (!ow_figure_topologies(run))
		return claim_no_maps(run);
	struct study study;
	int r = study_make(run, as, &study, err);
	if (r < 0)
		return r;
	r = draw_granularity(run, &study);
	if (r == 0 && strcmp(as, SPRINT) == 0)
		r = claim_sprint_granularity(run, &study, err);
	if (r == 0)
		r = claim_granularity(run, &study);
	study_done(&study);
	return r;
}

/* -- all maps ----------------------------------------------------------------------------------------------------- */

struct words {
	char text[400];
	size_t length;
};

static void say(struct words *words, const char *as, double value)
{
	words->length += (size_t)snprintf(words->text + words->length, sizeof words->text - words->length,
	                                  "AS %s %.0f, ", as, value);
}

static int draw_map(struct ow_figure_run *run, const char *as, double *ret_times, struct ow_error *err)
{
	struct study study = {0};
	char series[40];
	int r = read_map(ow_figure_topologies(run), as, &study.topology, err);
	if (r < 0)
		return r;
	study.routers = ow_topology_nodes(study.topology);
	r = plan(&study, OW_PLANNER_PAPER, 0, &study.paper, err);
	snprintf(series, sizeof series, "AS %s", as);
	for (uint32_t i = 0; r == 0 && i <= study.routers; i++) {
		double left = hops_of(&study.paper[i]) / hops_of(&study.paper[0]);
		r = ow_figure_point(run, series, 100.0 * i / study.routers, left, left, left);
	}
	if (r == 0)
		*ret_times = hops_of(&study.paper[0]) / hops_of(&study.paper[lround(SOME * study.routers)]);
	study_done(&study);
	return r;
}

static int show_all(struct ow_figure_run *run, struct ow_error *err)
{
	if (!ow_figure_topologies(run))
		return claim_no_maps(run);
	struct words words = {.length = 0};
	double product = 0, sum = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < MAPS; i++) {
		double times = 1;
		r = draw_map(run, maps[i], &times, err);
		product += log(times) / MAPS;
		sum += times / MAPS;
		say(&words, maps[i], times);
		ow_figure_progress(run, (double)(i + 1) / MAPS);
	}
	if (r < 0)
		return r;
	snprintf(words.text + words.length, sizeof words.text - words.length, "mean %.0f, geometric mean %.0f", sum,
	         exp(product));
	return ow_figure_claim(run,
	                       "on average 15 % of the routers: probe hops two orders of magnitude (100 times) fewer",
	                       exp(product) >= 100, "%s", words.text);
}

/* -- the list ----------------------------------------------------------------------------------------------------- */

/* part: its place in maps[] */
#define FIGURES(as, name, part)                                                                                \
	{"mplane-9-" #as "a",                                                                                  \
	 "MPLANE 9: probe hops, AS " #as " (" name ")",                                                        \
	 "upgraded routers",                                                                                   \
	 "probe hops",                                                                                         \
	 false,                                                                                                \
	 true,                                                                                                 \
	 show_hops,                                                                                            \
	 part},                                                                                                \
	{                                                                                                      \
		"mplane-9-" #as "b", "MPLANE 9: hops of a segment, AS " #as " (" name ")", "upgraded routers", \
			"hops of a segment", false, false, show_granularity, part                              \
	}

const struct ow_figure ow_figures_mplane[] = {
	{"mplane-9", "MPLANE 9: probe hops on all six maps, Algorithm 1", "upgraded routers, %",
         "probe hops, 1 = none upgraded", false, true, show_all},
	FIGURES(1221, "Telstra", 0),
	FIGURES(1239, "Sprint", 1),
	FIGURES(1755, "Ebone", 2),
	FIGURES(3257, "Tiscali", 3),
	FIGURES(3967, "Exodus", 4),
	FIGURES(6461, "Abovenet", 5),
	{0},
};
