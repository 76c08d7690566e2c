/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "papers/figure.h"
#include <stdio.h>

struct ow_figure_outcome {
	const struct ow_figure *figure;
	const struct ow_figure_run *run;
	double seconds;
	const char *csv, *plot; /* plot: NULL if there is none */
};

/* Prints the list of all figures. */
void ow_report_figures_text(FILE *out);
void ow_report_figures_json(FILE *out);

void ow_report_figure_text(FILE *out, const struct ow_figure_outcome *outcome, int width);
/* To be called between a begin and an end. */
void ow_report_figure_json(struct ow_json *json, const struct ow_figure_outcome *outcome);
void ow_report_figures_begin(FILE *out, struct ow_json *json, uint64_t seed, bool quick);
void ow_report_figures_end(struct ow_json *json);
