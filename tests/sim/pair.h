/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet.h"
#include "sim/sim.h"
#include <stddef.h>

/* Runs the simulator into temporary files, reads them back, and recomputes the truth from the markers in the payloads.
 */

struct seen {
	uint64_t marker; /* 0 = none */
	uint64_t record; /* number of the frame */
	int64_t time_ns;
	bool reverse; /* B to A, after the addresses */
	uint8_t ttl, class;
	uint32_t piece; /* place in a superframe */
};

struct pair {
	char path[OW_SIDES][64];
	struct seen *seen[OW_SIDES];
	size_t count[OW_SIDES];
	uint64_t records[OW_SIDES];
	uint64_t bad_checksums;
	struct ow_sim_truth truth;
};

/* Runs with these options (paths are set here) and reads the files. mss: superframes are cut at it, 0 = none. */
void pair_make(struct ow_sim_options *options, uint32_t mss, struct pair *ret_pair);
void pair_done(struct pair *pair);
/* The RESULT of one direction by brute force; no clock, no cover: every packet counts. */
void pair_result(const struct pair *pair, enum ow_direction direction, int64_t offset_ns, struct ow_result *ret_result);
/* Compares counts and delays with the truth. */
void pair_check(const struct pair *pair, enum ow_direction direction, int64_t offset_ns);
/* Are the two files the same bytes? */
bool same_bytes(const char *x, const char *y);
