/* SPDX-License-Identifier: Apache-2.0 */
/* A ring: the header of record n is at n modulo its room, a power of two. Records without TCP data are zeros. */
#include "match/tcp_headers.h"

#include "base/bytes.h"
#include "base/time.h"
#include <errno.h>
#include <stdlib.h>

#define PROTO_TCP  6
#define TCP_HEADER 20 /* bytes, without options */
#define TCP_FIN    0x01
#define TCP_SYN    0x02
#define ROOM_LEAST 1024u
#define KEEP_LEAST 8192 /* records, whatever their times: batches of them are read ahead */
#define ROOM_MOST  (UINT64_C(1) << 30)

struct kept {
	int64_t time_ns;
	struct ow_tcp_header header;
};

struct ow_tcp_headers {
	int64_t keep_ns;
	struct kept *ring;
	uint64_t first, end; /* numbers that are kept, from first to before end */
	uint64_t room;
	struct ow_tcp_resends *resends;
};

int ow_tcp_headers_create(int64_t keep_ns, struct ow_tcp_headers **ret_headers)
{
	struct ow_tcp_headers *h = calloc(1, sizeof *h);
	if (!h || ow_tcp_resends_create(keep_ns, &h->resends) < 0) {
		free(h);
		return -ENOMEM;
	}
	h->keep_ns = keep_ns;
	*ret_headers = h;
	return 0;
}

void ow_tcp_headers_free(struct ow_tcp_headers *h)
{
	if (!h)
		return;
	ow_tcp_resends_free(h->resends);
	free(h->ring);
	free(h);
}

/* The TCP data of a packet; len is 0 if it has none, or its header is not captured. */
static struct ow_tcp_header header_of(const struct ow_packet *packet)
{
	const uint8_t *tcp = packet->l4;
	if (packet->proto != PROTO_TCP || !tcp || packet->end - tcp < 14 || packet->l4_len < TCP_HEADER)
		return (struct ow_tcp_header){0};
	uint32_t header = (uint32_t)(tcp[12] >> 4) * 4;
	if (header < TCP_HEADER || header > packet->l4_len || packet->fragment)
		return (struct ow_tcp_header){0};
	bool syn = tcp[13] & TCP_SYN, fin = tcp[13] & TCP_FIN;
	return (struct ow_tcp_header){
		.seq = ow_load_be32(tcp + 4), .len = packet->l4_len - header + syn + fin, .syn = syn, .fin = fin};
}

static struct kept *at(const struct ow_tcp_headers *h, uint64_t number)
{
	return &h->ring[number & (h->room - 1)];
}

static int make_room(struct ow_tcp_headers *h, uint64_t number)
{
	uint64_t room = h->room ? h->room : ROOM_LEAST;
	while (number - h->first >= room && room < ROOM_MOST)
		room *= 2;
	if (number - h->first >= room)
		return -ENOMEM;
	if (room == h->room)
		return 0;
	struct kept *ring = calloc(room, sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint64_t n = h->first; n < h->end; n++)
		ring[n & (room - 1)] = *at(h, n);
	free(h->ring);
	h->ring = ring;
	h->room = room;
	return 0;
}

int ow_tcp_headers_note(struct ow_tcp_headers *h, uint64_t number, int64_t time_ns, uint32_t flow,
                        const struct ow_packet *packet)
{
	if (number < h->end)
		return 0;
	while (h->end - h->first > KEEP_LEAST && ow_time_later(at(h, h->first)->time_ns, h->keep_ns) < time_ns)
		h->first++;
	if (h->first == h->end)
		h->first = h->end = number;
	if (make_room(h, number) < 0)
		return -ENOMEM;
	while (h->end < number)
		*at(h, h->end++) = (struct kept){.time_ns = time_ns};
	struct ow_tcp_header header = header_of(packet);
	struct ow_tcp_verdict verdict = {0};
	const struct ow_tcp_packet data = {.flow = flow,
	                                   .seq = header.seq,
	                                   .len = header.len,
	                                   .syn = header.syn,
	                                   .fin = header.fin,
	                                   .time_ns = time_ns,
	                                   .number = number,
	                                   .fate = OW_TCP_UNKNOWN};
	int r = header.len && flow != UINT32_MAX ? ow_tcp_resends_add(h->resends, &data, &verdict) : 0;
	header.resends = verdict.of;
	*at(h, h->end++) = (struct kept){.time_ns = time_ns, .header = header};
	return r;
}

struct ow_tcp_header ow_tcp_headers_get(const struct ow_tcp_headers *h, uint64_t number)
{
	return number >= h->first && number < h->end ? at(h, number)->header : (struct ow_tcp_header){0};
}
