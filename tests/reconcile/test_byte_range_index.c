/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/waiting.h"
#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define SEED   17
#define MOST   100
#define ROUNDS 4000

static struct ow_waiting waiting;
static uint32_t queue;
static uint32_t held[MOST]; /* the waiters that are in the tree */
static size_t helds;

static struct ow_byte_range range_at(uint32_t i)
{
	return (struct ow_byte_range){waiting.entry[i].record.seq, waiting.entry[i].record.len};
}

/* Bytes of the circle of sequence numbers, one by one: the definition. */
static bool overlap(struct ow_byte_range a, struct ow_byte_range b)
{
	return (uint32_t)(b.seq - a.seq) < a.len || (uint32_t)(a.seq - b.seq) < b.len;
}

static void add(struct ow_random *random, uint32_t base)
{
	uint32_t i = ow_waiting_new(&waiting);
	assert_true(i != OW_NOBODY);
	waiting.entry[i].record = (struct ow_record){.id = 5,
	                                             .time_ns = (int64_t)ow_random_below(random, 1000),
	                                             .seq = base + (uint32_t)ow_random_below(random, 5000),
	                                             .len = 1 + (uint32_t)ow_random_below(random, 300)};
	waiting.entry[i].side = OW_SIDE_A;
	ow_waiting_enqueue(&waiting, queue, i);
	held[helds++] = i;
}

static void take_out(struct ow_random *random)
{
	size_t k = ow_random_below(random, helds);
	ow_waiting_dequeue(&waiting, held[k]);
	ow_waiting_release(&waiting, held[k]);
	held[k] = held[--helds];
}

/* The answers of the tree against a look at every waiter. */
static void ask(struct ow_random *random, uint32_t base)
{
	struct ow_byte_range range = {base + (uint32_t)ow_random_below(random, 5000),
	                              1 + (uint32_t)ow_random_below(random, 500)};
	struct ow_time_span within = {(int64_t)ow_random_below(random, 500),
	                              500 + (int64_t)ow_random_below(random, 500)};
	struct ow_time_span span, want = {INT64_MAX, INT64_MIN};
	uint32_t oldest = OW_NOBODY, oldest_within = OW_NOBODY, root = waiting.queue[queue].root[OW_SIDE_A];
	uint64_t bytes = 0;
	for (size_t k = 0; k < helds; k++) {
		uint32_t i = held[k];
		struct ow_byte_range mine = range_at(i), common = {0};
		int64_t time_ns = waiting.entry[i].record.time_ns;
		assert_int_equal(ow_range_overlap(range, mine, &common), overlap(range, mine));
		if (!overlap(range, mine))
			continue;
		bytes += common.len;
		want.from_ns = time_ns < want.from_ns ? time_ns : want.from_ns;
		want.to_ns = time_ns > want.to_ns ? time_ns : want.to_ns;
		if (oldest == OW_NOBODY || waiting.node[i].turn < waiting.node[oldest].turn)
			oldest = i;
		if (time_ns >= within.from_ns && time_ns <= within.to_ns &&
		    (oldest_within == OW_NOBODY || waiting.node[i].turn < waiting.node[oldest_within].turn))
			oldest_within = i;
	}
	assert_int_equal(ow_byte_range_index_oldest(&waiting, root, range), oldest);
	assert_int_equal(ow_byte_range_index_oldest_within(&waiting, root, range, &within), oldest_within);
	assert_int_equal(ow_byte_range_index_crowded(&waiting, root, range), bytes > range.len);
	bool all = ow_byte_range_index_span(&waiting, root, range, &span);
	assert_true(all);
	if (oldest != OW_NOBODY)
		assert_true(span.from_ns == want.from_ns && span.to_ns == want.to_ns);
}

/* Around the middle of the circle, and around the place where sequence numbers wrap. */
static void random_ranges(void **state)
{
	(void)state;
	static const uint32_t bases[] = {1000000, UINT32_MAX - 2500, 0, UINT32_C(0x7fffff00)};
	for (size_t k = 0; k < sizeof bases / sizeof *bases; k++) {
		struct ow_random random;
		ow_random_seed(&random, SEED + k);
		memset(&waiting, 0, sizeof waiting);
		helds = 0;
		assert_int_equal(ow_waiting_init(&waiting, 1000), 0);
		assert_int_equal(ow_byte_range_index_room(&waiting, waiting.entries), 0);
		queue = ow_waiting_new_queue(&waiting, 5);
		for (int round = 0; round < ROUNDS; round++) {
			if (helds == 0 || (helds < MOST && ow_random_below(&random, 100) < 55))
				add(&random, bases[k]);
			else
				take_out(&random);
			ask(&random, bases[k]);
		}
		while (helds)
			take_out(&random);
		assert_int_equal(waiting.queue[queue].root[OW_SIDE_A], OW_NOBODY);
		ow_waiting_done(&waiting);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_ranges)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
