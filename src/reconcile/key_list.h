/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_KEY_LIST_H
#define OW_RECONCILE_KEY_LIST_H

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A list of packet keys (synopsis/fold: 48 bits) for the other point, which shall leave these packets out. Sorted keys
 * are near each other, so their distances are written, each as a Golomb-Rice code: 5 bytes a key at 1000 keys, 4.2 at
 * 1e5.
 *
 * Little-endian:   0  number of keys (4), low bits of a distance (1), reserved (3, zero)
 *                  8  for each key: distance from the one before >> low as ones, a zero, the low bits; the lowest bit
 *                     of a byte first, filled with zeros
 */
#define OW_KEY_LIST_MAX (1u << 21)

/* Bytes that the list takes. Keys: sorted, below 2^48, at most OW_KEY_LIST_MAX. */
size_t ow_key_list_size(const uint64_t *keys, size_t count);
void ow_key_list_encode(const uint64_t *keys, size_t count, uint8_t *bytes);
/* *ret_keys is to be freed; NULL if there are none. -EINVAL names what is wrong, -ENOMEM. */
int ow_key_list_decode(const uint8_t *bytes, size_t size, uint64_t **ret_keys, size_t *ret_count, struct ow_error *err);

#endif
