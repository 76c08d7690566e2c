/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/scope_flow.h"
#include <string.h>

#define FLOWS 64

/* Some flows of few networks, others in each interval. */
static inline void make_flows(struct ow_scope_flow *flows, int64_t interval)
{
	struct ow_scope_hash hash;
	ow_scope_hash_seed(&hash, 1);
	for (unsigned i = 0; i < FLOWS; i++) {
		struct ow_flow_key key = {.proto = 17, .version = 4, .sport = (uint16_t)i};
		memcpy(key.src, (uint8_t[]){10, 0, (uint8_t)((i + (unsigned)interval) % 8), 1}, 4);
		memcpy(key.dst, (uint8_t[]){10, 1, (uint8_t)(i % 4), 1}, 4);
		ow_scope_flow_of(&hash, &key, &flows[i]);
		flows[i].packets = 1;
		flows[i].ttl = (uint8_t)(60 + (i + interval) % 2);
	}
}
