/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/unusual.h"

#include "base/array.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Results that "usual" is a mean of: five minutes of seconds. */
#define MEMORY 300
/* Nothing is known to be unusual before. */
#define LEAST_SEEN 60
/* Loss above twice the usual one, and by at least a packet in a thousand. */
#define LOSS_FACTOR 2.0
#define LOSS_MARGIN 0.001
#define P99_FACTOR  2.0
/* Rows of a lane that may be sent at once, and how many it earns with each result. */
#define BUDGET_MOST 600.0
#define BUDGET_EACH 0.1
#define LANES_MAX   65536
/* Of short intervals so many before and after it are sent at most: half of what may be sent at once. */
#define ROWS_BEFORE 100
#define ROWS_AFTER  200

void ow_unusual_done(struct ow_unusual *unusual)
{
	free(unusual->lane);
	*unusual = (struct ow_unusual){0};
}

static struct ow_unusual_lane *lane_of(struct ow_unusual *unusual, int64_t lane)
{
	size_t low = 0, high = unusual->lanes;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (unusual->lane[middle].lane < lane)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < unusual->lanes && unusual->lane[low].lane == lane)
		return &unusual->lane[low];
	if (unusual->lanes == LANES_MAX || OW_GROW(unusual->lane, unusual->room, unusual->lanes + 1) < 0)
		return NULL;
	memmove(unusual->lane + low + 1, unusual->lane + low, (unusual->lanes++ - low) * sizeof *unusual->lane);
	unusual->lane[low] = (struct ow_unusual_lane){.lane = lane, .budget = BUDGET_MOST, .until_ns = INT64_MIN};
	return &unusual->lane[low];
}

/* The mean of what was seen, then of about the last MEMORY. */
static void learn(double *usual, unsigned *seen, double value)
{
	if (!isfinite(value))
		return;
	*seen += *seen < MEMORY;
	*usual += (value - *usual) / *seen;
}

static bool is_unusual(const struct ow_unusual_lane *lane, const struct ow_unusual_look *look)
{
	if (look->eventful || look->unknown != lane->unknown)
		return true;
	if (lane->seen >= LEAST_SEEN && look->loss > lane->loss * LOSS_FACTOR + LOSS_MARGIN)
		return true;
	return lane->delays >= LEAST_SEEN && fabs(look->p99_ns) > fabs(lane->p99_ns) * P99_FACTOR;
}

/* This time, or so many intervals. */
static int64_t at_most(int64_t time_ns, int64_t length_ns, int64_t rows)
{
	return length_ns < time_ns / rows ? length_ns * rows : time_ns;
}

bool ow_unusual_look(struct ow_unusual *unusual, const struct ow_unusual_look *look, int64_t *ret_since_ns,
                     int64_t *ret_until_ns)
{
	struct ow_unusual_lane *lane = lane_of(unusual, look->lane);
	if (!lane || look->length_ns <= 0)
		return false;
	bool found = is_unusual(lane, look);
	lane->unknown = look->unknown;
	learn(&lane->loss, &lane->seen, look->loss);
	learn(&lane->p99_ns, &lane->delays, look->p99_ns);
	lane->budget = fmin(lane->budget + BUDGET_EACH, BUDGET_MOST);
	if (!found)
		return false;
	int64_t since_ns = look->start_ns - at_most(OW_UNUSUAL_BEFORE_NS, look->length_ns, ROWS_BEFORE);
	int64_t until_ns = look->start_ns + look->length_ns + at_most(OW_UNUSUAL_AFTER_NS, look->length_ns, ROWS_AFTER);
	since_ns = since_ns > lane->until_ns ? since_ns : lane->until_ns;
	double rows = (double)(until_ns - since_ns) / (double)look->length_ns;
	if (since_ns >= until_ns || rows > lane->budget)
		return false;
	lane->budget -= rows;
	lane->until_ns = until_ns;
	*ret_since_ns = since_ns;
	*ret_until_ns = until_ns;
	return true;
}
