/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "estimate/low_bits.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1000

/* Delays within the window come back, in one step or in two; others are noticed. */
static void test_window(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (unsigned bits = 1; bits <= OW_LOW_BITS_MAX; bits++) {
		int64_t sent[COUNT], time[COUNT], back[COUNT],
			least = (int64_t)ow_random_below(&random, 1u << 20) - (1 << 19);
		uint64_t part[COUNT] = {0};
		size_t size = ow_low_bits_size(COUNT, bits);
		uint8_t *bytes = malloc(size); /* exactly: a byte beyond is found by the sanitizer */
		for (int i = 0; i < COUNT; i++) {
			sent[i] = (int64_t)ow_random_below(&random, UINT64_C(1) << 40);
			time[i] = sent[i] + least + (int64_t)(ow_random_u64(&random) >> (64 - bits));
		}
		unsigned first = bits / 2;
		if (first) {
			ow_low_bits_pack(time, COUNT, 0, first, bytes);
			ow_low_bits_unpack(bytes, COUNT, 0, first, part);
		}
		ow_low_bits_pack(time, COUNT, first, bits - first, bytes);
		ow_low_bits_unpack(bytes, COUNT, first, bits - first, part);
		for (int i = 0; i < COUNT; i++)
			back[i] = ow_low_bits_restore(part[i], bits, sent[i] + least);
		assert_memory_equal(back, time, sizeof back);
		assert_true(ow_low_bits_check(back, COUNT, 0) == ow_low_bits_check(time, COUNT, 0));
		back[7] += INT64_C(1) << bits;
		assert_true(ow_low_bits_check(back, COUNT, 0) != ow_low_bits_check(time, COUNT, 0));
		/* Times that have changed places. */
		memcpy(back, time, sizeof back);
		back[0] = time[1];
		back[1] = time[0];
		if (time[0] != time[1])
			assert_true(ow_low_bits_check(back, COUNT, 0) != ow_low_bits_check(time, COUNT, 0));
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_window)};
	return cmocka_run_group_tests_name("low_bits", tests, NULL, NULL);
}
