/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * A plot of a match: for each direction the delay over time, the loss over time and the distribution of the delay. It
 * collects packets in bins of time, so that its memory (a few MB) does not grow with the capture.
 */
struct ow_plot;

int ow_plot_create(struct ow_plot **ret_plot);
void ow_plot_free(struct ow_plot *plot);
/* Takes an event as ow_match_options.on_packet delivers it. 0 or -ENOMEM. */
int ow_plot_add(struct ow_plot *plot, const struct ow_packet_event *event);
/* Draws with gnuplot, which must be installed. On failure there is no file at path. */
int ow_plot_write(const struct ow_plot *plot, const struct ow_match_report *report, const char *path,
                  struct ow_error *err);
