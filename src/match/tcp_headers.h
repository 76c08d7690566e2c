/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/tcp_resends.h"
#include "packet/packet.h"

/* The TCP data of the packets of one capture, by the numbers of their records: for the records have no room for it. */
struct ow_tcp_header {
	uint32_t seq, len; /* len: with SYN and FIN; 0 = no such packet */
	bool syn, fin;
	uint64_t resends; /* as in struct ow_packet_event */
};

struct ow_tcp_headers;

/* keep_ns: how long they are kept after later ones were noted. */
int ow_tcp_headers_create(int64_t keep_ns, struct ow_tcp_headers **ret_headers);
void ow_tcp_headers_free(struct ow_tcp_headers *headers);
/* Notes a packet, in the order of numbers. flow: UINT32_MAX = not known. 0 or -ENOMEM. */
int ow_tcp_headers_note(struct ow_tcp_headers *headers, uint64_t number, int64_t time_ns, uint32_t flow,
                        const struct ow_packet *packet);
/* Zeros if it has none, or is not kept any more. */
struct ow_tcp_header ow_tcp_headers_get(const struct ow_tcp_headers *headers, uint64_t number);
