/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Unaligned loads and stores. The caller has checked that the bytes are there. */
static inline uint16_t ow_load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t ow_load_be32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return __builtin_bswap32(v);
}

static inline uint16_t ow_load_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ow_load_le32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint64_t ow_load_le64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint64_t ow_load_be64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return __builtin_bswap64(v);
}

static inline void ow_store_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void ow_store_be32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof v);
}

static inline void ow_store_be64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof v);
}

static inline void ow_store_le16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void ow_store_le32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void ow_store_le64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
}

/* In the order of a capture file, which is the one of the host that wrote it. */
static inline uint16_t ow_load16(const uint8_t *p, bool big_endian)
{
	return big_endian ? ow_load_be16(p) : ow_load_le16(p);
}

static inline uint32_t ow_load32(const uint8_t *p, bool big_endian)
{
	return big_endian ? ow_load_be32(p) : ow_load_le32(p);
}

static inline uint64_t ow_load64(const uint8_t *p, bool big_endian)
{
	return big_endian ? ow_load_be64(p) : ow_load_le64(p);
}

static inline void ow_store16(uint8_t *p, uint16_t v, bool big_endian)
{
	ow_store_le16(p, big_endian ? __builtin_bswap16(v) : v);
}

static inline void ow_store32(uint8_t *p, uint32_t v, bool big_endian)
{
	ow_store_le32(p, big_endian ? __builtin_bswap32(v) : v);
}

static inline void ow_store64(uint8_t *p, uint64_t v, bool big_endian)
{
	ow_store_le64(p, big_endian ? __builtin_bswap64(v) : v);
}

/* Little-endian hosts only, as the loads above; the build refuses others. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "oneway is built for little-endian hosts"
#endif
