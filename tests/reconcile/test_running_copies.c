/* SPDX-License-Identifier: Apache-2.0 */
/* Identical packets that were sent before the measurement began: when their delays may be longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "reconcile/running_copies.h"
#include "synopsis/synopsis.h"

#define LENGTH (1000 * OW_NS_PER_MS)
#define GAP    (5 * OW_NS_PER_MS)
#define ALIKE  UINT64_C(7)

struct sent {
	int64_t interval, length_ns;
	int64_t first_ns, gap_ns; /* first_ns: since the start of the interval */
	size_t others;
	bool unsure;
	int64_t most_ns;
};

/* An interval of identical packets. */
static int64_t play(struct ow_running_copies *running, const struct sent *s)
{
	static struct ow_sighting sighting[1000];
	size_t count = 0;
	for (int64_t at_ns = s->first_ns; s->gap_ns && at_ns < s->length_ns; at_ns += s->gap_ns) {
		sighting[count] = (struct ow_sighting){count ? ALIKE + count : ALIKE, at_ns, 0};
		count++;
	}
	return ow_running_copies_doubt(running, &(struct ow_running_interval){.compared = true,
	                                                                      .start_ns = s->interval * s->length_ns,
	                                                                      .begun_ns = s->interval * s->length_ns,
	                                                                      .sent = sighting,
	                                                                      .count = count,
	                                                                      .copies = count ? count - 1 : 0,
	                                                                      .others = s->others + (count == 1),
	                                                                      .aligned = true,
	                                                                      .unsure = s->unsure,
	                                                                      .most_ns = s->most_ns,
	                                                                      .lost_ns = 2 * OW_NS_PER_S});
}

static struct sent usual(int64_t interval)
{
	return (struct sent){interval, LENGTH, GAP / 2, GAP, 0, false, INT64_MAX};
}

static void test_amid(void **state)
{
	(void)state;
	struct ow_running_copies running = {0};
	for (int i = 0; i < 3; i++) {
		struct sent s = usual(i);
		assert_int_equal(play(&running, &s), GAP);
		assert_true(running.longer);
	}
	/* Other packets show how long the path is, but not as long as copies can be confused. */
	struct sent s = usual(3);
	s.others = 10;
	s.unsure = true;
	assert_int_equal(play(&running, &s), GAP);
	s.interval = 4;
	s.unsure = false;
	assert_int_equal(play(&running, &s), 0);
	s = usual(5);
	assert_int_equal(play(&running, &s), 0);
}

/* The first one was sent some time after the measurement began; others show the path; it is shorter than the gap. */
static void test_known(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct ow_running_copies running = {0};
		for (int i = 0; i < 3; i++) {
			struct sent s = usual(i);
			if (k == 0 && i == 0)
				s.first_ns = 10 * GAP;
			if (k == 1)
				s.others = 10;
			if (k == 2)
				s.most_ns = GAP - 1;
			assert_int_equal(play(&running, &s), 0);
			assert_false(running.longer);
		}
	}
}

/* Two or one in an interval. */
static void test_short_intervals(void **state)
{
	(void)state;
	for (int64_t length_ns = GAP; length_ns <= 2 * GAP; length_ns += GAP) {
		struct ow_running_copies running = {0};
		for (int i = 0; i < 50; i++) {
			struct sent s = usual(i);
			s.length_ns = length_ns;
			int64_t gap_ns = play(&running, &s);
			assert_int_equal(gap_ns, i == 0 && length_ns == GAP ? 0 : GAP);
		}
	}
}

/* All have arrived, or are lost, before more are sent. An interval that is unknown begins anew. */
static void test_pause(void **state)
{
	(void)state;
	struct ow_running_copies running = {0};
	struct sent s = usual(0), none = {1, LENGTH, 0, 0, 0, false, INT64_MAX};
	assert_int_equal(play(&running, &s), GAP);
	assert_int_equal(play(&running, &none), 0);
	s.interval = 4;
	assert_int_equal(play(&running, &s), 0);
	assert_int_equal(ow_running_copies_doubt(&running, &(struct ow_running_interval){.compared = false}), 0);
	s.interval = 6;
	assert_int_equal(play(&running, &s), GAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amid),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_short_intervals),
		cmocka_unit_test(test_pause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
