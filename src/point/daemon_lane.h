/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/exchange.h"
#include "point/daemon_group.h"
#include "point/daemon_peer.h"
#include "point/identity_survey.h"
#include "point/segment_clock.h"
#include "point/session_filter.h"
#include "record/lane_log.h"

/* A lane and its life: a class of traffic in one direction of a segment. */
enum ow_daemon_lane_state {
	OW_LANE_PROPOSED, /* waits for OPENED */
	OW_LANE_REFUSED,
	OW_LANE_ASKED, /* proposed by the peer; to be started */
	OW_LANE_RUNNING,
	OW_LANE_FINISHING, /* records no more; waits for the last answers */
};

/* A survey of the identity of a lane's packets (point/daemon_identity.h). */
struct ow_daemon_survey {
	uint64_t seed; /* 0 = there is none */
	struct ow_identity_survey *running;
	struct ow_survey_samples here, there;
	bool has_here, has_there;
	int64_t until_ns; /* steady time when the proposer gives it up */
	int64_t asked_ns; /* steady time when the peer last asked for one; 0 = never */
};

struct ow_daemon_lane {
	struct ow_daemon *daemon;
	struct ow_daemon_peer *peer;
	const struct ow_config_segment *segment; /* NULL = a reload has ended it */
	struct ow_daemon_group *group;           /* the packets go to several peers; NULL = to one */
	struct ow_message_open open;             /* as agreed on, but for the seeds: */
	uint64_t identity_seed, synopsis_seed;
	const char *filter;    /* of this point: points into the configuration or `open` */
	unsigned instructions; /* of a filter in `open` */
	int64_t agreed_ns;     /* steady time of the agreement */
	unsigned late_answers; /* number of OPENEDs with a t0 that had passed */
	/* Matches the points' session, where that is left out; else "". */
	char session_filter[OW_SESSION_FILTER];
	bool sending;
	uint32_t wire; /* its number in messages */
	enum ow_daemon_lane_state state;
	struct ow_identity identity;
	uint64_t granted;        /* bytes of the budget */
	struct ow_lane_log *log; /* NULL = nothing is recorded */
	struct ow_exchange *exchange;
	struct ow_segment_clock *clock; /* shared by the two lanes of a class; NULL = not started */
	int64_t next;                   /* the next interval to close */
	int64_t until;                  /* last interval of the run; INT64_MAX = none yet */
	bool judged;                    /* a packet matched, or it was logged that none does */
	bool doubtful;                  /* results suggest another identity */
	double rate;                    /* packets in a nanosecond, of the last result */
	struct ow_daemon_survey survey;
	char why[OW_MESSAGE_TEXT]; /* reason of the end */
	int64_t stepped_ns;        /* clock steps since the agreement; the lane's own clock continues without them */
};

struct ow_daemon_lane *ow_daemon_lane_of_wire(struct ow_daemon_peer *peer, uint32_t wire);
/* NULL if there is no memory, or there are too many. */
struct ow_daemon_lane *ow_daemon_lane_add(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                          const struct ow_message_open *open, uint32_t wire, bool sending);
/* The clock without the steps since the agreement. */
int64_t ow_daemon_lane_now_ns(const struct ow_daemon_lane *lane);
/* The filter without the points' session, if the class has none; "" = unchanged. */
int ow_daemon_lane_session(const struct ow_daemon_lane *lane, char *text, size_t size);
/* The packets of the lane, for the recorder. */
void ow_daemon_lane_options(const struct ow_daemon_lane *lane, struct ow_lane_options *ret_options);
enum ow_variant ow_daemon_lane_variant(const struct ow_daemon_lane *lane);
/* Ends a survey, if there is one. */
void ow_daemon_lane_unsurvey(struct ow_daemon_lane *lane);
/* Starts recorder, interval log and exchange, by `open`. On failure the caller removes the lane. */
int ow_daemon_lane_start(struct ow_daemon_lane *lane, struct ow_error *err);
/* Reduces its part of the budget to this. */
void ow_daemon_lane_shrink(struct ow_daemon_lane *lane, uint64_t bytes);
/* Ends recording. */
void ow_daemon_lane_deafen(struct ow_daemon_lane *lane);
/* Reports the sum of its results. */
void ow_daemon_lane_total(struct ow_daemon_lane *lane);
void ow_daemon_lane_remove(struct ow_daemon_lane *lane);
/* Gives up everything that is not answered, reports the sum and removes the lane. */
void ow_daemon_lane_end(struct ow_daemon_lane *lane, const char *cause);
/*
 * Ends all lanes of a peer that will not answer any more. cause_of_peer: a text of result/cause.h whose parameter is
 * the peer.
 */
void ow_daemon_lanes_end(struct ow_daemon_peer *peer, const char *cause_of_peer);
void ow_daemon_lanes_free(struct ow_daemon *daemon);
/* Whether a peer has lanes, and whether any of them has ended and still waits for answers. */
bool ow_daemon_lanes_any(const struct ow_daemon_peer *peer);
bool ow_daemon_lanes_ending(const struct ow_daemon_peer *peer);
/* "x/all to paris" */
#define OW_LANE_TEXT (3 * OW_RESULT_NAME + 16)
void ow_daemon_lane_text(const struct ow_daemon_lane *lane, char text[OW_LANE_TEXT]);
