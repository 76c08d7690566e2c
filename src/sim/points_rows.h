/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/points.h"
#include "sim/wire.h"

/* A row of the truth for each packet, kept while it is on its way. Internal to sim/points. */

#define OW_SIM_NO_POINT 0xffu

struct ow_sim_row {
	uint64_t number;
	int64_t sent_ns;
	uint8_t direction;
	uint8_t lost_hop;               /* 1, 2, ..., in the order of the path; 0 = not lost */
	uint8_t point[OW_SIM_POINTS];   /* the point whose link it took, by place; OW_SIM_NO_POINT: none */
	uint64_t record[OW_SIM_POINTS]; /* its number in the capture of that point; 0 = it is not there */
	int64_t time_ns[OW_SIM_POINTS];
	struct ow_flow_key flow;
};

struct ow_sim_rows;

/* path NULL: rows are kept, but not written. */
int ow_sim_rows_open(const char *path, const struct ow_sim_points *points, struct ow_sim_rows **ret_rows,
                     struct ow_error *err);
/* A row for a packet that is sent now; sets its number in the wire. NULL: out of memory. */
struct ow_sim_row *ow_sim_rows_begin(struct ow_sim_rows *rows, struct ow_wire *wire);
struct ow_sim_row *ow_sim_rows_of(struct ow_sim_rows *rows, const struct ow_wire *wire);
/* The packet has arrived or is lost: writes its row and forgets it. */
void ow_sim_rows_end(struct ow_sim_rows *rows, const struct ow_wire *wire);
/* Both free. */
int ow_sim_rows_close(struct ow_sim_rows *rows, struct ow_error *err);
void ow_sim_rows_abort(struct ow_sim_rows *rows);
