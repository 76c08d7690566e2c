/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* How far packets are apart in time, by powers of two. */
#define OW_SPACING_BINS 64

struct ow_spacing {
	uint64_t count[OW_SPACING_BINS]; /* [i]: from 2^i ns on; [63]: also what is out of order */
};

static inline void ow_spacing_note(struct ow_spacing *spacing, int64_t apart_ns, uint32_t packets)
{
	spacing->count[63 - __builtin_clzll((uint64_t)apart_ns | 1)] += packets;
}

/* How many are less than reach_ns apart, or hardly more. */
uint64_t ow_spacing_closer(const struct ow_spacing *spacing, int64_t reach_ns);

/*
 * How many of them would have arrived in another order, at least, if each one was held up for a time between 0 and
 * reach_ns: one that is apart_ns from the next is overtaken with a probability of 1 - apart_ns / reach_ns.
 */
double ow_spacing_overtaken(const struct ow_spacing *spacing, int64_t reach_ns);
