/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include "point/identity_survey.h"

/*
 * Which identity makes the first packets of two captures the same that are still being written. The rule is that of whole
 * captures (reconcile/identity_choice.h). It is found out before the measurement, and then stays.
 */
struct ow_frame_list {
	const struct ow_frame **frame;
	size_t count;
};

/* The least number of bytes that both have of every packet, outside and inside of tunnels: index ow_identity.inner. */
void ow_stream_identity_limits(const struct ow_frame_list lists[2], enum ow_tcp_rule tcp, const uint32_t snaplen[2],
                               uint32_t ret_limit[2]);

/*
 * first: the identity to prefer, with its seed and rules for TCP and fragments. allowed: bit v for enum ow_variant v.
 * ret_decision->sampled: frames of the capture that has fewer. 0, or -ENOMEM.
 */
int ow_stream_identity_choose(const struct ow_frame_list lists[2], const struct ow_identity *first, uint32_t allowed,
                              const uint32_t limit[2], struct ow_identity_decision *ret_decision);
/* The identity with what the variant says. */
void ow_stream_identity_set(struct ow_identity *identity, enum ow_variant variant, const uint32_t limit[2]);
