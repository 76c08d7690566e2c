/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "point/daemon_link.h"

struct ow_daemon_peer {
	struct ow_daemon *daemon;
	char name[OW_POINT_NAME];
	char *connect; /* a copy; NULL = the peer connects */
	struct ow_daemon_link *link;
	struct ow_dial *dial;          /* a connection attempt, before there is a link; or NULL */
	int64_t retry_ns, next_try_ns; /* steady */
	char last_failure[200];        /* logged once, not at every attempt */
	int64_t propose_ns;            /* steady time when missing lanes are proposed again */
	bool known;                    /* its epoch is known */
	bool leaving;                  /* in no segment any more: stays until its lanes have ended */
	bool renew;                    /* a reload has changed segments: agree again when the old lanes have ended */
	int64_t anew_ns;       /* steady time of the latest reconnection after a clock step; 0 = there was none */
	unsigned complaints;   /* number of lines about it, */
	int64_t complained_ns; /* since this steady time */
	unsigned lines;        /* lines that were logged beyond one per second */
	int64_t lines_ns;      /* as of this steady time; 0 = none yet */
	int64_t spent_ns, spent_at_ns; /* time that its lanes took to start, beyond its share, at this steady time */
	uint64_t epoch;
	uint32_t wire_max;    /* the highest lane number that was ever proposed */
	int64_t hello_age_ns; /* largest age of the HELLO that gave ahead_ns, when it was read */
	int64_t round_trip_ns;
	int64_t ahead_ns; /* its clock minus ours */
	bool same_clock;  /* both points have one clock */
};

/* Time before the second attempt to connect. */
#define OW_RETRY_FIRST_NS INT64_C(200000000)

struct ow_daemon_peer *ow_daemon_peer_find(const struct ow_daemon *daemon, const char *name);
/* Adds the peers of a configuration that do not exist yet. */
int ow_daemon_peers_add(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err);
void ow_daemon_peer_free(struct ow_daemon_peer *peer);
/* Ends a connection attempt, if there is one. */
void ow_daemon_peer_hang_up(struct ow_daemon_peer *peer);
/* Sends HELLO. */
void ow_daemon_peer_greet(struct ow_daemon_link *link);
void ow_daemon_peer_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);
