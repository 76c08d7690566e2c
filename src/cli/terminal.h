/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/style.h"
#include <stdint.h>
#include <stdio.h>

bool ow_terminal_is(FILE *stream);
/*
 * The columns to use on the stream: those of its terminal, within limits that are comfortable to read; 80 if it is not
 * a terminal.
 */
int ow_terminal_width(FILE *stream);
/* Whether to use colour: only on a terminal, never with NO_COLOR or TERM=dumb. */
bool ow_terminal_colour(FILE *stream);

/* All of these, and whether the locale has UTF-8. */
struct ow_style ow_terminal_style(FILE *stream, bool no_color);

/* Progress on standard error: only on a terminal, and only for work that takes longer than two seconds. */
struct ow_progress {
	const char *what;
	int64_t start_ns, last_ns;
	bool shown;
};

void ow_progress_init(struct ow_progress *progress, const char *what);
/* arg: struct ow_progress, so that it fits as a callback. done: 0..1. Cheap enough to be called often. */
void ow_progress_show(void *arg, double done);
/* Removes the line of progress. */
void ow_progress_done(struct ow_progress *progress);
