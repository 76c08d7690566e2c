/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_STORE_H
#define OW_REPORT_STORE_H

#include "estimate/live.h"
#include <oneway/error.h>

/* Live results in SQLite, in a schema that people can query (docs/store.md). A final result replaces the provisional
 * one. */
struct ow_store;

/* Creates the file if it is not there. A file of another program or of a newer version is refused. */
int ow_store_open(const char *path, struct ow_store **ret_store, struct ow_error *err);
void ow_store_close(struct ow_store *store);
/* In a transaction that is committed by ow_store_commit, or by itself after OW_STORE_BATCH results. */
int ow_store_add(struct ow_store *store, const struct ow_live_result *result, struct ow_error *err);
int ow_store_commit(struct ow_store *store, struct ow_error *err);
#define OW_STORE_BATCH 1000

#endif
