/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_POINT_H
#define OW_CLI_POINT_H

#include "config/config.h"

/* Prints what was understood of a configuration. */
void ow_point_show(const struct ow_config *config);

struct ow_point_run {
	enum ow_config_output output;
	bool provisional, no_color;
	int64_t run_ns; /* 0 = until it is stopped */
};

/* Gives up privileges, runs the point, sends results and events where they belong. SIGHUP reads the configuration
 * again: *config is then another one. */
int ow_point_run(const struct ow_point_run *how, struct ow_config **config, struct ow_error *err);

#endif
