/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Connections whose peer is not authenticated yet. Anybody can open any number of them: there are slots for a few, a
 * flooding host displaces only its own, and all together they get a share of the time.
 */
#define OW_UNAUTHENTICATED_MAX 64

struct ow_daemon;
struct ow_daemon_link;

struct ow_unauthenticated {
	struct ow_daemon_link *link[OW_UNAUTHENTICATED_MAX];
	int64_t spent_ns, spent_at_ns; /* time used beyond their share, at this steady time */
	bool deaf;                     /* their share is used up: they are not read */
};

/*
 * Adds a connection. If there is no slot, returns the oldest one of the host with most connections, which the caller
 * drops.
 */
struct ow_daemon_link *ow_unauthenticated_add(struct ow_daemon_link *link);
void ow_unauthenticated_remove(struct ow_daemon_link *link);
/* Charges this time to them, and reads from them as far as their share allows. */
void ow_unauthenticated_spend(struct ow_daemon *daemon, int64_t steady_ns, int64_t spent_ns);
/* A connection is refused: counts it by the way it ended. */
void ow_unauthenticated_refuse(struct ow_daemon *daemon, int code);
