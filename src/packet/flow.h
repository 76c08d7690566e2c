/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/identity.h"
#include <stddef.h>

/* Flow keys and a table that numbers them 0, 1, 2, ... in order of appearance. Not thread-safe. */

/* Whether this IP protocol has ports, which are then part of the key. */
static inline bool ow_flow_has_ports(uint8_t proto)
{
	return proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136;
}

void ow_flow_key_of_packet(const struct ow_packet *packet, struct ow_flow_key *ret_key);
/* Scope has a flow of their own for fragments that are not the first: the key with this value in `ethertype`. */
#define OW_FLOW_LATER_FRAGMENTS 1
void ow_flow_key_of_plain(const struct ow_plain *plain, struct ow_flow_key *ret_key);
/* For frames that are not IP, or level frame: MACs and ethertype where the link has them. */
void ow_flow_key_of_frame(const struct ow_frame *frame, struct ow_flow_key *ret_key);

/* "10.0.0.1:80 > 10.0.0.2:1234 tcp", "[2001:db8::1]:53 > ..."; always 0-terminated. */
#define OW_FLOW_TEXT 128
/* "tcp", "112"; of frames that are not IP "0x0806". Returns the text. */
#define OW_PROTOCOL_TEXT 16
const char *ow_flow_protocol_text(const struct ow_flow_key *key, char text[OW_PROTOCOL_TEXT]);
void ow_flow_key_text(const struct ow_flow_key *key, char text[OW_FLOW_TEXT]);

/*
 * 2^20 flows need 64 MB. When only OW_FLOWS_COARSE numbers are left, they are given to pairs of networks (IPv4 /16,
 * IPv6 /48, no ports), because the packets of one pair still go in the same direction. When these are used up, all
 * further flows share the last number.
 */
#define OW_FLOWS_MAX    (1u << 20)
#define OW_FLOWS_COARSE (1u << 16)

/* Whether the sender has no address yet (DHCP, MLD): many hosts, on both sides, send as one flow. */
bool ow_flow_key_is_anonymous(const struct ow_flow_key *key);

/* Whether this is the key of a pair of networks, not of a flow. */
bool ow_flow_key_is_coarse(const struct ow_flow_key *key);

struct ow_flow_table;
int ow_flow_table_create(uint64_t seed, struct ow_flow_table **ret_table);
/* The key of the table's hashes, for other tables of the same flows. */
uint64_t ow_flow_table_secret(const struct ow_flow_table *table);
void ow_flow_table_free(struct ow_flow_table *table);
void ow_flow_table_reset(struct ow_flow_table *table);
/* Returns the number of the flow; adds it if it is new. If the table is full, returns the number of its pair of
 * networks. If that fails too, or memory runs out, returns the number of the overflow flow, OW_FLOWS_MAX - 1. */
uint32_t ow_flow_table_number(struct ow_flow_table *table, const struct ow_flow_key *key);
/* The same for plain packets (packet/identity.h), many at once, so that their memory loads overlap. */
void ow_flow_table_number_plain(struct ow_flow_table *table, const struct ow_plain *plain, size_t count,
                                uint32_t *ret_numbers);
/* The number of a known flow, or UINT32_MAX. */
uint32_t ow_flow_table_find(const struct ow_flow_table *table, const struct ow_flow_key *key);
const struct ow_flow_key *ow_flow_table_key(const struct ow_flow_table *table, uint32_t number);
/* Count of the numbers in use: 0 .. count-1 (the overflow flow extends this to OW_FLOWS_MAX). */
uint32_t ow_flow_table_count(const struct ow_flow_table *table);
/* Whether there were more flows than numbers. */
bool ow_flow_table_is_coarse(const struct ow_flow_table *table);
