/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon.h"

struct ow_daemon_peer;

void ow_daemon_log(struct ow_daemon *daemon, enum ow_event level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Logs an event of a peer: "PEER: ...", unless there are too many. */
void ow_daemon_peer_log(struct ow_daemon_peer *peer, enum ow_event level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Refuses a message of a peer: counts it, and logs it unless there were too many lately. */
void ow_daemon_complain(struct ow_daemon_peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts a refusal; peer may be NULL. */
void ow_daemon_refused(struct ow_daemon *daemon, enum ow_refused what, const char *peer);
/* The connection with a peer was established or has ended. */
void ow_daemon_tell_peer(struct ow_daemon *daemon, const char *peer, bool connected);
void ow_daemon_result(struct ow_daemon *daemon, const struct ow_interval_result *result);
void ow_daemon_flow_event(struct ow_daemon *daemon, const struct ow_flow_event *event);
void ow_daemon_total(struct ow_daemon *daemon, const struct ow_interval_result *total);
/* Called after the last of several results. */
void ow_daemon_flush(struct ow_daemon *daemon);
