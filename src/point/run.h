/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "report/style.h"

struct ow_point_run {
	enum ow_config_output output;
	bool provisional;
	struct ow_style style; /* of standard output */
	int64_t run_ns;        /* 0 = until it is stopped */
};

/* The point ended because a new configuration of its fleet needs it to be started again. */
#define OW_POINT_RESTART 1

/*
 * Drops privileges, runs the point, and passes results and events to their outputs. After SIGHUP the configuration is
 * read again: *config is then another one.
 */
int ow_point_run(const struct ow_point_run *how, struct ow_config **config, struct ow_error *err);
