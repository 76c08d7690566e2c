/* SPDX-License-Identifier: Apache-2.0 */
/* RDA: banks of cells that add up ids, times and counts. rda.h has the paper, our deviations and the layout. */
#include "synopsis/rda.h"

#include "base/bytes.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER  8
#define CELL    20
#define CHECKED 1
/* Tables of more bytes do not stay in a core's second-level cache: prefetch the cells. */
#define IN_CACHE (384u << 10)
/* Packets whose cells are prefetched together: about twice the cache misses that a core can have in flight. */
#define AHEAD 32

_Static_assert(sizeof(struct ow_rda_cell) == CELL, "a cell is what the encoding says");

static size_t cells_of(const struct ow_rda *rda)
{
	return (size_t)rda->params.banks * rda->params.cells;
}

int ow_rda_create(const struct ow_rda_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	if (params->banks < 1 || params->banks > OW_RDA_BANKS_MAX || params->cells < 1 ||
	    params->cells > OW_RDA_CELLS_MAX / params->banks)
		return -EINVAL;
	size_t cells = (size_t)params->banks * params->cells;
	struct ow_rda *rda = calloc(1, sizeof *rda + cells * sizeof *rda->cell);
	if (!rda)
		return -ENOMEM;
	rda->base = (struct ow_synopsis){.ops = &ow_rda_ops, .seed = seed};
	rda->params = *params;
	rda->check_key = ow_mix64(seed ^ UINT64_C(0x5244412d63686b31));
	for (uint64_t i = 0; i < OW_RDA_BANKS_MAX / 2; i++)
		rda->place_key[i] = ow_mix64(ow_mix64(seed + UINT64_C(0x9e3779b97f4a7c15) * (i + 1)) ^
		                             UINT64_C(0x5244412d706c6331));
	*ret_synopsis = &rda->base;
	return 0;
}

double ow_rda_cells_for(double differences, uint32_t banks)
{
	double d = isfinite(differences) && differences > 0 ? differences : 0;
	/* The thresholds of peeling are 1.222 and 1.295; the rest is a measured margin for small tables
	 * (docs/reproduction.md). */
	return banks >= 4 ? 1.36 * d + fmin(100, 45 + 0.09 * d) : 1.3 * d + 100;
}

void ow_rda_params_for(double differences, double stddev_error, bool published, struct ow_rda_params *ret_params)
{
	double d = isfinite(differences) && differences > 0 ? differences : 0;
	struct ow_rda_params params = {.banks = published ? 2 : 4, .checked = !published};
	/* Section VIII uses m = 2d. */
	double cells = published ? 4 * d : ow_rda_cells_for(d, 4);
	/* s^2 has B - k degrees of freedom: its relative error is sqrt(2/(B-k)), and that of s is half of it. */
	if (stddev_error > 0)
		cells = fmax(cells, params.banks + 0.5 / (stddev_error * stddev_error));
	cells = fmax(1, ceil(cells / params.banks));
	uint32_t most = OW_RDA_CELLS_MAX / params.banks;
	params.cells = (uint32_t)fmin(cells, most);
	*ret_params = params;
}

int ow_rda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	double differences = sizing->packets * (sizing->loss + 2 * sizing->reorder);
	size_t cells = memory / sizeof(struct ow_rda_cell);
	if (cells > OW_RDA_CELLS_MAX)
		cells = OW_RDA_CELLS_MAX;
	struct ow_rda_params params = {.banks = 4, .checked = true};
	while (params.banks > 2 && ow_rda_cells_for(differences, params.banks) > (double)cells)
		params.banks--;
	params.cells = (uint32_t)(cells / params.banks);
	return ow_rda_create(&params, seed, ret_synopsis);
}

static void rda_free(struct ow_synopsis *synopsis)
{
	free(synopsis);
}

static void rda_reset(struct ow_synopsis *synopsis)
{
	struct ow_rda *rda = (struct ow_rda *)synopsis;
	memset(rda->cell, 0, cells_of(rda) * sizeof *rda->cell);
}

static size_t rda_memory(const struct ow_synopsis *synopsis)
{
	return cells_of(ow_rda_of(synopsis)) * sizeof(struct ow_rda_cell);
}

/* The cells of a packet: the cells of a bank start at bank * m. One hash gives the places in two banks. */
static inline __attribute__((always_inline)) uint64_t places(const struct ow_rda *rda, uint64_t id, uint32_t banks,
                                                             bool checked, uint32_t *ret_place)
{
	if (checked) {
		id &= ~OW_RDA_CHECK_MASK;
		id |= ow_mum64(id ^ rda->check_key, OW_RDA_CHECK_MUL) >> 48;
	}
	uint64_t m = rda->params.cells;
	for (uint32_t pair = 0; pair < (banks + 1) / 2; pair++) {
		uint64_t hash = ow_mum64(id ^ rda->place_key[pair], OW_RDA_PLACE_MUL);
		ret_place[2 * pair] = (uint32_t)(2 * pair * m + ((hash & UINT32_MAX) * m >> 32));
		if (2 * pair + 1 < banks)
			ret_place[2 * pair + 1] = (uint32_t)((2 * pair + 1) * m + ((hash >> 32) * m >> 32));
	}
	return id;
}

static inline __attribute__((always_inline)) void update(struct ow_rda_cell *cell, uint64_t id, uint64_t time,
                                                         uint32_t one)
{
	cell->id ^= id;
	cell->ts += time;
	cell->count += one;
}

/* sign: 1 adds, -1 removes. Compiled for each number of banks, so that the inner loops are unrolled. */
static inline __attribute__((always_inline)) void put(struct ow_rda *rda, const struct ow_sighting *sightings,
                                                      size_t count, int64_t sign, uint32_t banks, bool checked)
{
	uint32_t one = (uint32_t)sign;
	if (rda_memory(&rda->base) <= IN_CACHE) {
		for (size_t i = 0; i < count; i++) {
			uint32_t place[OW_RDA_BANKS_MAX] = {0};
			uint64_t id = places(rda, sightings[i].id, banks, checked, place);
			for (uint32_t b = 0; b < banks; b++)
				update(rda->cell + place[b], id, (uint64_t)sightings[i].time_ns * (uint64_t)sign, one);
		}
		return;
	}
	uint32_t place[AHEAD][OW_RDA_BANKS_MAX] = {{0}};
	uint64_t id[AHEAD];
	for (size_t start = 0; start < count; start += AHEAD) {
		size_t n = count - start < AHEAD ? count - start : AHEAD;
		for (size_t i = 0; i < n; i++) {
			id[i] = places(rda, sightings[start + i].id, banks, checked, place[i]);
			for (uint32_t b = 0; b < banks; b++)
				__builtin_prefetch(rda->cell + place[i][b], 1);
		}
		for (size_t i = 0; i < n; i++) {
			for (uint32_t b = 0; b < banks; b++)
				update(rda->cell + place[i][b], id[i],
				       (uint64_t)sightings[start + i].time_ns * (uint64_t)sign, one);
		}
	}
}

static void put_any(struct ow_rda *rda, const struct ow_sighting *sightings, size_t count, int64_t sign)
{
	if (rda->params.checked && rda->params.banks == 2)
		put(rda, sightings, count, sign, 2, true);
	else if (rda->params.checked && rda->params.banks == 3)
		put(rda, sightings, count, sign, 3, true);
	else if (rda->params.checked && rda->params.banks == 4)
		put(rda, sightings, count, sign, 4, true);
	else if (!rda->params.checked && rda->params.banks == 2)
		put(rda, sightings, count, sign, 2, false);
	else
		put(rda, sightings, count, sign, rda->params.banks, rda->params.checked);
}

static void rda_add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	put_any((struct ow_rda *)synopsis, sightings, count, 1);
}

static void rda_remove(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	put_any((struct ow_rda *)synopsis, sightings, count, -1);
}

static bool rda_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_rda_params *p = &ow_rda_of(a)->params, *q = &ow_rda_of(b)->params;
	return p->banks == q->banks && p->cells == q->cells && p->checked == q->checked;
}

static int rda_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_rda *rda = (struct ow_rda *)synopsis;
	const struct ow_rda *from = ow_rda_of(other);
	for (size_t i = 0; i < cells_of(rda); i++)
		update(rda->cell + i, from->cell[i].id, from->cell[i].ts, from->cell[i].count);
	return 0;
}

static int rda_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_rda *rda = (struct ow_rda *)synopsis;
	const struct ow_rda *from = ow_rda_of(other);
	for (size_t i = 0; i < cells_of(rda); i++)
		update(rda->cell + i, from->cell[i].id, -from->cell[i].ts, -from->cell[i].count);
	return 0;
}

static size_t rda_encoded_size(const struct ow_synopsis *synopsis)
{
	return HEADER + cells_of(ow_rda_of(synopsis)) * CELL;
}

static void rda_encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	const struct ow_rda *rda = ow_rda_of(synopsis);
	bytes[0] = (uint8_t)rda->params.banks;
	bytes[1] = rda->params.checked ? CHECKED : 0;
	bytes[2] = bytes[3] = 0;
	ow_store_le32(bytes + 4, rda->params.cells);
	uint8_t *p = bytes + HEADER;
	for (size_t i = 0; i < cells_of(rda); i++, p += CELL) {
		ow_store_le64(p, rda->cell[i].id);
		ow_store_le64(p + 8, rda->cell[i].ts);
		ow_store_le32(p + 16, rda->cell[i].count);
	}
}

static int rda_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                      struct ow_error *err)
{
	if (size < HEADER)
		return ow_error_set(err, EINVAL, "rda: %zu bytes are less than its parameters", size);
	if (bytes[1] & ~CHECKED || bytes[2] || bytes[3])
		return ow_error_set(err, EINVAL, "rda: unknown flags");
	struct ow_rda_params params = {
		.banks = bytes[0], .cells = ow_load_le32(bytes + 4), .checked = bytes[1] & CHECKED};
	if (params.banks < 1 || params.banks > OW_RDA_BANKS_MAX)
		return ow_error_set(err, EINVAL, "rda: %u banks, 1 to %d are possible", params.banks, OW_RDA_BANKS_MAX);
	if (params.cells < 1 || params.cells > OW_RDA_CELLS_MAX / params.banks)
		return ow_error_set(err, EINVAL, "rda: %u cells in a bank are none or too many", params.cells);
	size_t cells = (size_t)params.banks * params.cells;
	if (size - HEADER != cells * CELL)
		return ow_error_set(err, EINVAL, "rda: %zu bytes for %zu cells of %d", size - HEADER, cells, CELL);
	struct ow_synopsis *synopsis;
	int r = ow_rda_create(&params, seed, &synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "rda: %s", strerror(-r));
	struct ow_rda_cell *cell = ((struct ow_rda *)synopsis)->cell;
	const uint8_t *p = bytes + HEADER;
	for (size_t i = 0; i < cells; i++, p += CELL)
		cell[i] = (struct ow_rda_cell){ow_load_le64(p), ow_load_le64(p + 8), ow_load_le32(p + 16)};
	*ret_synopsis = synopsis;
	return 0;
}

static void rda_describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	const struct ow_rda_params *p = &ow_rda_of(synopsis)->params;
	snprintf(text, size, "%u banks of %u%s", p->banks, p->cells, p->checked ? "" : ", ids not checked");
}

const struct ow_synopsis_ops ow_rda_ops = {
	.name = "rda",
	.kind = OW_SYNOPSIS_RDA,
	.free = rda_free,
	.reset = rda_reset,
	.memory = rda_memory,
	.add = rda_add,
	.remove = rda_remove,
	.merge = rda_merge,
	.subtract = rda_subtract,
	.encoded_size = rda_encoded_size,
	.encode = rda_encode,
	.decode = rda_decode,
	.same_shape = rda_same_shape,
	.describe = rda_describe,
};
