/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/word.h"
#include "config/keys.h"
#include <oneway/error.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Command lines from a table. One row is an option: how its value is read, where it is stored, and its line of help, so
 * that the parser and --help cannot disagree.
 */
struct ow_option {
	/* without dashes; NULL and help set: a heading; NULL without help: the end of the table */
	const char *name;
	char letter;          /* short form, 0 = none */
	const char *argument; /* its name in the help; NULL = takes none, the setter gets NULL */
	/*
	 * Reads the value into *field. On failure the error describes what is wrong with the value; the parser prepends
	 * the option.
	 */
	int (*set)(void *field, const char *value, struct ow_error *err);
	size_t offset;    /* of the field in the target; the parser does not use it otherwise */
	const char *help; /* one sentence; lines are wrapped as needed */
	/* If `set` is NULL: the value is that of the key with the option's name in this table, with its limits. */
	const struct ow_key *keys;
};

/*
 * Reads the arguments from argv[1] on: --name VALUE, --name=VALUE, -l VALUE, flags; "--" ends the options, "-" is an
 * operand. Operands may be anywhere; they are moved to argv[1], argv[2], ... Returns their number, or -EINVAL with err
 * filled.
 */
int ow_options_parse(const struct ow_option *table, int argc, char **argv, void *target, struct ow_error *err);

/* The rows of every command; its target has bool help and bool version. */
#define OW_OPTIONS_HELP(type)                                                                     \
	{"help", 'h', NULL, ow_option_flag, offsetof(type, help), "Print this text."},            \
	{                                                                                         \
		"version", 0, NULL, ow_option_flag, offsetof(type, version), "Print the version." \
	}

/* Prints the options as a table. */
void ow_options_help(FILE *out, const struct ow_option *table);

/*
 * For a program that wants the tables themselves (cli/completions.h): from now on --help hands them to the listener instead of
 * printing them, and a setter of an enum hands over its choices. NULL: no more.
 */
struct ow_options_listener {
	void (*table)(void *arg, const struct ow_option *table);
	void (*choices)(void *arg, const char *const *names, size_t count);
	void *arg;
};
void ow_options_listen(const struct ow_options_listener *listener);

/* Setters, by the type of the field. */
int ow_option_flag(void *field, const char *value, struct ow_error *err);     /* bool: set to true */
int ow_option_text(void *field, const char *value, struct ow_error *err);     /* const char *, points into argv */
int ow_option_duration(void *field, const char *value, struct ow_error *err); /* int64_t ns, any sign */
int ow_option_positive_duration(void *field, const char *value, struct ow_error *err); /* int64_t ns, above 0 */
int ow_option_seconds(void *field, const char *value, struct ow_error *err); /* int64_t ns above 0: 10, 2.5s, 1min */
int ow_option_count(void *field, const char *value, struct ow_error *err);   /* uint64_t: 1000, 1e6, 10k, 5M */
int ow_option_share(void *field, const char *value, struct ow_error *err);   /* double in 0..1: 0.01 or 1% */

int ow_option_size(void *field, const char *value, struct ow_error *err); /* uint64_t bytes: 65536, 64K, 64MiB */

/* For setters of enums: *ret_index is the index of value in names; the error lists the names. */
int ow_option_choice(const char *const *names, size_t count, const char *value, size_t *ret_index,
                     struct ow_error *err);
