/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_OUTPUT_H
#define OW_CLI_OUTPUT_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Setter of an option, const char *: a file that will be written, or - where the command says so. Whether it can be is
 * found out before the work is done. */
int ow_option_output(void *field, const char *value, struct ow_error *err);
/* Can a file be made, or written, at path? */
int ow_output_can(const char *path, struct ow_error *err);

/* A text file that is written completely or not at all: what was at path before stays until then. */
struct ow_output {
	const char *path; /* "-": standard output */
	FILE *stream;     /* NULL = not open */
	char *unfinished; /* where it is written; NULL = at path itself, as that is no regular file */
};

int ow_output_open(struct ow_output *output, const char *path, struct ow_error *err);
/* 0, or the error of an earlier write. Cheap enough to be asked after every row. */
int ow_output_check(const struct ow_output *output, struct ow_error *err);
/* Flushes, closes and gives the file its name; on failure nothing is left. One that is not open is fine. */
int ow_output_close(struct ow_output *output, struct ow_error *err);
/* Closes and removes the unfinished file. One that is not open is fine. */
void ow_output_abort(struct ow_output *output);

/* Is it "-"? NULL is not. */
bool ow_output_is_stdout(const char *path);
/* Whether both names lead to the same regular file. */
bool ow_same_file(const char *a, const char *b);

#endif
