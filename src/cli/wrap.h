/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_WRAP_H
#define OW_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Lines that are longer than the terminal is wide are broken at spaces, and go on below their text. Where standard
 * output and standard error are terminals, stdout and stderr do this from here on; fileno() does not know them then
 * (cli/terminal.h does). Not broken: JSON, commands to copy, and text that moves the cursor.
 */
void ow_wrap_streams(void);

/* Writes `length` bytes of one line without its end. column: where the cursor is. Returns where it is then. */
size_t ow_wrap_line(FILE *out, const char *line, size_t length, size_t column, size_t width);

#endif
