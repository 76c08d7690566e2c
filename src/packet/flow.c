/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow keys and the table that numbers them. Keys are in chunks that never move, so that pointers to keys stay valid
 * until reset.
 */
#include "packet/flow.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/id_map.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS      12
#define CHUNK_KEYS      (1u << CHUNK_BITS)
#define CHUNKS_MAX      (OW_FLOWS_MAX >> CHUNK_BITS)
#define FRONT           8192u /* power of two; 256 KB */
#define FRONT_WAYS      2u
#define OVERFLOW_NUMBER (OW_FLOWS_MAX - 1)
#define FINE_FLOWS      (OW_FLOWS_MAX - OW_FLOWS_COARSE)

_Static_assert(sizeof(struct ow_flow_key) == 40, "keys are hashed and compared as five words");
_Static_assert(offsetof(struct ow_flow_key, sport) == 32 && offsetof(struct ow_flow_key, dport) == 34 &&
                       offsetof(struct ow_flow_key, proto) == 36 && offsetof(struct ow_flow_key, version) == 37,
               "the last word of a key is put together by ow_flow_key_of_packet");

struct ow_flow_table {
	uint64_t secret[6];
	struct ow_id_map by_hash;
	uint32_t count;
	bool coarse, overflowed;
	struct ow_flow_key *chunk[CHUNKS_MAX];
	/* A cache of the numbers of busy flows of plain packets. It compares only a keyed 64-bit hash, which is assumed
	 * to be unique. */
	struct front {
		uint64_t hash;
		uint32_t number;
	} front[FRONT][FRONT_WAYS];
};

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
	ow_id_map_done(&table->by_hash);
	free(table);
}

void ow_flow_table_reset(struct ow_flow_table *table)
{
	ow_id_map_clear(&table->by_hash);
	table->count = 0;
	table->coarse = table->overflowed = false;
	memset(table->front, 0, sizeof table->front);
}

static inline uint64_t hash_key(const struct ow_flow_table *table, const struct ow_flow_key *key)
{
	const uint64_t *secret = table->secret;
	uint64_t h = ow_mum64(key_word(key, 0) ^ secret[0], key_word(key, 1) ^ secret[1]);
	h ^= ow_mum64(key_word(key, 2) ^ secret[2], key_word(key, 3) ^ secret[3]);
	return ow_mum64(h ^ secret[4], key_word(key, 4) ^ secret[5]);
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

/* Returns the number of the key, or UINT32_MAX. */
static inline uint32_t look_up(const struct ow_flow_table *table, const struct ow_flow_key *key, uint64_t hash)
{
	return OW_ID_MAP_FIND(&table->by_hash, hash, i, same_key(key_at(table, i), key));
}

/* Makes room for one more key. False: the table is full, or out of memory. */
static bool make_room(struct ow_flow_table *table)
{
	if (table->count == OVERFLOW_NUMBER)
		return false;
	struct ow_flow_key **chunk = &table->chunk[table->count >> CHUNK_BITS];
	if (!*chunk)
		*chunk = calloc(CHUNK_KEYS, sizeof **chunk);
	return *chunk;
}

static uint32_t enter(struct ow_flow_table *table, const struct ow_flow_key *key, uint64_t hash)
{
	if (!make_room(table) || ow_id_map_add(&table->by_hash, hash, table->count) < 0) {
		table->overflowed = true;
		return OVERFLOW_NUMBER;
	}
	*key_at(table, table->count) = *key;
	return table->count++;
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

bool ow_flow_key_is_coarse(const struct ow_flow_key *key)
{
	struct ow_flow_key coarse = networks_of(key);
	return key->version && same_key(&coarse, key);
}

static uint32_t number_of_networks(struct ow_flow_table *table, const struct ow_flow_key *key)
{
	struct ow_flow_key coarse = networks_of(key);
	uint64_t hash = hash_key(table, &coarse);
	uint32_t number = look_up(table, &coarse, hash);
	table->coarse = true;
	return number != UINT32_MAX ? number : enter(table, &coarse, hash);
}

uint32_t ow_flow_table_number(struct ow_flow_table *table, const struct ow_flow_key *key)
{
	uint64_t hash = hash_key(table, key);
	uint32_t number = look_up(table, key, hash);
	if (number != UINT32_MAX)
		return number;
	return table->count < FINE_FLOWS ? enter(table, key, hash) : number_of_networks(table, key);
}

static __attribute__((noinline)) uint32_t number_behind_front(struct ow_flow_table *table, const struct ow_plain *plain,
                                                              uint64_t hash)
{
	struct ow_flow_key key;
	set_key_word(&key, 0, (uint32_t)plain->addresses);
	set_key_word(&key, 1, 0);
	set_key_word(&key, 2, plain->addresses >> 32);
	set_key_word(&key, 3, 0);
	/* The ports are still in network byte order. */
	set_key_word(&key, 4,
	             __builtin_bswap16((uint16_t)plain->ports) |
	                     (uint64_t)__builtin_bswap16((uint16_t)(plain->ports >> 16)) << 16 |
	                     (uint64_t)plain->proto << 32 | UINT64_C(4) << 40);
	uint32_t number = ow_flow_table_number(table, &key);
	struct front *set = table->front[hash & (FRONT - 1)];
	set[1] = set[0];
	set[0] = (struct front){hash, number};
	return number;
}

void ow_flow_table_number_plain(struct ow_flow_table *table, const struct ow_plain *plain, size_t count,
                                uint32_t *ret_numbers)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t rest = plain[i].ports | (uint64_t)plain[i].proto << 32;
		uint64_t hash = ow_mum64(plain[i].addresses ^ table->secret[0], rest ^ table->secret[5]);
		const struct front *set = table->front[hash & (FRONT - 1)];
		const struct front *front = &set[set[0].hash != hash];
		ret_numbers[i] = front->hash == hash ? front->number : number_behind_front(table, &plain[i], hash);
	}
}

uint32_t ow_flow_table_find(const struct ow_flow_table *table, const struct ow_flow_key *key)
{
	return look_up(table, key, hash_key(table, key));
}

const struct ow_flow_key *ow_flow_table_key(const struct ow_flow_table *table, uint32_t number)
{
	static const struct ow_flow_key overflow;
	return number < table->count ? key_at(table, number) : &overflow;
}

uint32_t ow_flow_table_count(const struct ow_flow_table *table)
{
	return table->overflowed ? OW_FLOWS_MAX : table->count;
}

bool ow_flow_table_is_coarse(const struct ow_flow_table *table)
{
	return table->coarse;
}
