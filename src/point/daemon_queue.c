/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that waits for peers that do not read. It needs memory in addition to that of the lanes: not more than half of
 * the budget for long. After an outage the packets of all waiting intervals are sent at once, 24 of the 56 bytes that a
 * packet has in the budget: this much may wait, however slow the connection is. More has to be read within UNREAD_NS.
 */
#include "point/daemon_queue.h"

#include "point/daemon_private.h"

#include <stdio.h>

/* Close the connection when more than half of the memory budget waits, unread, for this long. */
#define UNREAD_NS INT64_C(5000000000)

static size_t note_progress(struct ow_daemon_link *link, int64_t steady_ns)
{
	struct ow_session_counts counts;
	size_t queued = ow_session_queued(link->session);
	ow_session_counts(link->session, &counts);
	if (queued == 0 || counts.bytes_out >= link->unread_end || link->unread_ns == 0) {
		link->unread_end = counts.bytes_out + queued;
		link->unread_ns = steady_ns;
	}
	return queued;
}

void ow_daemon_queues_bound(struct ow_daemon *daemon, int64_t steady_ns)
{
	uint64_t sum = 0, most = 0, limit = daemon->config->memory / 2;
	struct ow_daemon_link *worst = NULL;
	for (unsigned i = 0; i < daemon->peer_count; i++) {
		struct ow_daemon_link *link = daemon->peers[i]->link;
		if (!link || link->broken)
			continue;
		size_t queued = note_progress(link, steady_ns);
		sum += queued;
		if (queued > most && steady_ns - link->unread_ns > UNREAD_NS) {
			most = queued;
			worst = link;
		}
	}
	if (worst && sum > limit) {
		char why[128];
		snprintf(why, sizeof why, "the peer does not read: %.1f MiB wait for it", (double)most / (1 << 20));
		ow_daemon_link_break(worst, why);
	}
}
