/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks trust while a connection lasts: certificates expire, and a reload may bring another CA or key. A peer that
 * could no longer connect does not stay connected.
 */
#include "point/daemon_trust.h"

#include "base/time.h"
#include "point/daemon_events.h"
#include "point/daemon_private.h"
#include "result/cause.h"

#include <stdio.h>
#include <time.h>

/* How often a peer's certificate is checked again, because it may have expired. */
#define RECHECK_NS INT64_C(10000000000)
/* This point's own certificate: days before its expiry from which it is logged, and how often. */
#define EXPIRY_DAYS    30
#define EXPIRY_SAID_NS (24 * 3600 * INT64_C(1000000000))

static void check_link(struct ow_daemon_link *link, int64_t steady_ns)
{
	struct ow_error why;
	char cause[OW_RESULT_CAUSE];
	struct ow_daemon_peer *peer = link->peer;
	link->checked_ns = steady_ns;
	if (link->closing || link->broken || ow_session_check(link->session, link->daemon->keys->tls, &why) == 0)
		return;
	ow_daemon_log(link->daemon, OW_EVENT_WARNING, "%s: connection ended: %s", peer->name, why.text);
	ow_daemon_refused(link->daemon, OW_REFUSED_IDENTITY, peer->name);
	ow_daemon_lanes_end(peer, ow_cause_peer_untrusted);
	snprintf(cause, sizeof cause, ow_cause_peer_untrusted_because, peer->name, why.text);
	ow_daemon_gaps_explain(peer, cause);
	peer->known = false;
	ow_daemon_link_bye(link, why.text);
}

void ow_daemon_links_check(struct ow_daemon *d)
{
	int64_t now = ow_clock_steady_ns();
	for (unsigned i = 0; i < d->peer_count; i++) {
		if (d->peers[i]->link)
			check_link(d->peers[i]->link, now);
	}
}

static void say_expiry(struct ow_daemon *d, int64_t left_s)
{
	if (left_s <= 0)
		ow_daemon_log(d, OW_EVENT_ERROR, "the certificate of this point has expired: peers refuse it");
	else if (left_s < 2 * 24 * 3600)
		ow_daemon_log(d, OW_EVENT_WARNING, "the certificate of this point expires in %lld h",
		              (long long)(left_s / 3600));
	else
		ow_daemon_log(d, OW_EVENT_WARNING, "the certificate of this point expires in %lld days",
		              (long long)(left_s / (24 * 3600)));
}

static void look_at_own(struct ow_daemon *d, int64_t steady_ns)
{
	int64_t expiry_s = d->keys->tls ? ow_tls_expiry_s(d->keys->tls) : INT64_MAX;
	if (expiry_s == INT64_MAX || steady_ns < d->expiry_ns)
		return;
	int64_t left_s = expiry_s - (int64_t)time(NULL);
	/* In a fleet it is renewed in time; if that fails, the agent says so. */
	bool renewed = d->config->fleet.address && left_s > 0;
	if (renewed || left_s > EXPIRY_DAYS * 24 * 3600) {
		d->expiry_ns = steady_ns + RECHECK_NS;
		return;
	}
	say_expiry(d, left_s);
	/* The expiry itself is logged when it happens. */
	int64_t wait_ns =
		left_s > 0 && left_s < EXPIRY_SAID_NS / OW_NS_PER_S ? (left_s + 1) * OW_NS_PER_S : EXPIRY_SAID_NS;
	d->expiry_ns = steady_ns + wait_ns;
}

void ow_daemon_trust_tick(struct ow_daemon *d, int64_t steady_ns)
{
	struct ow_daemon_link *oldest = NULL;
	look_at_own(d, steady_ns);
	for (unsigned i = 0; i < d->peer_count; i++) {
		struct ow_daemon_link *link = d->peers[i]->link;
		if (link && link->ready && (!oldest || link->checked_ns < oldest->checked_ns))
			oldest = link;
	}
	if (oldest && steady_ns - oldest->checked_ns >= RECHECK_NS)
		check_link(oldest, steady_ns);
}
