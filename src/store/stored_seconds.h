/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored.h"

/*
 * Results of intervals that a database of a fleet does not have: minutes come to it always, intervals on request, and if
 * they are unusual.
 */
struct ow_stored_lack {
	int64_t since_ns, until_ns; /* whole minutes */
	bool certain;               /* minutes say that there are more; otherwise it is the time after the last one */
};
/* What is lacking of a lane in [since_ns, until_ns): 1 and *ret_lack, or 0. */
int ow_stored_lack(const struct ow_stored *stored, const struct ow_stored_lane *lane, int64_t since_ns,
                   int64_t until_ns, struct ow_stored_lack *ret_lack, struct ow_error *err);
/* Final results of intervals of a lane that begin in [since_ns, until_ns). */
int ow_stored_count(const struct ow_stored *stored, const struct ow_stored_lane *lane, int64_t since_ns,
                    int64_t until_ns, uint64_t *ret_rows, struct ow_error *err);
