/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/* Refuses values out of range and options that contradict each other; the message names the options. */
int ow_sim_check(const struct ow_sim_options *options, struct ow_error *err);
/* The same of what does not depend on the two sides. */
int ow_sim_check_traffic(const struct ow_sim_options *options, struct ow_error *err);
/*
 * Fills in values that the options leave open. ret_linktype: of frames that pass unchanged, else -1. ret_end_ns: when the
 * last packet is sent, if a side ends early; else INT64_MAX, or the end of the traffic file.
 */
int ow_sim_resolve(struct ow_sim_options *options, int *ret_linktype, int64_t *ret_end_ns, struct ow_error *err);
