/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits for classes that a peer chooses: lanes, results per second, instructions for each packet, and time of the one
 * thread that serves all peers. If the configuration names the classes, there are no such limits.
 */
#include "point/daemon_limit.h"

#include "base/time.h"
#include "point/agreement.h"
#include "point/daemon_memory.h"
#include "point/daemon_private.h"

#include <errno.h>
#include <string.h>

/*
 * Results per second of a segment whose classes or interval the peer chooses: two lanes of 1 ms, or 64 classes in two
 * directions of 100 ms, and twice that.
 */
#define RESULTS_MAX 4000
/* Instructions of the different filters of a segment: each packet may have to pass all of them. */
#define INSTRUCTIONS_MAX 4096
/* Starting the lanes of a peer may take one part in this many of the time, with a reserve for many at a time. */
#define SHARE      20
#define RESERVE_NS INT64_C(1000000000)

double ow_daemon_results_per_s(int64_t length_ns)
{
	return (double)OW_NS_PER_S / (double)length_ns;
}

static bool peer_chooses_classes(const struct ow_config_segment *segment)
{
	return !(segment->stated & OW_STATED_CLASSES);
}

/* Time. */

static bool is_spent(struct ow_daemon_peer *peer)
{
	int64_t now = ow_clock_steady_ns(), earned = (now - peer->spent_at_ns) / SHARE;
	peer->spent_at_ns = now;
	peer->spent_ns = peer->spent_ns > earned ? peer->spent_ns - earned : 0;
	return peer->spent_ns > RESERVE_NS;
}

void ow_daemon_peer_spend(struct ow_daemon_peer *peer, int64_t begin_ns)
{
	peer->spent_ns += ow_clock_steady_ns() - begin_ns;
}

/* Filters. */

static bool has_filter_of_peer(const struct ow_daemon_lane *lane)
{
	return lane->filter && lane->filter == lane->open.filter;
}

/* A lane whose filter has this text and comes from a peer; NULL if there is none. */
static const struct ow_daemon_lane *lane_with_filter(const struct ow_daemon *d, const char *filter, unsigned before)
{
	for (unsigned i = 0; i < before; i++) {
		if (has_filter_of_peer(d->lanes[i]) && strcmp(d->lanes[i]->filter, filter) == 0)
			return d->lanes[i];
	}
	return NULL;
}

/* The instructions of the different filters of a segment. */
static unsigned instructions_of(const struct ow_daemon *d, const struct ow_config_segment *segment)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->segment == segment && has_filter_of_peer(lane) && !lane_with_filter(d, lane->filter, i))
			sum += lane->instructions;
	}
	return sum;
}

int ow_daemon_limit_filter(struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *filter,
                           unsigned *ret_instructions, struct ow_error *why)
{
	const struct ow_daemon *d = peer->daemon;
	const struct ow_daemon_lane *same = lane_with_filter(d, filter, d->lane_count);
	struct ow_error reason;
	if (same && same->segment == segment) {
		*ret_instructions = same->instructions;
		return 0;
	}
	if (is_spent(peer))
		return ow_error_set(why, EAGAIN, "its filters have taken too much time; propose it again later");
	int64_t begin = ow_clock_steady_ns();
	int r = ow_agree_filter(filter, ret_instructions, &reason);
	ow_daemon_peer_spend(peer, begin);
	if (r < 0)
		return ow_error_set(why, EINVAL, "filter '%.40s': %.80s", filter, reason.text);
	if (instructions_of(d, segment) + *ret_instructions > INSTRUCTIONS_MAX)
		return ow_error_set(why, ENOSPC, "the filters of the segment have more than %d instructions together",
		                    INSTRUCTIONS_MAX);
	return 0;
}

/* Lanes. */

int ow_daemon_limit_lane(const struct ow_daemon *d, const struct ow_config_segment *segment,
                         const struct ow_message_open *open, struct ow_error *why)
{
	unsigned lanes = 0;
	double results = ow_daemon_results_per_s(open->length_ns);
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->segment != segment)
			continue;
		lanes++;
		results += ow_daemon_results_per_s(d->lanes[i]->open.length_ns);
	}
	if (lanes >= 2 * OW_CONFIG_CLASSES_MAX)
		return ow_error_set(why, ENOSPC, "the segment has %d lanes already", 2 * OW_CONFIG_CLASSES_MAX);
	bool stated = !peer_chooses_classes(segment) && (segment->stated & OW_STATED_INTERVAL);
	if (!stated && results > RESULTS_MAX)
		return ow_error_set(why, ENOSPC, "the segment would have more than %d results a second", RESULTS_MAX);
	/* Every segment keeps room for the lanes that it certainly needs. */
	if (lanes >= 2 && peer_chooses_classes(segment) && d->lane_count + ow_daemon_lanes_missing(d) >= OW_LANES_MAX)
		return ow_error_set(why, ENOSPC, "the lanes that are left are for other segments");
	return 0;
}

/* Gaps. */

bool ow_daemon_limit_gaps(unsigned gaps, double results)
{
	return gaps <= 2 * OW_CONFIG_CLASSES_MAX && results <= RESULTS_MAX;
}
