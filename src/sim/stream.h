/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SIM_STREAM_H
#define OW_SIM_STREAM_H

#include "synopsis/synopsis.h"
#include <oneway/error.h>

/*
 * One interval of packets as two points stamp them, in memory and without bytes: what synopses are tried on. The same
 * parameters and seed give the same packets.
 */
struct ow_stream_params {
	uint64_t packets;         /* sent within the interval */
	int64_t interval_ns;      /* packets are sent uniformly over it */
	const char *delay;        /* as `oneway simulate --delay` takes it, e.g. "weibull:10us,0.6" */
	double loss;              /* uniform, or in episodes: */
	double episode;           /* mean packets of a loss episode, 0 = uniform (LDA IV-C) */
	/*
	 * FineComb's reordering, in packets: pre-start, post-start, pre-end, post-end (section 3.1 of the paper): packets of
	 * the neighbouring intervals that B counts in this one, and packets of this one that B counts in the neighbours.
	 */
	uint64_t reorder[4];
	double duplicate;         /* share of packets that arrive twice */
	int64_t clock_offset_ns;  /* B's clock is ahead by this */
	uint64_t seed;
};

struct ow_stream_truth {
	uint64_t sent, received;  /* stamps at A, at B */
	uint64_t common;          /* ids at both */
	uint64_t lost;            /* at A only: lost, or counted by B in another interval */
	uint64_t extra;           /* at B only */
	double mean_ns, stddev_ns; /* of the delay over the common packets (population) */
};

struct ow_stream {
	struct ow_stamp *a, *b;   /* in order of time at that point */
	size_t as, bs;
	struct ow_stream_truth truth;
	int64_t *delay;           /* of the common packets, sorted: for exact quantiles */
};

int ow_stream_make(const struct ow_stream_params *params, struct ow_stream *ret_stream, struct ow_error *err);
void ow_stream_done(struct ow_stream *stream);

#endif
