/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/table.h"
#include "path/path.h"
#include "report/chart.h"

/* What is shown of a hop, in tables and plots. */
enum ow_hop_cell { OW_HOP_SENT, OW_HOP_LOST, OW_HOP_LOSS, OW_HOP_MEAN, OW_HOP_P99, OW_HOP_SHARE, OW_HOP_CELLS };
/* "-" for what is not known. */
void ow_path_hop_cells(const struct ow_path_report *path, const struct ow_path_segment *segment,
                       enum ow_direction direction, ow_table_cells ret_cell);
/* Those of the pair; without numbers if the hop is corrected; NULL if there are none. */
const struct ow_details *ow_path_hop_details(const struct ow_path_segment *segment, enum ow_direction direction);
void ow_path_ends_cells(const struct ow_path_report *path, enum ow_direction direction, ow_table_cells ret_cell);

/*
 * The points of a path in a row, in the order in which the packets of a direction pass them, with mean, p99 and loss of each hop, and
 * the hops' shares of the delay. top, height: fractions of the plot.
 */
void ow_path_view(struct ow_chart *chart, const struct ow_path_report *path, enum ow_direction direction, double top,
                  double height);
