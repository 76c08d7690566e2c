/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "reconcile/finecomb_recover.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* Elimination finds exactly what the paper's search over all subsets finds: every target, all small digests. */
static void test_all_subsets(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (int round = 0; round < 300; round++) {
		enum { N = 7, BITS = 5 };
		unsigned n = (unsigned)ow_random_below(&random, N + 1);
		uint64_t digests[N];
		int8_t signs[N];
		for (unsigned i = 0; i < n; i++) {
			digests[i] = ow_random_below(&random, 1 << BITS);
			signs[i] = ow_random_below(&random, 2) ? 1 : -1;
		}
		for (uint64_t digest = 0; digest < 1 << BITS; digest++)
			for (int64_t count = -(int64_t)N; count <= N; count++) {
				bool exists = false;
				for (unsigned set = 0; set < 1u << n && !exists; set++) {
					uint64_t xor = 0;
					int64_t sum = 0;
					for (unsigned i = 0; i < n; i++)
						if (set >> i & 1) {
							xor ^= digests[i];
							sum += signs[i];
						}
					exists = xor == digest &&sum == count;
				}
				uint64_t mask;
				bool found = ow_recover_subset(digests, signs, n, digest, count, &mask);
				assert_int_equal(found, exists);
				if (!found)
					continue;
				uint64_t rest = digest;
				int64_t left = count;
				for (unsigned i = 0; i < n; i++)
					if (mask >> i & 1) {
						rest ^= digests[i];
						left -= signs[i];
					}
				assert_true(rest == 0 && left == 0);
			}
	}
}

/* The example of finecomb.h, with one bucket. */
static void test_example(void **state)
{
	(void)state;
	const struct ow_finecomb_params params = {1, {{1, UINT32_MAX, 2}}};
	const struct ow_sighting ax = {1, 100}, ay = {2, 10}, bx = {1, 130}, by = {2, -5}, bz = {3, 2};
	struct ow_finecomb *a, *b;
	struct ow_recovery recovery;
	assert_int_equal(ow_finecomb_create(&params, 1, &a, NULL), 0);
	assert_int_equal(ow_finecomb_create(&params, 1, &b, NULL), 0);
	a->base.ops->add(&a->base, (struct ow_sighting[]){ay, ax}, 2);
	ow_finecomb_before(b, &by, 1);
	b->base.ops->add(&b->base, (struct ow_sighting[]){bz, bx}, 2);
	assert_int_equal(ow_finecomb_recover(a, b, false, &recovery), 0);
	assert_true(!recovery.bucket[0].clean && recovery.bucket[0].difference == 0);
	ow_recovery_done(&recovery);
	assert_int_equal(ow_finecomb_recover(a, b, true, &recovery), 0);
	assert_true(recovery.bucket[0].clean && recovery.bucket[0].delay_ns == 30 - 15);
	assert_true(recovery.bucket[0].back == 1 && recovery.bucket[0].out == 1);
	ow_recovery_done(&recovery);
	/* A lost packet: no repair. */
	a->base.ops->add(&a->base, &(struct ow_sighting){9, 50}, 1);
	assert_int_equal(ow_finecomb_recover(a, b, true, &recovery), 0);
	assert_true(!recovery.bucket[0].clean && recovery.bucket[0].difference == 1);
	ow_recovery_done(&recovery);
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
}

/*
 * All ways in which 6 packets around each of the two boundaries can drift or be lost: exhaustive over one boundary at a
 * time, with buckets few enough that losses and drift meet. A clean bucket holds the true sum.
 */
static void test_all_drifts(void **state)
{
	(void)state;
	enum { N = 6, FATES = 729 }; /* 3^6: stays, drifts over the boundary, is lost */
	const struct ow_finecomb_params params = {1, {{3, UINT32_MAX, N}}};
	for (int end = 0; end < 2; end++)
		for (int fates = 0; fates < FATES; fates++) {
			struct ow_finecomb *a, *b;
			assert_int_equal(ow_finecomb_create(&params, 1, &a, NULL), 0);
			assert_int_equal(ow_finecomb_create(&params, 1, &b, NULL), 0);
			struct ow_sighting inside[N], outside[N];
			int64_t truth[3] = {0};
			bool lost[3] = {false};
			size_t in = 0, out = 0;
			for (int i = 0, f = fates; i < N; i++, f /= 3) {
				/* The first half belongs to this interval, the second to its neighbour. */
				bool ours = i < N / 2;
				struct ow_sighting sent = {(uint64_t)i + 10, ours ? 1000 * i : -1000 * i};
				struct ow_sighting seen = {sent.id, sent.time_ns + 7 * i};
				struct ow_finecomb *probe;
				assert_int_equal(ow_finecomb_create(&params, 1, &probe, NULL), 0);
				probe->base.ops->add(&probe->base, &sent, 1);
				int where = 0;
				while (!probe->bucket[where].packets)
					where++;
				ow_synopsis_free(&probe->base);
				if (ours)
					a->base.ops->add(&a->base, &sent, 1);
				if (f % 3 == 2) {
					lost[where] = lost[where] || ours;
					continue;
				}
				if (ours)
					truth[where] += 7 * i;
				if (ours == (f % 3 == 0))
					inside[in++] = seen;
				else
					outside[out++] = seen;
			}
			if (!end)
				ow_finecomb_before(b, outside, out);
			b->base.ops->add(&b->base, inside, in);
			if (end)
				ow_finecomb_after(b, outside, out);
			struct ow_recovery recovery;
			assert_int_equal(ow_finecomb_recover(a, b, true, &recovery), 0);
			for (int i = 0; i < 3; i++) {
				assert_int_equal(recovery.bucket[i].clean, !lost[i]);
				if (!lost[i])
					assert_int_equal(recovery.bucket[i].delay_ns, truth[i]);
			}
			ow_recovery_done(&recovery);
			ow_synopsis_free(&a->base);
			ow_synopsis_free(&b->base);
		}
}

/* A packet that arrived twice has one digest twice: the count decides how many copies are taken out. */
static void test_copies(void **state)
{
	(void)state;
	const uint64_t digests[] = {5, 5, 9};
	const int8_t signs[] = {-1, -1, 1};
	uint64_t mask;
	assert_true(ow_recover_subset(digests, signs, 3, 0, -2, &mask) && mask == 3);
	assert_true(ow_recover_subset(digests, signs, 3, 5, -1, &mask) && (mask == 1 || mask == 2));
	assert_true(ow_recover_subset(digests, signs, 3, 9, -1, &mask) && mask == 7);
	assert_false(ow_recover_subset(digests, signs, 3, 9, 0, &mask));
	assert_false(ow_recover_subset(digests, signs, 3, 1, 0, &mask));
}

/* A thousand stash entries, all of them drifted: in under 5 ms, even in 16 buckets where 2^62 subsets would be tried.
 */
static void test_large_stash(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	for (uint32_t buckets = 16; buckets <= 1024; buckets *= 4) {
		const struct ow_finecomb_params params = {1, {{buckets, UINT32_MAX, 250}}};
		struct ow_finecomb *a, *b;
		assert_int_equal(ow_finecomb_create(&params, 1, &a, NULL), 0);
		assert_int_equal(ow_finecomb_create(&params, 1, &b, NULL), 0);
		for (int i = 0; i < 1000; i++) {
			struct ow_sighting s = {ow_random_u64(&random), i};
			if (i < 250)
				ow_finecomb_before(b, &s, 1);
			else if (i < 750)
				b->base.ops->add(&b->base, &s, 1);
			else
				ow_finecomb_after(b, &s, 1);
			if (i < 250 || i >= 750)
				a->base.ops->add(&a->base, &s, 1);
		}
		struct ow_recovery recovery = {0};
		double ms = 1e9; /* the least of some: others may use the machine, too */
		for (int i = 0; i < 5; i++) {
			struct timespec from, to;
			ow_recovery_done(&recovery);
			clock_gettime(CLOCK_MONOTONIC, &from);
			assert_int_equal(ow_finecomb_recover(a, b, true, &recovery), 0);
			clock_gettime(CLOCK_MONOTONIC, &to);
			double took =
				(double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6;
			ms = took < ms ? took : ms;
		}
		print_message("%u buckets, stash of 1000: %.3f ms\n", buckets, ms);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		assert_true(ms < 5);
#endif
		for (uint32_t i = 0; i < buckets && buckets >= 64; i++)
			assert_true(recovery.bucket[i].clean && recovery.bucket[i].delay_ns == 0);
		ow_recovery_done(&recovery);
		ow_synopsis_free(&a->base);
		ow_synopsis_free(&b->base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_subsets), cmocka_unit_test(test_example),
		cmocka_unit_test(test_all_drifts),  cmocka_unit_test(test_copies),
		cmocka_unit_test(test_large_stash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
