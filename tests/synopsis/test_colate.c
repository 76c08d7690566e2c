/* SPDX-License-Identifier: Apache-2.0 */
/* Recording against a naive reference, for every form; sums, shares, checks, refusals. */
#include "base/random.h"
#include "synopsis/colate.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 3000
#define FLOWS  70

static const struct ow_colate_params base = {
	.layers = 1,
	.unit_ns = 1,
	.seed = 42,
	.layer = {{.form = OW_COLATE_BANKS,
                   .counters = 99,
                   .spread = 3,
                   .bits = 48,
                   .check_bits = 16,
                   .last = OW_COLATE_SHARE}},
};

static struct ow_flow_sighting stamp[STAMPS];

static int setup(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 7);
	for (size_t i = 0; i < STAMPS; i++) {
		stamp[i].flow = ow_mix64(1 + ow_random_below(&random, FLOWS));
		stamp[i].id = ow_random_u64(&random);
		stamp[i].time_ns = INT64_C(1700000000000000000) + (int64_t)ow_random_below(&random, 1000000000);
	}
	return 0;
}

static struct ow_colate *make(const struct ow_colate_params *params)
{
	struct ow_colate *colate;
	struct ow_error err;
	if (ow_colate_create(params, &colate, &err) < 0)
		fail_msg("%s", err.text);
	return colate;
}

/* What a layer must hold, from the definitions of the header alone. */
static void check_layer(const struct ow_colate *colate, uint32_t number, size_t from, size_t to)
{
	const struct ow_colate_params *params = ow_colate_params(colate);
	const struct ow_colate_layer *layer = &params->layer[number];
	uint64_t *sum = calloc(layer->counters, sizeof *sum), packets = 0;
	uint32_t *check = calloc(layer->counters, sizeof *check), *count = calloc(layer->counters, sizeof *count);
	for (size_t i = from; i < to; i++) {
		uint64_t hash = ow_colate_packet_hash(params->seed, stamp[i].id);
		uint32_t place = ow_colate_place(hash);
		if (place < layer->first || place >= layer->last)
			continue;
		packets++;
		uint64_t time = (uint64_t)(stamp[i].time_ns / params->unit_ns);
		if (layer->is_signed && ow_colate_is_minus(hash))
			time = -time;
		uint32_t j = layer->form == OW_COLATE_BANKS ? 0 : ow_colate_pick(hash, layer->spread);
		uint32_t end = layer->form == OW_COLATE_BANKS ? layer->spread : j + 1;
		for (; j < end; j++) {
			uint32_t at = ow_colate_counter(layer, params->seed, stamp[i].flow, j);
			sum[at] += time;
			check[at] += ow_colate_check_word(hash);
			count[at] += layer->is_signed && ow_colate_is_minus(hash) ? UINT32_MAX : 1;
		}
	}
	assert_int_equal(ow_colate_layer_packets(colate, number), packets);
	uint64_t mask = UINT64_MAX >> (64 - layer->bits);
	for (uint32_t i = 0; i < layer->counters; i++) {
		assert_int_equal(ow_colate_counters(colate, number)[i], sum[i] & mask);
		if (layer->check_bits)
			assert_int_equal(ow_colate_checks(colate, number)[i],
			                 check[i] & (UINT32_MAX >> (32 - layer->check_bits)));
	}
	for (uint32_t i = 0; layer->count_bits && i < layer->counters; i++)
		assert_int_equal(ow_colate_counts(colate, number)[i],
		                 count[i] & (UINT32_MAX >> (32 - layer->count_bits)));
	assert_int_equal(ow_colate_checks(colate, number) != NULL, layer->check_bits != 0);
	assert_int_equal(ow_colate_counts(colate, number) != NULL, layer->count_bits != 0);
	free(sum);
	free(check);
	free(count);
}

static void test_reference(void **state)
{
	(void)state;
	static const uint8_t bits[] = {8, 19, 48, 64}, check_bits[] = {0, 16, 32, 1}, count_bits[] = {5, 0, 16, 32};
	for (unsigned form = OW_COLATE_HASHED; form <= OW_COLATE_BANKS; form++) {
		for (uint32_t spread = 1; spread <= 5; spread++) {
			for (unsigned k = 0; k < 4; k++) {
				struct ow_colate_params params = base;
				params.layers = 3;
				params.unit_ns = k == 1 ? 1000 : 1;
				params.layer[0].form = form;
				params.layer[0].spread = spread;
				params.layer[0].counters = 40 * spread;
				params.layer[0].bits = bits[k];
				params.layer[0].check_bits = check_bits[k];
				params.layer[0].count_bits = count_bits[k];
				params.layer[1] = params.layer[2] = params.layer[0];
				params.layer[1].is_signed = true;
				params.layer[2].first = 1000;
				params.layer[2].last = 20000;
				struct ow_colate *colate = make(&params);
				/* in uneven pieces, as they may come */
				ow_colate_add(colate, stamp, 1);
				ow_colate_add(colate, stamp + 1, 700);
				ow_colate_add(colate, stamp + 701, STAMPS - 701);
				assert_int_equal(ow_colate_packets(colate), STAMPS);
				for (uint32_t i = 0; i < 3; i++)
					check_layer(colate, i, 0, STAMPS);
				ow_colate_free(colate);
			}
		}
	}
}

static void test_times(void **state)
{
	(void)state;
	struct ow_colate *colate = make(&base), *left = make(&base), *right = make(&base);
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint64_t sum = 0;
	for (size_t i = 0; i < STAMPS; i++) {
		first = stamp[i].time_ns < first ? stamp[i].time_ns : first;
		last = stamp[i].time_ns > last ? stamp[i].time_ns : last;
	}
	for (size_t i = 0; i < STAMPS; i++)
		sum += (uint64_t)(stamp[i].time_ns - first);
	assert_int_equal(ow_colate_time_sum(colate), 0);
	ow_colate_add(colate, stamp, STAMPS);
	ow_colate_add(left, stamp, 500);
	ow_colate_add(right, stamp + 500, STAMPS - 500);
	assert_int_equal(ow_colate_merge(right, left, NULL), 0);
	assert_int_equal(ow_colate_merge(left, right, NULL), 0); /* 500 twice, for the sum below */
	for (int i = 0; i < 2; i++) {
		const struct ow_colate *c = i ? right : colate;
		assert_int_equal(ow_colate_first_ns(c), first);
		assert_int_equal(ow_colate_last_ns(c), last);
		assert_int_equal(ow_colate_time_sum(c), sum);
		check_layer(c, 0, 0, STAMPS);
	}
	assert_int_equal(ow_colate_packets(left), STAMPS + 500);
	ow_colate_reset(left);
	assert_int_equal(ow_colate_packets(left), 0);
	assert_int_equal(ow_colate_time_sum(left), 0);
	check_layer(left, 0, 0, 0);
	struct ow_colate_facts facts;
	ow_colate_facts(colate, &facts);
	ow_colate_add_facts(left, &facts);
	ow_colate_add_raw(left, 0, 0, ow_colate_counters(colate, 0), ow_colate_checks(colate, 0), NULL, 99);
	check_layer(left, 0, 0, STAMPS);
	assert_int_equal(ow_colate_time_sum(left), sum);
	ow_colate_free(colate);
	ow_colate_free(left);
	ow_colate_free(right);
}

/* Before 1970 and at odd units: the difference of two points is still the delay. */
static void test_negative_times(void **state)
{
	(void)state;
	struct ow_colate_params params = base;
	params.unit_ns = 1000;
	struct ow_colate *a = make(&params), *b = make(&params);
	const struct ow_flow_sighting from = {1, 2, -1500}, to = {1, 2, 500};
	ow_colate_add(a, &from, 1);
	ow_colate_add(b, &to, 1);
	uint32_t at = ow_colate_counter(&params.layer[0], params.seed, 1, 0);
	uint64_t difference = ow_colate_counters(b, 0)[at] - ow_colate_counters(a, 0)[at];
	assert_int_equal(difference & (UINT64_MAX >> 16), 2);
	ow_colate_free(a);
	ow_colate_free(b);
}

/* As printed: every packet in one of the flow's counters, and the points choose independently. */
static void test_random(void **state)
{
	(void)state;
	struct ow_colate_params params = base;
	params.layer[0].form = OW_COLATE_RANDOM;
	params.layer[0].spread = 5;
	params.layer[0].bits = 64;
	struct ow_colate *a = make(&params), *b = make(&params);
	static struct ow_flow_sighting later[STAMPS];
	uint64_t sum[2] = {0}, expected[2] = {0};
	for (size_t i = 0; i < STAMPS; i++) {
		later[i] = stamp[i];
		later[i].time_ns += 1000;
		expected[0] += (uint64_t)stamp[i].time_ns;
		expected[1] += (uint64_t)later[i].time_ns;
	}
	ow_colate_add(a, stamp, STAMPS);
	ow_colate_add(b, later, STAMPS);
	unsigned same = 0;
	for (uint32_t i = 0; i < 99; i++) {
		sum[0] += ow_colate_counters(a, 0)[i];
		sum[1] += ow_colate_counters(b, 0)[i];
		same += ow_colate_checks(a, 0)[i] == ow_colate_checks(b, 0)[i];
	}
	assert_int_equal(sum[0], expected[0]);
	assert_int_equal(sum[1], expected[1]);
	assert_true(same < 10); /* by chance: 2^-16 each, and counters without packets */
	ow_colate_free(a);
	ow_colate_free(b);
}

static void test_refusals(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_colate *a = make(&base), *b, *none = NULL;
	struct ow_colate_params other = base;
	other.seed++;
	b = make(&other);
	assert_int_equal(ow_colate_merge(a, b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "seeds"));
	other = base;
	other.layer[0].bits = 40;
	assert_int_equal(ow_colate_comparable(&base, &other, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bits of a counter"));
	static const struct {
		size_t offset;
		uint32_t value;
	} wrong[] = {
		{offsetof(struct ow_colate_layer, form), 0},
		{offsetof(struct ow_colate_layer, form), 4},
		{offsetof(struct ow_colate_layer, counters), 0},
		{offsetof(struct ow_colate_layer, counters), 100},
		{offsetof(struct ow_colate_layer, counters), OW_COLATE_COUNTERS_MAX + 3},
		{offsetof(struct ow_colate_layer, spread), 0},
		{offsetof(struct ow_colate_layer, spread), OW_COLATE_SPREAD_MAX + 1},
		{offsetof(struct ow_colate_layer, last), 0},
		{offsetof(struct ow_colate_layer, last), OW_COLATE_SHARE + 1},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		other = base;
		memcpy((char *)&other.layer[0] + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
		*err.text = 0;
		assert_int_equal(ow_colate_create(&other, &none, &err), -EINVAL);
		assert_true(*err.text);
	}
	other = base;
	other.layer[0].bits = 7;
	assert_int_equal(ow_colate_check(&other, NULL), -EINVAL);
	other = base;
	other.unit_ns = 0;
	assert_int_equal(ow_colate_check(&other, NULL), -EINVAL);
	assert_null(none);
	ow_colate_free(a);
	ow_colate_free(b);
	ow_colate_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),      cmocka_unit_test(test_times),
		cmocka_unit_test(test_negative_times), cmocka_unit_test(test_random),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
