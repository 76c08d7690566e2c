/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_STORE_STORE_WRITER_H
#define OW_STORE_STORE_WRITER_H

#include "store/store.h"
#include <stddef.h>

/*
 * A store that never holds anybody up: a thread writes, what it cannot write waits in memory, and it tries again until
 * it can. It also deletes what is beyond the limits. Full and read-only disks, locks, a file that was taken away: the
 * caller does not notice, but ow_store_writer_news tells.
 */
struct ow_store_writer;

struct ow_store_writer_options {
	const char *path;
	struct ow_store_limits limits;
	/* Results that may wait; the oldest make room. 0: OW_STORE_WRITER_WAITING. */
	size_t waiting_max;
};
#define OW_STORE_WRITER_WAITING 8192

/*
 * Opens the store. What a person has to put right is an error at once: a file of another program or of a newer version,
 * a folder that is not there or may not be written. All else is tried again later, and told as news.
 */
int ow_store_writer_create(const struct ow_store_writer_options *options, struct ow_store_writer **ret_keeper,
                           struct ow_error *err);
/* Writes what waits, if that is possible, and ends the thread. State and news may be asked for afterwards. */
void ow_store_writer_stop(struct ow_store_writer *keeper);
void ow_store_writer_free(struct ow_store_writer *keeper);

/* Takes a copy. Never waits for the disk. */
void ow_store_writer_add(struct ow_store_writer *keeper, const struct ow_interval_result *result);
/* All results so far are to be written now: they are committed together. Without, after a second. */
void ow_store_writer_commit(struct ow_store_writer *keeper);
/* Other limits from now on. */
void ow_store_writer_limit(struct ow_store_writer *keeper, const struct ow_store_limits *limits);

struct ow_store_writer_state {
	bool failing;
	uint64_t stored; /* results written */
	uint64_t lost;   /* final results that had to make room before they could be written, or could not be at all */
	size_t waiting;
};
void ow_store_writer_state(struct ow_store_writer *keeper, struct ow_store_writer_state *ret_state);

/* A line for the log if there is one: when the store begins to fail, and when it works again. */
bool ow_store_writer_news(struct ow_store_writer *keeper, struct ow_error *ret_line);

#endif
