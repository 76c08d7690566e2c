/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Computes ids of many headers of one size at once, in 2 to 4 ns each, for captures with headers in a fixed layout (cut
 * at 40 or 64 bytes). The caller masks bytes that routers change. These ids differ from those of ow_identity, which
 * parses each packet; both points must use the same method.
 */
#define OW_IDBATCH_BYTES_MAX 64

struct ow_idbatch {
	size_t words; /* of 8 bytes */
	uint64_t mask[OW_IDBATCH_BYTES_MAX / 8];
	uint64_t secret[OW_IDBATCH_BYTES_MAX / 8 + 2];
};

/*
 * bytes: of a header, a multiple of 8, 8 .. OW_IDBATCH_BYTES_MAX, else -EINVAL. mask: as many bytes; the bits that are
 * set enter the id; NULL = all.
 */
int ow_idbatch_init(struct ow_idbatch *idbatch, size_t bytes, const uint8_t *mask, uint64_t seed);

/*
 * headers: `count` headers, `stride` bytes apart. ids: one in every `step` words (sizeof(struct ow_sighting) / 8 fills sightings in place).
 */
void ow_idbatch(const struct ow_idbatch *idbatch, const uint8_t *headers, size_t stride, size_t count, uint64_t *ids,
                size_t step);
