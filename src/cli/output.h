/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Setter of an option, const char *: a file that will be written, or - where the command allows it. Checks before the
 * work begins whether the file can be written.
 */
int ow_option_output(void *field, const char *value, struct ow_error *err);

/* A text file that is written completely or not at all: an existing file at path stays unchanged until then. */
struct ow_output {
	const char *path; /* "-": standard output */
	FILE *stream;     /* NULL = not open */
	/* name while it is written; NULL = written to path directly, because that is not a regular file */
	char *unfinished;
};

int ow_output_open(struct ow_output *output, const char *path, struct ow_error *err);
/* 0, or the error of an earlier write. Cheap enough to be called after every row. */
int ow_output_check(const struct ow_output *output, struct ow_error *err);
/* Flushes, closes and renames the file; on failure nothing is left. Does nothing if it is not open. */
int ow_output_close(struct ow_output *output, struct ow_error *err);
/* Closes and removes the unfinished file. Does nothing if it is not open. */
void ow_output_abort(struct ow_output *output);

/* Whether path is "-"; false for NULL. */
bool ow_output_is_stdout(const char *path);
/* Whether both names lead to the same regular file. */
bool ow_same_file(const char *a, const char *b);
