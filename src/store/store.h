/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"
#include "result/period.h"
#include <oneway/error.h>

/*
 * Live results in SQLite, in a schema that users can query (docs/store.md). A final result replaces the provisional
 * one. A lane has no holes: missing intervals before a result are stored as unknown, with the cause. Final results are
 * added up to minutes, hours and days (store_rollups.h).
 */
struct ow_store;

/* Creates the file if it does not exist. A file of another program or of a newer version is refused. */
int ow_store_open(const char *path, struct ow_store **ret_store, struct ow_error *err);
void ow_store_close(struct ow_store *store);
/* How long to wait for the lock of another program; the default is 2000 ms. */
void ow_store_busy(struct ow_store *store, int ms);
/*
 * Since when this process measures (default: since the store was opened), and the time in which it has lost results:
 * the causes of missing intervals.
 */
void ow_store_since(struct ow_store *store, int64_t since_ns);
void ow_store_missed(struct ow_store *store, int64_t from_ns, int64_t until_ns);
/*
 * Adds a result to a transaction, which is committed by ow_store_commit, or automatically after OW_STORE_BATCH results.
 * On failure all results since the last commit are not stored; the next call starts a new transaction.
 */
int ow_store_add(struct ow_store *store, const struct ow_interval_result *result, struct ow_error *err);
/* The same for an event of flows. */
int ow_store_add_event(struct ow_store *store, const struct ow_flow_event *event, struct ow_error *err);
struct ow_sample_row;
/* The same for a sample of packets (store/sample_row.h). */
int ow_store_add_sample(struct ow_store *store, const struct ow_sample_row *sample, struct ow_error *err);
int ow_store_commit(struct ow_store *store, struct ow_error *err);
#define OW_STORE_BATCH 1000
/* If space is short: writes the log into the file, where most of it replaces existing pages, and empties it. */
int ow_store_relieve(struct ow_store *store);
/* Adds to a number in table meta. */
int ow_store_count(struct ow_store *store, const char *key, uint64_t more, struct ow_error *err);

/* The limits of a store; 0 = no limit. */
struct ow_store_limits {
	int64_t retention_ns[OW_PERIODS]; /* results, minutes, hours and days that began longer ago are deleted */
	uint64_t max_bytes; /* above this size the oldest are deleted, of all in proportion to these times */
};
/*
 * Commits, and deletes some of the results beyond the limits. 1: there may be more, 0: all is within the limits, or a
 * negative errno.
 */
int ow_store_trim(struct ow_store *store, const struct ow_store_limits *limits, int64_t now_ns, struct ow_error *err);
/*
 * Before a process ends: adds up the minute that is not over, too. If the lane goes on within it, it is added up again.
 */
int ow_store_finish(struct ow_store *store, int64_t now_ns, struct ow_error *err);
