/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed hashes of flows and their networks. */
#include "packet/scope_flow.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include <string.h>

/* So that a pair of networks and a destination never have the same key by construction. */
enum { KIND_FLOW = 1, KIND_PAIR, KIND_DEST };

void ow_scope_hash_seed(struct ow_scope_hash *hash, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed ^ UINT64_C(0x73636f7065000000));
	for (size_t i = 0; i < sizeof hash->secret / sizeof *hash->secret; i++)
		hash->secret[i] = ow_random_u64(&random);
}

/* One multiplication takes in two words; each has its own secret, so that words cannot be exchanged. */
static inline uint64_t hash_words(const struct ow_scope_hash *hash, uint64_t kind, uint64_t a, uint64_t b, uint64_t c,
                                  uint64_t d, uint64_t e)
{
	uint64_t h = ow_mum64(a ^ hash->secret[0], b ^ hash->secret[1]);
	h ^= ow_mum64(c ^ hash->secret[2], d ^ hash->secret[3]);
	return ow_mix64(ow_mum64(h ^ hash->secret[1], e ^ hash->secret[2] ^ kind << 56) ^ hash->secret[3]);
}

static inline uint64_t word(const void *bytes, size_t i)
{
	return ow_load_le64((const uint8_t *)bytes + 8 * i);
}

uint64_t ow_scope_hash_flow(const struct ow_scope_hash *hash, const struct ow_flow_key *key)
{
	return hash_words(hash, KIND_FLOW, word(key, 0), word(key, 1), word(key, 2), word(key, 3), word(key, 4));
}

/* The network of an address: 24 bits of IPv4, 48 of IPv6, all of anything else. */
static void network_of(uint8_t version, const uint8_t address[16], uint64_t ret_words[2])
{
	uint8_t bytes[16] = {0};
	memcpy(bytes, address, version == 4 ? 3 : version == 6 ? 6 : 16);
	ret_words[0] = word(bytes, 0);
	ret_words[1] = word(bytes, 1);
}

void ow_scope_flow_of(const struct ow_scope_hash *hash, const struct ow_flow_key *key, struct ow_scope_flow *ret_flow)
{
	uint64_t src[2], dst[2];
	network_of(key->version, key->src, src);
	network_of(key->version, key->dst, dst);
	*ret_flow = (struct ow_scope_flow){
		.flow = ow_scope_hash_flow(hash, key),
		.pair = hash_words(hash, KIND_PAIR, src[0], src[1], dst[0], dst[1], key->version),
		.dest = hash_words(hash, KIND_DEST, 0, 0, dst[0], dst[1], key->version),
		.version = key->version,
		.later = key->version && key->ethertype == OW_FLOW_LATER_FRAGMENTS,
	};
	memcpy(ret_flow->network, key->dst, key->version == 4 ? 3 : sizeof ret_flow->network);
}
