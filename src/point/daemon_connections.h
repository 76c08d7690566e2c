/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon_link.h"

/* Accepts waiting connections; fits as ready of struct ow_watch. */
int ow_daemon_accept(void *daemon, struct ow_error *err);
/* Ends a connection, with a line in the log. */
void ow_daemon_link_drop(struct ow_daemon_link *link, const char *why);
/* Connects if it is time to, sends PING to silent peers, sends queued data, drops broken links. */
void ow_daemon_links_tend(struct ow_daemon *daemon, int64_t steady_ns);
void ow_daemon_links_free(struct ow_daemon *daemon);
