/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time.h"
#include "point/identity_survey.h"
#include "point/local_pair.h"
#include "reconcile/running_copies.h"
#include "reconcile/shared_flows.h"
#include "point/interval_match.h"
#include "point/point_clock.h"
#include "point/segment_clock.h"
#include "point/stream_sides.h"
#include "record/lane_log.h"

/*
 * The pair, for its own files. Each calls only those below it:
 *
 *   local_pair.c         takes what the recorder has, compares intervals
 *   local_pair_clock.c   a clock that is set
 *   local_pair_open.c    setting up
 *   local_pair_identity.c   what makes a packet the same at both interfaces
 *   local_pair_lane.c    a lane: its interval logs, its results
 */

/* Recorded before the first interval, so that packets that were sent up to this long before it are known. */
#define OW_LOCAL_PAIR_LEAD_NS (200 * OW_NS_PER_MS)
/* Lanes are set up before the first interval begins. */
#define OW_LOCAL_PAIR_SETUP_NS (20 * OW_NS_PER_MS)

enum { OW_LOCAL_PAIR_FROM, OW_LOCAL_PAIR_TO, OW_LOCAL_PAIR_SIDES }; /* sources */
enum { OW_LOCAL_PAIR_SENDER, OW_LOCAL_PAIR_RECEIVER };              /* logs of a lane */

struct ow_local_pair_log {
	struct ow_lane_log *recorded;
	struct ow_interval_packets *packets; /* packets of a closed interval, not compared yet */
	uint64_t misplaced;                  /* number reported so far */
	unsigned source;
};

struct ow_local_pair_lane {
	struct ow_interval_result names;
	struct ow_local_pair_log log[2];
	struct ow_interval_results *results;
	struct ow_interval_packets *before; /* packets that arrived in the interval before */
	struct ow_shared_flows shared;      /* of what arrived */
	struct ow_interval_copies *copies;
	struct ow_running_copies running;
	bool link_filter;               /* the filter of the class names the link layer, */
	bool met;                       /* and has matched packets at both interfaces */
	struct ow_segment_clock *clock; /* shared by both directions of a class */
	enum ow_direction direction;
};

/* A survey of the identity of packets, if it is not fixed (point/identity_survey.h). */
struct ow_local_pair_survey {
	bool doubtful; /* results of this lane suggest another identity */
	size_t lane;
	double rate;      /* packets in a nanosecond */
	uint64_t seed;    /* of the one that runs */
	int64_t again_ns; /* steady time from which another one may begin, */
	int64_t pause_ns; /* and the pause after that */
	bool has[2];      /* by log of the lane */
	struct ow_identity_survey *running[2];
	struct ow_survey_samples samples[2];
};

struct ow_local_pair {
	struct ow_local_pair_options options;
	struct ow_recorder *recorder;
	struct ow_local_pair_lane *lane;
	size_t lanes;
	struct ow_lane_logs logs;
	struct ow_point_clock clock;
	int64_t begun_ns; /* when recording began, by the current clock */
	int64_t t0_ns;    /* start of interval 0, by the current clock */
	int64_t base;     /* the first interval of the logs: 0, or a later one after a clock step */
	int64_t lead;     /* number of intervals before the first that counts */
	int64_t next;     /* the interval that is compared next */
	int64_t split;    /* 1 if an interval was split at the end of the run: later numbers are one higher */
	int64_t end_ns;   /* packets that were sent from here on do not count, */
	int64_t stop_ns;  /* and from here on nothing is used; INT64_MAX = open */
	uint64_t untimed[OW_LOCAL_PAIR_SIDES];         /* frames of a file without a time */
	char note[OW_LOCAL_PAIR_SIDES][OW_IFACE_NOTE]; /* why it is not recorded in the kernel */
	int64_t over_ns[OW_LOCAL_PAIR_SIDES];          /* end of a file or stream; INT64_MAX = open */
	bool streams;                                  /* captures that are still being written, */
	int64_t first_ns;                              /* which both have begun then, */
	struct ow_stream_sides sides;
	int64_t shift_ns;                /* and the times of `to` are moved by this */
	bool two_clocks;                 /* of files, streams, and cards that stamp */
	bool met;                        /* streams: some packet has matched, so that their times can be compared */
	bool stopped;                    /* stopped by the user */
	int64_t since_ns;                /* steady time of the stop */
	int64_t passed_ns;               /* the time up to which the recorder is complete */
	struct ow_interval_result *held; /* results at the end, to be reported in the order of their intervals */
	size_t helds, held_room;
	bool holding;
	struct ow_local_pair_survey survey;
	int failed; /* a source failed: its errno, */
	struct ow_error err;
	bool done;
};

static inline int64_t ow_local_pair_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t ow_local_pair_start_of(const struct ow_local_pair *pair, int64_t interval)
{
	return pair->t0_ns + interval * pair->options.length_ns;
}

/*
 * local_pair_lane.c: adds the recorder's lanes for the lane of this index, with their logs, from the interval
 * pair->base on.
 */
int ow_local_pair_add_logs(struct ow_local_pair *pair, size_t index, struct ow_error *err);
/* The packets of a lane at one side, for the recorder. */
void ow_local_pair_log_options(const struct ow_local_pair *pair, size_t lane, int side,
                               struct ow_lane_options *ret_options);
/* Intervals that are not compared yet are unknown, up to this one; the next one begins anew, with new logs. */
int ow_local_pair_give_up(struct ow_local_pair *pair, int64_t last, const char *cause);
int ow_local_pair_begin(struct ow_local_pair *pair, struct ow_error *err);
void ow_local_pair_on_result(void *arg, const struct ow_interval_result *result); /* the sink of all lanes */
void ow_local_pair_on_event(void *arg, const struct ow_flow_event *event);
/* Adds to the clock's offset in a result by what the times were moved before they were compared. */
void ow_local_pair_add_shift(const struct ow_local_pair *pair, struct ow_interval_result *r);
/* Reports the held results: interval by interval, within each in the order of the lanes. */
void ow_local_pair_release(struct ow_local_pair *pair);
/* Fills in what the packets do not show. */
void ow_local_pair_complete(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, struct ow_interval_result *r);

/* local_pair_clock.c: what the clocks do to the delays of an interval, in its result. */
void ow_local_pair_correct(struct ow_local_pair_lane *lane, struct ow_interval_results_input *input,
                           struct ow_joined *joined);
/* local_pair_identity.c: examines doubtful results; starts again with another identity. */
int ow_local_pair_look_at_identity(struct ow_local_pair *pair, struct ow_error *err);
void ow_local_pair_unsurvey(struct ow_local_pair *pair);

/* Starts again after a clock step; then the run may be over. */
int ow_local_pair_look_at_clock(struct ow_local_pair *pair, struct ow_error *err);
