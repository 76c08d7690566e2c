/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ow_sighting;

/*
 * Identical packets that were sent already when the measurement began: the n-th that arrives need not be the n-th that was
 * sent. If no other packets show how long the path is, all delays may be longer by a multiple of the time between two packets.
 */
struct ow_running_copies {
	bool begun;  /* the interval before was compared */
	bool unsure; /* it is not clear which of its copies is which */
	bool amid;   /* packets may have been under way before the first one was */
	bool longer; /* delays of the interval before may be longer */
	/* Since it has begun: when that was, and what was sent; absolute times. */
	int64_t begun_ns, first_ns, last_ns;
	size_t packets, copies;
	uint64_t id; /* of the first packet of the last interval that has some */
};

/* An interval at the sending point. */
struct ow_running_interval {
	bool compared;              /* else it is unknown */
	int64_t start_ns, begun_ns; /* begun_ns: when recording began, for the first interval */
	const struct ow_sighting *sent;
	size_t count, copies;
	size_t others; /* delays of other packets, by which the copies are aligned */
	bool aligned;  /* the times of all copies are known */
	bool unsure;
	int64_t most_ns; /* no packet takes longer; INT64_MAX = not known */
	int64_t lost_ns; /* after this time a packet that has not arrived is lost */
};

/* To be called for each interval, in order. Returns by how much delays may be longer, or a multiple of it; 0: they are right. */
int64_t ow_running_copies_doubt(struct ow_running_copies *running, const struct ow_running_interval *interval);
