/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which intervals of a lane are unusual, so that the fleet gets them and those around them, and not only the minute. An
 * interval is unusual if it is partial, if it has an event of flows, if it is the first that is unknown, or the first that
 * is known again, if it lost clearly more packets than usual, or if its p99 is far above the usual one. Usual is a mean of the last minutes: what stays becomes usual.
 */
struct ow_unusual_lane {
	int64_t lane;
	double loss, p99_ns;   /* usual ones */
	unsigned seen, delays; /* results that these are of */
	bool unknown;          /* the last one was */
	double budget;         /* rows that may still be sent */
	int64_t until_ns;      /* rows up to this time are chosen */
};

struct ow_unusual {
	struct ow_unusual_lane *lane; /* by number */
	size_t lanes, room;
};

/* What is looked at in a final result. */
struct ow_unusual_look {
	int64_t lane, start_ns, length_ns;
	bool eventful; /* it is partial, or something happened to flows */
	bool unknown;
	double loss;   /* NAN = not known */
	double p99_ns; /* NAN = not known */
};

void ow_unusual_done(struct ow_unusual *unusual);
/*
 * Looks at the next result of a lane. true: the results of the lane in [*ret_since_ns, *ret_until_ns) should be sent.
 * These spans do not overlap. A lane in which everything is unusual gets a tenth of its results sent.
 */
bool ow_unusual_look(struct ow_unusual *unusual, const struct ow_unusual_look *look, int64_t *ret_since_ns,
                     int64_t *ret_until_ns);
#define OW_UNUSUAL_BEFORE_NS INT64_C(10000000000)
#define OW_UNUSUAL_AFTER_NS  INT64_C(20000000000)
