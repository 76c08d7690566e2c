/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/moments.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 3000

static struct ow_moments *make(uint32_t buckets, uint64_t seed)
{
	struct ow_moments *m;
	assert_int_equal(ow_moments_create(buckets, seed, &m, NULL), 0);
	return m;
}

static bool equal(const struct ow_moments *a, const struct ow_moments *b)
{
	return a->packets == b->packets && !memcmp(a->time, b->time, a->buckets * sizeof *a->time);
}

static void test_linear(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (size_t i = 0; i < STAMPS; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_u64(&random)};
	struct ow_moments *all = make(101, 1), *left = make(101, 1), *right = make(101, 1), *empty = make(101, 1);
	all->base.ops->add(&all->base, stamps, STAMPS);
	left->base.ops->add(&left->base, stamps + 1000, STAMPS - 1000);
	right->base.ops->add(&right->base, stamps, 1000);
	assert_int_equal(ow_synopsis_merge(&left->base, &right->base, NULL), 0);
	assert_true(equal(all, left));
	left->base.ops->remove(&left->base, stamps, 1000);
	assert_int_equal(ow_synopsis_subtract(&all->base, &right->base, NULL), 0);
	assert_true(equal(all, left));
	all->base.ops->reset(&all->base);
	assert_true(equal(all, empty));

	/* The counts are of the same buckets as the sums. */
	uint32_t counts[101] = {0};
	for (size_t i = 0; i < STAMPS; i++)
		stamps[i].time_ns = 1;
	all->base.ops->add(&all->base, stamps, STAMPS);
	ow_moments_count(all, stamps, STAMPS, counts);
	for (int i = 0; i < 101; i++)
		assert_int_equal(counts[i], all->time[i]);

	struct ow_moments *other = make(100, 1);
	struct ow_error err;
	assert_int_equal(ow_synopsis_merge(&all->base, &other->base, &err), -EINVAL);
	ow_synopsis_free(&other->base);
	ow_synopsis_free(&all->base);
	ow_synopsis_free(&left->base);
	ow_synopsis_free(&right->base);
	ow_synopsis_free(&empty->base);
}

static void test_bytes(void **state)
{
	(void)state;
	struct ow_moments *m = make(3, 9);
	m->base.ops->add(&m->base, (struct ow_sighting[]){{1, 10}, {2, 20}, {3, -30}}, 3);
	uint8_t bytes[OW_SYNOPSIS_HEADER + 16 + 3 * 8];
	assert_int_equal(ow_synopsis_encoded_size(&m->base), sizeof bytes);
	ow_synopsis_encode(&m->base, bytes);
	struct ow_synopsis *back;
	assert_int_equal(ow_synopsis_decode(bytes, sizeof bytes, 9, &back, NULL), 0);
	assert_true(equal(m, (struct ow_moments *)back));
	ow_synopsis_free(back);
	struct ow_error err;
	const uint8_t *body = bytes + OW_SYNOPSIS_HEADER;
	for (size_t cut = 0; cut < 40; cut++)
		assert_int_equal(ow_moments_ops.decode(body, cut, 9, &back, &err), -EINVAL);
	for (int i = 0; i < 8; i++) {
		bytes[OW_SYNOPSIS_HEADER + i] ^= 1;
		assert_int_equal(ow_moments_ops.decode(body, 40, 9, &back, &err), -EINVAL);
		bytes[OW_SYNOPSIS_HEADER + i] ^= 1;
	}
	ow_synopsis_free(&m->base);
}

static void test_sizes(void **state)
{
	(void)state;
	struct ow_moments *m;
	struct ow_error err;
	assert_int_equal(ow_moments_create(0, 1, &m, &err), -EINVAL);
	assert_int_equal(ow_moments_create(UINT32_MAX, 1, &m, &err), -EINVAL);
	struct ow_synopsis *s;
	assert_int_equal(ow_moments_create_for(7, &(struct ow_sizing){0}, 1, &s), -EINVAL);
	assert_int_equal(ow_moments_create_for(4095, &(struct ow_sizing){0}, 1, &s), 0);
	assert_int_equal(s->ops->memory(s), 4088);
	ow_synopsis_free(s);
	assert_int_equal(ow_moments_buckets(0.02), 4802);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
