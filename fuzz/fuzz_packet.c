/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder, packet ids and flow keys on any bytes. Input: link type 2 (little-endian), bytes missing on the wire 1
 * (frame length minus captured length), frame. What decoding returns must be inside the frame.
 */
#include "packet/flow.h"
#include "packet/identity.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* abort() instead of assert(): a build without assertions must check as well. */
static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_packet(const struct ow_frame *frame, bool inner, const struct ow_packet *p)
{
	const uint8_t *end = frame->data + frame->caplen;
	size_t captured = (size_t)(p->end - p->ip);
	check(p->version == 4 || p->version == 6);
	check(p->ip >= frame->data && p->ip < p->end && p->end <= end);
	check(captured >= (p->version == 4 ? 20 : 40));
	check(p->truncated == (captured < p->ip_len) && captured <= p->ip_len);
	check(!p->overlong || p->truncated);
	check(p->l4_len <= p->ip_len);
	if (p->l4) {
		check(p->l4 >= p->ip + 20 && p->l4 < p->end);
		check((size_t)(p->l4 - p->ip) + p->l4_len == p->ip_len);
	}
	check(inner || p->tunnels == 0);
	check(!p->tunnels || p->has_tunnel);
}

static void check_ids(const struct ow_packet *packet)
{
	static const uint32_t limits[] = {UINT32_MAX, 0, 19, 20, 23, 28, 33, 40, 41, 52, 60, 96, 100, 400};
	struct ow_identity identity = {0};
	ow_identity_seed(&identity, 1);
	for (unsigned i = 0; i < sizeof limits / sizeof *limits * 4; i++) {
		identity.level = i & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP;
		identity.segments = i & 2;
		identity.hash_limit = limits[i / 4];
		struct ow_packet_id id, again;
		int r = ow_identity_of_packet(&identity, packet, &id);
		check(r == 0 || r == -ENODATA);
		/* The id can be computed whenever the limit is not above the number of available bytes. */
		check(r == 0 || identity.hash_limit > ow_identity_available(packet, OW_TCP_EXACT));
		if (r < 0)
			continue;
		check(ow_identity_of_packet(&identity, packet, &again) == 0 && id.id == again.id);
		check(identity.segments || (id.seq == 0 && id.len == 0));
		check(id.len < packet->ip_len);
	}
}

static void check_flow(const struct ow_flow_key *key)
{
	char text[OW_FLOW_TEXT];
	ow_flow_key_text(key, text);
	check(memchr(text, 0, sizeof text) && text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	uint32_t caplen = (uint32_t)size - 3;
	uint8_t *copy = malloc(caplen ? caplen : 1);
	check(copy);
	memcpy(copy, data + 3, caplen);
	struct ow_frame frame = {
		.data = copy,
		.caplen = caplen,
		.len = caplen + data[2] * 16u,
		.number = 1,
		.linktype = (uint16_t)(data[0] | data[1] << 8),
	};
	struct ow_flow_key key;
	struct ow_packet packet;
	for (int inner = 0; inner < 2; inner++) {
		if (ow_packet_decode(&frame, inner, &packet) != OW_DECODE_IP)
			continue;
		check_packet(&frame, inner, &packet);
		check_ids(&packet);
		ow_flow_key_of_packet(&packet, &key);
		check_flow(&key);
	}
	struct ow_identity identity = {.level = OW_LEVEL_FRAME, .hash_limit = data[2] & 1 ? 64 : UINT32_MAX};
	struct ow_packet_id id;
	ow_identity_seed(&identity, 1);
	int r = ow_identity_of_frame(&identity, &frame, &id);
	check(r == 0 || (r == -ENODATA && frame.caplen < frame.len));
	ow_flow_key_of_frame(&frame, &key);
	check_flow(&key);
	free(copy);
	return 0;
}
