/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_PEER_H
#define OW_POINT_DAEMON_PEER_H

#include "config/config.h"
#include "point/daemon_link.h"

struct ow_daemon_peer {
	struct ow_daemon *daemon;
	char name[OW_POINT_NAME];
	char *connect; /* its own; NULL = it connects to us */
	struct ow_daemon_link *link;
	struct ow_dial *dial;          /* a connection that is being made, before there is a link; or NULL */
	int64_t retry_ns, next_try_ns; /* steady */
	char last_failure[200];        /* said once, not at every attempt */
	int64_t propose_ns;            /* steady: when what is missing is proposed again */
	bool known;                    /* it has said its epoch before */
	bool leaving;                  /* in no segment any more: until its lanes have ended */
	bool renew;                    /* a reload has changed segments: agree anew when the old lanes have ended */
	int64_t anew_ns;       /* steady: the clock was set; when to connect anew at the latest. 0 = it was not */
	unsigned complaints;   /* lines about it, */
	int64_t complained_ns; /* steady: since then */
	unsigned lines;        /* that were said beyond one a second */
	int64_t lines_ns;      /* steady: as of then; 0 = none yet */
	int64_t spent_ns, spent_at_ns; /* time that its lanes took to start, beyond its share, at this steady time */
	uint64_t epoch;
	uint32_t wire_max;    /* the highest lane that was ever proposed between us */
	int64_t hello_age_ns; /* of the HELLO that ahead_ns is from, when it was read: at most so much */
	int64_t round_trip_ns;
	int64_t ahead_ns; /* its clock less ours */
};

/* Waiting time before a second attempt to connect. */
#define OW_RETRY_FIRST_NS INT64_C(200000000)

struct ow_daemon_peer *ow_daemon_peer_find(const struct ow_daemon *daemon, const char *name);
/* Those of a configuration that are not there yet. */
int ow_daemon_peers_add(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err);
void ow_daemon_peer_free(struct ow_daemon_peer *peer);
/* Gives up a connection that is being made, if there is one. */
void ow_daemon_peer_hang_up(struct ow_daemon_peer *peer);
/* Says HELLO. */
void ow_daemon_peer_greet(struct ow_daemon_link *link);
void ow_daemon_peer_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);

#endif
