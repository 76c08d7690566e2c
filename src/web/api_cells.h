/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/api_private.h"

/*
 * Each lane at the selected time, beside what is usual for it: that of the week before. A lane without results is there, too,
 * as unknown.
 */
enum ow_cell_state { OW_CELL_GOOD, OW_CELL_PARTIAL, OW_CELL_DELAY, OW_CELL_LOSS, OW_CELL_UNKNOWN };
extern const char *const ow_cell_state_name[];

/* At least this share lost is a state of its own. */
#define OW_CELL_LOSS_MIN 0.001
/* The p99 is unusual from so many times the usual one on. */
#define OW_CELL_DELAY_FACTOR 1.5
/* As is this share of intervals that were not or not fully measured. */
#define OW_CELL_PARTIAL_MIN 0.05
#define OW_CELL_USUAL_NS    (INT64_C(7) * 24 * 3600 * 1000000000)

struct ow_cell {
	const struct ow_stored_lane *lane;
	const struct ow_stored_sum *sum;        /* NULL: no results */
	uint64_t sent, received, lost, samples; /* 0 without results */
	double loss, mean, min, p50, p99, p99_low, p99_high, usual_p99, usual_p99_high,
		availability;        /* NaN: not known */
	int64_t last_ns;             /* the end of its last interval in this time; INT64_MIN: none */
	char cause[OW_RESULT_CAUSE]; /* of the last interval that was not or not fully measured */
	enum ow_cell_state state;
	char why[200]; /* one line */
};

struct ow_cells {
	struct ow_cell *cell;
	size_t count;
	struct ow_stored_sums sums;
};

/* Of the lanes and the time of call->filter, which is selected. */
int ow_cells_make(struct ow_call *call, struct ow_cells *ret_cells, struct ow_error *err);
void ow_cells_done(struct ow_cells *cells);
/* The member "cells"; the members of one cell. */
void ow_cells_put(struct ow_json *json, const struct ow_cells *cells);
void ow_cell_put(struct ow_json *json, const struct ow_cell *cell);
