/* SPDX-License-Identifier: Apache-2.0 */
/* What a path that keeps order shows about the sending time of a packet. */
#include "base/random.h"
#include "reconcile/fifo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define US        INT64_C(1000)
#define MS        (1000 * US)
#define WINDOW_NS (2000 * MS)
#define SLACK_NS  (2 * US)
#define SEED      9

static void a_packet_between_two_marks(void **state)
{
	(void)state;
	struct ow_fifo fifo;
	int64_t not_before, not_after;
	assert_int_equal(ow_fifo_init(&fifo, WINDOW_NS, SLACK_NS), 0);
	ow_fifo_sent(&fifo, 0, &not_before, &not_after);
	assert_true(not_before == INT64_MIN && not_after == INT64_MAX);
	ow_fifo_note(&fifo, 10 * MS, 30 * MS);
	ow_fifo_note(&fifo, 20 * MS, 31 * MS);
	ow_fifo_note(&fifo, 15 * MS, 32 * MS); /* out of order */
	ow_fifo_sent(&fifo, 29 * MS, &not_before, &not_after);
	assert_true(not_before == INT64_MIN && not_after == 10 * MS + SLACK_NS);
	ow_fifo_sent(&fifo, 30 * MS + 500 * US, &not_before, &not_after);
	assert_true(not_before == 10 * MS - SLACK_NS && not_after == 20 * MS + SLACK_NS);
	/* So close to a mark, it may have been before or after it. */
	ow_fifo_sent(&fifo, 31 * MS, &not_before, &not_after);
	assert_true(not_before == 10 * MS - SLACK_NS && not_after == INT64_MAX);
	ow_fifo_sent(&fifo, 33 * MS, &not_before, &not_after);
	assert_true(not_before == 20 * MS - SLACK_NS && not_after == INT64_MAX);
	ow_fifo_forget(&fifo, 31 * MS);
	ow_fifo_sent(&fifo, 33 * MS, &not_before, &not_after);
	assert_true(not_before == 10 * MS - SLACK_NS && not_after == INT64_MAX);
	ow_fifo_done(&fifo);
}

/* A million packets of a queue: what was sent is always between, and nearly as close as the marks are. */
static void the_truth_is_between(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_fifo fifo;
	int64_t sent = 0, received = 0, not_before, not_after, widest = 0;
	ow_random_seed(&random, SEED);
	assert_int_equal(ow_fifo_init(&fifo, WINDOW_NS, SLACK_NS), 0);
	for (int i = 0; i < 1000000; i++) {
		sent += (int64_t)(ow_random_u64(&random) % 20000);
		int64_t at = sent + 5 * MS + (int64_t)(ow_random_u64(&random) % (100 * US));
		received = at > received ? at : received + 300;
		ow_fifo_sent(&fifo, received, &not_before, &not_after);
		assert_true(not_before <= sent && not_after == INT64_MAX);
		if (i > 1000 && sent - not_before > widest)
			widest = sent - not_before;
		ow_fifo_note(&fifo, sent, received);
	}
	assert_true(widest <= fifo.spacing_ns + SLACK_NS + 200 * US);
	/* Two waiting times ago. */
	ow_fifo_sent(&fifo, received - 2 * WINDOW_NS, &not_before, &not_after);
	assert_true(not_before > INT64_MIN && not_after - not_before < MS);
	ow_fifo_done(&fifo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_between_two_marks),
		cmocka_unit_test(the_truth_is_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
