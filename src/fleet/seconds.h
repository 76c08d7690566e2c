/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored.h"

/*
 * Results of intervals that are still at the points: the points are asked for them, and send them into the database by
 * way of the bus and a collector.
 */

/* Of a lane: why its results of this time are not in the database. */
struct ow_seconds_missing {
	size_t lane; /* its index in ow_stored_lanes */
	int64_t since_ns, until_ns;
	char why[240];
};

struct ow_seconds {
	struct ow_seconds_missing *missing;
	size_t count, room;
	size_t asked;  /* lanes that points were asked about */
	uint64_t rows; /* that they have sent */
};
/* In one call. */
#define OW_SECONDS_LANES 1000

/*
 * For the lanes that are chosen in a database: asks for what it lacks in [since_ns, until_ns), and waits until it is
 * there, up to wait_ms. What cannot be had is in ret->missing. If the database lacks nothing, nobody is asked. dir: the
 * folder of the fleet, of which it reads ca.pem, servers, station.pem and station.key. Negative errno: the database
 * cannot be read, or too much is wanted (-E2BIG).
 */
int ow_seconds_fetch(const char *dir, struct ow_stored *stored, int64_t since_ns, int64_t until_ns, int wait_ms,
                     struct ow_seconds *ret_seconds, struct ow_error *err);
void ow_seconds_done(struct ow_seconds *seconds);
