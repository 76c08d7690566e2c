/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"
#include "cli/options.h"

/* The parts of oneway fleet. */
int ow_cli_fleet_apply(int argc, char **argv);
int ow_cli_fleet_enroll(int argc, char **argv);
int ow_cli_fleet_follow(int argc, char **argv);
int ow_cli_fleet_init(int argc, char **argv);
int ow_cli_fleet_load(int argc, char **argv);
int ow_cli_fleet_map(int argc, char **argv);
int ow_cli_fleet_revoke(int argc, char **argv);
int ow_cli_fleet_serve(int argc, char **argv);
int ow_cli_fleet_status(int argc, char **argv);

/* The option of all parts but init: the folder of the fleet. The target has const char *dir. */
#define OW_OPTION_DIR(type)                                                                                      \
	{                                                                                                        \
		"dir", 'd', "DIR", ow_option_text, offsetof(type, dir),                                          \
			"Folder of the fleet. Default: the current folder if it is one, else /etc/oneway/fleet." \
	}
/* The folder that is meant. */
const char *ow_cli_fleet_dir(const char *given);
