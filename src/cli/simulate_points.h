/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/points.h"

/* The options --point and --hop of `simulate`, in the order in which they were given: that of the path. */

#define OW_PLACES_MAX (2 * OW_SIM_POINTS)

struct ow_simulate_places {
	struct ow_simulate_place {
		bool hop;
		const char *text;
	} place[OW_PLACES_MAX];
	unsigned count;
};

/* Setters of the options; the field is a struct ow_simulate_places. */
int ow_option_sim_point(void *field, const char *value, struct ow_error *err);
int ow_option_sim_hop(void *field, const char *value, struct ow_error *err);

/* The path. Hops have the delay, loss, ... of the options unless they say otherwise. */
int ow_simulate_points(const struct ow_simulate_places *places, const struct ow_sim_options *options,
                       struct ow_sim_points *ret_points, struct ow_error *err);

/* For --help. */
extern const char ow_simulate_points_help[];

/* "20ppm", "500ppb"; the field is a double, ppb. */
int ow_option_drift(void *field, const char *value, struct ow_error *err);
