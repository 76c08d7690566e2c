/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A beam search over orders of upgrades. For each number of upgrades the search keeps the sets with the fewest probe
 * hops. It drops every set that has more probe hops than the reference has at this step, and always keeps the set of
 * the reference, so that there is an answer. If several orders lead to the same set, the search keeps the order with
 * the lowest product of probe hop counts. It chooses the result at the end by the same product: each step counts by its
 * ratio, so the first step has the same weight as the last.
 */
#include "plane/beam.h"
#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 128 /* sets kept */
#define PATHS_KEPT \
	(1u << 22) /* paths of all kept sets together; the search keeps fewer sets where there are more paths */

struct set {
	uint32_t *path, paths; /* the paths that pass through none of its routers */
	uint64_t hops, key;    /* equal sets have equal keys */
	double cost;           /* logarithm of the product of the hops up to here */
	uint32_t trail;        /* its last upgrade */
};

struct trail {
	uint32_t before, router;
	uint64_t hops;
};

struct candidate {
	uint64_t hops, key;
	double cost;
	uint32_t parent, rank; /* rank: of the router that is added */
};

struct beam {
	const struct ow_paths *paths;
	const struct ow_beam_options *options;
	uint32_t routers;
	struct set set[2][WIDTH + 1]; /* the sets of this number of upgrades, and of the next */
	uint32_t sets;
	struct trail *trail;
	uint32_t trails;
	struct candidate *candidate;
	size_t candidates;
	uint64_t *saving;
	uint32_t *rank; /* rank of each router among the names */
	bool *is_upgraded;
	uint64_t reference_hops, reference_key; /* of the reference with one more upgrade */
};

/* Fewest hops first. Equal sets are neighbours, the one with the best order first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->hops != y->hops)
		return x->hops < y->hops ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static uint64_t key_of(const struct beam *beam, uint32_t router)
{
	return ow_mix64(beam->rank[router] + 1);
}

static bool passes(const struct ow_paths *paths, uint32_t path, uint32_t router)
{
	uint32_t nodes;
	const uint16_t *node = ow_paths_get(paths, path, &nodes);
	for (uint32_t n = 1; n + 1 < nodes; n++)
		if (node[n] == router)
			return true;
	return false;
}

/* For each router: the hops that upgrading it would remove. */
static void find_savings(struct beam *beam, const struct set *set)
{
	memset(beam->saving, 0, beam->routers * sizeof(*beam->saving));
	for (uint32_t i = 0; i < set->paths; i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(beam->paths, set->path[i], &nodes);
		for (uint32_t n = 1; n + 1 < nodes; n++)
			beam->saving[node[n]] += nodes - 1;
	}
}

static void mark_upgraded(struct beam *beam, const struct set *set, uint32_t upgrades)
{
	memcpy(beam->is_upgraded, beam->options->is_out, beam->routers * sizeof(*beam->is_upgraded));
	for (uint32_t t = set->trail; upgrades > 0; upgrades--, t = beam->trail[t].before)
		beam->is_upgraded[beam->trail[t].router] = true;
}

/* All sets with one more router that are at least as good as the reference. */
static void find_candidates(struct beam *beam, uint32_t upgrades)
{
	struct set *sets = beam->set[upgrades % 2];
	beam->candidates = 0;
	for (uint32_t s = 0; s < beam->sets; s++) {
		find_savings(beam, &sets[s]);
		mark_upgraded(beam, &sets[s], upgrades);
		for (uint32_t r = 0; r < beam->routers; r++) {
			uint64_t hops = sets[s].hops - beam->saving[r];
			if (beam->is_upgraded[r] || hops > beam->reference_hops)
				continue;
			beam->candidate[beam->candidates++] =
				(struct candidate){hops, sets[s].key + key_of(beam, r),
			                           sets[s].cost + log((double)hops + 1), s, beam->rank[r]};
		}
	}
	qsort(beam->candidate, beam->candidates, sizeof(*beam->candidate), compare_candidates);
}

static int keep(struct beam *beam, uint32_t upgrades, const struct candidate *candidate, uint32_t at)
{
	uint32_t router = beam->options->by_name[candidate->rank];
	const struct set *parent = &beam->set[upgrades % 2][candidate->parent];
	struct set *set = &beam->set[(upgrades + 1) % 2][at];
	*set = (struct set){.hops = candidate->hops, .key = candidate->key, .cost = candidate->cost};
	set->path = malloc((parent->paths + 1) * sizeof(*set->path));
	if (!set->path)
		return -ENOMEM;
	for (uint32_t i = 0; i < parent->paths; i++)
		if (!passes(beam->paths, parent->path[i], router))
			set->path[set->paths++] = parent->path[i];
	uint32_t *fitted = realloc(set->path, (set->paths + 1) * sizeof(*fitted));
	set->path = fitted ? fitted : set->path;
	set->trail = beam->trails;
	beam->trail[beam->trails++] = (struct trail){parent->trail, router, set->hops};
	return 0;
}

static void drop_sets(struct beam *beam, uint32_t side)
{
	for (uint32_t s = 0; s <= WIDTH; s++)
		free(beam->set[side][s].path);
	memset(beam->set[side], 0, sizeof(beam->set[side]));
}

/* Keeps the best candidates, each set once, and the reference. */
static int choose(struct beam *beam, uint32_t upgrades)
{
	uint32_t kept = 0;
	uint64_t paths = 0, last = 0;
	bool has_reference = false;
	for (size_t i = 0; i < beam->candidates; i++) {
		const struct candidate *candidate = &beam->candidate[i];
		bool is_reference = candidate->key == beam->reference_key,
		     is_full = kept >= WIDTH || paths > PATHS_KEPT;
		if ((kept && candidate->key == last) || (is_full && (has_reference || !is_reference)))
			continue;
		if (keep(beam, upgrades, candidate, kept) < 0)
			return -ENOMEM;
		last = candidate->key;
		has_reference |= is_reference;
		paths += beam->set[(upgrades + 1) % 2][kept++].paths;
	}
	drop_sets(beam, upgrades % 2);
	beam->sets = kept;
	return 0;
}

static int step(struct beam *beam, uint32_t upgrades, struct set *reference)
{
	uint32_t router = beam->options->reference[upgrades], left = 0;
	for (uint32_t i = 0; i < reference->paths; i++) {
		uint32_t nodes;
		ow_paths_get(beam->paths, reference->path[i], &nodes);
		if (passes(beam->paths, reference->path[i], router))
			reference->hops -= nodes - 1;
		else
			reference->path[left++] = reference->path[i];
	}
	reference->paths = left;
	reference->key += key_of(beam, router);
	beam->reference_hops = reference->hops;
	beam->reference_key = reference->key;
	find_candidates(beam, upgrades);
	return choose(beam, upgrades);
}

static int fill(const struct ow_paths *paths, struct set *set)
{
	*set = (struct set){.paths = ow_paths_count(paths)};
	set->path = malloc((set->paths + 1) * sizeof(*set->path));
	if (!set->path)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->paths; i++) {
		uint32_t nodes;
		ow_paths_get(paths, i, &nodes);
		set->path[i] = i;
		set->hops += nodes - 1;
	}
	return 0;
}

/* Returns after how many upgrades no further upgrade removes a hop. */
static uint32_t read_order(const struct beam *beam, uint32_t *ret_order)
{
	const struct set *sets = beam->set[beam->options->count % 2], *best = sets;
	for (uint32_t s = 1; s < beam->sets; s++)
		if (sets[s].cost < best->cost)
			best = &sets[s];
	uint32_t t = best->trail, useful = 0;
	for (uint32_t i = beam->options->count; i > 0; i--, t = beam->trail[t].before) {
		ret_order[i - 1] = beam->trail[t].router;
		if (!useful && (i == 1 || beam->trail[beam->trail[t].before].hops > best->hops))
			useful = i;
	}
	return useful;
}

/* Routers that remove no hops follow in order of their names. */
static void order_rest(struct beam *beam, uint32_t useful, uint32_t *order)
{
	memcpy(beam->is_upgraded, beam->options->is_out, beam->routers * sizeof(*beam->is_upgraded));
	for (uint32_t i = 0; i < useful; i++)
		beam->is_upgraded[order[i]] = true;
	for (uint32_t n = 0; n < beam->routers && useful < beam->options->count; n++)
		if (!beam->is_upgraded[beam->options->by_name[n]])
			order[useful++] = beam->options->by_name[n];
}

static int search(struct beam *beam, struct set *reference, uint32_t *ret_order)
{
	const struct ow_beam_options *options = beam->options;
	int r = fill(beam->paths, reference);
	if (r == 0)
		r = fill(beam->paths, &beam->set[0][0]);
	beam->sets = 1;
	for (uint32_t i = 0; r == 0 && i < options->count; i++) {
		r = step(beam, i, reference);
		if (options->on_progress)
			options->on_progress(options->arg, (i + 1) / (double)options->count);
	}
	if (r == 0)
		order_rest(beam, read_order(beam, ret_order), ret_order);
	return r;
}

int ow_beam_search(const struct ow_paths *paths, uint32_t routers, const struct ow_beam_options *options,
                   uint32_t *ret_order)
{
	struct beam *beam = calloc(1, sizeof(*beam));
	struct set reference = {0};
	int r = -ENOMEM;
	if (!beam)
		return r;
	beam->paths = paths;
	beam->options = options;
	beam->routers = routers;
	beam->trail = calloc((size_t)options->count * (WIDTH + 1) + 1, sizeof(*beam->trail));
	beam->candidate = calloc((size_t)routers * (WIDTH + 1) + 1, sizeof(*beam->candidate));
	beam->saving = calloc((size_t)routers + 1, sizeof(*beam->saving));
	beam->is_upgraded = calloc((size_t)routers + 1, sizeof(*beam->is_upgraded));
	beam->rank = calloc((size_t)routers + 1, sizeof(*beam->rank));
	if (beam->trail && beam->candidate && beam->saving && beam->is_upgraded && beam->rank) {
		for (uint32_t n = 0; n < routers; n++)
			beam->rank[options->by_name[n]] = n;
		r = search(beam, &reference, ret_order);
	}
	drop_sets(beam, 0);
	drop_sets(beam, 1);
	free(reference.path);
	free(beam->trail);
	free(beam->candidate);
	free(beam->saving);
	free(beam->is_upgraded);
	free(beam->rank);
	free(beam);
	return r;
}
