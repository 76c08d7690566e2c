/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow keys and the table that numbers them: open addressing over slots of 8 bytes. A slot holds more bits of the hash
 * than one of base/id_map.h, and other bits than those that choose it, so that a plain packet needs the slot alone: one
 * cache line. Keys are in chunks that never move, so that pointers to keys stay valid until reset.
 */
#include "packet/flow.h"
#include "base/bytes.h"
#include "base/hash.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS      12
#define CHUNK_KEYS      (1u << CHUNK_BITS)
#define CHUNKS_MAX      (OW_FLOWS_MAX >> CHUNK_BITS)
#define SLOTS_MIN       8192u
#define NUMBER_BITS     21 /* of a slot: number + 1, so that 0 is an empty slot; the rest is the upper part of the hash */
#define AHEAD           32u /* plain packets whose slots are loaded ahead */
#define OVERFLOW_NUMBER (OW_FLOWS_MAX - 1)
#define FINE_FLOWS      (OW_FLOWS_MAX - OW_FLOWS_COARSE)

_Static_assert(sizeof(struct ow_flow_key) == 40, "keys are hashed and compared as five words");
_Static_assert(offsetof(struct ow_flow_key, sport) == 32 && offsetof(struct ow_flow_key, dport) == 34 &&
                       offsetof(struct ow_flow_key, proto) == 36 && offsetof(struct ow_flow_key, version) == 37,
               "the last word of a key is put together by ow_flow_key_of_packet");

_Static_assert(OW_FLOWS_MAX < 1u << NUMBER_BITS, "a slot holds every number + 1");

struct ow_flow_table {
	uint64_t secret[6];
	uint64_t *slot;
	uint32_t slots; /* a power of two, at least twice the flows */
	/* Atomic, because a thread may ask for the key of a number that it has while another one enters further flows. */
	_Atomic uint32_t count;
	bool coarse, overflowed;
	struct ow_flow_key *chunk[CHUNKS_MAX];
};

static inline uint32_t count_of(const struct ow_flow_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_relaxed);
}

/* Keys are read and written word by word: a load that is wider than the stores before it stalls for 15 ns. */
static inline uint64_t key_word(const struct ow_flow_key *key, size_t i)
{
	return ow_load_le64((const uint8_t *)key + 8 * i);
}

static inline void set_key_word(struct ow_flow_key *key, size_t i, uint64_t word)
{
	memcpy((uint8_t *)key + 8 * i, &word, sizeof word);
}

void ow_flow_key_of_packet(const struct ow_packet *packet, struct ow_flow_key *ret_key)
{
	const uint8_t *ip = packet->ip;
	bool v4 = packet->version == 4;
	uint64_t last = (uint64_t)packet->proto << 32 | (uint64_t)packet->version << 40;
	set_key_word(ret_key, 0, v4 ? ow_load_le32(ip + 12) : ow_load_le64(ip + 8));
	set_key_word(ret_key, 1, v4 ? 0 : ow_load_le64(ip + 16));
	set_key_word(ret_key, 2, v4 ? ow_load_le32(ip + 16) : ow_load_le64(ip + 24));
	set_key_word(ret_key, 3, v4 ? 0 : ow_load_le64(ip + 32));
	if (packet->l4 && packet->end - packet->l4 >= 4 && ow_flow_has_ports(packet->proto))
		last |= ow_load_be16(packet->l4) | (uint64_t)ow_load_be16(packet->l4 + 2) << 16;
	set_key_word(ret_key, 4, last);
}

/* The last word of the key of a plain packet, whose ports are still in network byte order. */
static inline uint64_t rest_of(const struct ow_plain *plain)
{
	uint32_t swapped = __builtin_bswap32(plain->ports);
	return (swapped >> 16 | swapped << 16) | (uint64_t)plain->proto << 32 | UINT64_C(4) << 40;
}

void ow_flow_key_of_plain(const struct ow_plain *plain, struct ow_flow_key *ret_key)
{
	set_key_word(ret_key, 0, (uint32_t)plain->addresses);
	set_key_word(ret_key, 1, 0);
	set_key_word(ret_key, 2, plain->addresses >> 32);
	set_key_word(ret_key, 3, 0);
	set_key_word(ret_key, 4, rest_of(plain));
}

void ow_flow_key_of_frame(const struct ow_frame *frame, struct ow_flow_key *ret_key)
{
	const uint8_t *p = frame->data;
	*ret_key = (struct ow_flow_key){0};
	switch (frame->linktype) {
	case 1:
		if (frame->caplen < 14)
			break;
		memcpy(ret_key->dst, p, 6);
		memcpy(ret_key->src, p + 6, 6);
		ret_key->ethertype = ow_load_be16(p + 12);
		break;
	case 113: /* Linux cooked, which has only the sender */
		if (frame->caplen < 16)
			break;
		memcpy(ret_key->src, p + 6, 6);
		ret_key->ethertype = ow_load_be16(p + 14);
		break;
	case 276:
		if (frame->caplen < 20)
			break;
		memcpy(ret_key->src, p + 12, 6);
		ret_key->ethertype = ow_load_be16(p);
		break;
	default:
		break;
	}
}

static const char *proto_name(uint8_t proto)
{
	switch (proto) {
	case 1:
		return "icmp";
	case 2:
		return "igmp";
	case 4:
		return "ipip";
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 33:
		return "dccp";
	case 41:
		return "ipv6";
	case 47:
		return "gre";
	case 50:
		return "esp";
	case 58:
		return "icmpv6";
	case 89:
		return "ospf";
	case 132:
		return "sctp";
	case 136:
		return "udplite";
	default:
		return NULL;
	}
}

const char *ow_flow_protocol_text(const struct ow_flow_key *key, char text[OW_PROTOCOL_TEXT])
{
	const char *name = key->version ? proto_name(key->proto) : NULL;
	if (!key->version)
		snprintf(text, OW_PROTOCOL_TEXT, "0x%04x", key->ethertype);
	else if (name)
		snprintf(text, OW_PROTOCOL_TEXT, "%s", name);
	else
		snprintf(text, OW_PROTOCOL_TEXT, "%u", key->proto);
	return text;
}

#define ENDPOINT_TEXT (INET6_ADDRSTRLEN + 10)

static void endpoint_text(const struct ow_flow_key *key, const uint8_t *address, uint16_t port,
                          char text[ENDPOINT_TEXT])
{
	char number[INET6_ADDRSTRLEN];
	inet_ntop(key->version == 4 ? AF_INET : AF_INET6, address, number, sizeof number);
	if (!key->sport && !key->dport)
		snprintf(text, ENDPOINT_TEXT, "%s", number);
	else
		snprintf(text, ENDPOINT_TEXT, key->version == 4 ? "%s:%u" : "[%s]:%u", number, port);
}

void ow_flow_key_text(const struct ow_flow_key *key, char text[OW_FLOW_TEXT])
{
	const uint8_t *s = key->src, *d = key->dst;
	if (key->version != 4 && key->version != 6) {
		snprintf(text, OW_FLOW_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x > %02x:%02x:%02x:%02x:%02x:%02x 0x%04x",
		         s[0], s[1], s[2], s[3], s[4], s[5], d[0], d[1], d[2], d[3], d[4], d[5], key->ethertype);
		return;
	}
	char from[ENDPOINT_TEXT], to[ENDPOINT_TEXT];
	endpoint_text(key, s, key->sport, from);
	endpoint_text(key, d, key->dport, to);
	const char *name = proto_name(key->proto);
	if (name)
		snprintf(text, OW_FLOW_TEXT, "%s > %s %s", from, to, name);
	else
		snprintf(text, OW_FLOW_TEXT, "%s > %s proto %u", from, to, key->proto);
}

int ow_flow_table_create(uint64_t seed, struct ow_flow_table **ret_table)
{
	struct ow_flow_table *table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	table->slots = SLOTS_MIN;
	table->slot = calloc(table->slots, sizeof *table->slot);
	if (!table->slot) {
		free(table);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < 6; i++)
		table->secret[i] = ow_mix64(seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
	*ret_table = table;
	return 0;
}

uint64_t ow_flow_table_secret(const struct ow_flow_table *table)
{
	return table->secret[0];
}

void ow_flow_table_free(struct ow_flow_table *table)
{
	if (!table)
		return;
	for (unsigned i = 0; i < CHUNKS_MAX; i++)
		free(table->chunk[i]);
	free(table->slot);
	free(table);
}

void ow_flow_table_reset(struct ow_flow_table *table)
{
	memset(table->slot, 0, table->slots * sizeof *table->slot);
	table->count = 0;
	table->coarse = table->overflowed = false;
}

/* rest: the last word of a key. */
static inline uint64_t hash_v4(const struct ow_flow_table *table, uint64_t addresses, uint64_t rest)
{
	return ow_mum64(addresses ^ table->secret[0], rest ^ table->secret[5]);
}

static uint64_t hash_key(const struct ow_flow_table *table, const struct ow_flow_key *key)
{
	const uint64_t *secret = table->secret;
	if (key->version == 4)
		return hash_v4(table, key_word(key, 0) | key_word(key, 2) << 32, key_word(key, 4));
	uint64_t h = ow_mum64(key_word(key, 0) ^ secret[0], key_word(key, 1) ^ secret[1]);
	h ^= ow_mum64(key_word(key, 2) ^ secret[2], key_word(key, 3) ^ secret[3]);
	return ow_mum64(h ^ secret[4], key_word(key, 4) ^ secret[5]);
}

static inline uint64_t slot_of(uint64_t hash, uint32_t number)
{
	return hash >> NUMBER_BITS << NUMBER_BITS | (number + 1);
}

static inline bool has_hash(uint64_t slot, uint64_t hash)
{
	return slot >> NUMBER_BITS == hash >> NUMBER_BITS;
}

static inline uint32_t number_in(uint64_t slot)
{
	return (uint32_t)(slot & ((1u << NUMBER_BITS) - 1)) - 1;
}

static inline bool same_key(const struct ow_flow_key *a, const struct ow_flow_key *b)
{
	uint64_t difference = 0;
	for (unsigned i = 0; i < 5; i++)
		difference |= key_word(a, i) ^ key_word(b, i);
	return difference == 0;
}

static inline struct ow_flow_key *key_at(const struct ow_flow_table *table, uint32_t number)
{
	return &table->chunk[number >> CHUNK_BITS][number & (CHUNK_KEYS - 1)];
}

/* Returns the number of the key, or UINT32_MAX and the slot for it. */
static inline uint32_t look_up(const struct ow_flow_table *table, const struct ow_flow_key *key, uint64_t hash,
                               uint32_t *ret_slot)
{
	uint32_t mask = table->slots - 1, i = (uint32_t)hash & mask;
	for (; table->slot[i]; i = (i + 1) & mask) {
		uint32_t number = number_in(table->slot[i]);
		if (has_hash(table->slot[i], hash) && same_key(key_at(table, number), key))
			return number;
	}
	*ret_slot = i;
	return UINT32_MAX;
}

static bool grow(struct ow_flow_table *table)
{
	uint32_t slots = table->slots * 2, mask = slots - 1;
	uint64_t *slot = calloc(slots, sizeof *slot);
	if (!slot)
		return false;
	for (uint32_t number = 0; number < count_of(table); number++) {
		uint64_t hash = hash_key(table, key_at(table, number));
		uint32_t i = (uint32_t)hash & mask;
		while (slot[i])
			i = (i + 1) & mask;
		slot[i] = slot_of(hash, number);
	}
	free(table->slot);
	table->slot = slot;
	table->slots = slots;
	return true;
}

/* Makes room for one more key. False: the table is full, or out of memory. */
static bool make_room(struct ow_flow_table *table)
{
	if (count_of(table) == OVERFLOW_NUMBER)
		return false;
	struct ow_flow_key **chunk = &table->chunk[count_of(table) >> CHUNK_BITS];
	if (!*chunk)
		*chunk = calloc(CHUNK_KEYS, sizeof **chunk);
	return *chunk && (count_of(table) < table->slots / 2 || grow(table));
}

static uint32_t enter(struct ow_flow_table *table, const struct ow_flow_key *key, uint64_t hash, uint32_t slot)
{
	uint32_t slots = table->slots;
	if (!make_room(table)) {
		table->overflowed = true;
		return OVERFLOW_NUMBER;
	}
	if (table->slots != slots)
		look_up(table, key, hash, &slot);
	uint32_t number = count_of(table);
	*key_at(table, number) = *key;
	atomic_store_explicit(&table->count, number + 1, memory_order_relaxed);
	table->slot[slot] = slot_of(hash, number);
	return number;
}

static void keep_prefix(uint8_t address[16], uint8_t version)
{
	size_t prefix = version == 4 ? 2 : version == 6 ? 6 : 0;
	memset(address + prefix, 0, 16 - prefix);
}

static struct ow_flow_key networks_of(const struct ow_flow_key *key)
{
	struct ow_flow_key coarse = *key;
	keep_prefix(coarse.src, key->version);
	keep_prefix(coarse.dst, key->version);
	coarse.sport = coarse.dport = 0;
	coarse.proto = 0;
	return coarse;
}

bool ow_flow_key_is_anonymous(const struct ow_flow_key *key)
{
	static const uint8_t none[sizeof key->src];
	return key->version && memcmp(key->src, none, sizeof none) == 0;
}

bool ow_flow_key_is_coarse(const struct ow_flow_key *key)
{
	struct ow_flow_key coarse = networks_of(key);
	return key->version && same_key(&coarse, key);
}

static uint32_t number_of_networks(struct ow_flow_table *table, const struct ow_flow_key *key)
{
	struct ow_flow_key coarse = networks_of(key);
	uint64_t hash = hash_key(table, &coarse);
	uint32_t slot = 0, number = look_up(table, &coarse, hash, &slot);
	table->coarse = true;
	return number != UINT32_MAX ? number : enter(table, &coarse, hash, slot);
}

uint32_t ow_flow_table_number(struct ow_flow_table *table, const struct ow_flow_key *key)
{
	uint64_t hash = hash_key(table, key);
	uint32_t slot = 0, number = look_up(table, key, hash, &slot);
	if (number != UINT32_MAX)
		return number;
	return count_of(table) < FINE_FLOWS ? enter(table, key, hash, slot) : number_of_networks(table, key);
}

static __attribute__((noinline)) uint32_t number_new_plain(struct ow_flow_table *table, const struct ow_plain *plain)
{
	struct ow_flow_key key;
	ow_flow_key_of_plain(plain, &key);
	return ow_flow_table_number(table, &key);
}

/* Compares hashes only. 43 bits of a keyed hash and the place in the table make one in 10^7 tables of a million flows
 * take two flows for one; with fewer flows it is still rarer. */
static inline uint32_t number_plain(struct ow_flow_table *table, const struct ow_plain *plain, uint64_t hash)
{
	uint32_t mask = table->slots - 1, i = (uint32_t)hash & mask;
	while (table->slot[i] && !has_hash(table->slot[i], hash))
		i = (i + 1) & mask;
	return table->slot[i] ? number_in(table->slot[i]) : number_new_plain(table, plain);
}

void ow_flow_table_number_plain(struct ow_flow_table *table, const struct ow_plain *plain, size_t count,
                                uint32_t *ret_numbers)
{
	uint64_t hash[AHEAD];
	for (size_t first = 0; first < count; first += AHEAD) {
		size_t n = count - first < AHEAD ? count - first : AHEAD;
		for (size_t i = 0; i < n; i++) {
			hash[i] = hash_v4(table, plain[first + i].addresses, rest_of(&plain[first + i]));
			__builtin_prefetch(&table->slot[(uint32_t)hash[i] & (table->slots - 1)]);
		}
		for (size_t i = 0; i < n; i++)
			ret_numbers[first + i] = number_plain(table, &plain[first + i], hash[i]);
	}
}

uint32_t ow_flow_table_find(const struct ow_flow_table *table, const struct ow_flow_key *key)
{
	uint32_t slot;
	return look_up(table, key, hash_key(table, key), &slot);
}

const struct ow_flow_key *ow_flow_table_key(const struct ow_flow_table *table, uint32_t number)
{
	static const struct ow_flow_key overflow;
	return number < count_of(table) ? key_at(table, number) : &overflow;
}

uint32_t ow_flow_table_count(const struct ow_flow_table *table)
{
	return table->overflowed ? OW_FLOWS_MAX : count_of(table);
}

bool ow_flow_table_is_coarse(const struct ow_flow_table *table)
{
	return table->coarse;
}
