/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A thread that writes items to a file. Callers never wait for the disk. Items go from the caller into a bounded queue,
 * from there into the batch of the thread, and they leave the batch when they are written. After a failure the thread
 * tries again until it succeeds. The owner says how a batch is written.
 */
struct ow_retry_writer;

struct ow_retry_writer_options {
	size_t item_size;
	size_t waiting_max; /* items in the queue, besides the batch */
	size_t batch_max;
	int64_t delay_ns;               /* an item may wait this long for others of its batch */
	int64_t retry_ns, retry_max_ns; /* after a failure; twice as long after each further one */
	void *owner;
	/* These run in the thread, without a lock. write: writes items and removes them (ow_retry_writer_remove);
	 * returns 0 if none is left. */
	int (*write)(void *owner, void *items, size_t count, struct ow_error *err);
	/* A write failed. first: the one before did not. */
	void (*failed)(void *owner, int code, const struct ow_error *why, bool first);
	/* A batch was written. failed_ns: how long writing had failed before; 0 = it had not. */
	void (*worked)(void *owner, int64_t failed_ns);
	/* Other work on the file. Returns when it is due next. NULL = there is none. */
	int64_t (*maintain)(void *owner, int64_t now_ns, bool failing);
};

/* 0 or -ENOMEM. There is no thread before ow_retry_writer_start. */
int ow_retry_writer_create(const struct ow_retry_writer_options *options, struct ow_retry_writer **ret_writer);
/* 0 or a negative errno. */
int ow_retry_writer_start(struct ow_retry_writer *writer);
/* Tries once to write all that waits, and ends the thread. */
void ow_retry_writer_stop(struct ow_retry_writer *writer);
void ow_retry_writer_free(struct ow_retry_writer *writer);

/* Copies the item into the queue. -ENOSPC: the queue is full; -ENOMEM. */
int ow_retry_writer_add(struct ow_retry_writer *writer, const void *item);
/* Moves the oldest item out of the queue, and after the stop also out of the batch. false = there is none. */
bool ow_retry_writer_take(struct ow_retry_writer *writer, void *ret_item);
/* All items so far are to be written now. */
void ow_retry_writer_hurry(struct ow_retry_writer *writer);

struct ow_retry_writer_state {
	bool failing;
	uint64_t written;
	size_t waiting; /* in the queue and in the batch */
};
void ow_retry_writer_state(struct ow_retry_writer *writer, struct ow_retry_writer_state *ret_state);

/* A line for the log. While too many wait to be read, further ones are dropped. */
void ow_retry_writer_tell(struct ow_retry_writer *writer, const struct ow_error *line);
bool ow_retry_writer_news(struct ow_retry_writer *writer, struct ow_error *ret_line);

/* For the owner's functions, and before the start. The clock of the thread: it also runs while the host sleeps. */
int64_t ow_retry_writer_now_ns(void);
/* Removes items from the batch, whether written or given up. Returns how many are left. */
size_t ow_retry_writer_remove(struct ow_retry_writer *writer, size_t first, size_t count, bool written);
/* Acts as if a write had failed now. */
void ow_retry_writer_fail(struct ow_retry_writer *writer, int code, const struct ow_error *why);
