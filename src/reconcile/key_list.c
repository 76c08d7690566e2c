/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys as Golomb-Rice codes of their distances: names.h has the layout. */
#include "reconcile/key_list.h"

#include "base/bytes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_BYTES 8

/* The distances of uniform keys are exponential; with these low bits the size is within 4 % of the smallest. */
static unsigned low_bits(unsigned key_bits, size_t count)
{
	unsigned low = key_bits;
	while (count > 1 && low > 0) {
		count /= 2;
		low--;
	}
	return count && low ? low - 1 : 0;
}

size_t ow_key_list_size(unsigned key_bits, const uint64_t *keys, size_t count)
{
	unsigned low = low_bits(key_bits, count);
	uint64_t before = 0, bits = 0;
	for (size_t i = 0; i < count; i++) {
		bits += ((keys[i] - before) >> low) + 1 + low;
		before = keys[i];
	}
	return PARAMS_BYTES + (bits + 7) / 8;
}

void ow_key_list_encode(unsigned key_bits, const uint64_t *keys, size_t count, uint8_t *bytes)
{
	unsigned low = low_bits(key_bits, count);
	uint64_t before = 0, at = 0;
	memset(bytes, 0, ow_key_list_size(key_bits, keys, count));
	ow_store_le32(bytes, (uint32_t)count);
	bytes[4] = (uint8_t)low;
	bytes += PARAMS_BYTES;
	for (size_t i = 0; i < count; i++) {
		uint64_t distance = keys[i] - before;
		for (uint64_t ones = distance >> low; ones; ones--, at++)
			bytes[at / 8] |= (uint8_t)(1u << at % 8);
		at++;
		for (unsigned bit = 0; bit < low; bit++, at++)
			bytes[at / 8] |= (uint8_t)((distance >> bit & 1) << at % 8);
		before = keys[i];
	}
}

/* Returns the bits read, or 0 if they are not enough or a key is too large. */
static uint64_t read_keys(unsigned key_bits, const uint8_t *bytes, uint64_t bits, unsigned low, uint64_t *keys,
                          size_t count)
{
	uint64_t at = 0, key = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t distance = 0;
		for (; at < bits && bytes[at / 8] >> at % 8 & 1; at++)
			distance++;
		if (bits - at < low + 1u || distance >> (key_bits - low))
			return 0;
		at++;
		distance <<= low;
		for (unsigned bit = 0; bit < low; bit++, at++)
			distance |= (uint64_t)(bytes[at / 8] >> at % 8 & 1) << bit;
		key += distance;
		if (key >> key_bits)
			return 0;
		keys[i] = key;
	}
	return at;
}

int ow_key_list_decode(unsigned key_bits, const uint8_t *bytes, size_t size, uint64_t **ret_keys, size_t *ret_count,
                       struct ow_error *err)
{
	if (size < PARAMS_BYTES)
		return ow_error_set(err, EINVAL, "names: %zu bytes are less than their header", size);
	uint32_t count = ow_load_le32(bytes);
	uint64_t bits = (uint64_t)(size - PARAMS_BYTES) * 8, *keys = NULL, at = 0;
	if (bytes[4] != low_bits(key_bits, count) || bytes[5] || bytes[6] || bytes[7])
		return ow_error_set(err, EINVAL, "names: %u low bits for %u keys", bytes[4], count);
	if (count > OW_KEY_LIST_MAX || count > bits)
		return ow_error_set(err, EINVAL, "names: %u keys in %zu bytes", count, size);
	if (count) {
		keys = malloc(count * sizeof *keys);
		if (!keys)
			return ow_error_set(err, ENOMEM, "names: %s", strerror(ENOMEM));
		at = read_keys(key_bits, bytes + PARAMS_BYTES, bits, bytes[4], keys, count);
	}
	/* Less than a byte is left, and it is 0. */
	if ((count && !at) || bits - at >= 8 || (at % 8 && bytes[PARAMS_BYTES + at / 8] >> at % 8)) {
		free(keys);
		return ow_error_set(err, EINVAL, "names: %u keys do not fill %zu bytes", count, size);
	}
	*ret_keys = keys;
	*ret_count = count;
	return 0;
}
