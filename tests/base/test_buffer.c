/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of bytes: what goes in comes out in order, and an empty one gives its memory back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/buffer.h"

/* Byte i of the stream. */
static uint8_t byte_of(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8));
}

static void test_in_order(void **state)
{
	(void)state;
	struct ow_buffer buffer = {0};
	struct ow_random random;
	uint64_t added = 0, taken = 0;
	ow_random_seed(&random, 5);
	for (int run = 0; run < 3000; run++) {
		size_t more = ow_random_below(&random, run % 500 ? 3000 : 200000);
		assert_int_equal(ow_buffer_reserve(&buffer, more), 0);
		assert_true(buffer.capacity - buffer.end >= more);
		for (size_t i = 0; i < more; i++)
			buffer.data[buffer.end++] = byte_of(added++);
		assert_int_equal(ow_buffer_size(&buffer), added - taken);
		size_t less = ow_random_below(&random, ow_buffer_size(&buffer) + 1);
		if (run % 50 == 49)
			less = ow_buffer_size(&buffer);
		for (size_t i = 0; i < less; i++) {
			if (buffer.data[buffer.start + i] != byte_of(taken + i))
				fail_msg("seed 5, run %d: byte %zu", run, i);
		}
		taken += less;
		ow_buffer_take(&buffer, less);
		assert_int_equal(ow_buffer_size(&buffer), added - taken);
	}
	ow_buffer_done(&buffer);
	assert_int_equal(ow_buffer_size(&buffer), 0);
}

static void test_memory(void **state)
{
	(void)state;
	struct ow_buffer buffer = {0};
	assert_int_equal(ow_buffer_reserve(&buffer, 1), 0);
	size_t least = buffer.capacity;
	/* As long as about as much is taken as added, it does not grow. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ow_buffer_reserve(&buffer, least / 4), 0);
		buffer.end += least / 4;
		ow_buffer_take(&buffer, i % 2 ? least / 2 : 0);
	}
	assert_true(buffer.capacity <= 2 * least);
	ow_buffer_take(&buffer, ow_buffer_size(&buffer));
	assert_int_equal(buffer.start, 0);
	assert_int_equal(buffer.end, 0);
	/* Large memory goes when it is empty. */
	assert_int_equal(ow_buffer_reserve(&buffer, (size_t)1 << 22), 0);
	buffer.end += (size_t)1 << 22;
	ow_buffer_take(&buffer, (size_t)1 << 22);
	assert_null(buffer.data);
	assert_int_equal(buffer.capacity, 0);
	ow_buffer_done(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_order), cmocka_unit_test(test_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
