/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/packet_order.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define PACKETS 5000u

#define BLOCK 50u

/* Packets that are added in any order within a block come out in order, once the block is complete. */
static void in_order(void **state)
{
	(void)state;
	struct ow_packet_order order = {0};
	struct ow_random random;
	struct ow_ordered_packet p;
	uint64_t taken = 0;
	ow_random_seed(&random, 5);
	for (unsigned first = 0; first < PACKETS; first += BLOCK) {
		unsigned place[BLOCK];
		for (unsigned i = 0; i < BLOCK; i++) {
			unsigned other = (unsigned)(ow_random_u64(&random) % (i + 1));
			place[i] = place[other];
			place[other] = first + i;
		}
		for (unsigned i = 0; i < BLOCK; i++) {
			p = (struct ow_ordered_packet){
				.number = place[i] / 2 + 1, .part = place[i] % 2, .time_ns = place[i]};
			assert_int_equal(ow_packet_order_add(&order, &p), 0);
		}
		while (ow_packet_order_take(&order, first + BLOCK, &p))
			assert_int_equal(p.time_ns, taken++);
		assert_int_equal(taken, first + BLOCK);
	}
	assert_int_equal(taken, PACKETS);
	assert_int_equal(ow_packet_order_add(&order, &(struct ow_ordered_packet){.number = 1}), -ESTALE);
	ow_packet_order_done(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(in_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
