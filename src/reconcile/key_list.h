/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A list of keys for the other point: of packets that it shall leave out (synopsis/fold: 48 bits), or of flows (scope: 40 bits). Sorted keys
 * are near each other, so their distances are written, each as a Golomb-Rice code: 5 bytes a key at 1000 keys, 4.2 at
 * 1e5.
 *
 *     number of keys: 7 bits a byte, the lowest first, the top bit set on all but the last
 *     for each key: distance from the one before >> low as ones, a zero, the low bits; the lowest bit of a byte first,
 *     filled with zeros. low = the bits of a key less the bits of the number of keys (of 1, 2, 3, 4: 1, 2, 2, 3), or 0
 */
#define OW_KEY_LIST_MAX    (1u << 21)
#define OW_KEY_LIST_PACKET 48 /* bits of a key of a packet */

/* Bytes that the list takes. Keys: sorted, below 2^key_bits, at most OW_KEY_LIST_MAX. */
size_t ow_key_list_size(unsigned key_bits, const uint64_t *keys, size_t count);
void ow_key_list_encode(unsigned key_bits, const uint64_t *keys, size_t count, uint8_t *bytes);
/* *ret_keys is to be freed; NULL if there are none. -EINVAL names what is wrong, -ENOMEM. */
int ow_key_list_decode(unsigned key_bits, const uint8_t *bytes, size_t size, uint64_t **ret_keys, size_t *ret_count,
                       struct ow_error *err);
