/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/watch.h"
#include <oneway/error.h>

/*
 * Results that wait until the others of their interval have come. They leave in the order of their ends. Of several
 * results of a place for one interval (both points have stored it) the one that knows most counts.
 */
struct ow_wait;

int ow_wait_create(struct ow_wait **ret_wait);
void ow_wait_free(struct ow_wait *wait);
/* place stays the caller's, and must stay where it is. now_ns: by the steady clock. -E2BIG, -ENOMEM. */
int ow_wait_add(struct ow_wait *wait, const char *place, const struct ow_watch_sample *sample, int64_t now_ns,
                struct ow_error *err);

/* The next result whose interval is complete: two newer ones have begun, or it has waited long enough; with `all` each.
 * The cause is valid until the next result is added. False: there is none. */
bool ow_wait_next(struct ow_wait *wait, bool all, int64_t now_ns, const char **ret_place,
                  struct ow_watch_sample *ret_sample);
