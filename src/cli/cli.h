/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>

/* Exit codes of all commands. */
enum ow_exit {
	OW_EXIT_OK = 0,
	OW_EXIT_FAILED = 1,
	OW_EXIT_USAGE = 2,
	OW_EXIT_AGAIN = 75,  /* oneway point: to be started again, with a new configuration of its fleet */
	OW_EXIT_CROSSED = 3, /* the command succeeded, but a given threshold was crossed or a problem was found */
};

/* The commands. argv[0] is the command's name. Each returns an exit code; main flushes stdout. */
int ow_cli_collect(int argc, char **argv);
int ow_cli_compare(int argc, char **argv);
int ow_cli_doctor(int argc, char **argv);
int ow_cli_fleet(int argc, char **argv);
int ow_cli_flows(int argc, char **argv);
int ow_cli_lab(int argc, char **argv);
int ow_cli_live(int argc, char **argv);
int ow_cli_match(int argc, char **argv);
int ow_cli_plane(int argc, char **argv);
int ow_cli_point(int argc, char **argv);
int ow_cli_point_keygen(int argc, char **argv); /* argv[0] is "keygen" */
int ow_cli_reproduce(int argc, char **argv);
int ow_cli_results(int argc, char **argv);
int ow_cli_simulate(int argc, char **argv);
int ow_cli_web(int argc, char **argv);

/* If --help or --version was given, prints it and returns true: the command then has nothing else to do. */
bool ow_cli_answered(bool help, bool version, void (*print_help)(void));
/*
 * Prints a line to standard error. Characters that are not printable become '?', so that names of files, classes and
 * interfaces cannot control the terminal.
 */
__attribute__((format(printf, 1, 2))) void ow_cli_say(const char *format, ...);
/* Prints "oneway COMMAND: TEXT" to standard error and returns the exit code for it. */
int ow_cli_failed(const char *command, const struct ow_error *err);
/* The same, with a hint to use --help. */
int ow_cli_misused(const char *command, const struct ow_error *err);
/*
 * One of the two, depending on the negative errno with which arguments were refused: a file that cannot be written is
 * not wrong usage.
 */
int ow_cli_refused(const char *command, int code, const struct ow_error *err);
