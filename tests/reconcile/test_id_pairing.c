/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/id_pairing.h"
#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SEED 9
#define MOST 3000

/* Every pair is found both ways, and nothing else, for lists of any sizes and any common part. */
static void against_the_truth(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 500, MOST};
	static struct ow_sighting a[MOST], b[MOST];
	static uint32_t of_a[MOST], of_b[MOST], where[3 * MOST];
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		for (unsigned common = 0; common <= 2; common++) {
			size_t as = sizes[s], bs = common ? as : as / 2, pairs = 0;
			/* Ids that differ in few bits, as those of a hostile peer may. */
			uint64_t base = ow_random_u64(&random), step = (uint64_t)1 << ow_random_below(&random, 40);
			for (size_t i = 0; i < 3 * MOST; i++)
				where[i] = OW_PAIRING_NONE;
			for (size_t i = 0; i < as; i++) {
				a[i] = (struct ow_sighting){.id = base + i * step};
				where[i] = (uint32_t)i;
			}
			/* b: none, half or all of a, in another order. */
			for (size_t j = 0; j < bs; j++) {
				size_t number = common == 2 ? bs - 1 - j : common == 1 ? j + as / 2 : j + as;
				b[j] = (struct ow_sighting){.id = base + number * step};
				pairs += number < as;
			}
			assert_int_equal(ow_pairing(a, as, b, bs, of_a, of_b), 0);
			for (size_t j = 0; j < bs; j++) {
				size_t number = (b[j].id - base) / step;
				assert_int_equal(of_b[j], number < as ? where[number] : OW_PAIRING_NONE);
				if (of_b[j] != OW_PAIRING_NONE)
					assert_int_equal(of_a[of_b[j]], j);
			}
			for (size_t i = 0; i < as; i++)
				pairs -= of_a[i] != OW_PAIRING_NONE;
			assert_int_equal(pairs, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_truth)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
