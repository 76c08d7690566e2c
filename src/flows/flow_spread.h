/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "synopsis/flow_samples.h"

/* How the delays of a heavy flow's packets spread, from the packets that both points sampled. */
struct ow_flow_spread {
	size_t samples; /* delays */
	struct ow_value quantile_ns[OW_QUANTILES];
	/* Of the samples: the flow's minimum is at most, its maximum at least this. */
	int64_t least_ns, most_ns;
};

/*
 * packets: received packets of the flow; sampled: of these, the packets from which the second point drew its sample. An
 * interval covers whatever the others may have been. false: fewer than OW_FLOW_SPREAD_MIN packets are in both samples.
 */
#define OW_FLOW_SPREAD_MIN 8
bool ow_flow_spread(const struct ow_flow_sample *from, const struct ow_flow_sample *to, uint64_t sampled,
                    uint64_t packets, struct ow_flow_spread *ret_spread);
