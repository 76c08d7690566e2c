/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the bytes of a capture come from that is still being written: a pipe, a command that is run (again), files that
 * grow. capture/iface/stream.c makes frames of them.
 */
struct ow_feed {
	const struct ow_feed_ops *ops;
	bool waits; /* nothing is lost if it is read later: files */
};

/* Results of a read besides the number of bytes. 0: there are none now. */
enum {
	OW_FEED_ENDED = -1000, /* for good */
	OW_FEED_CUT,           /* bytes may be missing; another capture begins with the next ones */
	OW_FEED_NEXT,          /* another capture begins with the next bytes, and nothing is missing: the next file */
};

struct ow_feed_ops {
	/* Never waits. Returns the number of bytes, one of the above, or a negative errno with err. */
	int (*read)(struct ow_feed *feed, uint8_t *buffer, size_t size, struct ow_error *err);
	/* Readable when a read may return something; -1 if nothing tells that. */
	int (*fd)(const struct ow_feed *feed);
	/* What has happened while there are no bytes: "was disconnected", "has not grown". */
	const char *(*why)(const struct ow_feed *feed);
	void (*free)(struct ow_feed *feed);
};

/* A pipe: a path, or - for standard input. A named pipe waits for its writer. */
int ow_feed_open_pipe(const char *path, struct ow_feed **ret_feed, struct ow_error *err);

/*
 * The standard output of a command. A process of its own, the supervisor, runs it; so this process may enter a sandbox that
 * forbids to run programs. When the command ends, it is started again after a second, later after up to half a minute.
 * What it writes to its standard error goes to ours, line by line, with `title` ("oneway live: a") in front. It has a
 * session of its own, no standard input and no terminal; when the feed is freed or this process ends, it is killed.
 *
 * command: words, quoted as for a shell, but no shell runs. Call it before there are threads.
 */
int ow_feed_open_command(const char *command, const char *title, struct ow_feed **ret_feed, struct ow_error *err);

/* Splits a command into words, a NULL behind them. free() frees both. -EINVAL with err: what only a shell can do. */
int ow_feed_split(const char *command, char ***ret_words, struct ow_error *err);

/*
 * Files that grow: a file, or the files of a folder or pattern (capture/file/file_set.h), one after the other in the order
 * of their first packets. New ones are read when they come; files may be renamed, replaced and truncated. Never ends.
 */
int ow_feed_open_files(const char *argument, struct ow_feed **ret_feed, struct ow_error *err);
