/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* oneway --version [--json]: argv[0] is "--version". Returns the exit code. */
int ow_cli_version(int argc, char **argv);
