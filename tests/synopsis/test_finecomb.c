/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/finecomb.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 4000

static const struct ow_finecomb_params one = {1, {{100, UINT32_MAX / 2, 10}}};
static const struct ow_finecomb_params three = {
	3, {{64, UINT32_MAX, 7}, {33, UINT32_MAX >> 3, 0}, {9, UINT32_MAX >> 7, 3}}};

/* In order of time. */
static void make_stamps(uint64_t seed, struct ow_sighting *stamps, size_t count)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < count; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random),
		                                 (int64_t)(1000 * i + ow_random_below(&random, 1000))};
}

static struct ow_finecomb *make(const struct ow_finecomb_params *params, uint64_t seed)
{
	struct ow_finecomb *f;
	assert_int_equal(ow_finecomb_create(params, seed, &f, NULL), 0);
	return f;
}

static bool equal_buckets(const struct ow_finecomb *a, const struct ow_finecomb *b)
{
	return !memcmp(a->bucket, b->bucket, a->first[a->params.banks] * sizeof *a->bucket);
}

static bool equal_stashes(const struct ow_finecomb *a, const struct ow_finecomb *b)
{
	for (uint32_t k = 0; k < a->params.banks; k++)
		for (int side = 0; side < OW_STASHES; side++) {
			if (a->stash[k][side].count != b->stash[k][side].count)
				return false;
			for (uint32_t i = 0; i < a->stash[k][side].count; i++) {
				const struct ow_finecomb_entry *x = ow_finecomb_entry(&a->stash[k][side], i);
				const struct ow_finecomb_entry *y = ow_finecomb_entry(&b->stash[k][side], i);
				if (x->time != y->time || x->digest != y->digest || x->bucket != y->bucket)
					return false;
			}
		}
	return true;
}

/* Buckets do not depend on order or batches; taking packets out is the inverse of adding them. */
static void test_add(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(1, stamps, STAMPS);
	for (int k = 0; k < 2; k++) {
		const struct ow_finecomb_params *params = k ? &three : &one;
		struct ow_finecomb *all = make(params, 7), *bits = make(params, 7), *back = make(params, 7);
		all->base.ops->add(&all->base, stamps, STAMPS);
		for (size_t i = 0; i < STAMPS;) {
			size_t batch = 1 + i % 77 < STAMPS - i ? 1 + i % 77 : STAMPS - i;
			bits->base.ops->add(&bits->base, stamps + i, batch);
			i += batch;
		}
		assert_true(equal_buckets(all, bits) && equal_stashes(all, bits));
		for (size_t i = STAMPS; i > 0; i--)
			back->base.ops->add(&back->base, &stamps[i - 1], 1);
		assert_true(equal_buckets(all, back));
		struct ow_finecomb *empty = make(params, 7);
		all->base.ops->remove(&all->base, stamps, STAMPS);
		assert_true(equal_buckets(all, empty) && equal_stashes(all, empty));
		bits->base.ops->reset(&bits->base);
		assert_true(equal_buckets(bits, empty) && equal_stashes(bits, empty));
		ow_synopsis_free(&all->base);
		ow_synopsis_free(&bits->base);
		ow_synopsis_free(&back->base);
		ow_synopsis_free(&empty->base);
	}
}

/* Each sub-stash holds the sampled packets that are nearest to its boundary. */
static void test_stashes(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(2, stamps, STAMPS);
	const struct ow_finecomb_params params = {1, {{50, UINT32_MAX, 5}}};
	struct ow_finecomb *f = make(&params, 1);
	ow_finecomb_before(f, stamps, 3);
	ow_finecomb_before(f, stamps + 3, 97);
	f->base.ops->add(&f->base, stamps + 100, 200);
	ow_finecomb_after(f, stamps + 300, 3);
	ow_finecomb_after(f, stamps + 303, 100);
	const size_t start[OW_STASHES] = {95, 100, 295, 300};
	for (int side = 0; side < OW_STASHES; side++) {
		assert_int_equal(f->stash[0][side].count, 5);
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(ow_finecomb_entry(&f->stash[0][side], i)->time,
			                 stamps[start[side] + i].time_ns);
	}
	size_t bytes = f->base.ops->memory(&f->base);
	assert_int_equal(bytes, 24 * (50 + 20));
	ow_synopsis_free(&f->base);
}

/* Two queues of a point give what one would have given, in any order. */
static void test_merge(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(3, stamps, STAMPS);
	struct ow_finecomb *all = make(&three, 3), *part[3];
	for (int i = 0; i < 3; i++)
		part[i] = make(&three, 3);
	ow_finecomb_before(all, stamps, 500);
	all->base.ops->add(&all->base, stamps + 500, STAMPS - 1000);
	ow_finecomb_after(all, stamps + STAMPS - 500, 500);
	for (size_t i = 0; i < STAMPS; i++) {
		struct ow_finecomb *p = part[i * 7 / 3 % 3];
		if (i < 500)
			ow_finecomb_before(p, &stamps[i], 1);
		else if (i < STAMPS - 500)
			p->base.ops->add(&p->base, &stamps[i], 1);
		else
			ow_finecomb_after(p, &stamps[i], 1);
	}
	struct ow_finecomb *left = make(&three, 3), *right = make(&three, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ow_synopsis_merge(&left->base, &part[i]->base, NULL), 0);
		assert_int_equal(ow_synopsis_merge(&right->base, &part[2 - i]->base, NULL), 0);
	}
	assert_true(equal_buckets(all, left) && equal_stashes(all, left));
	assert_true(equal_buckets(all, right) && equal_stashes(all, right));
	assert_int_equal(ow_synopsis_subtract(&left->base, &all->base, NULL), 0);
	struct ow_finecomb *empty = make(&three, 3);
	assert_true(equal_buckets(left, empty));
	struct ow_finecomb *other_seed = make(&three, 4), *other_shape = make(&one, 3);
	struct ow_finecomb_params stash = three;
	stash.bank[0].stash++;
	struct ow_finecomb *other_stash = make(&stash, 3);
	struct ow_error err;
	assert_int_equal(ow_synopsis_merge(&all->base, &other_seed->base, &err), -EINVAL);
	assert_int_equal(ow_synopsis_merge(&all->base, &other_shape->base, &err), -EINVAL);
	assert_int_equal(ow_synopsis_subtract(&all->base, &other_stash->base, &err), -EINVAL);
	struct ow_finecomb *gone[] = {all,         left,        right,   empty,   other_seed,
	                              other_shape, other_stash, part[0], part[1], part[2]};
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		ow_synopsis_free(&gone[i]->base);
}

static void test_bytes(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(4, stamps, STAMPS);
	struct ow_finecomb *f = make(&three, 5);
	ow_finecomb_before(f, stamps, 100);
	f->base.ops->add(&f->base, stamps + 100, 1000);
	ow_finecomb_after(f, stamps + 1100, 3);
	size_t size = ow_synopsis_encoded_size(&f->base);
	uint8_t *bytes = malloc(size);
	ow_synopsis_encode(&f->base, bytes);
	struct ow_synopsis *back;
	assert_int_equal(ow_synopsis_decode(bytes, size, 5, &back, NULL), 0);
	assert_int_equal(ow_synopsis_comparable(&f->base, back, NULL), 0);
	assert_true(equal_buckets(f, (struct ow_finecomb *)back) && equal_stashes(f, (struct ow_finecomb *)back));
	ow_synopsis_free(back);

	uint8_t *body = bytes + OW_SYNOPSIS_HEADER;
	size -= OW_SYNOPSIS_HEADER;
	struct ow_error err;
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(ow_finecomb_ops.decode(body, cut, 5, &back, &err), -EINVAL);
	/* Every bit: a valid synopsis, or an error with a text. */
	for (size_t i = 0; i < size * 8; i++) {
		body[i / 8] ^= (uint8_t)(1 << i % 8);
		err.text[0] = 0;
		int r = ow_finecomb_ops.decode(body, size, 5, &back, &err);
		if (r == 0)
			ow_synopsis_free(back);
		else
			assert_true(r == -EINVAL && err.text[0]);
		body[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	free(bytes);
	ow_synopsis_free(&f->base);
}

static void test_params(void **state)
{
	(void)state;
	const struct ow_finecomb_params bad[] = {
		{0, {{0, 0, 0}}},          {9, {{1, 9, 0}}},          {1, {{0, 5, 0}}}, {2, {{5, 5, 0}, {5, 5, 0}}},
		{1, {{5, 5, UINT32_MAX}}}, {1, {{UINT32_MAX, 5, 0}}},
	};
	struct ow_finecomb *f;
	struct ow_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_finecomb_create(&bad[i], 1, &f, &err), -EINVAL);
	struct ow_synopsis *s;
	assert_int_equal(ow_finecomb_create_for(47, &(struct ow_sizing){1e6, 0.01, 0.001}, 1, &s), -EINVAL);
	for (size_t memory = 48; memory < 100000; memory = memory * 3 / 2) {
		const struct ow_sizing sizings[] = {
			{1e6, 0.01, 0.001}, {1e6, 0, 0}, {0, 0, 0}, {1e6, 0, 0.1}, {10, 1, 1}};
		for (size_t i = 0; i < sizeof sizings / sizeof *sizings; i++) {
			assert_int_equal(ow_finecomb_create_for(memory, &sizings[i], 1, &s), 0);
			assert_true(s->ops->memory(s) <= memory && s->ops->memory(s) + 24 > memory - 24);
			ow_synopsis_free(s);
		}
	}
}

/* p* solves the paper's equation (6) where that does not cancel, and is the best of its neighbourhood. */
static void test_sizing(void **state)
{
	(void)state;
	const double t = 5e6, s = 1000;
	for (double rho = 4e-5; rho < 0.01; rho *= 3)
		for (double beta = 1e-4; beta < 0.05; beta *= 10) {
			double p = ow_finecomb_sampling(s, t, beta, rho, true);
			double printed =
				s / (2 * rho * rho * t) * (2 * rho + beta - sqrt(4 * rho * beta + beta * beta));
			assert_true(fabs(p - fmin(1, printed)) < 1e-6 * p);
			if (p == 1)
				continue;
			double best = ow_finecomb_samples(s - p * rho * t, p * rho * t, t, beta, rho, p);
			for (double q = 0.9 * p; q < 1.11 * p; q += 0.2 * p)
				assert_true(best >
				            0.999 * ow_finecomb_samples(s - q * rho * t, q * rho * t, t, beta, rho, q));
			double none = ow_finecomb_sampling(s, t, beta, rho, false);
			assert_true(best > ow_finecomb_samples(s, 0, t, beta, rho, none));
		}
	/* No drift: LDA's optimum, alpha = 1. */
	assert_true(fabs(ow_finecomb_sampling(1000, 1e6, 0.01, 0, true) - 0.1) < 1e-12);
	assert_true(ow_finecomb_sampling(1000, 1e6, 0, 0, true) == 1);

	struct ow_finecomb_params params;
	assert_int_equal(
		ow_finecomb_tune_four(5e6, 1000, (double[]){1e-4, 0.01}, (double[]){1e-4, 0.01}, 0, &params, NULL), 0);
	assert_int_equal(params.banks, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(params.bank[i].buckets + 4 * params.bank[i].stash, 250);
	uint32_t storage = ow_finecomb_storage(1e6, 0.01, 0.001, 1.76, 0.01);
	double p = ow_finecomb_sampling(storage, 1e6, 0.01, 0.001, true), w = p * 1000;
	double samples = ow_finecomb_samples(storage - w, w, 1e6, 0.01, 0.001, p), want = pow(1.96 * 176, 2);
	assert_true(samples >= want && samples < 1.01 * want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),   cmocka_unit_test(test_stashes), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_params),  cmocka_unit_test(test_sizing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
