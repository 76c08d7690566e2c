/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/message.h"
#include "result/interval_result.h"

/*
 * Gaps: intervals that the configuration wants and no lane covers, because a lane has ended (the peer is gone or was
 * restarted, a clock was set) and the next one has not begun yet, or because clocks are too far apart for any. Each gets an unknown result with the cause.
 */
struct ow_config_segment;
struct ow_daemon;
struct ow_daemon_lane;
struct ow_daemon_peer;

struct ow_daemon_gap {
	struct ow_daemon_peer *peer;
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME];
	bool sending;
	int64_t interval; /* number of the next one, */
	int64_t start_ns; /* its start, */
	int64_t length_ns;
	int64_t told_ns;  /* and the end of the last one that was reported */
	int64_t since_ns; /* steady time of its start */
	/* steady time when the peer last proposed a lane that would end it; before all times = never */
	int64_t asked_ns;
	char cause[OW_RESULT_CAUSE];
	char then[OW_RESULT_CAUSE]; /* cause of the intervals after the next one; "" = the same */
};

struct ow_daemon_gaps {
	struct ow_daemon_gap *gap;
	unsigned count, room;
};

/* From this interval on (a number of the lane) it has no results, for this cause. */
void ow_daemon_gap_open(const struct ow_daemon_lane *lane, int64_t interval, const char *cause);
/* The same for all lanes of a segment that cannot begin, from the current interval on; those that have a lane or a gap keep
 * it. */
void ow_daemon_gaps_open(struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *cause);
/* Sets another cause for all gaps with this peer, for the intervals after the current one. */
void ow_daemon_gaps_explain(struct ow_daemon_peer *peer, const char *cause);
/* The clock was set: unknown until before_ns by the old time; then from now on by the new one. */
void ow_daemon_gaps_step(struct ow_daemon *daemon, int64_t before_ns, int64_t now_ns);
/* Reports the intervals that have passed; gaps end where lanes begin. */
void ow_daemon_gaps_tick(struct ow_daemon *daemon);
/* The peer proposes a lane: the lane that it replaces is still wanted. */
void ow_daemon_gaps_asked(struct ow_daemon_peer *peer, const struct ow_message_open *open);
/* The peer or its segments were removed. */
void ow_daemon_gaps_forget(struct ow_daemon_peer *peer);
