/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/packet_order.h"
#include <oneway/details.h>
#include <oneway/match.h>

/* Computes struct ow_details of one direction from its packets. */
struct ow_details_tally;

/* keep_ns: how long TCP data is kept. */
int ow_details_tally_create(int64_t keep_ns, struct ow_details_tally **ret_tally);
void ow_details_tally_free(struct ow_details_tally *tally);

/* A packet that arrived, in the order of arrival; number: its place among the sent ones. */
void ow_details_tally_arrived(struct ow_details_tally *tally, uint64_t number, uint32_t packets);
/*
 * A sent packet whose fate is known, and, if it arrived, the number of its record there, and when. All packets that were
 * sent before before_ns have been added. Returns 0 or -ENOMEM.
 */
int ow_details_tally_sent(struct ow_details_tally *tally, const struct ow_ordered_packet *packet, uint64_t received,
                          int64_t received_ns, int64_t before_ns);
/*
 * After all packets: the numbers. result: the counts of the direction, which they must add up to; if they do not, the
 * numbers are left out, with a reason. *ret_jitter_flow: the number of the flow with the largest jitter. Returns 0 or
 * -ENOMEM.
 */
int ow_details_tally_finish(struct ow_details_tally *tally, const struct ow_result *result,
                            struct ow_details *ret_details, uint32_t *ret_jitter_flow);
/* Afterwards: the jitter of the next flow that has one, from number *flow on, which becomes its number. False: no more. */
bool ow_details_tally_jitter(const struct ow_details_tally *tally, uint32_t *flow, struct ow_flow_jitter *ret_jitter);
