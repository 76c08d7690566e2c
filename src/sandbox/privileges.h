/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>

/*
 * Privileges of a capturing process. Opening packet sockets needs CAP_NET_RAW; nothing else needs a privilege. So the
 * process gives up all other privileges before it opens the first file that a user chose, and CAP_NET_RAW when the
 * sockets are open. Both functions apply to the calling thread and to threads that it starts later, so call them before
 * other threads exist.
 */

/* What else than packet sockets is opened. */
enum ow_privileges_for {
	OW_PRIVILEGES_STAMPS = 1, /* to set up the timestamps of an interface: CAP_NET_ADMIN */
	OW_PRIVILEGES_KERNEL = 2, /* to record in the kernel: CAP_BPF and CAP_PERFMON */
};

/*
 * Changes to `user` (if not NULL and not already that user; without supplementary groups), and gives up every
 * capability except CAP_NET_RAW and those of `also` (enum ow_privileges_for). Programs that are executed later get none.
 * -EPERM: only root can change the user.
 */
int ow_privileges_reduce(const char *user, unsigned also, struct ow_error *err);
/* Gives up the remaining privileges. */
int ow_privileges_drop(struct ow_error *err);

/* Whether such a user exists. */
bool ow_user_exists(const char *user);
