/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peeling of RDA and sRDA. One loop is used for both: it is compiled for each kind and number of banks, so that hashing
 * has no branches. Cells are processed as 16 bytes without their times. The cells of a packet are prefetched when its
 * pure cell is queued, because a table for 1e5 differences does not fit into the cache. A queued cell with unchanged id
 * and count is still pure, so testing it again needs no hash.
 *
 * As published, the order is that of a stack: the paper does not define it, and a stack shows the problem. (With a
 * queue most cycles resolve, because the packets behind a false pure cell are decoded elsewhere in the meantime.)
 */
#include "reconcile/rda_peel.h"

#include "base/array.h"
#include "base/id_map.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <stdlib.h>

#define PLACES_MAX OW_RDA_BANKS_MAX
#define QUEUED     1u /* in `tag`: waits in the queue */
#define EMPTIED    2u /* in `tag`: its packet was taken out */
#define MARKS      (QUEUED | EMPTIED)
/* The largest table (in cells of 16 bytes) that stays in a core's second-level cache. */
#define IN_CACHE 16384

_Static_assert(OW_SRDA_HASHES_MAX <= PLACES_MAX, "places of a packet");
_Static_assert(OW_RDA_CELLS_MAX < UINT32_MAX / 2 && OW_SRDA_CELLS_MAX < UINT32_MAX / 2, "cells are counted in 32 bits");

/* A cell of the difference. tag: for sRDA the upper 30 bits of IDSH. */
struct work {
	uint64_t id;
	int32_t delta;
	uint32_t tag;
};

/* Ids in the order in which they were found. */
struct found {
	uint64_t *id;
	int8_t *sign; /* +1 only at B, -1 only at A */
	size_t count, room;
};

/* A cell that was pure when it was queued. */
struct item {
	uint64_t id;
	uint32_t where;
	int32_t delta;
};

struct peeling {
	const struct ow_synopsis *table; /* for its parameters and keys */
	struct work *cell;
	size_t cells;
	struct item *queue; /* ring; a cell is in it at most once */
	size_t head, waiting;
	bool published;
	bool again; /* an emptied cell was changed: an id may have been found twice */
	struct found *found;
};

enum form { RDA_2 = 2, RDA_3, RDA_4, RDA_ANY, SRDA_ANY };

static inline __attribute__((always_inline)) uint32_t places(const struct ow_synopsis *table, enum form form,
                                                             uint64_t id, uint32_t *ret_place)
{
	if (form == SRDA_ANY) {
		ow_srda_places(ow_srda_of(table), id, ret_place);
		return ow_srda_of(table)->params.hashes;
	}
	const struct ow_rda *rda = ow_rda_of(table);
	uint32_t banks = form == RDA_ANY ? rda->params.banks : (uint32_t)form;
	for (uint32_t b = 0; b < banks; b++)
		ret_place[b] = b * rda->params.cells + ow_rda_place(rda, id, b);
	return banks;
}

/* bank: of the cell; not used for sRDA. */
static inline __attribute__((always_inline)) bool pure(const struct peeling *p, enum form form, uint32_t where,
                                                       uint32_t bank)
{
	const struct work *cell = p->cell + where;
	if (cell->delta != 1 && cell->delta != -1)
		return false;
	if (form != SRDA_ANY) {
		const struct ow_rda *rda = ow_rda_of(p->table);
		return (p->published || ow_rda_id(rda, cell->id) == cell->id) &&
		       ow_rda_place(rda, cell->id, bank) == where - bank * rda->params.cells;
	}
	if ((ow_srda_hash(ow_srda_of(p->table), cell->id) ^ cell->tag) & ~MARKS)
		return false;
	uint32_t place[PLACES_MAX] = {0}, count = places(p->table, form, cell->id, place);
	bool here = p->published;
	for (uint32_t i = 0; i < count; i++)
		here |= place[i] == where;
	return here;
}

/* Queues a cell if it is pure, and prefetches the cells of its packet. */
static inline __attribute__((always_inline)) void offer(struct peeling *p, enum form form, uint32_t where,
                                                        uint32_t bank)
{
	struct work *cell = p->cell + where;
	if (cell->tag & QUEUED || !pure(p, form, where, bank))
		return;
	cell->tag |= QUEUED;
	size_t end = p->head + p->waiting++;
	p->queue[end < p->cells ? end : end - p->cells] = (struct item){cell->id, where, cell->delta};
	if (p->cells <= IN_CACHE)
		return;
	uint32_t place[PLACES_MAX] = {0}, count = places(p->table, form, cell->id, place);
	for (uint32_t i = 0; i < count; i++)
		__builtin_prefetch(p->cell + place[i], 1);
}

/* The next cell: the one that waited longest; as published, the last one. */
static inline __attribute__((always_inline)) struct item next(struct peeling *p)
{
	p->waiting--;
	if (p->published) {
		size_t end = p->head + p->waiting;
		return p->queue[end < p->cells ? end : end - p->cells];
	}
	struct item item = p->queue[p->head];
	p->head = p->head + 1 < p->cells ? p->head + 1 : 0;
	return item;
}

static int grow(struct found *found)
{
	size_t ids = found->room, signs = found->room;
	if (OW_GROW(found->id, ids, found->count + 1) < 0 || OW_GROW(found->sign, signs, found->count + 1) < 0)
		return -ENOMEM;
	found->room = ids;
	return 0;
}

/* Takes the packet of a cell out of all its cells. */
static inline __attribute__((always_inline)) int extract(struct peeling *p, enum form form, uint32_t where)
{
	uint64_t id = p->cell[where].id;
	int32_t delta = p->cell[where].delta;
	uint32_t tag = p->cell[where].tag & ~MARKS;
	struct found *found = p->found;
	int r = found->count == found->room ? grow(found) : 0;
	if (r < 0)
		return r;
	found->id[found->count] = id;
	found->sign[found->count++] = delta == -1 ? -1 : 1;
	uint32_t place[PLACES_MAX] = {0}, count = places(p->table, form, id, place);
	for (uint32_t i = 0; i < count; i++) {
		struct work *cell = p->cell + place[i];
		cell->id ^= id;
		cell->delta = (int32_t)((uint32_t)cell->delta - (uint32_t)delta);
		p->again |= cell->tag & EMPTIED;
		cell->tag ^= tag;
		offer(p, form, place[i], i);
	}
	p->cell[where].tag |= EMPTIED;
	return 0;
}

/* Works on a local copy of the state, so that it stays in registers. */
static inline __attribute__((always_inline)) int peel(struct peeling *state, enum form form, uint64_t steps_max,
                                                      uint64_t *ret_steps)
{
	struct peeling p = *state;
	uint32_t bank_cells = form == SRDA_ANY ? (uint32_t)p.cells : ow_rda_of(p.table)->params.cells;
	for (uint32_t bank = 0, i = 0; i < p.cells; bank++) {
		for (uint32_t end = i + bank_cells; i < end; i++)
			offer(&p, form, i, bank);
	}
	uint64_t steps = 0;
	for (; p.waiting && steps < steps_max; steps++) {
		struct item item = next(&p);
		struct work *cell = p.cell + item.where;
		cell->tag &= ~QUEUED;
		/* As published, only a cell that has become empty is skipped. */
		bool believe = p.published ? cell->id || cell->delta : cell->id == item.id && cell->delta == item.delta;
		int r = believe ? extract(&p, form, item.where) : 0;
		if (r < 0)
			return r;
	}
	*state = p;
	*ret_steps = steps;
	return 0;
}

static int peel_any(struct peeling *p, uint64_t steps_max, uint64_t *ret_steps)
{
	if (p->table->ops->kind == OW_SYNOPSIS_SRDA)
		return peel(p, SRDA_ANY, steps_max, ret_steps);
	switch (ow_rda_of(p->table)->params.banks) {
	case 2:
		return peel(p, RDA_2, steps_max, ret_steps);
	case 3:
		return peel(p, RDA_3, steps_max, ret_steps);
	case 4:
		return peel(p, RDA_4, steps_max, ret_steps);
	default:
		return peel(p, RDA_ANY, steps_max, ret_steps);
	}
}

/* B - A, and the part of it that is not empty. Squares wrap in a table that no packets could produce. */
static size_t subtract(struct peeling *p, const struct ow_synopsis *a, const struct ow_synopsis *b, double *ret_squares)
{
	bool srda = a->ops->kind == OW_SYNOPSIS_SRDA;
	for (size_t i = 0; srda && i < p->cells; i++) {
		const struct ow_srda_cell *x = ow_srda_of(a)->cell + i, *y = ow_srda_of(b)->cell + i;
		p->cell[i] = (struct work){x->id ^ y->id, (int32_t)(y->count - x->count), (x->idsh ^ y->idsh) & ~MARKS};
	}
	for (size_t i = 0; !srda && i < p->cells; i++) {
		const struct ow_rda_cell *x = ow_rda_of(a)->cell + i, *y = ow_rda_of(b)->cell + i;
		p->cell[i] = (struct work){x->id ^ y->id, (int32_t)(y->count - x->count), 0};
	}
	size_t dirty = 0;
	uint64_t squares = 0;
	for (size_t i = 0; i < p->cells; i++) {
		const struct work *w = p->cell + i;
		dirty += (w->id | (uint32_t)w->delta) != 0;
		squares += (uint64_t)((int64_t)w->delta * w->delta);
	}
	*ret_squares = (double)squares;
	return dirty;
}

/* The lists, from ids with the sign of each; 0 = left out. */
static int list(const struct found *found, const int8_t *sign, struct ow_rda_peel *ret_peel)
{
	uint64_t *ids = malloc((found->count + 1) * sizeof *ids);
	if (!ids)
		return -ENOMEM;
	size_t losts = 0, extras = 0;
	for (size_t i = 0; i < found->count; i++)
		losts += sign[i] < 0;
	for (size_t i = 0, l = 0; i < found->count; i++) {
		if (sign[i] < 0)
			ids[l++] = found->id[i];
		else if (sign[i] > 0)
			ids[losts + extras++] = found->id[i];
	}
	ret_peel->lost = ids;
	ret_peel->losts = losts;
	ret_peel->extra = ids + losts;
	ret_peel->extras = extras;
	return 0;
}

/*
 * An id that was found more than once (a false pure cell added it, another removed it again) counts by the sum of its
 * signs. This is rare: an id found twice changes the cell in which it was found first, which was empty since.
 */
static int list_net(const struct found *found, struct ow_rda_peel *ret_peel)
{
	struct ow_id_map first = {0}; /* of equal ids */
	int8_t *net = calloc(found->count + 1, 1);
	int r = net ? ow_id_map_reserve(&first, found->count) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < found->count; i++) {
		uint64_t id = found->id[i];
		uint32_t at = OW_ID_MAP_FIND(&first, id, j, found->id[j] == id);
		if (at == OW_ID_MAP_NONE) {
			at = (uint32_t)i;
			r = ow_id_map_add(&first, id, at);
		}
		int sum = net[at] + found->sign[i];
		net[at] = (int8_t)(sum > 1 ? 1 : sum < -1 ? -1 : sum);
	}
	if (r == 0)
		r = list(found, net, ret_peel);
	ow_id_map_done(&first);
	free(net);
	return r;
}

/* What is left in the cells. */
static void inspect(const struct peeling *p, struct ow_rda_peel *peel)
{
	bool srda = p->table->ops->kind == OW_SYNOPSIS_SRDA;
	/* The counts of one bank contain each packet once; those of a flat array k times. */
	size_t once = srda ? p->cells : ow_rda_of(p->table)->params.cells;
	for (size_t i = 0; i < p->cells; i++)
		peel->dirty += (p->cell[i].id | (uint32_t)p->cell[i].delta) != 0;
	for (size_t i = 0; i < once; i++)
		peel->net += p->cell[i].delta;
	if (srda)
		peel->net /= ow_srda_of(p->table)->params.hashes;
	peel->cells = p->cells;
	peel->complete = !peel->dirty;
}

int ow_rda_peel(const struct ow_synopsis *a, const struct ow_synopsis *b, const struct ow_rda_peel_options *options,
                struct ow_rda_peel *ret_peel)
{
	static const struct ow_rda_peel_options defaults;
	if ((a->ops->kind != OW_SYNOPSIS_RDA && a->ops->kind != OW_SYNOPSIS_SRDA) ||
	    ow_synopsis_comparable(a, b, NULL) < 0)
		return -EINVAL;
	if (!options)
		options = &defaults;
	struct found found = {0};
	struct peeling p = {.table = a, .published = options->published, .found = &found};
	p.cells = a->ops->kind == OW_SYNOPSIS_SRDA ? ow_srda_of(a)->params.cells
	                                           : (size_t)ow_rda_of(a)->params.banks * ow_rda_of(a)->params.cells;
	p.cell = malloc(p.cells * sizeof *p.cell);
	p.queue = malloc(p.cells * sizeof *p.queue);
	struct ow_rda_peel peel = {0};
	int r = -ENOMEM;
	if (p.cell && p.queue) {
		size_t dirty = subtract(&p, a, b, &peel.squares);
		r = peel_any(&p, options->steps ? options->steps : 4 * (uint64_t)dirty + 100, &peel.steps);
	}
	if (r == 0) {
		peel.capped = p.waiting != 0;
		inspect(&p, &peel);
		r = p.again ? list_net(&found, &peel) : list(&found, found.sign, &peel);
	}
	free(p.cell);
	free(p.queue);
	free(found.id);
	free(found.sign);
	if (r == 0)
		*ret_peel = peel;
	return r;
}

void ow_rda_peel_done(struct ow_rda_peel *peel)
{
	free(peel->lost);
	*peel = (struct ow_rda_peel){0};
}
