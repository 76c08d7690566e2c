/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * A plot of a match: for each direction, and for each hop of a path, the delay over time, the loss over time and the distribution of the delay. It
 * collects packets in bins of time, so that its memory (a few MB) does not grow with the capture.
 */
struct ow_plot;
struct ow_path_packet; /* path/path.h */
struct ow_path_report;

/* hops: of a path of more than two points; 0 = none */
int ow_plot_create(unsigned hops, struct ow_plot **ret_plot);
void ow_plot_free(struct ow_plot *plot);
/* Takes an event as ow_match_options.on_packet delivers it. 0 or -ENOMEM. */
int ow_plot_add(struct ow_plot *plot, const struct ow_packet_event *event);
/* Takes a packet of a path. May run beside ow_plot_add. 0 or -ENOMEM. */
int ow_plot_add_path(struct ow_plot *plot, const struct ow_path_packet *packet);
/* Draws with gnuplot, which must be installed. On failure the file is not there. path: NULL without hops. */
int ow_plot_write(const struct ow_plot *plot, const struct ow_match_report *report, const struct ow_path_report *path,
                  const char *file, struct ow_error *err);
/*
 * The same as single pictures in SVG: views of a path, directions, hops. on_picture gets each with its name, as a file in
 * memory that is at its beginning or not; 0 or a negative errno, which ends it. -ENOENT: gnuplot is not installed.
 */
int ow_plot_pictures(const struct ow_plot *plot, const struct ow_match_report *report,
                     const struct ow_path_report *path, int (*on_picture)(void *arg, const char *name, int picture),
                     void *arg, struct ow_error *err);
