/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_UNAUTHENTICATED_H
#define OW_POINT_DAEMON_UNAUTHENTICATED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Connections whose peer has not proved its name yet. Anybody can make them, as many as he likes: there is room for a
 * few, a flooding host displaces its own, and all together they get a share of the time.
 */
#define OW_UNAUTHENTICATED_MAX 64

struct ow_daemon;
struct ow_daemon_link;

struct ow_unauthenticated {
	struct ow_daemon_link *link[OW_UNAUTHENTICATED_MAX];
	int64_t spent_ns, spent_at_ns; /* time spent on them beyond their share, at this steady time */
	bool deaf;                     /* their share is used up: they are not heard */
};

/* Takes a new one in. Where there is no room the oldest of the host that has most of them goes: the caller drops it. */
struct ow_daemon_link *ow_unauthenticated_add(struct ow_daemon_link *link);
void ow_unauthenticated_remove(struct ow_daemon_link *link);
/* They took so long. Listens to them as their share allows. */
void ow_unauthenticated_spend(struct ow_daemon *daemon, int64_t steady_ns, int64_t spent_ns);
/* A connection is refused: counted by how it ended. */
void ow_unauthenticated_refuse(struct ow_daemon *daemon, int code);

#endif
