/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Lines that are longer than the width of the terminal are broken at spaces, and continue below their text. After this
 * call stdout and stderr do this if they are terminals; fileno() does not work for them then (use cli/terminal.h).
 * JSON, commands to copy, and text that moves the cursor are not broken.
 */
void ow_wrap_streams(void);

/* Writes `length` bytes of one line without its end. column: the cursor's column. Returns the new column. */
size_t ow_wrap_line(FILE *out, const char *line, size_t length, size_t column, size_t width);
