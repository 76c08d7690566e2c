/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <stdbool.h>
#include <stddef.h>

/*
 * Which hosts are on the side of A and which on that of B, by packets that both have: a packet that goes from A to B has a
 * smaller TTL at B. If no router is between A and B, packets of two hosts to each other tell it: by the two clocks, whatever
 * they show, those from A to B take longer than those from B to A.
 */
struct ow_common_packet {
	const struct ow_frame *a, *b;
};

#define OW_STREAM_SIDES_FILTER 8192
struct ow_stream_sides {
	char forward[OW_STREAM_SIDES_FILTER];  /* filter of the packets from A to B, */
	char backward[OW_STREAM_SIDES_FILTER]; /* and from B to A; other packets are of neither */
	char hosts[2][80];                     /* "10.1.0.2 and 3 more", "10.1.0.2 and 23 more of 200" */
};

/* Returns 0; -ENODATA if the packets do not tell; -ENOMEM. */
int ow_stream_sides(const struct ow_common_packet *packets, size_t count, struct ow_stream_sides *ret_sides);
