/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the memory budget that each lane gets. */
#include "point/daemon_memory.h"

#include "base/time.h"
#include "point/daemon_lane.h"
#include "point/daemon_private.h"

#include <errno.h>

unsigned ow_daemon_lanes_wanted(const struct ow_config *config)
{
	unsigned wanted = 0;
	for (unsigned i = 0; i < config->segment_count; i++)
		wanted += ow_config_lanes(&config->segments[i]);
	return wanted;
}

/* The number of lanes without memory: those of the configuration, or more, if a peer has proposed more. */
static unsigned expected_lanes(const struct ow_daemon *d, bool *ret_open_ended)
{
	unsigned expected = 0;
	*ret_open_ended = false;
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		unsigned planned = ow_config_lanes(s), there = 0, granted = 0;
		for (unsigned k = 0; k < d->lane_count; k++) {
			there += d->lanes[k]->segment == s;
			granted += d->lanes[k]->segment == s && d->lanes[k]->granted > 0;
		}
		expected += (there > planned ? there : planned) - granted;
		*ret_open_ended = *ret_open_ended || s->class_count == 0;
	}
	return expected;
}

unsigned ow_daemon_lanes_missing(const struct ow_daemon *d)
{
	bool open_ended;
	return expected_lanes(d, &open_ended);
}

/*
 * If the peer chooses the number of classes, all of them together have at most the part of their segment, so that other
 * segments are not affected. Lanes that are ending make room for the next, once.
 */
static uint64_t limit_share(const struct ow_daemon_lane *lane, uint64_t bytes)
{
	const struct ow_daemon *d = lane->daemon;
	uint64_t part = d->config->memory / (d->config->segment_count ? d->config->segment_count : 1);
	uint64_t granted = 0, ending = 0;
	unsigned lanes = 0;
	if (lane->segment->class_count > 0)
		return bytes;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *other = d->lanes[i];
		if (other->segment != lane->segment)
			continue;
		*(other->until == INT64_MAX ? &granted : &ending) += other->granted;
		lanes += other->until == INT64_MAX;
	}
	uint64_t each = part / (lanes ? lanes : 1), left = part > granted ? part - granted : 0;
	uint64_t most = each < left ? each : left;
	if (ending > part)
		most = 0;
	return bytes < most ? bytes : most;
}

/* The bytes that a lane of a segment needs at least; for a lane that does not exist yet, by the configuration. */
static uint64_t least_of(const struct ow_daemon *d, int64_t length_ns)
{
	struct ow_retention retention;
	ow_agree_retention(length_ns, 0, d->clock.speed, &retention);
	return ow_agree_least(&retention);
}

/* The bytes that all other lanes without memory need at least. */
static uint64_t others_need(const struct ow_daemon *d, const struct ow_daemon_lane *lane)
{
	uint64_t needed = 0;
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		unsigned planned = ow_config_lanes(s), there = 0;
		for (unsigned k = 0; k < d->lane_count; k++) {
			const struct ow_daemon_lane *other = d->lanes[k];
			there += other->segment == s;
			if (other->segment == s && other != lane && other->granted == 0)
				needed += least_of(d, other->open.length_ns);
		}
		if (there < planned)
			needed += (planned - there) * least_of(d, s->interval_ns);
	}
	return needed;
}

static int no_memory(const struct ow_daemon_lane *lane, uint64_t bytes, uint64_t least, struct ow_error *err)
{
	const struct ow_daemon *d = lane->daemon;
	char length[OW_DURATION_TEXT];
	unsigned lanes;
	double mib = 1 << 20, needed = (double)ow_agree_needed(d->config, &lanes) / mib;
	ow_duration_text((double)lane->open.length_ns, length);
	return ow_error_set(err, ENOMEM,
	                    "intervals of %s need %.2f MiB a lane, %.2f MiB are left for it: 'memory' is %.4g MiB, and "
	                    "%u lanes of the configuration need %.4g MiB",
	                    length, (double)least / mib, (double)bytes / mib, (double)d->config->memory / mib, lanes,
	                    needed);
}

int ow_daemon_memory_share(const struct ow_daemon_lane *lane, const struct ow_retention *retention, uint64_t *ret_bytes,
                           size_t *ret_stamps, struct ow_error *err)
{
	const struct ow_daemon *d = lane->daemon;
	bool open_ended;
	unsigned expected = expected_lanes(d, &open_ended);
	uint64_t least = ow_agree_least(retention), others = others_need(d, lane);
	*ret_bytes = limit_share(lane, ow_agree_share(d->memory_left, expected, open_ended, least, others));
	*ret_stamps = ow_agree_stamps(*ret_bytes, retention);
	return *ret_stamps ? 0 : no_memory(lane, *ret_bytes, least, err);
}
