/* SPDX-License-Identifier: Apache-2.0 */
/* FineComb's four-tuple: exactly the packets that should change their interval do. */
#include "sim/drift.h"
#include "base/time.h"
#include "sim/models.h"
#include "sim/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PACKETS 20000

/* Intervals of A's packets by their time; of B's by the latest of the packets that must be before and the sync delay.
 */
static void check(const uint32_t tuple[4], const struct ow_sim_delay *delay, uint64_t seed)
{
	struct ow_sim_options options;
	struct ow_drift *drift;
	struct ow_gaps gaps;
	struct ow_random random;
	static int64_t sent[PACKETS], arrived[PACKETS];
	ow_sim_defaults(&options);
	options.seed = seed;
	options.rate_pps = 100000;
	options.interval_ns = 20 * OW_NS_PER_MS;
	options.delay = *delay;
	memcpy(options.tuple, tuple, sizeof options.tuple);
	ow_random_seed(&random, seed);
	ow_gaps_init(&gaps, &options);
	assert_int_equal(ow_drift_create(&options, &drift), 0);
	for (size_t i = 0; i < PACKETS; i++) {
		sent[i] = options.start_ns + ow_gaps_next(&gaps);
		arrived[i] = ow_drift_move(drift, sent[i], sent[i] + ow_model_sample(&delay->path[0], &random), false);
		assert_true(arrived[i] >= sent[i]);
	}
	/* About 10 intervals. At each boundary k, packet i is before it at A; it is before it at B unless it drifted.
	 */
	int boundaries = 0;
	for (int64_t k = 1; options.start_ns + (k + 1) * options.interval_ns < sent[PACKETS - 1]; k++) {
		int64_t at = options.start_ns + k * options.interval_ns;
		uint32_t pre = tuple[k & 1 ? 0 : 2], post = tuple[k & 1 ? 1 : 3];
		size_t first = 0;
		while (sent[first] < at)
			first++;
		/* Group: before = all before the boundary but the last `pre`, and the first `post` after it. */
		int64_t latest_before = INT64_MIN, earliest_after = INT64_MAX;
		for (size_t i = first > 1000 ? first - 1000 : 0; i < first + 1000 && i < PACKETS; i++) {
			bool before = i < first ? i + pre < first : i < first + post;
			if (before && arrived[i] > latest_before)
				latest_before = arrived[i];
			if (!before && arrived[i] < earliest_after)
				earliest_after = arrived[i];
		}
		assert_true(latest_before < earliest_after);
		boundaries++;
	}
	assert_true(boundaries >= 8);
	uint64_t counts[4];
	ow_drift_counts(drift, counts);
	for (int i = 0; i < 4; i++) {
		assert_true(counts[i] >= tuple[i] * (uint64_t)(boundaries / 2));
		assert_true(counts[i] <= tuple[i] * (uint64_t)(boundaries / 2 + 2));
	}
	ow_drift_free(drift);
}

static void tuples(void **state)
{
	(void)state;
	static const uint32_t tuple[][4] = {
		{0, 50, 0, 0}, {0, 0, 50, 0}, {20, 20, 20, 20}, {5, 0, 0, 100}, {1, 2, 3, 4}};
	struct ow_sim_delay delays[2];
	assert_int_equal(ow_sim_delay_parse("constant:100us", &delays[0], NULL), 0);
	assert_int_equal(ow_sim_delay_parse("weibull:50us,0.6", &delays[1], NULL), 0);
	for (size_t i = 0; i < sizeof tuple / sizeof *tuple; i++) {
		check(tuple[i], &delays[0], i);
		check(tuple[i], &delays[1], 100 + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tuples)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
