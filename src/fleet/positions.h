/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/*
 * Up to where a point's rows have arrived in the fleet: a small SQLite file of the agent, because the store has one
 * writer. A position that is lost only means that rows are sent again.
 */
struct ow_positions;

int ow_positions_open(const char *path, struct ow_positions **ret_positions, struct ow_error *err);
void ow_positions_close(struct ow_positions *positions);
/* `otherwise` if there is none. */
int64_t ow_positions_get(struct ow_positions *positions, const char *name, int64_t otherwise);
/* Written by ow_positions_save, several in a transaction. */
void ow_positions_set(struct ow_positions *positions, const char *name, int64_t place);
int ow_positions_save(struct ow_positions *positions, struct ow_error *err);
