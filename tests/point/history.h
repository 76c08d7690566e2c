/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/interval_match.h"

/*
 * Passes the packets of two points to interval logs, interval_match and interval_results, interval by interval, and keeps
 * all results.
 */
struct history {
	struct ow_interval_results *settle;
	struct ow_interval_copies *copies;
	struct ow_interval_result *first, *final; /* by interval */
	size_t firsts, finals;
};

/* a, b: absolute times from 0, in order. Intervals of length_ns, as many as `intervals`, begin at 0. */
void history_play(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                  size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon);
/* The same; as live does, says where delays may be longer (reconcile/running_copies.h). */
void history_play_running(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                          size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon, bool two_clocks);
/* The same; `look` sees each comparison. */
typedef void history_look(void *arg, const struct ow_interval_packets *a, const struct ow_interval_packets *b,
                          const struct ow_interval_results_input *input);
void history_play_seen(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                       size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon, history_look *look, void *arg);
void history_done(struct history *history);

/* The same stamps in the order of their times. */
void history_sort(struct ow_sighting *stamp, size_t count);
/* Only the sink, for tests of interval_results alone. */
void history_open(struct history *history, uint32_t horizon, size_t intervals);
