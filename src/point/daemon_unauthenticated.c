/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections whose peer has not proved its name yet. Anybody can make them, as many as he likes: there is room for a
 * few, who floods it displaces himself, and all together they get a share of the time.
 */
#include "point/daemon_private.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

void ow_daemon_stranger_forget(struct ow_daemon_link *link)
{
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (link->daemon->strangers[i] == link)
			link->daemon->strangers[i] = NULL;
	}
}

void ow_daemon_stranger_refuse(struct ow_daemon *daemon, int code)
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

/* The oldest of the host that has most connections here. All places are taken. */
static struct ow_daemon_link *crowd(const struct ow_daemon *d)
{
	struct ow_daemon_link *worst = NULL;
	unsigned most = 0;
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		unsigned here = 0;
		for (unsigned k = 0; k < OW_UNAUTHENTICATED_MAX; k++)
			here += same_host(d->strangers[i], d->strangers[k]);
		if (here > most || (here == most && worst && d->strangers[i]->since_ns < worst->since_ns)) {
			most = here;
			worst = d->strangers[i];
		}
	}
	return worst;
}

static struct ow_daemon_link **free_place(struct ow_daemon *d)
{
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (!d->strangers[i])
			return &d->strangers[i];
	}
	return NULL;
}

void ow_daemon_stranger_add(struct ow_daemon_link *link)
{
	struct ow_daemon *d = link->daemon;
	struct ow_daemon_link **place = free_place(d);
	if (!place) {
		struct ow_daemon_link *out = crowd(d);
		out->code = -EBUSY;
		ow_daemon_link_drop(out, "too many connections are being made");
		place = free_place(d);
	}
	*place = link;
}

/* Time. */

static void listen_to_strangers(struct ow_daemon *d, bool listens)
{
	struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = &d->listen_fd};
	d->deaf = !listens;
	if (d->listen_fd >= 0)
		(void)epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->listen_fd, &event);
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (d->strangers[i])
			(void)ow_daemon_link_watch(d->strangers[i], EPOLL_CTL_MOD);
	}
}

void ow_daemon_strangers_spend(struct ow_daemon *d, int64_t steady_ns, int64_t spent_ns)
{
	int64_t earned = (steady_ns - d->strangers_at_ns) / OW_UNAUTHENTICATED_SHARE;
	d->strangers_at_ns = steady_ns;
	d->strangers_ns = (d->strangers_ns > earned ? d->strangers_ns - earned : 0) + spent_ns;
	if (!d->deaf && d->strangers_ns > OW_UNAUTHENTICATED_RESERVE_NS)
		listen_to_strangers(d, false);
	else if (d->deaf && d->strangers_ns <= OW_UNAUTHENTICATED_RESERVE_NS / 2)
		listen_to_strangers(d, true);
}

void ow_daemon_strangers_tend(struct ow_daemon *d, int64_t steady_ns)
{
	if (d->deaf)
		ow_daemon_strangers_spend(d, steady_ns, 0);
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		struct ow_daemon_link *link = d->strangers[i];
		if (!link)
			continue;
		bool late = link->closing && steady_ns - link->since_ns > OW_HELLO_NS;
		if (late || link->broken || steady_ns >= ow_session_deadline(link->session)) {
			link->broken |= late;
			ow_daemon_link_drive(link);
		} else if (!d->deaf && (link->closing || ow_session_queued(link->session) > 0)) {
			ow_daemon_link_drive(link);
		}
	}
}
