/* SPDX-License-Identifier: Apache-2.0 */
#include "synopsis/minhash.h"
#include "base/random.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED  31
#define SLOTS 1024

static struct ow_synopsis *make(uint64_t seed)
{
	struct ow_synopsis *s;
	assert_int_equal(ow_minhash_create(SLOTS, seed, &s), 0);
	return s;
}

/* Packets `from` .. `to` - 1 of an endless list, in batches of any size. */
static void add(struct ow_synopsis *s, uint64_t from, uint64_t to)
{
	struct ow_sighting batch[7];
	while (from < to) {
		size_t n = 0;
		for (; n < 1 + from % 7 && from < to; n++, from++) {
			struct ow_random random;
			ow_random_seed(&random, from);
			batch[n] = (struct ow_sighting){.id = ow_random_u64(&random)};
		}
		s->ops->add(s, batch, n);
	}
}

/* The share of slots that agree is the similarity of the sets: within 5 sigma of the binomial of the slots used. */
static void similarity(void **state)
{
	(void)state;
	static const uint64_t n = 20000, differences[] = {0, 200, 2000, 10000, 20000};
	for (size_t k = 0; k < sizeof differences / sizeof *differences; k++) {
		struct ow_synopsis *a = make(SEED), *b = make(SEED);
		uint32_t used, same;
		uint64_t d = differences[k];
		add(a, 0, n);
		add(b, d, n + d); /* d packets only at A, d only at B */
		ow_minhash_compare(a, b, &used, &same);
		double j = (double)(n - d) / (double)(n + d);
		assert_int_equal(used, SLOTS);
		assert_true(fabs((double)same / used - j) <= 5 * sqrt(j * (1 - j) / used));
		ow_synopsis_free(a);
		ow_synopsis_free(b);
	}
}

/* Order and batches do not matter; merging two halves is adding all; slots that nobody uses do not count. */
static void merging(void **state)
{
	(void)state;
	struct ow_synopsis *all = make(SEED), *parts = make(SEED), *more = make(SEED), *other = make(SEED + 1);
	struct ow_error err;
	uint32_t used, same;
	ow_minhash_compare(all, parts, &used, &same);
	assert_true(used == 0 && same == 0);
	add(all, 0, 900);
	add(parts, 400, 900);
	add(more, 0, 400);
	assert_int_equal(ow_synopsis_merge(parts, more, &err), 0);
	ow_minhash_compare(all, parts, &used, &same);
	assert_true(used == same && used < SLOTS && used > SLOTS / 4);
	assert_int_equal(ow_synopsis_merge(parts, other, &err), -EINVAL); /* another seed */
	assert_null(all->ops->remove);
	assert_null(all->ops->subtract);
	all->ops->reset(all);
	more->ops->reset(more);
	ow_minhash_compare(all, more, &used, &same);
	assert_int_equal(used, 0);
	ow_synopsis_free(all);
	ow_synopsis_free(parts);
	ow_synopsis_free(more);
	ow_synopsis_free(other);
}

/* What is encoded comes back; cut or changed bytes are refused or give a valid synopsis. */
static void encoding(void **state)
{
	(void)state;
	struct ow_synopsis *s = make(SEED), *back = NULL;
	struct ow_error err;
	struct ow_random random;
	uint32_t used, same;
	add(s, 0, 5000);
	size_t size = ow_synopsis_encoded_size(s);
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	ow_synopsis_encode(s, bytes);
	assert_int_equal(ow_synopsis_decode(bytes, size, SEED, &back, &err), 0);
	ow_minhash_compare(s, back, &used, &same);
	assert_true(used == same && used > SLOTS / 2);
	ow_synopsis_free(back);
	for (size_t cut = 0; cut < size; cut += 97)
		assert_true(ow_synopsis_decode(bytes, cut, SEED, &back, &err) < 0);
	ow_random_seed(&random, SEED);
	for (int i = 0; i < 500; i++) {
		size_t at = ow_random_below(&random, 64);
		uint8_t keep = bytes[at];
		bytes[at] ^= (uint8_t)(1 + ow_random_below(&random, 255));
		if (ow_synopsis_decode(bytes, size, SEED, &back, &err) == 0)
			ow_synopsis_free(back);
		bytes[at] = keep;
	}
	assert_int_equal(ow_minhash_create(0, 1, &back), -EINVAL);
	free(bytes);
	ow_synopsis_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(similarity), cmocka_unit_test(merging),
	                                   cmocka_unit_test(encoding)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
