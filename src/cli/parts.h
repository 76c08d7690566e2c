/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command that has parts: oneway COMMAND PART. */
struct ow_cli_part {
	const char *name; /* NULL: the end of the table */
	const char *job;  /* its line of help */
	int (*run)(int argc, char **argv);
};

/* Runs the part that argv[1] names, or prints `about` and the list of parts. Returns the exit code. */
int ow_cli_parts(const char *command, const char *about, const struct ow_cli_part *parts, int argc, char **argv);
