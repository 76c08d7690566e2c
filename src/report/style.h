/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* How text may be written to a stream. The owner of the terminal fills it in (cli/terminal.h). */
struct ow_style {
	int width;     /* columns to use */
	bool terminal; /* a user reads it as it is written */
	bool moves;    /* the cursor can be moved */
	bool colour;   /* ANSI colours are allowed */
	bool utf8;     /* characters beyond ASCII are allowed */
	/* Columns and lines of the terminal of standard output now. */
	void (*size)(unsigned *ret_width, unsigned *ret_height);
};
