/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/* A filter of pcap-filter(7) that accepts the packets of a flow of five-tuples, in both directions. */
#define OW_FLOW_FILTER 512
void ow_flow_filter(const struct ow_flow_key *key, char ret_filter[OW_FLOW_FILTER]);
