/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of the counters of a layer. A row is a counter, its check and its count, b + check_bits + count_bits bits.
 *
 *    0  packing (1): 0 no row, 1 all rows, 2 rows that are not zero
 *    1  bytes that follow (8)
 *    9  packing 2: a bit for each 64 counters, then 64 bits for each of these that is set, one for each row
 *       the rows, lowest bit first, filled up to a byte
 */
#include "flows/bits.h"
#include "flows/epoch_private.h"
#include <errno.h>
#include <string.h>

enum packing { NO_ROW, ALL_ROWS, SOME_ROWS, PACKINGS };

#define HEADER 9

struct rows {
	const struct ow_colate_layer *layer;
	const uint64_t *counter;
	const uint32_t *check, *count;
};

static unsigned row_bits(const struct ow_colate_layer *layer)
{
	return layer->bits + layer->check_bits + layer->count_bits;
}

static bool is_row(const struct rows *rows, uint32_t i)
{
	return rows->counter[i] || (rows->check && rows->check[i]) || (rows->count && rows->count[i]);
}

/* A bit for each of the 64 rows from `first` on that is not zero. */
static uint64_t group(const struct rows *rows, uint32_t first)
{
	uint64_t set = 0;
	for (uint32_t i = 0; i < 64 && first + i < rows->layer->counters; i++)
		set |= (uint64_t)is_row(rows, first + i) << i;
	return set;
}

static void put_row(struct ow_bits_writer *writer, const struct rows *rows, uint32_t i)
{
	ow_bits_put(writer, rows->counter[i], rows->layer->bits);
	if (rows->check)
		ow_bits_put(writer, rows->check[i], rows->layer->check_bits);
	if (rows->count)
		ow_bits_put(writer, rows->count[i], rows->layer->count_bits);
}

static uint8_t *put_some(uint8_t *to, const struct rows *rows)
{
	uint32_t counters = rows->layer->counters, groups = (counters + 63) / 64;
	uint8_t *top = to, *set_at = to + (groups + 7) / 8;
	memset(top, 0, (groups + 7) / 8);
	for (uint32_t g = 0; g < groups; g++) {
		uint64_t set = group(rows, 64 * g);
		if (!set)
			continue;
		top[g / 8] |= (uint8_t)(1u << g % 8);
		ow_store_le64(set_at, set);
		set_at += 8;
	}
	struct ow_bits_writer writer = {.to = set_at};
	for (uint32_t i = 0; i < counters; i++) {
		if (is_row(rows, i))
			put_row(&writer, rows, i);
	}
	return ow_bits_end(&writer);
}

static uint8_t *put_all(uint8_t *to, const struct rows *rows)
{
	struct ow_bits_writer writer = {.to = to};
	for (uint32_t i = 0; i < rows->layer->counters; i++)
		put_row(&writer, rows, i);
	return ow_bits_end(&writer);
}

int ow_epoch_put_layer(struct ow_buffer *buffer, const struct ow_colate *colate, uint32_t layer)
{
	const struct rows rows = {
		.layer = &ow_colate_params(colate)->layer[layer],
		.counter = ow_colate_counters(colate, layer),
		.check = ow_colate_checks(colate, layer),
		.count = ow_colate_counts(colate, layer),
	};
	uint64_t bits = row_bits(rows.layer), there = 0, groups = 0, counters = rows.layer->counters;
	for (uint32_t i = 0; i < counters; i += 64) {
		uint64_t set = group(&rows, i);
		there += (uint64_t)__builtin_popcountll(set);
		groups += set != 0;
	}
	uint64_t all = (counters * bits + 7) / 8, some = (counters + 511) / 512 + 8 * groups + (there * bits + 7) / 8;
	enum packing packing = !there ? NO_ROW : some < all ? SOME_ROWS : ALL_ROWS;
	uint64_t size = packing == NO_ROW ? 0 : packing == SOME_ROWS ? some : all;
	if (ow_buffer_reserve(buffer, HEADER + size) < 0)
		return -ENOMEM;
	uint8_t *to = buffer->data + buffer->end;
	*to = (uint8_t)packing;
	ow_store_le64(to + 1, size);
	if (packing == SOME_ROWS)
		put_some(to + HEADER, &rows);
	else if (packing == ALL_ROWS)
		put_all(to + HEADER, &rows);
	buffer->end += HEADER + size;
	return 0;
}

/* Rows of 64 counters; missing rows are zero. */
struct part {
	uint64_t counter[64];
	uint32_t check[64], count[64];
};

static void get_group(struct ow_bits_reader *reader, const struct ow_colate_layer *layer, uint64_t set,
                      struct part *part)
{
	memset(part, 0, sizeof *part);
	for (; set; set &= set - 1) {
		unsigned i = (unsigned)__builtin_ctzll(set);
		part->counter[i] = ow_bits_get(reader, layer->bits);
		if (layer->check_bits)
			part->check[i] = ow_bits_get_some(reader, layer->check_bits);
		if (layer->count_bits)
			part->count[i] = ow_bits_get_some(reader, layer->count_bits);
	}
}

static int wrong(struct ow_error *err, uint32_t layer, const char *what)
{
	return ow_error_set(err, EPROTO, "epoch: layer %u %s", layer + 1, what);
}

static void add_part(struct ow_colate *sum, uint32_t layer, uint32_t first, uint32_t counters, const struct part *part)
{
	uint32_t left = counters - first;
	ow_colate_add_raw(sum, layer, first, part->counter, part->check, part->count, left < 64 ? left : 64);
}

static int take_all(const uint8_t *at, size_t size, uint32_t number, struct ow_colate *sum, struct ow_error *err)
{
	const struct ow_colate_layer *layer = &ow_colate_params(sum)->layer[number];
	if (size != ((uint64_t)layer->counters * row_bits(layer) + 7) / 8)
		return wrong(err, number, "does not have the size of its counters");
	struct ow_bits_reader reader = {.from = at, .end = at + size};
	for (uint32_t i = 0; i < layer->counters; i += 64) {
		uint32_t left = layer->counters - i;
		struct part part;
		get_group(&reader, layer, left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX, &part);
		add_part(sum, number, i, layer->counters, &part);
	}
	return 0;
}

static int take_some(const uint8_t *at, size_t size, uint32_t number, struct ow_colate *sum, struct ow_error *err)
{
	const struct ow_colate_layer *layer = &ow_colate_params(sum)->layer[number];
	uint32_t counters = layer->counters, groups = (counters + 63) / 64, top_bytes = (groups + 7) / 8;
	uint64_t set_groups = 0, there = 0;
	if (size < top_bytes)
		return wrong(err, number, "ends before its rows");
	for (uint32_t g = 0; g < 8 * top_bytes; g++) {
		bool set = at[g / 8] >> g % 8 & 1;
		if (set && g >= groups)
			return wrong(err, number, "has rows beyond its counters");
		set_groups += set;
	}
	if ((size - top_bytes) / 8 < set_groups)
		return wrong(err, number, "ends before its rows");
	const uint8_t *sets = at + top_bytes;
	for (uint64_t i = 0; i < set_groups; i++)
		there += (uint64_t)__builtin_popcountll(ow_load_le64(sets + 8 * i));
	if (size != top_bytes + 8 * set_groups + (there * row_bits(layer) + 7) / 8)
		return wrong(err, number, "does not have the size of its rows");
	struct ow_bits_reader reader = {.from = sets + 8 * set_groups, .end = at + size};
	for (uint32_t g = 0; g < groups; g++) {
		struct part part;
		if (!(at[g / 8] >> g % 8 & 1))
			continue;
		uint64_t set = ow_load_le64(sets);
		sets += 8;
		if (counters - 64 * g < 64 && set >> (counters - 64 * g))
			return wrong(err, number, "has rows beyond its counters");
		get_group(&reader, layer, set, &part);
		add_part(sum, number, 64 * g, counters, &part);
	}
	return 0;
}

int ow_epoch_take_layer(const uint8_t **at, const uint8_t *end, uint32_t layer, struct ow_colate *sum,
                        struct ow_error *err)
{
	if (end - *at < HEADER)
		return wrong(err, layer, "is beyond the end");
	uint8_t packing = **at;
	uint64_t size = ow_load_le64(*at + 1);
	const uint8_t *rows = *at + HEADER;
	if (size > (uint64_t)(end - rows))
		return wrong(err, layer, "is beyond the end");
	*at = rows + size;
	switch (packing) {
	case NO_ROW:
		return size ? wrong(err, layer, "has bytes without rows") : 0;
	case ALL_ROWS:
		return take_all(rows, size, layer, sum, err);
	case SOME_ROWS:
		return take_some(rows, size, layer, sum, err);
	default:
		return wrong(err, layer, "is packed in an unknown way");
	}
}
