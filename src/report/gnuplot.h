/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_GNUPLOT_H
#define OW_REPORT_GNUPLOT_H

#include <oneway/error.h>
#include <stdio.h>

/*
 * Runs gnuplot (no shell) with the script as its input and path as its standard output; `trailer` is what a complete
 * picture has among its last bytes. Waits for it. On failure nothing stays at path.
 */
int ow_gnuplot_run(FILE *script, const char *path, const char *trailer, struct ow_error *err);

#endif
