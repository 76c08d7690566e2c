/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/* Refuses values out of range and options that contradict each other; the message names the options. */
int ow_sim_check(const struct ow_sim_options *options, struct ow_error *err);
