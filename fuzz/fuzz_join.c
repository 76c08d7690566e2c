/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of points that say anything: frames, each with its length (2), of messages. Those that are samples are joined,
 * epoch by epoch, and a map is made. Its numbers keep their rules.
 */
#include "discovery/join.h"
#include "discovery/point_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EPOCHS_MAX 64

static void check(int good)
{
	if (!good)
		abort();
}

static void check_share(const struct ow_value *value)
{
	check(value->status == OW_VALUE_NONE ||
	      (value->low >= 0 && value->low <= value->high && value->high <= 1 && isfinite(value->value)));
}

static void check_map(struct ow_join *join)
{
	struct ow_map map;
	struct ow_point_map points;
	struct ow_discovered_segment *segments;
	size_t count;
	struct ow_discover_limits limits = OW_DISCOVER_LIMITS;
	check(ow_join_map(join, &map) == 0);
	for (uint32_t i = 0; i < map.pairs; i++) {
		const struct ow_map_pair *pair = &map.pair[i];
		check(pair->from < map.vantages && pair->to < map.vantages && pair->from != pair->to);
		check(pair->between == UINT32_MAX || pair->between < map.vantages);
		check_share(&pair->share);
		check_share(&pair->loss);
		check(i == 0 || pair[-1].from < pair->from || (pair[-1].from == pair->from && pair[-1].to < pair->to));
	}
	check(ow_point_map_make(&map, &points) == 0);
	check(ow_discover_segments(&points, &limits, NULL, 0, &segments, &count) == 0);
	free(segments);
	ow_point_map_done(&points);
	ow_map_done(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_join *join = NULL;
	int64_t first = INT64_MIN, last = INT64_MIN;
	for (size_t at = 0; at + 2 <= size;) {
		size_t length = data[at] | (size_t)data[at + 1] << 8;
		struct ow_vantage_sample sample;
		at += 2;
		length = length > size - at ? size - at : length;
		int r = ow_vantage_sample_decode(data + at, length, &sample, NULL);
		at += length;
		if (r < 0)
			continue;
		if (!join)
			check(ow_join_create(sample.epoch_ns, &join) == 0);
		first = first == INT64_MIN ? sample.epoch : first;
		/* Whoever calls the join does not let one message move the time far. */
		if (sample.epoch >= first && sample.epoch < first + EPOCHS_MAX) {
			int64_t epoch = sample.epoch;
			if (last != INT64_MIN && epoch > last)
				check(ow_join_settle(join, last) == 0);
			last = epoch > last ? epoch : last;
			r = ow_join_add(join, &sample);
			check(r == 0 || r == -EINVAL);
		}
		ow_vantage_sample_done(&sample);
	}
	if (join) {
		if (last != INT64_MIN)
			check(ow_join_settle(join, last) == 0);
		check_map(join);
	}
	ow_join_free(join);
	return 0;
}
