/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peels one fold or two jointly (rda-ton2018 algorithm 1, with the corrections of formulas.md 1 and 3.7).
 *
 * It works in rounds: all cells that changed are tested, then each pure cell gives its packet, which is removed from
 * all its cells, and those are tested in the next round. Testing is a loop without branches that depend on the data:
 * with a queue and a test for each cell, mispredicted branches took most of the time. A cell that changed between its
 * test and its turn is left to the next round.
 *
 * A cell of several packets passes the test with probability 2^-15 / cells. Such a false packet leaves its negative in
 * other cells and is found there later with the other sign; what was found with both signs is cancelled at the end. The
 * number of removed packets is limited, so that the loop always ends.
 */
#include "reconcile/fold_peel.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/sort.h"
#include <errno.h>
#include <stdlib.h>

#define TABLES_MAX 2
/* Packets whose cells are prefetched. */
#define AHEAD 8
/* Cells that fit into the first-level cache: no prefetch. */
#define CACHED 4096

/* A cell that passed the test. */
struct pure {
	uint64_t value; /* of the cell: w, or -w */
	uint64_t places;
	uint32_t number; /* of the cell in its table */
	bool at_a;
};

/* A table and which of its cells to test. */
struct side {
	struct ow_fold *fold;
	uint32_t cells; /* of all banks */
	uint32_t *test; /* numbers of cells; a cell may occur more than once */
	size_t tests, space;
	bool all; /* the list overflowed: test all cells instead */
};

struct peeler {
	struct side side[TABLES_MAX];
	unsigned sides, banks;
	struct pure *pure;
	size_t pures;
	struct ow_fold_difference *diff;
	uint64_t steps; /* packets that may still be removed */
};

static int append(uint64_t **list, size_t *count, size_t *space, uint64_t key)
{
	if (OW_GROW(*list, *space, *count + 1) < 0)
		return -ENOMEM;
	(*list)[(*count)++] = key;
	return 0;
}

static int found(struct ow_fold_difference *diff, uint64_t key, bool at_a)
{
	return at_a ? append(&diff->only_a, &diff->as, &diff->space_a, key)
	            : append(&diff->only_b, &diff->bs, &diff->space_b, key);
}

/* The hot functions get the number of banks as a constant, so that their loops are unrolled. */
#define HOT static inline __attribute__((always_inline))

/* Numbers of the cells of a packet in one table. */
HOT void cells_of(const struct ow_fold *fold, uint64_t places, unsigned banks, uint32_t number[OW_FOLD_BANKS_MAX])
{
	for (unsigned bank = 0; bank < banks; bank++)
		number[bank] = ow_fold_cell(&fold->params, &fold->secret, places, bank) + bank * fold->params.cells;
}

HOT void take_out(struct side *side, const uint32_t number[OW_FOLD_BANKS_MAX], unsigned banks, uint64_t value)
{
	uint64_t *cell = side->fold->cell;
	if (side->space - side->tests < banks) {
		side->all = true;
		side->tests = 0;
	}
	for (unsigned bank = 0; bank < banks; bank++) {
		uint64_t rest = cell[number[bank]] -= value;
		side->test[side->tests] = number[bank];
		side->tests += rest != 0;
	}
}

/* Takes the packet out of all tables. */
static void take_out_all(struct peeler *peeler, uint64_t places, uint64_t value)
{
	uint32_t number[OW_FOLD_BANKS_MAX];
	for (unsigned s = 0; s < peeler->sides; s++) {
		cells_of(peeler->side[s].fold, places, peeler->banks, number);
		take_out(&peeler->side[s], number, peeler->banks, value);
	}
}

/* Whether v is a word with a valid check. The caller checks whether it belongs into its cell. */
HOT bool is_word(const struct ow_fold_secret *secret, uint64_t v, uint64_t *ret_places)
{
	*ret_places = ow_fold_places(secret, v >> 16);
	return ow_fold_word(secret, v >> 16, *ret_places) == v;
}

/* Writes the cell, and returns 1 if it is pure. */
HOT size_t test_cell(const struct ow_fold *fold, uint32_t number, struct pure *ret_pure)
{
	uint64_t v = fold->cell[number], places_a, places_b;
	uint64_t at_a = is_word(&fold->secret, v, &places_a), at_b = is_word(&fold->secret, -v, &places_b);
	ret_pure->value = v;
	ret_pure->places = places_b ^ ((places_a ^ places_b) & -at_a);
	ret_pure->number = number;
	ret_pure->at_a = at_a;
	return (at_a | at_b) & (v != 0);
}

static void test_cells(struct peeler *peeler, struct side *side)
{
	/* A local copy: the compiler cannot know that writes do not change the secret. */
	const struct ow_fold fold = *side->fold;
	struct pure *pure = peeler->pure;
	if (side->all) {
		for (uint32_t i = 0; i < side->cells; i++)
			pure += test_cell(&fold, i, pure);
	} else {
		for (size_t i = 0; i < side->tests; i++)
			pure += test_cell(&fold, side->test[i], pure);
	}
	peeler->pures = (size_t)(pure - peeler->pure);
	side->all = false;
	side->tests = 0;
}

HOT bool among(const uint32_t number[OW_FOLD_BANKS_MAX], unsigned banks, uint32_t cell)
{
	bool is = false;
	for (unsigned bank = 0; bank < banks; bank++)
		is |= number[bank] == cell;
	return is;
}

/* One word in 2^16 is a word with the other sign as well, and only one of the two belongs here. */
static bool other_belongs(const struct ow_fold *fold, struct pure *pure, uint32_t number[OW_FOLD_BANKS_MAX])
{
	if (!pure->at_a || !is_word(&fold->secret, -pure->value, &pure->places))
		return false;
	pure->at_a = false;
	cells_of(fold, pure->places, fold->params.banks, number);
	return among(number, fold->params.banks, pure->number);
}

HOT void ask_for(const struct ow_fold *fold, uint64_t places, unsigned banks)
{
	uint32_t number[OW_FOLD_BANKS_MAX];
	cells_of(fold, places, banks, number);
	for (unsigned bank = 0; bank < banks; bank++)
		__builtin_prefetch(&fold->cell[number[bank]], 1);
}

HOT int use_pure(struct peeler *peeler, struct side *side, unsigned banks)
{
	const struct ow_fold *fold = side->fold;
	uint32_t number[OW_FOLD_BANKS_MAX];
	bool ahead = side->cells > CACHED;
	for (size_t i = 0; i < peeler->pures && peeler->steps; i++) {
		struct pure *pure = &peeler->pure[i];
		if (ahead && i + AHEAD < peeler->pures)
			ask_for(fold, peeler->pure[i + AHEAD].places, banks);
		if (fold->cell[pure->number] != pure->value)
			continue;
		cells_of(fold, pure->places, banks, number);
		if (!among(number, banks, pure->number) && !other_belongs(fold, pure, number))
			continue;
		if (peeler->sides == 1)
			take_out(side, number, banks, pure->value);
		else
			take_out_all(peeler, pure->places, pure->value);
		peeler->steps--;
		int r = found(peeler->diff, (pure->at_a ? pure->value : -pure->value) >> 16, pure->at_a);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Until no cell that changed is pure. */
static int rounds(struct peeler *peeler)
{
	for (bool more = true; more && peeler->steps;) {
		more = false;
		for (unsigned s = 0; s < peeler->sides; s++) {
			struct side *side = &peeler->side[s];
			test_cells(peeler, side);
			more |= peeler->pures > 0;
			int r = peeler->banks == 4 ? use_pure(peeler, side, 4) : use_pure(peeler, side, 3);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/*
 * Removes a packet of which the cell contains two copies and nothing else. Twice a word has lost the word's highest
 * bit, so both are tried.
 */
static int try_doubled(struct peeler *peeler, const struct ow_fold *fold, uint32_t number)
{
	uint64_t v = fold->cell[number];
	if (v == 0 || v & 1)
		return 0;
	for (unsigned i = 0; i < 4; i++) {
		bool at_a = i & 1;
		uint64_t w = (at_a ? v : -v) >> 1 | (uint64_t)(i >> 1) << 63, places;
		uint32_t cell[OW_FOLD_BANKS_MAX];
		if (!is_word(&fold->secret, w, &places))
			continue;
		cells_of(fold, places, peeler->banks, cell);
		if (!among(cell, peeler->banks, number))
			continue;
		take_out_all(peeler, places, v);
		peeler->steps--;
		peeler->diff->doubled++;
		int r = found(peeler->diff, w >> 16, at_a);
		return r < 0 ? r : found(peeler->diff, w >> 16, at_a);
	}
	return 0;
}

static size_t cells_left(const struct peeler *peeler)
{
	size_t left = 0;
	for (unsigned s = 0; s < peeler->sides; s++) {
		for (uint32_t i = 0; i < peeler->side[s].cells; i++)
			left += peeler->side[s].fold->cell[i] != 0;
	}
	return left;
}

static int peel(struct peeler *peeler)
{
	int r = rounds(peeler);
	/* If peeling is stuck, a packet may be there twice. */
	for (size_t known = SIZE_MAX;
	     r == 0 && peeler->steps && known != peeler->diff->doubled && cells_left(peeler);) {
		known = peeler->diff->doubled;
		for (unsigned s = 0; s < peeler->sides && r == 0; s++) {
			for (uint32_t i = 0; i < peeler->side[s].cells && r == 0 && peeler->steps; i++)
				r = try_doubled(peeler, peeler->side[s].fold, i);
		}
		if (r == 0)
			r = rounds(peeler);
	}
	return r;
}

/* Removes what is in both lists from both, as often as it is in both. */
static void net(struct ow_fold_difference *diff)
{
	size_t a = 0, b = 0, as = 0, bs = 0;
	ow_sort_ids(diff->only_a, diff->as);
	ow_sort_ids(diff->only_b, diff->bs);
	while (a < diff->as || b < diff->bs) {
		if (a < diff->as && b < diff->bs && diff->only_a[a] == diff->only_b[b]) {
			a++;
			b++;
		} else if (b == diff->bs || (a < diff->as && diff->only_a[a] < diff->only_b[b])) {
			diff->only_a[as++] = diff->only_a[a++];
		} else {
			diff->only_b[bs++] = diff->only_b[b++];
		}
	}
	diff->as = as;
	diff->bs = bs;
	diff->doubled = 0;
	for (size_t i = 1; i < as; i++)
		diff->doubled += diff->only_a[i] == diff->only_a[i - 1];
	for (size_t i = 1; i < bs; i++)
		diff->doubled += diff->only_b[i] == diff->only_b[i - 1];
}

/* Cancels what was found with both signs; fast if there is nothing. */
static int net_pairs(struct ow_fold_difference *diff)
{
	bool a_shorter = diff->as <= diff->bs, any = false;
	const uint64_t *few = a_shorter ? diff->only_a : diff->only_b, *many = a_shorter ? diff->only_b : diff->only_a;
	size_t fews = a_shorter ? diff->as : diff->bs, manys = a_shorter ? diff->bs : diff->as;
	struct ow_id_map set = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < fews; i++)
		r = ow_id_map_add(&set, few[i], (uint32_t)i);
	for (size_t i = 0; r == 0 && i < manys && !any; i++)
		any = OW_ID_MAP_FIND(&set, many[i], j, few[j] == many[i]) != OW_ID_MAP_NONE;
	ow_id_map_done(&set);
	if (any)
		net(diff);
	return r;
}

static int set_up(struct peeler *peeler, struct ow_synopsis *first, struct ow_synopsis *second)
{
	size_t most = 0, cells = 0;
	peeler->side[peeler->sides++].fold = (struct ow_fold *)first;
	if (second)
		peeler->side[peeler->sides++].fold = (struct ow_fold *)second;
	peeler->banks = ow_fold_of(first)->params.banks;
	for (unsigned s = 0; s < peeler->sides; s++) {
		struct side *side = &peeler->side[s];
		side->cells = peeler->banks * side->fold->params.cells;
		/*
		 * Few rounds touch more cells; those that do test all cells. One more, because the end of a list is
		 * written to.
		 */
		side->space = 2 * (size_t)side->cells + peeler->banks;
		side->test = malloc((side->space + 1) * sizeof *side->test);
		side->all = true;
		if (!side->test)
			return -ENOMEM;
		most = side->space > most ? side->space : most;
		cells += side->cells;
	}
	peeler->pure = malloc((most + 1) * sizeof *peeler->pure);
	/* Each true packet empties at least one cell for good; the same number again for false ones. */
	peeler->steps = 2 * cells + 100;
	return peeler->pure ? 0 : -ENOMEM;
}

/* Removes what is already known from the second table. */
static void take_out_known(struct side *side, const struct ow_fold_difference *diff)
{
	const struct ow_fold_secret *secret = &side->fold->secret;
	unsigned banks = side->fold->params.banks;
	uint32_t number[OW_FOLD_BANKS_MAX];
	for (size_t i = 0; i < diff->as + diff->bs; i++) {
		bool at_a = i < diff->as;
		uint64_t key = at_a ? diff->only_a[i] : diff->only_b[i - diff->as];
		uint64_t places = ow_fold_places(secret, key), word = ow_fold_word(secret, key, places);
		cells_of(side->fold, places, banks, number);
		take_out(side, number, banks, at_a ? word : -word);
	}
	side->all = true;
}

static bool can_join(const struct ow_synopsis *first, const struct ow_synopsis *second)
{
	return first->ops == &ow_fold_ops &&
	       (!second || (second->ops == &ow_fold_ops && first->seed == second->seed &&
	                    ow_fold_of(first)->params.banks == ow_fold_of(second)->params.banks));
}

int ow_fold_peel(struct ow_synopsis *first, struct ow_synopsis *second, struct ow_fold_difference *diff)
{
	struct peeler peeler = {.diff = diff};
	diff->complete = false;
	if (!can_join(first, second))
		return -EINVAL;
	int r = set_up(&peeler, first, second);
	if (r == 0) {
		if (second)
			take_out_known(&peeler.side[1], diff);
		r = peel(&peeler);
		diff->left = cells_left(&peeler);
	}
	if (r == 0)
		r = net_pairs(diff);
	diff->complete = r == 0 && diff->left == 0;
	for (unsigned s = 0; s < peeler.sides; s++)
		free(peeler.side[s].test);
	free(peeler.pure);
	return r;
}

void ow_fold_difference_done(struct ow_fold_difference *diff)
{
	free(diff->only_a);
	free(diff->only_b);
	*diff = (struct ow_fold_difference){0};
}
