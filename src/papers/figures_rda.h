/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/figure.h"

/* The runs of the RDA paper's figures; those about delays are in figures_rda_delay.c, those of
 * section IX (live) in figures_rda_live.c and figures_rda_scale.c. */
int ow_figure_rda_unknown_difference(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_10(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_11(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_12(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_13(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_14(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_15(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_useful_samples(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_mean_by_delay(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_stddev_by_delay(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_rda_table_1(struct ow_figure_run *run, struct ow_error *err);

/* Packets of the paper's traces (its Table I). The synopses hash ids, so no other property of the traces matters. */
#define OW_RDA_DC_PACKETS   2041744
#define OW_RDA_UNIV_PACKETS 1694553
enum { OW_RDA_DC, OW_RDA_UNIV }; /* parts of figures: which of the traces */
