/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/parts.h"

/*
 * oneway completions SHELL: prints what the shell (bash, zsh, fish) needs to complete the commands of the table, their parts,
 * options, choices and files. All of it comes from the tables that the commands parse and print. argv[0] is
 * "completions". Returns the exit code.
 */
int ow_cli_completions(const struct ow_cli_part *commands, int argc, char **argv);
