/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/stream.h"
#include "packet/identity.h"
#include "point/stream_sides.h"

/*
 * The beginning of a measurement between two captures that are still being written: waits until packets of both have come,
 * and finds out from them what has to be known before: how many bytes of a packet both have, and whether their clocks are so
 * far apart that times have to be moved, and, if that is not fixed, what makes a packet the same.
 */
struct ow_stream_start_options {
	const struct ow_streams *from, *to;
	const char *from_name, *to_name;
	struct ow_identity identity; /* without its hash_limit */
	uint32_t identities;         /* bit v: enum ow_variant v may be used instead; 0 = it is fixed */
	bool any_way;                /* the direction of a packet does not depend on its addresses */
	int64_t length_ns, wait_ns;  /* of the measurement */
	int64_t lag_ns;              /* how long to look for packets that both have */
	int64_t most_ns;             /* how long to wait for the first packets */
	bool keep_times;             /* the clocks are trusted */
	bool sides;                  /* which way packets go is not known */
	void (*say)(void *arg, const char *line);
	void *arg;
};

struct ow_stream_start {
	struct ow_identity identity;
	int64_t first_ns; /* both have begun, by the times after the shift */
	int64_t shift_ns; /* added to the times of `to`; 0 if the clocks are close enough for the measurement */
	uint64_t common;  /* packets that both had, */
	bool met;         /* enough of them to know that the times can be compared */
	struct ow_stream_sides sides; /* if asked for */
};

int ow_stream_start(const struct ow_stream_start_options *options, struct ow_stream_start *ret_start,
                    struct ow_error *err);
