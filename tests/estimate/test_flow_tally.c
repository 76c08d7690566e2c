/* SPDX-License-Identifier: Apache-2.0 */
/* Exact results of each flow against sums over all packets, kept one by one. */
#include "base/random.h"
#include "estimate/flow_tally.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 20261115u
#define KEYS 300u

static const struct ow_flow_select five_tuple = {.by = OW_FLOW_BY_FIVE_TUPLE};

static struct ow_flow_key key_of(unsigned i)
{
	struct ow_flow_key key = {.sport = 1000, .dport = (uint16_t)(i % 7), .proto = 17, .version = 4};
	memcpy(key.src, &(uint8_t[4]){10, 0, (uint8_t)(i >> 8), (uint8_t)i}, 4);
	memcpy(key.dst, &(uint8_t[4]){10, 1, 0, 1}, 4);
	return key;
}

struct reference {
	uint64_t matched, lost, extra, duplicated, ambiguous, samples;
	long double sum, square;
	int64_t min, max;
};

static void count(struct reference *r, const struct ow_packet_event *event, int64_t delay)
{
	switch (event->fate) {
	case OW_FATE_MATCHED:
		r->matched += event->packets;
		if (event->ambiguous) {
			r->ambiguous += event->packets;
			break;
		}
		r->min = !r->samples || delay < r->min ? delay : r->min;
		r->max = !r->samples || delay > r->max ? delay : r->max;
		r->samples += event->packets;
		r->sum += (long double)delay * event->packets;
		r->square += (long double)delay * (long double)delay * event->packets;
		break;
	case OW_FATE_LOST:
		r->lost += event->packets;
		break;
	case OW_FATE_EXTRA:
		r->extra += event->packets;
		break;
	case OW_FATE_DUPLICATED:
		r->extra += event->packets;
		r->duplicated += event->packets;
		break;
	default:
		break;
	}
}

static void check(const struct ow_flow_result *got, const struct reference *r)
{
	assert_int_equal(got->sent, r->matched + r->lost);
	assert_int_equal(got->received, r->matched + r->extra);
	assert_int_equal(got->matched, r->matched);
	assert_int_equal(got->lost, r->lost);
	assert_int_equal(got->extra, r->extra);
	assert_int_equal(got->duplicated, r->duplicated);
	assert_int_equal(got->ambiguous, r->ambiguous);
	assert_int_equal(got->samples, r->samples);
	if (!r->samples)
		return;
	long double mean = r->sum / (long double)r->samples;
	assert_true(fabsl(got->mean_ns - mean) <= 1e-9L * fabsl(mean));
	long double variance = r->square / (long double)r->samples - mean * mean;
	/* The reference cancels; what is tested is exact. */
	assert_true(fabsl((long double)got->stddev_ns * got->stddev_ns - variance) <= 1e-12L * r->square);
	assert_int_equal(got->min_ns, r->min);
	assert_int_equal(got->max_ns, r->max);
}

static void sums_of_packets(void **state)
{
	(void)state;
	static struct reference reference[OW_DIRECTIONS][KEYS];
	static struct ow_flow_key keys[KEYS];
	struct ow_flow_tally *tally;
	struct ow_match_report report = {0};
	struct ow_random random;
	ow_random_seed(&random, SEED);
	assert_int_equal(ow_flow_tally_create(&five_tuple, 1, &tally), 0);
	for (unsigned i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
	for (int n = 0; n < 50000; n++) {
		unsigned i = (unsigned)(ow_random_u64(&random) % KEYS);
		struct ow_packet_event event = {
			.fate = (enum ow_fate)(ow_random_u64(&random) % (OW_FATE_OUTSIDE + 1)),
			.direction = (enum ow_direction)(i % 3 == 0 ? OW_B_TO_A : OW_A_TO_B),
			.ambiguous = ow_random_u64(&random) % 50 == 0,
			.packets = 1 + (uint32_t)(ow_random_u64(&random) % 100 == 0),
			.flow = &keys[i],
		};
		int64_t delay = (int64_t)(ow_random_u64(&random) % 2000000) - 1000;
		event.time_ns[OW_SIDE_A] = INT64_C(1700000000000000000) + n;
		event.time_ns[OW_SIDE_B] = event.time_ns[OW_SIDE_A] + (event.direction == OW_A_TO_B ? delay : -delay);
		assert_int_equal(ow_flow_tally_add(tally, &event), 0);
		count(&reference[event.direction][i], &event, delay);
		struct reference total = {0};
		struct ow_result *result = &report.direction[event.direction];
		count(&total, &event, delay);
		result->matched += total.matched;
		result->lost += total.lost;
		result->extra += total.extra;
		result->duplicated += total.duplicated;
		result->ambiguous += total.ambiguous;
		result->delay.samples += total.samples;
	}
	assert_int_equal(ow_flow_tally_count(tally), KEYS);
	for (size_t k = 0; k < ow_flow_tally_count(tally); k++) {
		struct ow_flow_result got;
		ow_flow_tally_get(tally, k, &got);
		unsigned i = 0;
		while (i < KEYS && memcmp(&keys[i], &got.key, sizeof got.key) != 0)
			i++;
		assert_true(i < KEYS);
		assert_int_equal(got.direction, i % 3 == 0 ? OW_B_TO_A : OW_A_TO_B);
		check(&got, &reference[got.direction][i]);
	}
	assert_true(ow_flow_tally_conserves(tally, &report));
	report.direction[OW_B_TO_A].lost++;
	assert_false(ow_flow_tally_conserves(tally, &report));
	assert_false(ow_flow_tally_is_coarse(tally));
	ow_flow_tally_free(tally);
}

/* Networks instead of hosts: fewer flows, the same packets. */
static void keys_are_selected(void **state)
{
	(void)state;
	static struct ow_flow_key keys[KEYS];
	const struct ow_flow_select select = {.by = OW_FLOW_BY_PREFIX, .prefix4 = 24, .prefix6 = 48};
	struct ow_flow_tally *tally;
	struct ow_flow_result got;
	assert_int_equal(ow_flow_tally_create(&select, 1, &tally), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		keys[i] = key_of(i);
		struct ow_packet_event event = {
			.fate = OW_FATE_MATCHED, .packets = 1, .flow = &keys[i], .time_ns = {0, 10 + (int)i}};
		assert_int_equal(ow_flow_tally_add(tally, &event), 0);
	}
	assert_int_equal(ow_flow_tally_count(tally), 2);
	ow_flow_tally_get(tally, 0, &got);
	assert_int_equal(got.matched, 256);
	assert_int_equal(got.max_ns, 10 + 255);
	assert_int_equal(got.key.proto, 0);
	ow_flow_tally_get(tally, 1, &got);
	assert_int_equal(got.matched, KEYS - 256);
	assert_false(ow_flow_tally_is_coarse(tally));
	ow_flow_tally_free(tally);
}

/* What a match passes on when it has no more numbers for flows. */
static void coarse_keys_are_told(void **state)
{
	(void)state;
	struct ow_flow_key key = {.src = {10, 1}, .dst = {10, 2}, .version = 4};
	struct ow_packet_event event = {.fate = OW_FATE_LOST, .packets = 1, .flow = &key};
	struct ow_flow_tally *tally;
	assert_int_equal(ow_flow_tally_create(&five_tuple, 1, &tally), 0);
	assert_int_equal(ow_flow_tally_add(tally, &event), 0);
	assert_true(ow_flow_tally_is_coarse(tally));
	ow_flow_tally_free(tally);
}

/* Times of a file may be anything. */
static void far_times(void **state)
{
	(void)state;
	struct ow_flow_key key = key_of(1);
	struct ow_flow_tally *tally;
	struct ow_flow_result got;
	assert_int_equal(ow_flow_tally_create(&five_tuple, 1, &tally), 0);
	const int64_t times[][2] = {{INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MIN}, {INT64_MIN, 0}, {0, INT64_MIN}};
	for (unsigned i = 0; i < 4; i++) {
		struct ow_packet_event event = {.fate = OW_FATE_MATCHED,
		                                .direction = (enum ow_direction)(i & 1),
		                                .packets = 3,
		                                .flow = &key,
		                                .time_ns = {times[i][0], times[i][1]}};
		assert_int_equal(ow_flow_tally_add(tally, &event), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		ow_flow_tally_get(tally, i, &got);
		assert_int_equal(got.samples, 6);
		assert_true(isfinite(got.mean_ns) && isfinite(got.stddev_ns));
	}
	ow_flow_tally_free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_packets),
		cmocka_unit_test(keys_are_selected),
		cmocka_unit_test(coarse_keys_are_told),
		cmocka_unit_test(far_times),
	};
	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
