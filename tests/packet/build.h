/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "capture/frame.h"
#include <assert.h>
#include <string.h>

/*
 * Frames by hand: a buffer that grows at its end, and one small function per header. A length that a header needs is
 * patched in when the frame is complete (finish_ip).
 */
struct build {
	uint8_t data[4096];
	uint32_t len;
};

static inline uint8_t *put(struct build *b, const void *bytes, uint32_t len)
{
	assert(b->len + len <= sizeof b->data);
	uint8_t *p = b->data + b->len;
	if (bytes)
		memcpy(p, bytes, len);
	else
		memset(p, 0, len);
	b->len += len;
	return p;
}

#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline void put16(struct build *b, uint16_t v)
{
	ow_store_be16(put(b, NULL, 2), v);
}

static inline void put32(struct build *b, uint32_t v)
{
	ow_store_be32(put(b, NULL, 4), v);
}

static inline void ethernet(struct build *b, uint16_t type)
{
	PUT(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2);
	put16(b, type);
}

/* Returns the offset of the header. Length 0 until finish_ip. */
static inline uint32_t ipv4(struct build *b, uint8_t proto)
{
	uint32_t at = b->len;
	PUT(b, 0x45, 0x10, 0, 0, 0x12, 0x34, 0, 0, 61, proto, 0xab, 0xcd, 10, 1, 2, 3, 10, 4, 5, 6);
	return at;
}

static inline uint32_t ipv6(struct build *b, uint8_t proto)
{
	uint32_t at = b->len;
	PUT(b, 0x60, 1, 2, 3, 0, 0, proto, 60);
	PUT(b, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	PUT(b, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2);
	return at;
}

/* The IP packet at this offset reaches to the end of the buffer. */
static inline void finish_ip(struct build *b, uint32_t at)
{
	if (b->data[at] >> 4 == 4)
		ow_store_be16(b->data + at + 2, (uint16_t)(b->len - at));
	else
		ow_store_be16(b->data + at + 4, (uint16_t)(b->len - at - 40));
}

static inline uint32_t tcp(struct build *b, uint8_t flags, uint32_t seq)
{
	uint32_t at = b->len;
	put16(b, 443);
	put16(b, 51000);
	put32(b, seq);
	put32(b, 0x01020304);
	PUT(b, 0x50, flags, 0x20, 0, 0xbe, 0xef, 0, 0);
	return at;
}

static inline uint32_t udp(struct build *b, uint16_t sport, uint16_t dport)
{
	uint32_t at = b->len;
	put16(b, sport);
	put16(b, dport);
	put16(b, 100);
	put16(b, 0xbeef);
	return at;
}

static inline void payload(struct build *b, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		PUT(b, (uint8_t)(i * 7 + 3));
}

static inline struct ow_frame frame_of(const struct build *b, uint16_t linktype)
{
	return (struct ow_frame){.data = b->data, .caplen = b->len, .len = b->len, .number = 1, .linktype = linktype};
}

/* The packet that decoding must find at the end of whatever a test builds: UDP with 20 bytes. Returns its offset. */
static inline uint32_t plain_udp(struct build *b, unsigned version)
{
	uint32_t at = version == 4 ? ipv4(b, 17) : ipv6(b, 17);
	udp(b, 4000, 4001);
	payload(b, 20);
	finish_ip(b, at);
	return at;
}
