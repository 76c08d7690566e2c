/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/interval_log.h"

/*
 * The lanes of a recorder, each with its interval log. Chunks of the recorder go to the log of their lane; drops and
 * outages of a source go to the logs of all lanes that take its frames. For one thread.
 */
struct ow_lane_logs {
	struct ow_recorder *recorder; /* owned by the caller */
	unsigned sources;
	struct ow_lane_log **log; /* sorted by lane number */
	size_t count, room;
	int64_t latest_ns;                       /* of the packets so far */
	uint32_t away;                           /* bit i: source i sees nothing now */
	struct ow_outage outage[OW_SOURCES_MAX]; /* since when and why, as last reported */
};

struct ow_lane_log {
	struct ow_lane_logs *all;
	uint32_t lane, sources;
	struct ow_interval_cuts cuts;
	struct ow_interval_log *packets;
};

void ow_lane_logs_init(struct ow_lane_logs *logs, struct ow_recorder *recorder, unsigned sources);
/* Frees all logs; the recorder may already be freed. */
void ow_lane_logs_done(struct ow_lane_logs *logs);

/* Adds a lane to the recorder. sightings_max, open_max: of its interval log. */
int ow_lane_log_create(struct ow_lane_logs *logs, const struct ow_lane_options *lane, size_t sightings_max,
                       size_t open_max, struct ow_lane_log **ret_log, struct ow_error *err);
/* Removes the lane from the recorder. */
void ow_lane_log_free(struct ow_lane_log *log);

/*
 * From a later interval on, intervals begin later by this (record/interval_cuts.h), earlier than now by at most half an
 * interval. Without effect while the last change has not been reached. now_ns: the clock of the packets; passed: the
 * number of intervals that are closed.
 */
void ow_lane_log_shift(struct ow_lane_log *log, int64_t shift_ns, int64_t now_ns, int64_t passed);

/* Adds chunks of the recorder, which it frees, and drops. Ignores chunks of lanes that were removed. */
void ow_lane_logs_enter(struct ow_lane_logs *logs, struct ow_chunk *chunks);
/* Adds an outage of a source (ow_recorder_outage) to the logs; outage[source] has it, from its beginning on. *ret_new: it has
 * begun, or has another cause now. */
void ow_lane_logs_outage(struct ow_lane_logs *logs, unsigned source, const struct ow_outage *outage, bool *ret_new);
/* 0, or -ENODEV if no source sees anything; err says why. */
int ow_lane_logs_check(const struct ow_lane_logs *logs, struct ow_error *err);
