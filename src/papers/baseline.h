/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Baselines: ways to measure without a synopsis. All work on the packets of an interval as both points saw them, with
 * different ids for different packets (synopsis/copies.h).
 */

/* What happened to the packets of A. */
struct ow_fates {
	const struct ow_sighting *sent;
	size_t count;
	int64_t *delay_ns; /* of each packet; or one of the fates below */
	uint64_t received; /* at B, including packets that A did not see */
};
#define OW_FATE_NONE      INT64_MIN       /* it did not arrive */
#define OW_FATE_AMBIGUOUS (INT64_MIN + 1) /* A sent copies, and B saw a different number of them */

/* `a` must outlive ret_fates. Returns 0 or -ENOMEM. */
int ow_fates_find(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs,
                  struct ow_fates *ret_fates);
void ow_fates_done(struct ow_fates *fates);

/* What a baseline costs. */
struct ow_baseline_cost {
	size_t memory_bytes;
	uint64_t wire_bytes;
	char params[80];
};

/* A record as it is stored and sent: id and time. */
#define OW_BASELINE_RECORD 16
/* A probe on the wire: headers and a timestamp (FineComb 5.3: "at least 64 bytes"). */
#define OW_BASELINE_PROBE 64

/* Stores all records and sends them to the other point, whatever the memory. Exact, except for copies. */
int ow_baseline_direct(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                       struct ow_baseline_cost *ret_cost);
/* Records only packets that both points choose by the same keyed hash of the id, as many as fit into the memory. */
int ow_baseline_sampled(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                        struct ow_baseline_cost *ret_cost);
/*
 * Sends active probes at the times of a Poisson process, as many as make up `memory` bytes on the wire. A probe has the
 * fate of the next packet of the traffic. Probes alone cannot show how many packets were lost, so the number of packets
 * sent is taken as known.
 */
int ow_baseline_probes(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                       struct ow_baseline_cost *ret_cost);
