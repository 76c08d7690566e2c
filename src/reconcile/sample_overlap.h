/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What two captures have in common, from samples of their packets: their number, and what they show about the clocks. A
 * sample keeps the packets with the smallest ids, so that two samples of the same traffic have the same packets
 * (hash-based selection, RFC 5475), whenever and in whatever order they passed.
 */

struct ow_sampled {
	uint64_t id;
	int64_t time_ns;
	uint64_t hosts; /* hash of the unordered pair of addresses */
	bool reverse;   /* which of the two directions between them */
	uint8_t ttl;    /* or hop limit; 0 if there is none */
};

#define OW_SAMPLE_MAX 65536u

struct ow_identity_sample {
	struct ow_sampled *packet;
	size_t packets;
	uint64_t below;   /* ids below this are in the sample; UINT64_MAX: all */
	uint64_t offered; /* packets that were offered to the sample */
	bool joined;      /* of several captures, whose clocks may differ */
};

int ow_sample_init(struct ow_identity_sample *sample);
void ow_sample_done(struct ow_identity_sample *sample);
/* Whether a packet of this id would be kept. (Asking first saves computing the rest of it.) */
static inline bool ow_sample_wants(const struct ow_identity_sample *sample, uint64_t id)
{
	return id < sample->below;
}
/* By id, identical packets by time. */
void ow_sample_sort(struct ow_identity_sample *sample);
void ow_sample_add(struct ow_identity_sample *sample, const struct ow_sampled *packet);

/* The comparison of two samples (which it sorts and reduces to the smaller id range). */
struct ow_sample_overlap {
	double share;         /* packets in common / packets of the smaller sample, 0..1 */
	double packets;       /* estimate of the number in common over all that was offered */
	size_t common;        /* packets in common in the samples */
	double squares;       /* of the number of them with one id, summed up over the ids */
	double rate;          /* share of all ids that the samples are made of, 0..1 */
	size_t unique;        /* ids that occur exactly once on each side: the following members use only these */
	bool both_directions; /* some pair of hosts shows both directions, or the TTLs do */
	size_t lower_ttl[2];  /* unique ids whose TTL was lower when B saw them, and when A did */
	int64_t repeats_ns;   /* mean time between the most frequent identical packets; 0 = there are none */
	/* Quantiles of B's time minus A's, over unique ids; by direction if both are seen, otherwise all in a_to_b. */
	int64_t low_ns[2], median_ns[2], high_ns[2]; /* 2 %, 50 %, 98 %; [0] A to B, [1] B to A */
	int64_t min_ns, max_ns;                      /* over all */
	/*
	 * The drift of B's clock against A's per nanosecond, if it is clearly visible; all of the above is for B's
	 * clock corrected by it from drift_from_ns (B's time) on.
	 */
	double drift;
	int64_t drift_from_ns;
};

/* drifting: search for a drift of the clocks, and remove it. */
int ow_sample_overlap_find(struct ow_identity_sample *a, struct ow_identity_sample *b, bool drifting,
                           struct ow_sample_overlap *ret_common);
