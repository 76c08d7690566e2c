/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdio.h>

/* An empty script, which the caller writes and closes. path: of the plot, for the error. */
int ow_gnuplot_begin(const char *path, FILE **ret_script, struct ow_error *err);
/*
 * Runs gnuplot (without a shell) with the script as its input, and writes its output to path. Waits for it. A plot is
 * complete if `trailer` is among its last bytes. -ENOENT if gnuplot is not installed. On failure there is no file at
 * path.
 */
int ow_gnuplot_run(FILE *script, const char *path, const char *trailer, struct ow_error *err);
/* The same, but the picture stays in memory: a file without a name, which the caller closes. path: for errors. */
int ow_gnuplot_draw(FILE *script, const char *path, const char *trailer, int *ret_picture, struct ow_error *err);
