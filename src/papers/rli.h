/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/flow_stream.h"

/*
 * Reference latency interpolation (Lee, Duffield, Kompella, SIGCOMM 2010): the sender adds probes with a timestamp to
 * the traffic. The receiver interpolates the delay of a packet linearly between the probes before and after it. Probes
 * go through the same queue and add to its load. This is a baseline for COLATE's figure 11.
 */
struct ow_rli_params {
	/* probes per regular packet on a full link, and on an idle one: 1/300 and 1/10; linear in between */
	double least, most;
	uint32_t probe_len; /* bytes that a queue carries */
	int64_t window_ns;  /* utilisation is measured over the last window of this length */
};

struct ow_rli {
	/* In the order of the traffic's flows: the delays with probes in the traffic, and the interpolated ones. */
	struct ow_flow_truth *truth, *estimate;
	size_t flows;
	uint64_t packets, lost;       /* of regular packets */
	uint64_t probes, probes_lost; /* sent */
	double mean_ns;               /* of all regular packets, with probes in the traffic */
};

/* The path has a single queue, with the rate of the link. -EINVAL, -ENOMEM. */
int ow_rli_run(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
               const struct ow_rli_params *params, struct ow_rli *ret_rli, struct ow_error *err);
void ow_rli_done(struct ow_rli *rli);
