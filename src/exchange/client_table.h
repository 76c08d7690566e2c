/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * State of the senders of datagrams: a table of fixed size, so that any number of clients takes the same memory, with a
 * keyed hash, so that a client cannot choose its slot. A slot is reused only if its client has been silent for long
 * enough: a flood of new clients cannot displace existing ones.
 */
struct ow_client_table;

struct ow_client {
	uint8_t key[20]; /* address (16), port (2), session (2) */
	bool used;
	int64_t last_ns;
	uint32_t number; /* for the caller */
	double tokens;   /* for the caller */
};

/* places: number of slots, a power of two, at least 8. */
int ow_client_table_create(size_t places, int64_t idle_ns, uint64_t seed, struct ow_client_table **ret_table);
void ow_client_table_free(struct ow_client_table *table);
/* The client with this key; a new one has number 0 and `tokens` tokens. NULL if there is no slot. */
struct ow_client *ow_client_table_find(struct ow_client_table *table, const uint8_t key[20], int64_t now_ns,
                                       double tokens);

/* Keys. A whole IPv6 /64 is one source, because its owner has all its addresses. */
void ow_client_session(const struct sockaddr_storage *peer, uint16_t session, uint8_t ret_key[20]);
void ow_client_source(const struct sockaddr_storage *peer, uint8_t ret_key[20]);
