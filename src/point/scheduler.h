/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Wakes a thread: by file descriptors, and by a timer. It does not know their meaning: the watcher of a descriptor
 * gives the function to call. Events are handled one at a time, so that no event can be about a descriptor that the
 * previous one closed.
 */
struct ow_watch {
	/* Called when the descriptor is ready. A negative errno ends the loop. */
	int (*ready)(void *arg, struct ow_error *err);
	void *arg;
	int fd;       /* -1 = none */
	short events; /* POLLIN, POLLOUT */
};

struct ow_scheduler {
	int epoll_fd;
	struct ow_watch timer;
};

/* Calls `tick` every tick_ns. ow_scheduler_close must be called also after a failure. */
int ow_scheduler_open(struct ow_scheduler *scheduler, int64_t tick_ns, int (*tick)(void *arg, struct ow_error *err),
                      void *arg, struct ow_error *err);
void ow_scheduler_close(struct ow_scheduler *scheduler);

/* The caller keeps the watch, which must stay in place. Does nothing if it has no descriptor. */
int ow_scheduler_add(struct ow_scheduler *scheduler, struct ow_watch *watch, struct ow_error *err);
/* Watches for other events. 0 or a negative errno. */
int ow_scheduler_change(struct ow_scheduler *scheduler, struct ow_watch *watch, short events);
void ow_scheduler_remove(struct ow_scheduler *scheduler, struct ow_watch *watch);

/* Sleeps until something is ready (at_once: does not sleep). *ret_ready: to be called; NULL = nothing. */
int ow_scheduler_wait(struct ow_scheduler *scheduler, bool at_once, struct ow_watch **ret_ready, struct ow_error *err);
