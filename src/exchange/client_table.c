/* SPDX-License-Identifier: Apache-2.0 */
/* Slots in sets of eight, chosen by a keyed hash. */
#include "exchange/client_table.h"

#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define WAYS 8

struct ow_client_table {
	struct ow_client *place;
	size_t places;
	int64_t idle_ns;
	uint64_t seed;
};

int ow_client_table_create(size_t places, int64_t idle_ns, uint64_t seed, struct ow_client_table **ret_table)
{
	struct ow_client_table *v = calloc(1, sizeof *v);
	if (!v || !(v->place = calloc(places, sizeof *v->place))) {
		free(v);
		return -ENOMEM;
	}
	v->places = places;
	v->idle_ns = idle_ns;
	v->seed = seed;
	*ret_table = v;
	return 0;
}

void ow_client_table_free(struct ow_client_table *table)
{
	if (!table)
		return;
	free(table->place);
	free(table);
}

static uint64_t hash_of(uint64_t seed, const uint8_t key[20])
{
	uint64_t hash = ow_mix64(seed ^ ow_load_le64(key));
	hash = ow_mix64(hash ^ ow_load_le64(key + 8));
	return ow_mix64(hash ^ ow_load_le32(key + 16) ^ seed << 1);
}

struct ow_client *ow_client_table_find(struct ow_client_table *table, const uint8_t key[20], int64_t now_ns,
                                       double tokens)
{
	size_t sets = table->places / WAYS;
	struct ow_client *set = table->place + (hash_of(table->seed, key) & (sets - 1)) * WAYS, *oldest = set;
	for (int i = 0; i < WAYS; i++) {
		if (set[i].used && memcmp(set[i].key, key, sizeof set[i].key) == 0)
			return &set[i];
		if (!set[i].used || (oldest->used && set[i].last_ns < oldest->last_ns))
			oldest = &set[i];
	}
	if (oldest->used && now_ns - oldest->last_ns < table->idle_ns)
		return NULL;
	*oldest = (struct ow_client){.used = true, .last_ns = now_ns, .tokens = tokens};
	memcpy(oldest->key, key, sizeof oldest->key);
	return oldest;
}

/* An IPv4 address in IPv6 form. */
static void put_address(const struct sockaddr_storage *peer, uint8_t key[20], uint16_t *ret_port)
{
	memset(key, 0, 20);
	if (peer->ss_family == AF_INET6) {
		struct sockaddr_in6 six;
		memcpy(&six, peer, sizeof six);
		memcpy(key, &six.sin6_addr, 16);
		*ret_port = six.sin6_port;
	} else {
		struct sockaddr_in four;
		memcpy(&four, peer, sizeof four);
		key[10] = key[11] = 0xff;
		memcpy(key + 12, &four.sin_addr, 4);
		*ret_port = four.sin_port;
	}
}

void ow_client_session(const struct sockaddr_storage *peer, uint16_t session, uint8_t ret_key[20])
{
	uint16_t port;
	put_address(peer, ret_key, &port);
	memcpy(ret_key + 16, &port, 2);
	ow_store_be16(ret_key + 18, session);
}

void ow_client_source(const struct sockaddr_storage *peer, uint8_t ret_key[20])
{
	uint16_t port;
	put_address(peer, ret_key, &port);
	if (peer->ss_family == AF_INET6)
		memset(ret_key + 8, 0, 8);
}
