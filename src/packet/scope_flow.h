/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow.h"

/*
 * What scope (reconcile/scope_keys.h, reconcile/scope_verdict.h) knows of a flow: three keyed hashes that are the same
 * at both points, and what a person is told. Everything about scope is decided for flows, not for packets, so a
 * recorder keeps
 *
 *     for each flow of an interval    one struct ow_scope_flow, in any order, each flow once
 *     for each packet                 4 bytes: the index of its flow in that list, beside its sighting
 *
 * and the cost for a packet is that of finding its flow: a cache of the flows of the chunk, by the 64-bit hash.
 */
struct ow_scope_flow {
	uint64_t flow;      /* of addresses, protocol and ports */
	uint64_t pair;      /* of both networks: IPv4 /24, IPv6 /48 */
	uint64_t dest;      /* of the network of the destination */
	uint32_t packets;   /* of the flow in this interval (of the sample) */
	uint8_t network[6]; /* the destination's, in network order; IPv4: the first 3 bytes */
	uint8_t version;    /* 4 or 6 */
	uint8_t ttl;        /* of the last packet in the interval; 0 = not known */
	bool later;         /* fragments that are not the first: routers make them and join them */
};

/* The key of the hashes, from the seed of the lane, which both points know and nobody else. */
struct ow_scope_hash {
	uint64_t secret[4];
};

void ow_scope_hash_seed(struct ow_scope_hash *hash, uint64_t seed);
/* The hash of a flow alone: by this the recorder finds out whether it knows the flow. About 4 ns. */
uint64_t ow_scope_hash_flow(const struct ow_scope_hash *hash, const struct ow_flow_key *key);
/* Fills all but packets and ttl, which are 0. Keys that are not IP have networks of all 16 bytes. */
void ow_scope_flow_of(const struct ow_scope_hash *hash, const struct ow_flow_key *key, struct ow_scope_flow *ret_flow);
