/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PAPERS_RLI_H
#define OW_PAPERS_RLI_H

#include "papers/flow_stream.h"

/*
 * Reference latency interpolation (Lee, Duffield, Kompella, SIGCOMM 2010): the sender adds probes with a time stamp to
 * the traffic, and the receiver takes the delay of a packet that arrives between two probes from the straight line
 * between theirs. Probes go through the same queue and load it. A baseline for COLATE's figure 11.
 */
struct ow_rli_params {
	double least, most; /* probes a regular packet on a full link, on an idle one: 1/300 and 1/10; linear between */
	uint32_t probe_len; /* bytes that a queue carries */
	int64_t window_ns;  /* utilisation is that of the last window of so long */
};

struct ow_rli {
	/* In the order of the traffic's flows: what the packets met with probes among them; what interpolation says. */
	struct ow_flow_truth *truth, *estimate;
	size_t flows;
	uint64_t packets, lost;       /* regular ones */
	uint64_t probes, probes_lost; /* sent */
	double mean_ns;               /* of all regular packets, with probes among them */
};

/* The path has a single queue, whose rate is the link's. -EINVAL, -ENOMEM. */
int ow_rli_run(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
               const struct ow_rli_params *params, struct ow_rli *ret_rli, struct ow_error *err);
void ow_rli_done(struct ow_rli *rli);

#endif
