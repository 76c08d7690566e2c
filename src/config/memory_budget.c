/* SPDX-License-Identifier: Apache-2.0 */
#include "config/memory_budget.h"

#include "base/time.h"

void ow_agree_retention(int64_t length_ns, int64_t skew_ns, double speed, struct ow_retention *ret_retention)
{
	double faster = speed > 1 ? speed : 1;
	double retain = (double)OW_RETAIN_NS * faster + (double)(skew_ns < 0 ? -skew_ns : skew_ns);
	double intervals = retain / (double)length_ns + 1;
	/* The time for which packets may wait in the threads when these are delayed: longer than a ring holds. */
	double open = (faster * (double)OW_NS_PER_S + (double)OW_HELD_UP_NS) / (double)length_ns + 3;
	struct ow_retention r = {
		.intervals_max = intervals < OW_RETAIN_MIN   ? OW_RETAIN_MIN
	                         : intervals > OW_RETAIN_MAX ? OW_RETAIN_MAX
	                                                     : (unsigned)intervals,
		.open_max = open > 4096 ? 4096 : (unsigned)open,
		.notice_ns = (int64_t)retain,
	};
	if (r.notice_ns < 2 * length_ns)
		r.notice_ns = 2 * length_ns;
	r.patience_ns = r.notice_ns + (int64_t)(faster * (double)(OW_PATIENCE_NS - OW_RETAIN_NS));
	*ret_retention = r;
}

uint64_t ow_agree_retained(uint64_t bytes, const struct ow_retention *retention)
{
	return bytes / (retention->intervals_max + 2) * retention->intervals_max;
}

size_t ow_agree_stamps(uint64_t bytes, const struct ow_retention *retention)
{
	/* Two intervals are open at a time; the others of open_max are for clocks that jump. */
	uint64_t sightings = bytes / OW_SIGHTING_BYTES / (retention->intervals_max + 2);
	return sightings < OW_SIGHTINGS_LEAST ? 0 : sightings;
}

uint64_t ow_agree_least(const struct ow_retention *retention)
{
	return (uint64_t)OW_SIGHTINGS_LEAST * OW_SIGHTING_BYTES * (retention->intervals_max + 2);
}

uint64_t ow_agree_needed(const struct ow_config *config, unsigned *ret_lanes)
{
	uint64_t needed = 0;
	double speed = 1;
	*ret_lanes = 0;
	for (unsigned i = 0; i < config->interface_count; i++) {
		if (config->interfaces[i].file && config->interfaces[i].speed > speed)
			speed = config->interfaces[i].speed;
	}
	for (unsigned i = 0; i < config->segment_count; i++) {
		const struct ow_config_segment *s = &config->segments[i];
		struct ow_retention retention;
		unsigned lanes = ow_config_lanes(s);
		ow_agree_retention(s->interval_ns, 0, speed, &retention);
		needed += lanes * ow_agree_least(&retention);
		*ret_lanes += lanes;
	}
	return needed;
}

uint64_t ow_agree_share(uint64_t left, unsigned expected, bool open_ended, uint64_t own, uint64_t others)
{
	unsigned parts = expected + open_ended;
	uint64_t equal = left / (parts ? parts : 1);
	if (left < others || left - others < own)
		return equal; /* not enough for all lanes: an equal part */
	uint64_t most = left - others;
	return equal < own ? own : equal < most ? equal : most;
}
