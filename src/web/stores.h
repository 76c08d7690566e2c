/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored.h"

/* A few readers of one store for many threads. A store that was replaced, or a server that was away, is opened again. */
#define OW_STORES 4

struct ow_stores;

/* Opens it once: -ENOENT and others say that there is none. */
int ow_stores_create(const char *path, struct ow_stores **ret_stores, struct ow_error *err);
void ow_stores_free(struct ow_stores *stores);
/* Waits for one that is free. -EBUSY: not within `wait_ns`. */
int ow_stores_take(struct ow_stores *stores, int64_t wait_ns, struct ow_stored **ret_stored, struct ow_error *err);
/* failed: an error may be one of the connection or the file, so it is not used again. */
void ow_stores_give(struct ow_stores *stores, struct ow_stored *stored, bool failed);
