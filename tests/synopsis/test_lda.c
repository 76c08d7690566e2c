/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/lda.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 5000

static const struct ow_lda_params one = {1, {{100, UINT32_MAX / 3}}};
static const struct ow_lda_params three = {3, {{64, UINT32_MAX}, {33, UINT32_MAX >> 3}, {7, UINT32_MAX >> 7}}};

static void make_stamps(uint64_t seed, struct ow_sighting *stamps, size_t count)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < count; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_u64(&random) >> 20};
}

static struct ow_lda *make(const struct ow_lda_params *params, uint64_t seed)
{
	struct ow_lda *lda;
	assert_int_equal(ow_lda_create(params, seed, &lda, NULL), 0);
	return lda;
}

static bool equal(const struct ow_lda *a, const struct ow_lda *b)
{
	return !memcmp(a->bucket, b->bucket, a->first[a->params.banks] * sizeof *a->bucket);
}

/* Each packet goes to at most one bucket, that of the last bank which takes it; the order and the batches of packets
   do not matter. */
static void test_add(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(1, stamps, STAMPS);
	for (int k = 0; k < 2; k++) {
		struct ow_lda *all = make(k ? &three : &one, 7), *bits = make(k ? &three : &one, 7);
		all->base.ops->add(&all->base, stamps, STAMPS);
		uint64_t packets = 0;
		for (uint32_t i = 0; i < all->first[all->params.banks]; i++)
			packets += all->bucket[i].packets;
		assert_true(k ? packets == STAMPS : packets > STAMPS / 3 - 200 && packets < STAMPS / 3 + 200);
		for (size_t i = STAMPS; i > 0;) {
			size_t batch = i < 77 ? i : 1 + i % 77;
			i -= batch;
			bits->base.ops->add(&bits->base, stamps + i, batch);
		}
		assert_true(equal(all, bits));
		bits->base.ops->remove(&bits->base, stamps, STAMPS);
		struct ow_lda *empty = make(k ? &three : &one, 7);
		assert_true(equal(bits, empty));
		all->base.ops->reset(&all->base);
		assert_true(equal(all, empty));
		ow_synopsis_free(&empty->base);
		ow_synopsis_free(&all->base);
		ow_synopsis_free(&bits->base);
	}
}

static void test_merge(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(2, stamps, STAMPS);
	struct ow_lda *all = make(&three, 3), *part[3];
	all->base.ops->add(&all->base, stamps, STAMPS);
	for (size_t i = 0; i < 3; i++) {
		part[i] = make(&three, 3);
		part[i]->base.ops->add(&part[i]->base, stamps + i * 1000, i < 2 ? 1000 : STAMPS - 2000);
	}
	/* (2 + 0) + 1 = all; all - 1 = 2 + 0 */
	assert_int_equal(ow_synopsis_merge(&part[2]->base, &part[0]->base, NULL), 0);
	assert_int_equal(ow_synopsis_subtract(&all->base, &part[1]->base, NULL), 0);
	assert_true(equal(all, part[2]));
	assert_int_equal(ow_synopsis_merge(&all->base, &part[1]->base, NULL), 0);
	assert_int_equal(ow_synopsis_merge(&part[1]->base, &part[2]->base, NULL), 0);
	assert_true(equal(all, part[1]));

	struct ow_error err;
	struct ow_lda *other_seed = make(&three, 4), *other_shape = make(&one, 3);
	assert_int_equal(ow_synopsis_merge(&all->base, &other_seed->base, &err), -EINVAL);
	assert_int_equal(ow_synopsis_subtract(&all->base, &other_shape->base, &err), -EINVAL);
	struct ow_lda_params limit = three;
	limit.bank[2].limit--;
	struct ow_lda *other_limit = make(&limit, 3);
	assert_int_equal(ow_synopsis_merge(&all->base, &other_limit->base, &err), -EINVAL);
	assert_true(equal(all, part[1]));
	ow_synopsis_free(&other_seed->base);
	ow_synopsis_free(&other_shape->base);
	ow_synopsis_free(&other_limit->base);
	ow_synopsis_free(&all->base);
	for (int i = 0; i < 3; i++)
		ow_synopsis_free(&part[i]->base);
}

/* Round trip; then each header byte changed and each length cut: a synopsis of that shape, or an error with a text. */
static void test_bytes(void **state)
{
	(void)state;
	static struct ow_sighting stamps[STAMPS];
	make_stamps(3, stamps, STAMPS);
	struct ow_lda *lda = make(&three, 5);
	lda->base.ops->add(&lda->base, stamps, STAMPS);
	size_t size = ow_synopsis_encoded_size(&lda->base);
	assert_int_equal(size, OW_SYNOPSIS_HEADER + 8 + 3 * 8 + 104 * 16);
	uint8_t *bytes = malloc(size);
	ow_synopsis_encode(&lda->base, bytes);
	struct ow_synopsis *back;
	assert_int_equal(ow_synopsis_decode(bytes, size, 5, &back, NULL), 0);
	assert_int_equal(ow_synopsis_comparable(&lda->base, back, NULL), 0);
	assert_true(equal(lda, (struct ow_lda *)back));
	ow_synopsis_free(back);

	const uint8_t *body = bytes + OW_SYNOPSIS_HEADER;
	size -= OW_SYNOPSIS_HEADER;
	struct ow_error err;
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(ow_lda_ops.decode(body, cut, 5, &back, &err), -EINVAL);
	for (size_t i = 0; i < 32; i++)
		for (int bit = 0; bit < 8; bit++) {
			bytes[OW_SYNOPSIS_HEADER + i] ^= (uint8_t)(1 << bit);
			err.text[0] = 0;
			int r = ow_lda_ops.decode(body, size, 5, &back, &err);
			if (r == 0)
				ow_synopsis_free(back);
			else
				assert_true(r == -EINVAL && err.text[0]);
			bytes[OW_SYNOPSIS_HEADER + i] ^= (uint8_t)(1 << bit);
		}
	free(bytes);
	ow_synopsis_free(&lda->base);
}

static void test_params(void **state)
{
	(void)state;
	struct ow_lda *lda;
	struct ow_error err;
	const struct ow_lda_params bad[] = {
		{0, {{0, 0}}},         {9, {{1, 9}}},          {1, {{0, 5}}},
		{2, {{5, 5}, {5, 5}}}, {1, {{UINT32_MAX, 5}}}, {2, {{1 << 21, 9}, {1 << 22, 5}}},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_lda_create(&bad[i], 1, &lda, &err), -EINVAL);
	struct ow_sizing sizing = {1e6, 0.01, 0};
	struct ow_synopsis *s;
	assert_int_equal(ow_lda_create_for(15, &sizing, 1, &s), -EINVAL);
	assert_int_equal(ow_lda_create_for(1000, &sizing, 1, &s), 0);
	assert_int_equal(s->ops->memory(s), 992);
	ow_synopsis_free(s);
}

/* The shares are those of the paper's leading zeros, less what later banks take; counted over many packets. */
static void test_shares(void **state)
{
	(void)state;
	const struct ow_lda_params zeros = {2, {{1, UINT32_MAX >> 3}, {1, UINT32_MAX >> 7}}};
	assert_true(ow_lda_share(&zeros, 0) == 0.125 - 0x1p-7);
	assert_true(ow_lda_share(&zeros, 1) == 0x1p-7);
	assert_int_equal(ow_lda_limit(1), UINT32_MAX);
	assert_int_equal(ow_lda_limit(2), UINT32_MAX);
	assert_int_equal(ow_lda_limit(0.125), UINT32_MAX >> 3);
	assert_int_equal(ow_lda_limit(1e-30), 0);

	enum { N = 400000 };
	struct ow_lda *lda = make(&zeros, 11);
	struct ow_sighting stamp = {0, 1};
	for (uint64_t i = 0; i < N; i++) {
		stamp.id = i; /* even plain numbers are spread */
		lda->base.ops->add(&lda->base, &stamp, 1);
	}
	for (uint32_t k = 0; k < 2; k++) {
		double p = ow_lda_share(&zeros, k), n = (double)lda->bucket[k].packets;
		assert_true(fabs(n - p * N) < 4.5 * sqrt(p * N));
	}
	ow_synopsis_free(&lda->base);
}

/* Expected samples: p R e^(-p L / m). */
static double samples_of(double buckets, double received, double lost, double alpha)
{
	double p = ow_lda_sampling(buckets, lost, alpha);
	return p * received * exp(-p * lost / buckets);
}

/* p = alpha m / (L+1) is capped, and alpha = 1 gives 21 % more samples than 0.5: e^-1 against 0.5 e^-0.5. */
static void test_sizing(void **state)
{
	(void)state;
	assert_true(ow_lda_sampling(1024, 10, 1) == 1);
	assert_true(fabs(ow_lda_sampling(1024, 49999, 0.5) - 0.01024) < 1e-12);
	double best = samples_of(1024, 4.95e6, 5e4, OW_LDA_ALPHA);
	double bound = samples_of(1024, 4.95e6, 5e4, OW_LDA_ALPHA_PAPER);
	assert_true(fabs(best / bound - 2 * exp(-0.5)) < 1e-3);
	/* 1 % at cv 1.76, 1 % loss of a million: 1.96^2 1.76^2 / 1e-4 samples. */
	uint32_t m = ow_lda_buckets(1e6, 0.01, 1.76, 0.01);
	double samples = samples_of(m, 0.99e6, 1e4, 1);
	assert_true(samples > pow(1.96 * 176, 2) * 0.99 && samples < pow(1.96 * 176, 2) * 1.01);
	assert_int_equal(ow_lda_buckets(1e6, 0, 1, 0.01), 64);

	const uint32_t buckets[] = {512, 512};
	const double loss[] = {0.005, 0.1}, falling[] = {0.1, 0.005};
	struct ow_lda_params params;
	struct ow_error err;
	assert_int_equal(ow_lda_tune(5e6, buckets, loss, 2, 0.5, &params, &err), 0);
	assert_true(fabs(ow_lda_share(&params, 1) - 256 / 500001.) < 1e-8);
	assert_true(fabs(ow_lda_share(&params, 0) + ow_lda_share(&params, 1) - 256 / 25001.) < 1e-8);
	assert_int_equal(ow_lda_tune(5e6, buckets, falling, 2, 0.5, &params, &err), -EINVAL);
	assert_int_equal(ow_lda_tune(100, buckets, loss, 2, 0.5, &params, &err), 0); /* both would take all */
	assert_true(params.bank[1].limit < params.bank[0].limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),    cmocka_unit_test(test_merge),  cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_params), cmocka_unit_test(test_shares), cmocka_unit_test(test_sizing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
