/* SPDX-License-Identifier: Apache-2.0 */
#include "point/daemon_unauthenticated.h"

#include "point/daemon_events.h"
#include "point/daemon_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* They get at most one part in this many of the time; with a reserve, so that a few can connect at once. */
#define SHARE      4
#define RESERVE_NS INT64_C(50000000)

/* Its slot; NULL = it has none. For NULL: a free one. */
static struct ow_daemon_link **place_of(struct ow_unauthenticated *u, const struct ow_daemon_link *link)
{
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (u->link[i] == link)
			return &u->link[i];
	}
	return NULL;
}

void ow_unauthenticated_remove(struct ow_daemon_link *link)
{
	struct ow_daemon_link **place = place_of(&link->daemon->unauthenticated, link);
	if (place)
		*place = NULL;
}

void ow_unauthenticated_refuse(struct ow_daemon *daemon, int code)
{
	ow_daemon_refused(daemon,
	                  code == -EACCES      ? OW_REFUSED_IDENTITY
	                  : code == -EPROTO    ? OW_REFUSED_PROTOCOL
	                  : code == -ETIMEDOUT ? OW_REFUSED_TIMEOUT
	                  : code == -EBUSY     ? OW_REFUSED_BUSY
	                                       : OW_REFUSED_CLOSED,
	                  NULL);
}

/* The address without its port. */
static bool same_host(const struct ow_daemon_link *a, const struct ow_daemon_link *b)
{
	const char *end = strrchr(a->address, ':');
	size_t length = end ? (size_t)(end - a->address) + 1 : strlen(a->address);
	return strncmp(a->address, b->address, length) == 0;
}

/* The oldest connection of the host that has most connections here. All slots are in use. */
static struct ow_daemon_link *crowd(const struct ow_unauthenticated *u)
{
	struct ow_daemon_link *worst = NULL;
	unsigned most = 0;
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		unsigned here = 0;
		for (unsigned k = 0; k < OW_UNAUTHENTICATED_MAX; k++)
			here += same_host(u->link[i], u->link[k]);
		if (here > most || (here == most && worst && u->link[i]->since_ns < worst->since_ns)) {
			most = here;
			worst = u->link[i];
		}
	}
	return worst;
}

struct ow_daemon_link *ow_unauthenticated_add(struct ow_daemon_link *link)
{
	struct ow_unauthenticated *u = &link->daemon->unauthenticated;
	struct ow_daemon_link **place = place_of(u, NULL), *displaced = NULL;
	if (!place) {
		displaced = crowd(u);
		place = place_of(u, displaced);
	}
	*place = link;
	return displaced;
}

static void listen_to_them(struct ow_daemon *d, bool listens)
{
	d->unauthenticated.deaf = !listens;
	(void)ow_scheduler_change(&d->scheduler, &d->listen, listens ? POLLIN : 0);
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (d->unauthenticated.link[i])
			(void)ow_daemon_link_watch(d->unauthenticated.link[i]);
	}
}

void ow_unauthenticated_spend(struct ow_daemon *d, int64_t steady_ns, int64_t spent_ns)
{
	struct ow_unauthenticated *u = &d->unauthenticated;
	int64_t earned = (steady_ns - u->spent_at_ns) / SHARE;
	u->spent_at_ns = steady_ns;
	u->spent_ns = (u->spent_ns > earned ? u->spent_ns - earned : 0) + spent_ns;
	if (!u->deaf && u->spent_ns > RESERVE_NS)
		listen_to_them(d, false);
	else if (u->deaf && u->spent_ns <= RESERVE_NS / 2)
		listen_to_them(d, true);
}
