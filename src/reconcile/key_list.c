/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys as Golomb-Rice codes of their distances: names.h has the layout. */
#include "reconcile/key_list.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_BYTES_MAX 4

static size_t count_bytes(size_t count)
{
	size_t bytes = 1;
	for (; count > 0x7f; count >>= 7)
		bytes++;
	return bytes;
}

/* Returns the bytes of a number of keys, or 0: there are fewer, or too many. */
static size_t read_count(const uint8_t *bytes, size_t size, size_t *ret_count)
{
	size_t at = 0, count = 0;
	do {
		if (at == size || at == COUNT_BYTES_MAX)
			return 0;
		count |= (size_t)(bytes[at] & 0x7f) << 7 * at;
	} while (bytes[at++] & 0x80);
	*ret_count = count;
	return at == count_bytes(count) && count <= OW_KEY_LIST_MAX ? at : 0;
}

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
	return count_bytes(count) + (bits + 7) / 8;
}

void ow_key_list_encode(unsigned key_bits, const uint64_t *keys, size_t count, uint8_t *bytes)
{
	unsigned low = low_bits(key_bits, count);
	uint64_t before = 0, at = 0;
	memset(bytes, 0, ow_key_list_size(key_bits, keys, count));
	for (size_t rest = count, more = 1; more; rest >>= 7) {
		more = rest > 0x7f;
		*bytes++ = (uint8_t)((rest & 0x7f) | (more ? 0x80 : 0));
	}
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
	assert(key_bits < 64 && low < key_bits);
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
	size_t count = 0, header = read_count(bytes, size, &count);
	uint64_t bits = (uint64_t)(size - header) * 8, *keys = NULL, at = 0;
	if (!header || count > bits)
		return ow_error_set(err, EINVAL, "names: %zu keys in %zu bytes", count, size);
	if (count) {
		keys = malloc(count * sizeof *keys);
		if (!keys)
			return ow_error_set(err, ENOMEM, "names: %s", strerror(ENOMEM));
		at = read_keys(key_bits, bytes + header, bits, low_bits(key_bits, count), keys, count);
	}
	/* Less than a byte is left, and it is 0. */
	if ((count && !at) || bits - at >= 8 || (at % 8 && bytes[header + at / 8] >> at % 8)) {
		free(keys);
		return ow_error_set(err, EINVAL, "names: %zu keys do not fill %zu bytes", count, size);
	}
	*ret_keys = keys;
	*ret_count = count;
	return 0;
}
