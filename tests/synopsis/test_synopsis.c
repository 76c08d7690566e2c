/* SPDX-License-Identifier: Apache-2.0 */
/* What all synopses share, on a structure that is a plain sum of ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "synopsis/synopsis.h"
#include <errno.h>
#include <string.h>

struct sum {
	struct ow_synopsis base;
	uint64_t shape, sum;
};

static int sum_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	((struct sum *)synopsis)->sum += ((const struct sum *)other)->sum;
	return 0;
}

static int sum_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	((struct sum *)synopsis)->sum -= ((const struct sum *)other)->sum;
	return 0;
}

static size_t sum_size(const struct ow_synopsis *synopsis)
{
	(void)synopsis;
	return 8;
}

static void sum_encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	ow_store_le64(bytes, ((const struct sum *)synopsis)->sum);
}

static bool sum_same(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	return ((const struct sum *)a)->shape == ((const struct sum *)b)->shape;
}

/* No structure of the table has this kind. */
#define KIND_SUM 255
static const struct ow_synopsis_ops sum_ops = {.name = "sum",
                                               .kind = KIND_SUM,
                                               .merge = sum_merge,
                                               .subtract = sum_subtract,
                                               .encoded_size = sum_size,
                                               .encode = sum_encode,
                                               .same_shape = sum_same};
static const struct ow_synopsis_ops other_ops = {
	.name = "other", .kind = 254, .merge = sum_merge, .same_shape = sum_same};

static void test_merges_and_subtracts(void **state)
{
	(void)state;
	struct ow_error err;
	struct sum a = {{&sum_ops, 1}, 3, 100}, b = {{&sum_ops, 1}, 3, 58};
	assert_int_equal(ow_synopsis_merge(&a.base, &b.base, &err), 0);
	assert_int_equal(a.sum, 158);
	assert_int_equal(ow_synopsis_subtract(&a.base, &b.base, &err), 0);
	assert_int_equal(a.sum, 100);
}

static void test_refuses_what_differs(void **state)
{
	(void)state;
	struct ow_error err;
	struct sum a = {{&sum_ops, 1}, 3, 100},
		   other[] = {{{&other_ops, 1}, 3, 1}, {{&sum_ops, 2}, 3, 1}, {{&sum_ops, 1}, 4, 1}};
	const char *const reason[] = {"kinds: sum and other", "seeds", "parameters"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ow_synopsis_merge(&a.base, &other[i].base, &err), -EINVAL);
		assert_non_null(strstr(err.text, reason[i]));
		assert_int_equal(ow_synopsis_subtract(&a.base, &other[i].base, &err), -EINVAL);
		assert_int_equal(a.sum, 100);
	}
	struct sum x = {{&other_ops, 1}, 3, 1}, y = x;
	assert_int_equal(ow_synopsis_subtract(&x.base, &y.base, &err), -EINVAL);
	ow_synopsis_free(NULL);
}

static void test_names_a_bad_header(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_synopsis *ret = NULL;
	struct sum a = {{&sum_ops, 77}, 3, 100};
	uint8_t good[OW_SYNOPSIS_HEADER + 8], bad[sizeof good];
	assert_int_equal(ow_synopsis_encoded_size(&a.base), sizeof good);
	ow_synopsis_encode(&a.base, good);
	static const struct {
		int at, value;
		const char *reason;
	} cases[] = {
		{0, 'X', "OWS"},    {3, 9, "version 9"},     {4, 255, "unknown kind 255"}, {4, 0, "unknown kind 0"},
		{5, 1, "reserved"}, {8, -1, "another seed"}, {16, 9, "says 9 bytes"},      {23, 1, "more than"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memcpy(bad, good, sizeof bad);
		bad[cases[i].at] = (uint8_t)(cases[i].value < 0 ? ~bad[cases[i].at] : cases[i].value);
		assert_int_equal(ow_synopsis_decode(bad, sizeof bad, 77, &ret, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].reason));
	}
	for (size_t size = 0; size < sizeof good; size++)
		assert_int_equal(ow_synopsis_decode(good, size, 77, &ret, &err), -EINVAL);
	assert_int_equal(ow_synopsis_decode(good, sizeof good, 78, &ret, &err), -EINVAL);
	assert_non_null(strstr(err.text, "another seed"));
	assert_null(ret);
}

/* The seed does not stand in the bytes. */
static void test_hides_the_seed(void **state)
{
	(void)state;
	uint8_t bytes[OW_SYNOPSIS_HEADER + 8], seed[8];
	struct sum a = {{&sum_ops, UINT64_C(0x123456789abcdef0)}, 3, 100};
	ow_synopsis_encode(&a.base, bytes);
	ow_store_le64(seed, a.base.seed);
	assert_null(memmem(bytes, sizeof bytes, seed, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merges_and_subtracts),
		cmocka_unit_test(test_refuses_what_differs),
		cmocka_unit_test(test_names_a_bad_header),
		cmocka_unit_test(test_hides_the_seed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
