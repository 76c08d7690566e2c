/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"
#include <oneway/error.h>

/*
 * One interval of packets as two points see them, in memory and without bytes. Synopses are tried on it. The same
 * parameters and seed give the same packets.
 */
struct ow_stream_params {
	uint64_t packets;    /* sent within the interval */
	int64_t interval_ns; /* packets are sent uniformly over it */
	const char *delay;   /* as for `oneway simulate --delay`, e.g. "weibull:10us,0.6" */
	double loss;         /* uniform, or in episodes */
	double episode;      /* mean packets of a loss episode, 0 = uniform (LDA IV-C) */
	/*
	 * FineComb's reordering, in packets: pre-start, post-start, pre-end, post-end (section 3.1 of the paper):
	 * packets of the neighbouring intervals that B counts in this one, and packets of this one that B counts in the
	 * neighbours.
	 */
	uint64_t reorder[4];
	/* packets of each neighbouring interval that `before` and `after` contain in addition */
	uint64_t margin;
	double duplicate;        /* share of packets that arrive twice */
	int64_t clock_offset_ns; /* B's clock is ahead by this */
	bool no_delays;          /* do not fill `delay`: faster if quantiles are not needed */
	uint64_t seed;
};

struct ow_stream_truth {
	uint64_t sent, received; /* sightings at A, at B */
	uint64_t common;         /* ids seen at both */
	uint64_t lost;           /* seen at A only: lost, or counted by B in another interval */
	uint64_t extra;          /* seen at B only */
	/* The delay as the clocks show it, over the common packets (population). The delay of a copy does not count. */
	double mean_ns, stddev_ns;
};

struct ow_made_stream {
	/*
	 * In the order of time at that point. At B, packets of the neighbouring intervals are first (pre-start) and
	 * last (post-end).
	 */
	struct ow_sighting *a, *b;
	size_t as, bs;
	/*
	 * The packets that B saw next to the interval, in order of arrival: `margin` packets of the neighbouring
	 * interval, and next to the boundary the packets of this interval that arrived there: post-start at the end of
	 * `before`, pre-end at the start of `after`. A stash takes the last packets of `before` and the first of
	 * `after`.
	 */
	struct ow_sighting *before, *after;
	size_t befores, afters;
	struct ow_stream_truth truth;
	int64_t *delay; /* of the common packets, sorted; for exact quantiles */
};

/* -EINVAL for parameters out of range, -ENOMEM. A queue is refused as a delay, because there are no packet sizes. */
int ow_stream_make(const struct ow_stream_params *params, struct ow_made_stream *ret_stream, struct ow_error *err);
void ow_stream_done(struct ow_made_stream *stream);
