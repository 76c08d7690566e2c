/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SANDBOX_PRIVILEGES_H
#define OW_SANDBOX_PRIVILEGES_H

#include <oneway/error.h>
#include <stdbool.h>

/*
 * What a capturing process may do. Opening packet sockets needs CAP_NET_RAW, and nothing else needs anything: so all
 * other privileges go before the first file of a user's choice is opened, and this one when the sockets are open. Both
 * are for the calling thread and those that it starts later: to be called before there are others.
 */

/*
 * Becomes `user` (if not NULL and not that already; without any further groups), and gives up every capability but
 * CAP_NET_RAW (and CAP_NET_ADMIN, if asked for: setting up an interface's own timestamps). Nothing that is executed
 * later gets any. -EPERM: only root can become somebody else.
 */
int ow_privileges_reduce(const char *user, bool net_admin, struct ow_error *err);
/* Gives up the rest. */
int ow_privileges_drop(struct ow_error *err);

/* Whether there is such a user. */
bool ow_user_exists(const char *user);

#endif
