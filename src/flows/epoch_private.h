/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buffer.h"
#include "flows/epoch.h"

/*
 * Internal to the encoding of epochs: its sections. Encoders append to the buffer and return 0 or -ENOMEM. Decoders
 * read from *at on and move it behind what they have read.
 */

int ow_epoch_put_layer(struct ow_buffer *buffer, const struct ow_colate *colate, uint32_t layer);
int ow_epoch_take_layer(const uint8_t **at, const uint8_t *end, uint32_t layer, struct ow_colate *sum,
                        struct ow_error *err);

/* The table of lost packets. sum: OW_REPAIR_BANKS * repair_cells; cells are added to it. */
int ow_epoch_put_repair(struct ow_buffer *buffer, const struct ow_colate *colate);
int ow_epoch_take_repair(const uint8_t **at, const uint8_t *end, const struct ow_colate_params *params,
                         struct ow_repair_cell *sum, struct ow_error *err);

int ow_epoch_put_counts(struct ow_buffer *buffer, const struct ow_flow_counts *counts);
/* The partial layers are those of the sum's counts. */
int ow_epoch_take_counts(const uint8_t **at, const uint8_t *end, uint64_t seed, struct ow_flow_counts *sum,
                         struct ow_error *err);
