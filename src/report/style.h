/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_STYLE_H
#define OW_REPORT_STYLE_H

#include <stdbool.h>

/* How text may be written to a stream. Who owns the terminal fills it in (cli/terminal.h). */
struct ow_style {
	int width;     /* columns to use */
	bool terminal; /* somebody looks at it as it comes */
	bool colour;   /* ANSI colours are allowed */
	bool utf8;     /* characters beyond ASCII are allowed */
};

#endif
