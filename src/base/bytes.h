/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

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

static inline void ow_store_le32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void ow_store_le64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
}

/* Little-endian hosts only, as the loads above; the build refuses others. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "oneway is built for little-endian hosts"
#endif
