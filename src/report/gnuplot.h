/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_GNUPLOT_H
#define OW_REPORT_GNUPLOT_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stdio.h>

/* The formats of pictures, by the ending of their name. */
bool ow_gnuplot_is_svg(const char *path);
bool ow_gnuplot_is_png(const char *path);

/* The unit of time in which delays of up to `ns` have few digits. */
struct ow_gnuplot_unit {
	const char *name;
	double ns;
};
struct ow_gnuplot_unit ow_gnuplot_unit(double ns);

/* An empty script, to be written and closed by the caller. path: of the picture, for the error. */
int ow_gnuplot_begin(const char *path, FILE **ret_script, struct ow_error *err);
/* The text in single quotes, where nothing but the quote has a meaning to gnuplot. */
void ow_gnuplot_quote(FILE *script, const char *text);
/*
 * Runs gnuplot (no shell) with the script as its input and path as its standard output. Waits for it. -ENOENT when it
 * is not installed. On failure nothing stays at path.
 */
int ow_gnuplot_run(FILE *script, const char *path, struct ow_error *err);

#endif
