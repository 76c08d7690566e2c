/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of the table of repair (synopsis/repair.h): a bit for each cell that is not zero, filled up to a byte; then
 * these cells, 16 bytes each: packet, time_flow.
 */
#include "base/bytes.h"
#include "flows/epoch_private.h"
#include <errno.h>
#include <string.h>

#define CELL_BYTES 16

static bool is_cell(const struct ow_repair_cell *cell)
{
	return cell->packet || cell->time_flow;
}

int ow_epoch_put_repair(struct ow_buffer *buffer, const struct ow_colate *colate)
{
	const struct ow_repair_cell *cell = ow_colate_repair(colate);
	size_t cells = OW_REPAIR_BANKS * (size_t)ow_colate_params(colate)->repair_cells, bits = (cells + 7) / 8;
	int r = ow_buffer_reserve(buffer, bits + CELL_BYTES * cells);
	if (r < 0)
		return r;
	uint8_t *set = buffer->data + buffer->end, *to = set + bits;
	memset(set, 0, bits);
	for (size_t i = 0; i < cells; i++) {
		if (!is_cell(&cell[i]))
			continue;
		set[i / 8] |= (uint8_t)(1u << i % 8);
		ow_store_le64(to, cell[i].packet);
		ow_store_le64(to + 8, cell[i].time_flow);
		to += CELL_BYTES;
	}
	buffer->end = (size_t)(to - buffer->data);
	return 0;
}

int ow_epoch_take_repair(const uint8_t **at, const uint8_t *end, const struct ow_colate_params *params,
                         struct ow_repair_cell *sum, struct ow_error *err)
{
	size_t cells = OW_REPAIR_BANKS * (size_t)params->repair_cells, bits = (cells + 7) / 8;
	const uint8_t *set = *at, *from = set + bits;
	if ((size_t)(end - *at) < bits)
		return ow_error_set(err, EPROTO, "epoch: the table of lost packets is cut");
	for (size_t i = 0; i < cells; i++) {
		if (!(set[i / 8] >> i % 8 & 1))
			continue;
		if (end - from < CELL_BYTES)
			return ow_error_set(err, EPROTO, "epoch: the table of lost packets is cut");
		struct ow_repair_cell cell = {ow_load_le64(from), ow_load_le64(from + 8)};
		ow_repair_merge(&sum[i], &cell, 1);
		from += CELL_BYTES;
	}
	*at = from;
	return 0;
}
