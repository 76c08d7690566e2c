/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed hash of a fixed number of words. Pairs of words, each xored with its secret, are multiplied; the folded
 * products are combined by XOR (as in XXH3 and wyhash) and folded once more. The multiplications are independent of
 * each other.
 */
#include "idbatch.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include <errno.h>

int ow_idbatch_init(struct ow_idbatch *idbatch, size_t bytes, const uint8_t *mask, uint64_t seed)
{
	struct ow_random random;
	if (bytes < 8 || bytes > OW_IDBATCH_BYTES_MAX || bytes % 8)
		return -EINVAL;
	ow_random_seed(&random, seed);
	idbatch->words = bytes / 8;
	for (size_t i = 0; i < sizeof idbatch->secret / sizeof *idbatch->secret; i++)
		idbatch->secret[i] = ow_random_u64(&random);
	for (size_t i = 0; i < OW_IDBATCH_BYTES_MAX / 8; i++)
		idbatch->mask[i] = i >= idbatch->words ? 0 : mask ? ow_load_le64(mask + 8 * i) : UINT64_MAX;
	return 0;
}

/*
 * `words` is a constant in the calls that need speed. If the number is odd, the last word is multiplied with a secret.
 */
static inline __attribute__((always_inline)) uint64_t hash(const struct ow_idbatch *idbatch, const uint8_t *header,
                                                           size_t words)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < words; i += 2) {
		uint64_t x = ow_load_le64(header + 8 * i) & idbatch->mask[i], y = 0;
		if (i + 1 < words)
			y = ow_load_le64(header + 8 * i + 8) & idbatch->mask[i + 1];
		sum ^= ow_mum64(x ^ idbatch->secret[i], y ^ idbatch->secret[i + 1]);
	}
	const uint64_t *last = &idbatch->secret[OW_IDBATCH_BYTES_MAX / 8];
	return ow_mum64(sum ^ last[0], last[1] | 1);
}

static inline __attribute__((always_inline)) void run(const struct ow_idbatch *idbatch, const uint8_t *headers,
                                                      size_t stride, size_t count, uint64_t *ids, size_t step,
                                                      size_t words)
{
	/* A local copy, because the compiler must assume that writing ids changes *idbatch. */
	const struct ow_idbatch local = *idbatch;
	for (size_t i = 0; i < count; i++)
		ids[i * step] = hash(&local, headers + i * stride, words);
}

void ow_idbatch(const struct ow_idbatch *idbatch, const uint8_t *headers, size_t stride, size_t count, uint64_t *ids,
                size_t step)
{
	switch (idbatch->words) {
	case 5: /* IPv4 and TCP */
		run(idbatch, headers, stride, count, ids, step, 5);
		break;
	case 8:
		run(idbatch, headers, stride, count, ids, step, 8);
		break;
	default:
		run(idbatch, headers, stride, count, ids, step, idbatch->words);
		break;
	}
}
