/* SPDX-License-Identifier: Apache-2.0 */
/* sRDA: a flat array of cells that add up ids, their hashes, times and counts. srda.h has the paper and the layout. */
#include "synopsis/srda.h"

#include "base/bytes.h"
#include "synopsis/rda.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 8
#define CELL   24

_Static_assert(sizeof(struct ow_srda_cell) == CELL, "a cell is what the encoding says");

int ow_srda_create(const struct ow_srda_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	if (params->hashes < 1 || params->hashes > OW_SRDA_HASHES_MAX || params->cells < params->hashes ||
	    params->cells > OW_SRDA_CELLS_MAX)
		return -EINVAL;
	struct ow_srda *srda = calloc(1, sizeof *srda + params->cells * sizeof *srda->cell);
	if (!srda)
		return -ENOMEM;
	srda->base = (struct ow_synopsis){.ops = &ow_srda_ops, .seed = seed};
	srda->params = *params;
	srda->hash_key = ow_mix64(seed ^ UINT64_C(0x735244412d686173));
	for (uint64_t i = 0; i < OW_SRDA_HASHES_MAX / 2; i++)
		srda->place_key[i] = ow_mix64(ow_mix64(seed + UINT64_C(0x9e3779b97f4a7c15) * (i + 1)) ^
		                              UINT64_C(0x735244412d706c63));
	*ret_synopsis = &srda->base;
	return 0;
}

int ow_srda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	double differences = sizing->packets * (sizing->loss + 2 * sizing->reorder);
	size_t cells = memory / sizeof(struct ow_srda_cell);
	if (cells > OW_SRDA_CELLS_MAX)
		cells = OW_SRDA_CELLS_MAX;
	struct ow_srda_params params = {.hashes = 4, .cells = (uint32_t)cells};
	while (params.hashes > 2 && ow_rda_cells_for(differences, params.hashes) > (double)cells)
		params.hashes--;
	return ow_srda_create(&params, seed, ret_synopsis);
}

static void srda_free(struct ow_synopsis *synopsis)
{
	free(synopsis);
}

static void srda_reset(struct ow_synopsis *synopsis)
{
	struct ow_srda *srda = (struct ow_srda *)synopsis;
	memset(srda->cell, 0, srda->params.cells * sizeof *srda->cell);
}

static size_t srda_memory(const struct ow_synopsis *synopsis)
{
	return ow_srda_of(synopsis)->params.cells * sizeof(struct ow_srda_cell);
}

static void update(struct ow_srda_cell *cell, uint64_t id, uint32_t idsh, uint64_t time, uint32_t one)
{
	cell->id ^= id;
	cell->ts += time;
	cell->idsh ^= idsh;
	cell->count += one;
}

static void put(struct ow_srda *srda, const struct ow_sighting *sightings, size_t count, int64_t sign)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t place[OW_SRDA_HASHES_MAX], idsh = ow_srda_hash(srda, sightings[i].id);
		ow_srda_places(srda, sightings[i].id, place);
		for (uint32_t j = 0; j < srda->params.hashes; j++)
			update(srda->cell + place[j], sightings[i].id, idsh,
			       (uint64_t)sightings[i].time_ns * (uint64_t)sign, (uint32_t)sign);
	}
}

static void srda_add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	put((struct ow_srda *)synopsis, sightings, count, 1);
}

static void srda_remove(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	put((struct ow_srda *)synopsis, sightings, count, -1);
}

static bool srda_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_srda_params *p = &ow_srda_of(a)->params, *q = &ow_srda_of(b)->params;
	return p->hashes == q->hashes && p->cells == q->cells;
}

static int srda_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_srda *srda = (struct ow_srda *)synopsis;
	const struct ow_srda_cell *from = ow_srda_of(other)->cell;
	for (size_t i = 0; i < srda->params.cells; i++)
		update(srda->cell + i, from[i].id, from[i].idsh, from[i].ts, from[i].count);
	return 0;
}

static int srda_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_srda *srda = (struct ow_srda *)synopsis;
	const struct ow_srda_cell *from = ow_srda_of(other)->cell;
	for (size_t i = 0; i < srda->params.cells; i++)
		update(srda->cell + i, from[i].id, from[i].idsh, -from[i].ts, -from[i].count);
	return 0;
}

static size_t srda_encoded_size(const struct ow_synopsis *synopsis)
{
	return HEADER + (size_t)ow_srda_of(synopsis)->params.cells * CELL;
}

static void srda_encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	const struct ow_srda *srda = ow_srda_of(synopsis);
	memset(bytes, 0, HEADER);
	bytes[0] = (uint8_t)srda->params.hashes;
	ow_store_le32(bytes + 4, srda->params.cells);
	uint8_t *p = bytes + HEADER;
	for (size_t i = 0; i < srda->params.cells; i++, p += CELL) {
		ow_store_le64(p, srda->cell[i].id);
		ow_store_le64(p + 8, srda->cell[i].ts);
		ow_store_le32(p + 16, srda->cell[i].idsh);
		ow_store_le32(p + 20, srda->cell[i].count);
	}
}

static int srda_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                       struct ow_error *err)
{
	if (size < HEADER)
		return ow_error_set(err, EINVAL, "srda: %zu bytes are less than its parameters", size);
	if (bytes[1] || bytes[2] || bytes[3])
		return ow_error_set(err, EINVAL, "srda: reserved bytes are not 0");
	struct ow_srda_params params = {.hashes = bytes[0], .cells = ow_load_le32(bytes + 4)};
	if (params.hashes < 1 || params.hashes > OW_SRDA_HASHES_MAX)
		return ow_error_set(err, EINVAL, "srda: %u hashes, 1 to %d are possible", params.hashes,
		                    OW_SRDA_HASHES_MAX);
	if (params.cells < params.hashes || params.cells > OW_SRDA_CELLS_MAX)
		return ow_error_set(err, EINVAL, "srda: %u cells are too few or too many", params.cells);
	if (size - HEADER != (size_t)params.cells * CELL)
		return ow_error_set(err, EINVAL, "srda: %zu bytes for %u cells of %d", size - HEADER, params.cells,
		                    CELL);
	struct ow_synopsis *synopsis;
	int r = ow_srda_create(&params, seed, &synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "srda: %s", strerror(-r));
	struct ow_srda_cell *cell = ((struct ow_srda *)synopsis)->cell;
	const uint8_t *p = bytes + HEADER;
	for (size_t i = 0; i < params.cells; i++, p += CELL)
		cell[i] = (struct ow_srda_cell){ow_load_le64(p), ow_load_le64(p + 8), ow_load_le32(p + 16),
		                                ow_load_le32(p + 20)};
	*ret_synopsis = synopsis;
	return 0;
}

static void srda_describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	const struct ow_srda_params *p = &ow_srda_of(synopsis)->params;
	snprintf(text, size, "%u cells, %u hashes", p->cells, p->hashes);
}

const struct ow_synopsis_ops ow_srda_ops = {
	.name = "srda",
	.kind = OW_SYNOPSIS_SRDA,
	.free = srda_free,
	.reset = srda_reset,
	.memory = srda_memory,
	.add = srda_add,
	.remove = srda_remove,
	.merge = srda_merge,
	.subtract = srda_subtract,
	.encoded_size = srda_encoded_size,
	.encode = srda_encode,
	.decode = srda_decode,
	.same_shape = srda_same_shape,
	.describe = srda_describe,
};
