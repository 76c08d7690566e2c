/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_TERMINAL_H
#define OW_CLI_TERMINAL_H

#include "report/style.h"
#include <stdint.h>
#include <stdio.h>

bool ow_terminal_is(FILE *stream);
/* Columns to use on the stream: its terminal's, within what is comfortable to read; 80 when it is no terminal. */
int ow_terminal_width(FILE *stream);
/* Whether to colour: only on a terminal, never with NO_COLOR or TERM=dumb. */
bool ow_terminal_colour(FILE *stream);

/* All of these, with what the locale's characters are. */
struct ow_style ow_terminal_style(FILE *stream, bool no_color);

/* Whether the cursor can be moved: only on a terminal that says what it is, never with TERM=dumb. */
bool ow_terminal_moves(FILE *stream);

/* Whether the locale's characters are UTF-8, by LC_ALL, LC_CTYPE and LANG. */
bool ow_terminal_utf8(void);

/* Progress on standard error: only on a terminal, and only for what takes over two seconds. */
struct ow_progress {
	const char *what;
	int64_t start_ns, last_ns;
	bool shown;
};

void ow_progress_init(struct ow_progress *progress, const char *what);
/* arg: struct ow_progress, so that it fits as callback. done: 0..1; may be called as often as one likes. */
void ow_progress_show(void *arg, double done);
/* Removes the line. */
void ow_progress_done(struct ow_progress *progress);

#endif
