/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_LANE_H
#define OW_POINT_DAEMON_LANE_H

#include "exchange/exchange.h"
#include "point/daemon_peer.h"
#include "point/session_filter.h"
#include "record/lane_log.h"

/* A lane, and its life: a class of traffic that goes one way over a segment. */
enum ow_daemon_lane_state {
	OW_LANE_PROPOSED, /* waits for OPENED */
	OW_LANE_REFUSED,
	OW_LANE_ASKED, /* by the peer; to be started */
	OW_LANE_RUNNING,
	OW_LANE_FINISHING, /* no more pages; the last answers are on their way */
};

struct ow_daemon_lane {
	struct ow_daemon *daemon;
	struct ow_daemon_peer *peer;
	const struct ow_config_segment *segment; /* NULL = a reload has ended it */
	struct ow_message_open open;             /* as agreed on */
	const char *filter;                      /* of this point: into the configuration or `open` */
	unsigned instructions;                   /* of a filter in `open` */
	int64_t agreed_ns;                       /* steady */
	unsigned late_answers;                   /* OPENEDs with a t0 that had passed */
	/* Matches the points' session, where that is left out; else "". */
	char session_filter[OW_SESSION_FILTER];
	bool sending;
	uint32_t wire; /* its number in messages */
	enum ow_daemon_lane_state state;
	struct ow_identity identity;
	uint64_t granted;        /* bytes of the budget */
	struct ow_lane_log *log; /* NULL = nothing is recorded */
	struct ow_exchange *exchange;
	int64_t next;              /* interval whose page comes next */
	int64_t until;             /* last interval of the run; INT64_MAX = none yet */
	bool judged;               /* a packet was the same at both points, or it was said that none is */
	char why[OW_MESSAGE_TEXT]; /* of the end */
	int64_t stepped_ns; /* by which the clock was set since it was agreed on: the lane's own goes on as it was */
};

struct ow_daemon_lane *ow_daemon_lane_of_wire(struct ow_daemon_peer *peer, uint32_t wire);
/* NULL: no memory, or too many. */
struct ow_daemon_lane *ow_daemon_lane_add(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                          const struct ow_message_open *open, uint32_t wire, bool sending);
/* The clock as if it had not been set since the lane was agreed on. */
int64_t ow_daemon_lane_now_ns(const struct ow_daemon_lane *lane);
/* The filter without the points' session, if the class has none; "" = as it is. */
int ow_daemon_lane_session(const struct ow_daemon_lane *lane, char *text, size_t size);
/* Recorder, interval log and exchange, as `open` says. On failure the caller removes the lane. */
int ow_daemon_lane_start(struct ow_daemon_lane *lane, struct ow_error *err);
/* Not more than this share of the budget any more. */
void ow_daemon_lane_shrink(struct ow_daemon_lane *lane, uint64_t bytes);
/* Nothing more is recorded. */
void ow_daemon_lane_deafen(struct ow_daemon_lane *lane);
/* Tells the sum of its results. */
void ow_daemon_lane_total(struct ow_daemon_lane *lane);
void ow_daemon_lane_remove(struct ow_daemon_lane *lane);
/* Gives up on all that is not answered, tells the sum and removes it. */
void ow_daemon_lane_end(struct ow_daemon_lane *lane, const char *cause);
/* All of a peer that will not answer any more. cause_of_peer: a text of result/cause.h whose parameter is the peer. */
void ow_daemon_lanes_end(struct ow_daemon_peer *peer, const char *cause_of_peer);
void ow_daemon_lanes_free(struct ow_daemon *daemon);
/* Whether a peer has any, and whether any of them has come to its end and still waits for answers. */
bool ow_daemon_lanes_any(const struct ow_daemon_peer *peer);
bool ow_daemon_lanes_ending(const struct ow_daemon_peer *peer);
/* "x/all to paris" */
#define OW_LANE_TEXT (3 * OW_RESULT_NAME + 16)
void ow_daemon_lane_text(const struct ow_daemon_lane *lane, char text[OW_LANE_TEXT]);

#endif
