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

/* From now on --help also hands the table of parts to `list`; NULL: no more (cli/completions.h). */
typedef void ow_cli_parts_list(void *arg, const struct ow_cli_part *parts);
void ow_cli_parts_listen(ow_cli_parts_list *list, void *arg);
/* For a command that has options of its own, and parts: tells whoever listens. */
void ow_cli_parts_tell(const struct ow_cli_part *parts);
