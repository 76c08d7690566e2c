/* SPDX-License-Identifier: Apache-2.0 */
/* RDA, sRDA and MinHash as structures: sums, merging, bytes, limits. What they measure is tested in estimate and
 * reconcile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEED    UINT64_C(0x1234)
#define PACKETS 2000

static struct ow_synopsis *make_rda(uint32_t banks, uint32_t cells, bool checked)
{
	struct ow_synopsis *s;
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){banks, cells, checked}, SEED, &s), 0);
	return s;
}

static struct ow_synopsis *make_srda(uint32_t hashes, uint32_t cells)
{
	struct ow_synopsis *s;
	assert_int_equal(ow_srda_create(&(struct ow_srda_params){hashes, cells}, SEED, &s), 0);
	return s;
}

static struct ow_synopsis *make_minhash(uint32_t slots)
{
	struct ow_synopsis *s;
	assert_int_equal(ow_minhash_create(slots, SEED, &s), 0);
	return s;
}

/* One of each shape worth testing; NULL after the last. The second of 40000 cells is out of cache. */
static struct ow_synopsis *make(int shape)
{
	switch (shape) {
	case 0:
		return make_rda(2, 50, true);
	case 1:
		return make_rda(2, 50, false);
	case 2:
		return make_rda(3, 17, true);
	case 3:
		return make_rda(4, 33, true);
	case 4:
		return make_rda(8, 5, true);
	case 5:
		return make_rda(1, 1, false);
	case 6:
		return make_rda(2, 20000, true);
	case 7:
		return make_rda(5, 9000, false);
	case 8:
		return make_srda(2, 50);
	case 9:
		return make_srda(4, 4);
	case 10:
		return make_srda(3, 5);
	case 11:
		return make_minhash(64);
	default:
		return NULL;
	}
}

static void packets(struct ow_sighting *stamps, size_t count, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < count; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_below(&random, 1000000000)};
}

static uint8_t *encode(const struct ow_synopsis *s, size_t *ret_size)
{
	*ret_size = ow_synopsis_encoded_size(s);
	uint8_t *bytes = malloc(*ret_size);
	assert_non_null(bytes);
	ow_synopsis_encode(s, bytes);
	return bytes;
}

static void assert_same(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	size_t n, m;
	uint8_t *x = encode(a, &n), *y = encode(b, &m);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

/* Order, batches and merging make no difference; what is added and removed leaves nothing. */
static void test_sums(void **state)
{
	(void)state;
	struct ow_sighting p[PACKETS];
	packets(p, PACKETS, 1);
	for (int shape = 0;; shape++) {
		struct ow_synopsis *all = make(shape), *parts = make(shape), *more = make(shape), *none = make(shape);
		if (!all)
			break;
		all->ops->add(all, p, PACKETS);
		for (size_t i = PACKETS; i-- > PACKETS / 2;)
			more->ops->add(more, p + i, 1);
		parts->ops->add(parts, p, PACKETS / 2);
		assert_int_equal(ow_synopsis_merge(parts, more, NULL), 0);
		assert_same(all, parts);
		if (all->ops->remove) {
			parts->ops->remove(parts, p, PACKETS);
			assert_same(parts, none);
			assert_int_equal(ow_synopsis_subtract(all, all, NULL), 0);
			assert_same(all, none);
		} else {
			all->ops->reset(all);
			assert_same(all, none);
			assert_true(ow_synopsis_subtract(all, more, NULL) < 0);
		}
		more->ops->reset(more);
		assert_same(more, none);
		ow_synopsis_free(all);
		ow_synopsis_free(parts);
		ow_synopsis_free(more);
		ow_synopsis_free(none);
	}
}

/* Each bank counts each packet once; sRDA counts it in k different cells. */
static void test_counts(void **state)
{
	(void)state;
	struct ow_sighting p[PACKETS];
	packets(p, PACKETS, 2);
	for (int shape = 0; shape <= 10; shape++) {
		struct ow_synopsis *s = make(shape);
		s->ops->add(s, p, PACKETS);
		bool rda = s->ops->kind == OW_SYNOPSIS_RDA;
		uint32_t k = rda ? ow_rda_of(s)->params.banks : ow_srda_of(s)->params.hashes;
		uint32_t cells = rda ? ow_rda_of(s)->params.cells : ow_srda_of(s)->params.cells;
		if (rda) {
			for (uint32_t b = 0; b < k; b++) {
				uint64_t count = 0;
				for (uint32_t i = 0; i < cells; i++)
					count += ow_rda_of(s)->cell[b * cells + i].count;
				assert_int_equal(count, PACKETS);
			}
		} else {
			uint64_t count = 0;
			for (uint32_t i = 0; i < cells; i++)
				count += ow_srda_of(s)->cell[i].count;
			assert_int_equal(count, (uint64_t)k * PACKETS);
			for (size_t i = 0; i < PACKETS; i++) {
				uint32_t place[OW_SRDA_HASHES_MAX];
				ow_srda_places(ow_srda_of(s), p[i].id, place);
				for (uint32_t x = 0; x < k; x++) {
					assert_true(place[x] < cells);
					for (uint32_t y = 0; y < x; y++)
						assert_int_not_equal(place[x], place[y]);
				}
			}
		}
		ow_synopsis_free(s);
	}
}

/*
 * Places are uniform (chi-squared over 64 cells, 63 degrees of freedom, 6 sigma), and independent between banks (two
 * packets that share a cell in one bank share it in another in 1 of 64 cases).
 */
static void test_places(void **state)
{
	(void)state;
	enum { CELLS = 64, N = 64000 };
	struct ow_synopsis *s = make_rda(8, CELLS, true);
	const struct ow_rda *rda = ow_rda_of(s);
	struct ow_random random;
	ow_random_seed(&random, 3);
	static uint32_t count[8][CELLS], joint[8][8];
	memset(count, 0, sizeof count);
	memset(joint, 0, sizeof joint);
	for (int i = 0; i < N; i++) {
		uint64_t id = ow_rda_id(rda, ow_random_u64(&random));
		for (uint32_t b = 0; b < 8; b++) {
			count[b][ow_rda_place(rda, id, b)]++;
			for (uint32_t c = 0; c < b; c++)
				joint[b][c] += ow_rda_place(rda, id, b) == ow_rda_place(rda, id, c);
		}
	}
	for (int b = 0; b < 8; b++) {
		double chi = 0, e = (double)N / CELLS;
		for (int i = 0; i < CELLS; i++)
			chi += (count[b][i] - e) * (count[b][i] - e) / e;
		assert_true(chi > 63 - 6 * 11.3 && chi < 63 + 6 * 11.3);
		for (int c = 0; c < b; c++)
			assert_true(joint[b][c] > 1000 - 6 * 32 && joint[b][c] < 1000 + 6 * 32);
	}
	ow_synopsis_free(s);
}

/* The check is not linear: the XOR of three valid ids is valid in one of 65536 cases. */
static void test_check(void **state)
{
	(void)state;
	struct ow_synopsis *s = make_rda(2, 10, true);
	const struct ow_rda *rda = ow_rda_of(s);
	struct ow_random random;
	ow_random_seed(&random, 4);
	enum { N = 1 << 20 };
	int valid = 0;
	for (int i = 0; i < N; i++) {
		uint64_t x = ow_rda_id(rda, ow_random_u64(&random)), y = ow_rda_id(rda, ow_random_u64(&random));
		uint64_t z = ow_rda_id(rda, ow_random_u64(&random));
		assert_true(ow_rda_id(rda, x) == x);
		valid += ow_rda_id(rda, x ^ y ^ z) == (x ^ y ^ z);
	}
	/* Expected 16. */
	assert_in_range(valid, 0, 40);
	ow_synopsis_free(s);
}

static void test_bytes(void **state)
{
	(void)state;
	struct ow_sighting p[100];
	packets(p, 100, 5);
	for (int shape = 0;; shape++) {
		struct ow_synopsis *s = make(shape), *back;
		if (!s)
			break;
		struct ow_error err;
		s->ops->add(s, p, 100);
		size_t size;
		uint8_t *bytes = encode(s, &size);
		assert_int_equal(ow_synopsis_decode(bytes, size, SEED, &back, &err), 0);
		assert_same(s, back);
		assert_int_equal(ow_synopsis_comparable(s, back, &err), 0);
		ow_synopsis_free(back);
		/* Every shorter one, and every wrong byte of the parameters, is refused or gives something valid. */
		for (size_t n = 0; n < size && n < 200; n++)
			assert_int_equal(ow_synopsis_decode(bytes, n, SEED, &back, &err), -EINVAL);
		for (size_t at = OW_SYNOPSIS_HEADER; at < OW_SYNOPSIS_HEADER + 8; at++) {
			for (int v = 0; v < 256; v++) {
				uint8_t was = bytes[at];
				bytes[at] = (uint8_t)v;
				if (ow_synopsis_decode(bytes, size, SEED, &back, &err) == 0) {
					/* Only what does not change the size can pass: the flag of RDA, the hashes of
					 * sRDA. */
					assert_true(v == was || at <= OW_SYNOPSIS_HEADER + 1);
					ow_synopsis_free(back);
				}
				bytes[at] = was;
			}
		}
		assert_int_equal(ow_synopsis_decode(bytes, size, SEED + 1, &back, &err), -EINVAL);
		free(bytes);
		ow_synopsis_free(s);
	}
}

/* The bytes themselves, so that other versions can read them. */
static void test_golden(void **state)
{
	(void)state;
	struct ow_synopsis *s = make_rda(1, 1, false);
	s->ops->add(s, (struct ow_sighting[]){{UINT64_C(0x0102030405060708), 9}, {UINT64_C(0x0100000000000001), -10}},
	            2);
	static const uint8_t rda[] = {1, 0, 0,   0,   1,   0,   0,   0,   0x09, 7,   6, 5, 4, 3,
	                              2, 0, 255, 255, 255, 255, 255, 255, 255,  255, 2, 0, 0, 0};
	uint8_t bytes[64];
	assert_int_equal(s->ops->encoded_size(s), sizeof rda);
	s->ops->encode(s, bytes);
	assert_memory_equal(bytes, rda, sizeof rda);
	ow_synopsis_free(s);
	s = make_srda(1, 1);
	s->ops->add(s, (struct ow_sighting[]){{5, 9}}, 1);
	s->ops->encode(s, bytes);
	static const uint8_t srda[] = {1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	assert_int_equal(s->ops->encoded_size(s), sizeof srda + 8);
	assert_memory_equal(bytes, srda, sizeof srda);
	assert_int_equal(ow_load_le32(bytes + 24), ow_srda_hash(ow_srda_of(s), 5));
	assert_int_equal(ow_load_le32(bytes + 28), 1);
	ow_synopsis_free(s);
	s = make_minhash(1);
	s->ops->encode(s, bytes);
	static const uint8_t minhash[] = {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255};
	assert_memory_equal(bytes, minhash, sizeof minhash);
	ow_synopsis_free(s);
}

static void test_refused(void **state)
{
	(void)state;
	struct ow_synopsis *s = NULL, *t;
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){0, 1, true}, 1, &s), -EINVAL);
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){9, 1, true}, 1, &s), -EINVAL);
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){2, 0, true}, 1, &s), -EINVAL);
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){2, UINT32_MAX, true}, 1, &s), -EINVAL);
	assert_int_equal(ow_srda_create(&(struct ow_srda_params){3, 2}, 1, &s), -EINVAL);
	assert_int_equal(ow_srda_create(&(struct ow_srda_params){5, 20}, 1, &s), -EINVAL);
	assert_int_equal(ow_minhash_create(0, 1, &s), -EINVAL);
	assert_null(s);
	/* Parameters and seeds are never mixed. */
	s = make_rda(2, 10, true);
	struct ow_error err;
	for (int i = 0; i < 4; i++) {
		struct ow_rda_params p = {i == 0 ? 1 : 2, i == 1 ? 11 : 10, i != 2};
		assert_int_equal(ow_rda_create(&p, i == 3 ? SEED + 1 : SEED, &t), 0);
		assert_int_equal(ow_synopsis_merge(s, t, &err), -EINVAL);
		assert_int_equal(ow_synopsis_subtract(s, t, &err), -EINVAL);
		ow_synopsis_free(t);
	}
	ow_synopsis_free(s);
}

/* Sizing: never more than the memory; more banks where they decode. */
static void test_sizing(void **state)
{
	(void)state;
	const struct ow_sizing few = {1e6, 1e-4, 0}, some = {1e6, 5.3e-4, 1e-4}, many = {1e6, 0.01, 0};
	struct ow_synopsis *s;
	int (*create[])(size_t, const struct ow_sizing *, uint64_t,
	                struct ow_synopsis **) = {ow_rda_create_for, ow_srda_create_for, ow_minhash_create_for};
	for (int i = 0; i < 3; i++) {
		for (size_t memory = 100; memory < 100000; memory = memory * 3 / 2) {
			assert_int_equal(create[i](memory, &few, 1, &s), 0);
			assert_true(s->ops->memory(s) <= memory && s->ops->memory(s) + 100 > memory);
			ow_synopsis_free(s);
		}
		assert_int_equal(create[i](7, &few, 1, &s), -EINVAL);
	}
	const struct ow_sizing *sizing[] = {&few, &some, &many};
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(ow_rda_create_for(1060 * 20, sizing[i], 1, &s), 0);
		assert_int_equal(ow_rda_of(s)->params.banks, 4 - i);
		ow_synopsis_free(s);
	}
	struct ow_rda_params p;
	ow_rda_params_for(1000, 0, true, &p);
	assert_true(p.banks == 2 && p.cells == 2000 && !p.checked);
	ow_rda_params_for(1000, 0, false, &p);
	assert_true(p.banks == 4 && p.cells == 365 && p.checked);
	ow_rda_params_for(0, 0.01, false, &p);
	assert_true(p.banks * p.cells >= 5000 && p.banks * p.cells < 5010);
	ow_rda_params_for(1e30, 0, false, &p);
	assert_true(p.banks * p.cells <= OW_RDA_CELLS_MAX);
}

/* Alike sets agree in all slots, different ones in none; half of the packets shared: J = 1/3. */
static void test_minhash(void **state)
{
	(void)state;
	struct ow_sighting p[30000];
	packets(p, 30000, 6);
	struct ow_synopsis *a = make_minhash(1024), *b = make_minhash(1024), *c = make_minhash(1024);
	a->ops->add(a, p, 20000);
	b->ops->add(b, p + 10000, 20000);
	c->ops->add(c, p + 20000, 10000);
	uint32_t used, same;
	ow_minhash_compare(a, a, &used, &same);
	assert_true(used == 1024 && same == 1024);
	ow_minhash_compare(a, b, &used, &same);
	/* 341 +- 6 sigma of 15 */
	assert_true(used == 1024 && same > 341 - 90 && same < 341 + 90);
	ow_minhash_compare(a, c, &used, &same);
	assert_true(used == 1024 && same == 0);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_synopsis_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),    cmocka_unit_test(test_counts), cmocka_unit_test(test_places),
		cmocka_unit_test(test_check),   cmocka_unit_test(test_bytes),  cmocka_unit_test(test_golden),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_sizing), cmocka_unit_test(test_minhash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
