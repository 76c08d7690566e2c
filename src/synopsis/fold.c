/* SPDX-License-Identifier: Apache-2.0 */
/* The foldable reconciliation table: fold.h has the method and the layout. */
#include "synopsis/fold.h"

#include "base/bytes.h"
#include "base/random.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_BYTES 8
#define KEY_TAG      UINT64_C(0x666f6c642d6b6579) /* makes the keys different from those of other synopses */
/* Packets whose cells are prefetched before the first is used: enough to hide a miss of the second-level cache. */
#define BATCH      32
#define CELL_ALIGN 64 /* a cache line */

static struct ow_fold *fold_of(struct ow_synopsis *synopsis)
{
	return (struct ow_fold *)synopsis;
}

static size_t cells_of(const struct ow_fold *fold)
{
	return (size_t)fold->params.banks * fold->params.cells;
}

static void make_secret(struct ow_fold_secret *secret, uint64_t seed, unsigned order)
{
	struct ow_random random;
	ow_random_seed(&random, seed ^ KEY_TAG);
	secret->id_xor = ow_random_u64(&random);
	secret->id_mul = ow_random_u64(&random) | 1;
	/* A key has 48 bits: with a bit above them set, the factor is never 0. */
	secret->at_xor = ow_random_u64(&random) | UINT64_C(1) << 63;
	secret->at_mul = ow_random_u64(&random) | 1;
	secret->check_mul = ow_random_u64(&random) | 1;
	uint64_t permutation = ow_mix64(ow_random_u64(&random) + order);
	secret->order_mul[0] = (uint16_t)(permutation | 1);
	secret->order_mul[1] = (uint16_t)(permutation >> 16 | 1);
}

static bool valid(const struct ow_fold_params *params)
{
	return params->banks >= OW_FOLD_BANKS_MIN && params->banks <= OW_FOLD_BANKS_MAX && params->cells >= 1 &&
	       params->cells <= OW_FOLD_CELLS && params->order < OW_FOLD_ORDERS;
}

static void destroy(struct ow_synopsis *synopsis)
{
	ow_synopsis_free(fold_of(synopsis)->ams);
	free(fold_of(synopsis)->cell);
	free(synopsis);
}

/* Creates it without the estimator. */
static struct ow_fold *make(const struct ow_fold_params *params, uint64_t seed)
{
	struct ow_fold *fold = calloc(1, sizeof *fold);
	if (!fold)
		return NULL;
	fold->synopsis = (struct ow_synopsis){.ops = &ow_fold_ops, .seed = seed};
	fold->params = *params;
	fold->send = params->cells;
	make_secret(&fold->secret, seed, params->order);
	size_t bytes = (cells_of(fold) * sizeof *fold->cell + CELL_ALIGN - 1) / CELL_ALIGN * CELL_ALIGN;
	fold->cell = aligned_alloc(CELL_ALIGN, bytes);
	if (!fold->cell) {
		destroy(&fold->synopsis);
		return NULL;
	}
	memset(fold->cell, 0, bytes);
	return fold;
}

int ow_fold_create(const struct ow_fold_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	if (!valid(params))
		return -EINVAL;
	struct ow_fold *fold = make(params, seed);
	if (!fold)
		return -ENOMEM;
	if (params->estimator) {
		int r = ow_ams_create(params->counters ? params->counters : OW_AMS_COUNTERS, seed, &fold->ams);
		if (r < 0) {
			destroy(&fold->synopsis);
			return r;
		}
	}
	*ret_synopsis = &fold->synopsis;
	return 0;
}

int ow_fold_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	struct ow_fold_params params = {.banks = OW_FOLD_BANKS_MAX, .estimator = true};
	double differences = sizing->packets * (sizing->loss + sizing->reorder);
	size_t counters = OW_AMS_COUNTERS * sizeof(uint32_t), row = params.banks * sizeof(uint64_t);
	/* If the counters would take half of the memory, more cells are better. */
	if (memory < 2 * counters)
		params.estimator = false;
	else
		memory -= counters;
	size_t cells = memory / row;
	if (cells < 1)
		return -EINVAL;
	if (cells >= OW_FOLD_CELLS) {
		params.cells = OW_FOLD_CELLS;
	} else {
		/* It cannot be folded, so all of it is sent: use no more cells than the differences need. */
		params.cells = ow_fold_cells_for(params.banks, differences);
		if (params.cells > cells)
			params.cells = (uint32_t)cells;
	}
	int r = ow_fold_create(&params, seed, ret_synopsis);
	if (r == 0)
		ow_fold_expect(*ret_synopsis, differences);
	return r;
}

/*
 * 4 banks: 1.725 d + 30 cells. 3 banks: 1.35 d where peeling limits (the threshold is 1.22), and for fewer differences
 * enough that no two share all three cells: d^2 / (2 m^3) = 0.24 % of cases, m cells a bank.
 */
uint32_t ow_fold_cells_for(unsigned banks, double differences)
{
	double d = differences > 0 ? differences : 0; /* also for NaN */
	double cells = banks == 3 ? 30 + fmax(1.35 * d, 3 * cbrt(d * d / 0.0048)) : 30 + 1.725 * d;
	cells = ceil(cells / banks);
	return cells < OW_FOLD_CELLS ? (uint32_t)cells : OW_FOLD_CELLS;
}

void ow_fold_expect(struct ow_synopsis *synopsis, double differences)
{
	struct ow_fold *fold = fold_of(synopsis);
	uint32_t cells = ow_fold_cells_for(fold->params.banks, differences);
	if (fold->params.cells == OW_FOLD_CELLS && fold->params.order == 0)
		fold->send = cells;
}

/* dest += the unfolded bank. */
static void fold_bank(const uint64_t *bank, uint32_t cells, const struct ow_fold_secret *permute, uint64_t *dest)
{
	for (uint32_t place = 0; place < OW_FOLD_CELLS; place++) {
		uint32_t to = permute ? ow_fold_permute(permute, place) : place;
		dest[(uint64_t)to * cells >> 16] += bank[place];
	}
}

static void fold_all(const struct ow_fold *fold, uint32_t cells, const struct ow_fold_secret *permute, uint64_t *dest)
{
	if (cells == fold->params.cells && !permute) {
		memcpy(dest, fold->cell, cells_of(fold) * sizeof *dest);
		return;
	}
	memset(dest, 0, (size_t)fold->params.banks * cells * sizeof *dest);
	for (unsigned bank = 0; bank < fold->params.banks; bank++)
		fold_bank(fold->cell + (size_t)bank * OW_FOLD_CELLS, cells, permute, dest + (size_t)bank * cells);
}

int ow_fold_to(const struct ow_synopsis *synopsis, uint32_t cells, unsigned order, struct ow_synopsis **ret_synopsis)
{
	const struct ow_fold *from = ow_fold_of(synopsis);
	struct ow_fold_params params = {.banks = from->params.banks, .cells = cells, .order = order};
	bool foldable = from->params.cells == OW_FOLD_CELLS && from->params.order == 0;
	bool same = from->params.cells == cells && from->params.order == order;
	if (synopsis->ops != &ow_fold_ops || !(foldable || same) || !valid(&params))
		return -EINVAL;
	struct ow_fold *fold = make(&params, synopsis->seed);
	if (!fold)
		return -ENOMEM;
	fold_all(from, cells, order && !same ? &fold->secret : NULL, fold->cell);
	*ret_synopsis = &fold->synopsis;
	return 0;
}

static void reset(struct ow_synopsis *synopsis)
{
	struct ow_fold *fold = fold_of(synopsis);
	memset(fold->cell, 0, cells_of(fold) * sizeof *fold->cell);
	if (fold->ams)
		fold->ams->ops->reset(fold->ams);
}

static size_t memory(const struct ow_synopsis *synopsis)
{
	const struct ow_fold *fold = ow_fold_of(synopsis);
	return cells_of(fold) * sizeof *fold->cell + (fold->ams ? fold->ams->ops->memory(fold->ams) : 0);
}

/* The update of a packet, computed before its cells are in the cache. */
struct pending {
	uint64_t word;
	uint32_t at[OW_FOLD_BANKS_MAX];
};

/* banks and plain (unfolded, order 0) are constants in the fast calls, so that the loops are unrolled. */
static inline __attribute__((always_inline)) void update_batch(struct ow_fold *fold,
                                                               const struct ow_sighting *sightings, size_t count,
                                                               bool add, unsigned banks, bool plain)
{
	const struct ow_fold_secret secret = fold->secret;
	const struct ow_fold_params params = fold->params;
	uint64_t *cell = fold->cell;
	struct pending pending[BATCH];
	for (size_t i = 0; i < count; i++) {
		uint64_t key = ow_fold_key(&secret, sightings[i].id), places = ow_fold_places(&secret, key);
		uint64_t word = ow_fold_word(&secret, key, places);
		pending[i].word = add ? word : -word;
		for (unsigned bank = 0; bank < banks; bank++) {
			uint32_t at = plain ? (uint32_t)(places >> 16 * bank & 0xffff) + bank * OW_FOLD_CELLS
			                    : ow_fold_cell(&params, &secret, places, bank) + bank * params.cells;
			pending[i].at[bank] = at;
			__builtin_prefetch(&cell[at], 1);
		}
	}
	for (size_t i = 0; i < count; i++) {
		for (unsigned bank = 0; bank < banks; bank++)
			cell[pending[i].at[bank]] += pending[i].word;
	}
}

static void update(struct ow_fold *fold, const struct ow_sighting *sightings, size_t count, bool add)
{
	bool plain = fold->params.cells == OW_FOLD_CELLS && fold->params.order == 0;
	for (size_t n; count; sightings += n, count -= n) {
		n = count < BATCH ? count : BATCH;
		if (plain && fold->params.banks == 4)
			update_batch(fold, sightings, n, add, 4, true);
		else if (plain)
			update_batch(fold, sightings, n, add, 3, true);
		else
			update_batch(fold, sightings, n, add, fold->params.banks, false);
	}
}

static void add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	struct ow_fold *fold = fold_of(synopsis);
	update(fold, sightings, count, true);
	if (fold->ams)
		fold->ams->ops->add(fold->ams, sightings, count);
}

static void take_out(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	struct ow_fold *fold = fold_of(synopsis);
	update(fold, sightings, count, false);
	if (fold->ams)
		fold->ams->ops->remove(fold->ams, sightings, count);
}

static bool same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_fold_params *x = &ow_fold_of(a)->params, *y = &ow_fold_of(b)->params;
	return x->banks == y->banks && x->cells == y->cells && x->order == y->order && x->estimator == y->estimator &&
	       (!x->estimator || ow_ams_ops.same_shape(ow_fold_of(a)->ams, ow_fold_of(b)->ams));
}

static int merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_fold *fold = fold_of(synopsis);
	for (size_t i = 0; i < cells_of(fold); i++)
		fold->cell[i] += ow_fold_of(other)->cell[i];
	return fold->ams ? ow_ams_ops.merge(fold->ams, ow_fold_of(other)->ams) : 0;
}

static int subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_fold *fold = fold_of(synopsis);
	for (size_t i = 0; i < cells_of(fold); i++)
		fold->cell[i] -= ow_fold_of(other)->cell[i];
	return fold->ams ? ow_ams_ops.subtract(fold->ams, ow_fold_of(other)->ams) : 0;
}

static size_t encoded_size(const struct ow_synopsis *synopsis)
{
	const struct ow_fold *fold = ow_fold_of(synopsis);
	return PARAMS_BYTES + (size_t)fold->params.banks * fold->send * sizeof *fold->cell +
	       (fold->ams ? ow_ams_ops.encoded_size(fold->ams) : 0);
}

static void encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	const struct ow_fold *fold = ow_fold_of(synopsis);
	uint32_t send = fold->send;
	bytes[0] = (uint8_t)fold->params.banks;
	bytes[1] = (uint8_t)fold->params.order;
	bytes[2] = fold->ams != NULL;
	bytes[3] = 0;
	ow_store_le32(bytes + 4, send);
	bytes += PARAMS_BYTES;
	for (unsigned bank = 0; bank < fold->params.banks; bank++) {
		const uint64_t *cell = fold->cell + (size_t)bank * fold->params.cells;
		/* `send` is `cells`, or the table is unfolded: the cells that are folded into one are contiguous. */
		for (uint32_t i = 0, place = 0; i < send; i++, bytes += 8) {
			uint64_t sum = 0;
			for (; place < fold->params.cells && (uint64_t)place * send / fold->params.cells == i; place++)
				sum += cell[place];
			ow_store_le64(bytes, sum);
		}
	}
	if (fold->ams)
		ow_ams_ops.encode(fold->ams, bytes);
}

static int decode_ams(struct ow_fold *fold, const uint8_t *bytes, size_t size, struct ow_error *err)
{
	if (!fold->params.estimator)
		return size == 0 ? 0 : ow_error_set(err, EINVAL, "fold: %zu bytes after the cells", size);
	return ow_ams_ops.decode(bytes, size, fold->synopsis.seed, &fold->ams, err);
}

static int decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                  struct ow_error *err)
{
	if (size < PARAMS_BYTES)
		return ow_error_set(err, EINVAL, "fold: %zu bytes are less than its parameters", size);
	if (bytes[2] > 1 || bytes[3])
		return ow_error_set(err, EINVAL, "fold: reserved bits are not 0");
	struct ow_fold_params params = {bytes[0], ow_load_le32(bytes + 4), bytes[1], bytes[2]};
	if (!valid(&params))
		return ow_error_set(err, EINVAL, "fold: %u banks of %u cells", params.banks, params.cells);
	size_t needed = (size_t)params.banks * params.cells * sizeof(uint64_t);
	if (size - PARAMS_BYTES < needed)
		return ow_error_set(err, EINVAL, "fold: %zu bytes for %u banks of %u cells", size, params.banks,
		                    params.cells);
	struct ow_fold *fold = make(&params, seed);
	if (!fold)
		return ow_error_set(err, ENOMEM, "fold: %s", strerror(ENOMEM));
	memcpy(fold->cell, bytes + PARAMS_BYTES, needed);
	int r = decode_ams(fold, bytes + PARAMS_BYTES + needed, size - PARAMS_BYTES - needed, err);
	if (r < 0) {
		destroy(&fold->synopsis);
		return r;
	}
	*ret_synopsis = &fold->synopsis;
	return 0;
}

static void describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	const struct ow_fold *fold = ow_fold_of(synopsis);
	int n = snprintf(text, size, "%u banks of %u", fold->params.banks, fold->params.cells);
	if (fold->send != fold->params.cells && n >= 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, ", %u sent", fold->send);
}

const struct ow_synopsis_ops ow_fold_ops = {
	.name = "fold",
	.kind = OW_SYNOPSIS_FOLD,
	.free = destroy,
	.reset = reset,
	.memory = memory,
	.add = add,
	.remove = take_out,
	.merge = merge,
	.subtract = subtract,
	.encoded_size = encoded_size,
	.encode = encode,
	.decode = decode,
	.same_shape = same_shape,
	.describe = describe,
};
