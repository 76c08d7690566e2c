/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "packet/idbatch.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define HEADERS 4096

static void sizes(void **state)
{
	(void)state;
	struct ow_idbatch idbatch;
	static const size_t bad[] = {0, 7, 9, 20, 65, 72};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_idbatch_init(&idbatch, bad[i], NULL, 1), -EINVAL);
}

/* Each id depends on its own header alone, wherever that lies and however many there are. */
static void one_by_one(void **state)
{
	(void)state;
	static uint8_t headers[HEADERS * 80];
	static uint64_t ids[2 * HEADERS], one;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (size_t i = 0; i < sizeof headers; i++)
		headers[i] = (uint8_t)ow_random_u64(&random);
	for (size_t bytes = 8; bytes <= 64; bytes += 8) {
		struct ow_idbatch idbatch;
		assert_int_equal(ow_idbatch_init(&idbatch, bytes, NULL, 7), 0);
		memset(ids, 0, sizeof ids);
		ow_idbatch(&idbatch, headers + 1, 77, HEADERS, ids, 2);
		for (size_t i = 0; i < HEADERS; i += 17) {
			uint8_t copy[64];
			memcpy(copy, headers + 1 + 77 * i, bytes);
			ow_idbatch(&idbatch, copy, 0, 1, &one, 1);
			assert_true(one == ids[2 * i] && ids[2 * i + 1] == 0);
		}
	}
}

/* Every bit that is not masked changes about half of the bits of the id, a masked one none. */
static void avalanche(void **state)
{
	(void)state;
	for (size_t bytes = 8; bytes <= 64; bytes += 8) {
		uint8_t mask[64], header[64] = {0};
		struct ow_idbatch idbatch;
		memset(mask, 0xff, sizeof mask);
		mask[1] = 0; /* a TOS, say */
		for (size_t bit = 0; bit < bytes * 8; bit++) {
			double flipped = 0;
			for (uint64_t seed = 0; seed < 64; seed++) {
				uint64_t before, after;
				assert_int_equal(ow_idbatch_init(&idbatch, bytes, mask, seed), 0);
				ow_idbatch(&idbatch, header, bytes, 1, &before, 1);
				header[bit / 8] ^= (uint8_t)(1u << bit % 8);
				ow_idbatch(&idbatch, header, bytes, 1, &after, 1);
				header[bit / 8] ^= (uint8_t)(1u << bit % 8);
				flipped += __builtin_popcountll(before ^ after);
			}
			/* 4096 coins: 6 standard deviations are 192 */
			if (bit / 8 == 1)
				assert_true(flipped == 0);
			else
				assert_true(fabs(flipped - 2048) < 192);
		}
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Headers that differ in a counter only: no two alike, evenly spread. */
static void counters(void **state)
{
	(void)state;
	static uint8_t headers[HEADERS * 40];
	static uint64_t ids[HEADERS];
	unsigned bins[64] = {0};
	struct ow_idbatch idbatch;
	assert_int_equal(ow_idbatch_init(&idbatch, 40, NULL, 3), 0);
	for (unsigned i = 0; i < HEADERS; i++)
		memcpy(&headers[i * 40 + 4], &i, sizeof i);
	ow_idbatch(&idbatch, headers, 40, HEADERS, ids, 1);
	for (unsigned i = 0; i < HEADERS; i++)
		bins[ids[i] >> 58]++;
	qsort(ids, HEADERS, sizeof *ids, compare);
	for (unsigned i = 1; i < HEADERS; i++)
		assert_true(ids[i] != ids[i - 1]);
	for (unsigned i = 0; i < 64; i++)
		assert_true(bins[i] > 64 - 48 && bins[i] < 64 + 48); /* 6 standard deviations */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(one_by_one),
	                                   cmocka_unit_test(avalanche), cmocka_unit_test(counters)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
