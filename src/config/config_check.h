/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/* Checks of the entries of a configuration against each other. For config/config.c. */

/* Everything but the segments. */
int ow_config_check_top(const struct ow_config *config, bool has_segments, bool has_flows, struct ow_error *err);
int ow_config_check_segments(const struct ow_config *config, struct ow_error *err);
