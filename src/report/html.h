/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * A page of HTML in one file, without references to anything else and without scripts: it can be sent to others, printed, and read
 * on a phone. All text is escaped. The caller checks the stream for errors.
 */
void ow_html_begin(FILE *out, const char *title);
void ow_html_end(FILE *out);
/* A warning in a box, or a line of less importance. */
void ow_html_warning(FILE *out, const char *text);
void ow_html_note(FILE *out, const char *text);
/*
 * Text with marks (OW_LOOK_MARKED of base/table.h): lines in bold become headings, lines with marks rows of tables, other
 * lines paragraphs.
 */
void ow_html_text(FILE *out, const char *text);
/* An SVG picture that is in a file, from its beginning. 0 or a negative errno. */
int ow_html_picture(FILE *out, const char *name, int picture);
