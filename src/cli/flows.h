/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of `oneway flows`. argv[0] is the part's name. */
int ow_cli_flows_list(int argc, char **argv);
int ow_cli_flows_record(int argc, char **argv);
int ow_cli_flows_query(int argc, char **argv);
int ow_cli_flows_size(int argc, char **argv);
