/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/store.h"
#include <stddef.h>

/*
 * A store that never blocks its caller: a thread writes, results that it cannot write wait in memory, and it tries
 * again until it succeeds. It also deletes results beyond the limits. Full and read-only disks, locks and a removed
 * file do not affect the caller; ow_store_writer_news reports them.
 */
struct ow_store_writer;

struct ow_store_writer_options {
	const char *path;
	struct ow_store_limits limits;
	/* Number of results that may wait; beyond it the oldest are dropped. 0: OW_STORE_WRITER_WAITING. */
	size_t waiting_max;
};
#define OW_STORE_WRITER_WAITING 8192

/*
 * Opens the store. Errors that an administrator has to correct are returned at once: a file of another program or of a
 * newer version, a folder that does not exist or cannot be written. All others are retried, and reported as news.
 */
int ow_store_writer_create(const struct ow_store_writer_options *options, struct ow_store_writer **ret_writer,
                           struct ow_error *err);
/* Writes the waiting results, if possible, and ends the thread. State and news are available afterwards. */
void ow_store_writer_stop(struct ow_store_writer *writer);
void ow_store_writer_free(struct ow_store_writer *writer);

/* Takes a copy. Never waits for the disk. */
void ow_store_writer_add(struct ow_store_writer *writer, const struct ow_interval_result *result);
void ow_store_writer_add_event(struct ow_store_writer *writer, const struct ow_flow_event *event);
/* Takes a copy of the bytes. A sample that cannot be kept or written is dropped: the next one comes soon. */
void ow_store_writer_add_sample(struct ow_store_writer *writer, const struct ow_sample_row *sample);
/* All results so far are to be committed together now. Without this call they are committed after a second. */
void ow_store_writer_commit(struct ow_store_writer *writer);
/* Sets other limits. */
void ow_store_writer_limit(struct ow_store_writer *writer, const struct ow_store_limits *limits);

struct ow_store_writer_state {
	bool failing;
	uint64_t stored; /* results written */
	/* final results that were dropped before they could be written, or could not be written at all */
	uint64_t lost;
	size_t waiting;
};
void ow_store_writer_state(struct ow_store_writer *writer, struct ow_store_writer_state *ret_state);

/* A line for the log, if there is one: when the store begins to fail, and when it works again. */
bool ow_store_writer_news(struct ow_store_writer *writer, struct ow_error *ret_line);
