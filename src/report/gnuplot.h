/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_GNUPLOT_H
#define OW_REPORT_GNUPLOT_H

#include <oneway/error.h>
#include <stdio.h>

/* An empty script, to be written and closed by the caller. path: of the picture, for the error. */
int ow_gnuplot_begin(const char *path, FILE **ret_script, struct ow_error *err);
/*
 * Runs gnuplot (no shell) with the script as its input and path as its standard output. Waits for it. A picture
 * is complete if `trailer` is among its last bytes. -ENOENT when gnuplot is not installed. On failure nothing stays at
 * path.
 */
int ow_gnuplot_run(FILE *script, const char *path, const char *trailer, struct ow_error *err);

#endif
