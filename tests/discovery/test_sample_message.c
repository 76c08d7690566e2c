/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "discovery/sample_message.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct ow_sample_record records[OW_SAMPLE_RECORDS_MAX];

static struct ow_vantage_sample make(uint32_t count, struct ow_random *random)
{
	struct ow_vantage_sample s = {.point = "london",
	                              .interface = "eth0",
	                              .kind = OW_VANTAGE_IN,
	                              .key_generation = 7,
	                              .clock_generation = ow_random_u64(random),
	                              .epoch = 175000000,
	                              .epoch_ns = OW_SAMPLE_EPOCH_NS,
	                              .clock_error_ns = -1,
	                              .packets = ow_random_u64(random),
	                              .drops = 3,
	                              .tau = UINT64_MAX,
	                              .count = count,
	                              .record = records};
	s.start_ns = s.epoch * s.epoch_ns;
	s.end_ns = s.start_ns + s.epoch_ns;
	uint64_t step = UINT64_MAX / (count + 1);
	for (uint32_t i = 0; i < count; i++) {
		records[i] = (struct ow_sample_record){
			.id = i * step + ow_random_below(random, step),
			.time_ns = s.start_ns + (int64_t)ow_random_below(random, 2500000000u) * 4,
			.flow = (uint32_t)ow_random_u64(random),
			.ttl = (uint8_t)ow_random_u64(random),
			.outer_ttl = (uint8_t)(i % 3 ? 0 : 1 + ow_random_below(random, 255)),
			.copies = (uint8_t)(1 + ow_random_below(random, OW_SAMPLE_COPIES_MAX))};
	}
	return s;
}

static void assert_same(const struct ow_vantage_sample *a, const struct ow_vantage_sample *b)
{
	assert_string_equal(a->point, b->point);
	assert_string_equal(a->interface, b->interface);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->key_generation, b->key_generation);
	assert_true(a->clock_generation == b->clock_generation);
	assert_true(a->epoch == b->epoch && a->epoch_ns == b->epoch_ns && a->start_ns == b->start_ns);
	assert_true(a->end_ns == b->end_ns && a->clock_error_ns == b->clock_error_ns);
	assert_true(a->packets == b->packets && a->drops == b->drops && a->tau == b->tau);
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++) {
		const struct ow_sample_record *x = &a->record[i], *y = &b->record[i];
		assert_true(x->id == y->id && x->time_ns == y->time_ns && x->flow == y->flow && x->ttl == y->ttl &&
		            x->outer_ttl == y->outer_ttl && x->copies == y->copies);
	}
}

static void comes_back(void **state)
{
	(void)state;
	static const uint32_t counts[] = {0, 1, 2, 512, OW_SAMPLE_RECORDS_MAX};
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct ow_vantage_sample s = make(counts[i], &random), back;
		uint8_t *bytes;
		size_t size;
		assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), 0);
		assert_true(size <= 100 + 20 * (size_t)counts[i]);
		assert_int_equal(ow_vantage_sample_decode(bytes, size, &back, NULL), 0);
		assert_same(&s, &back);
		assert_true(ow_vantage_sample_complete(&back));
		ow_vantage_sample_done(&back);
		free(bytes);
	}
}

/* Every shorter message is refused with a line, as is one with more bytes. */
static void cut_off(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 2);
	struct ow_vantage_sample s = make(20, &random), back;
	struct ow_error err;
	uint8_t *bytes, longer[1000] = {0};
	size_t size;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), 0);
	for (size_t n = 0; n < size; n++) {
		uint8_t *exact = malloc(n + 1);
		memcpy(exact, bytes, n);
		err.text[0] = 0;
		assert_int_equal(ow_vantage_sample_decode(exact, n, &back, &err), -EPROTO);
		assert_non_null(strstr(err.text, "message sample: "));
		free(exact);
	}
	memcpy(longer, bytes, size);
	assert_int_equal(ow_vantage_sample_decode(longer, size + 1, &back, &err), -EPROTO);
	free(bytes);
}

/* A bit that is wrong gives an error or another sample that keeps the rules. */
static void wrong_bits(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	struct ow_vantage_sample s = make(20, &random), back;
	uint8_t *bytes, *again;
	size_t size, more;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), 0);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (ow_vantage_sample_decode(bytes, size, &back, NULL) == 0) {
			for (uint32_t i = 0; i < back.count; i++) {
				assert_true(back.record[i].id < back.tau);
				assert_true(i == 0 || back.record[i].id > back.record[i - 1].id);
				assert_true(back.record[i].copies > 0);
			}
			assert_int_equal(ow_vantage_sample_encode(&back, &again, &more, NULL), 0);
			assert_int_equal(more, size);
			assert_memory_equal(again, bytes, size);
			free(again);
			ow_vantage_sample_done(&back);
		}
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(bytes);
}

static void rules(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 4);
	struct ow_vantage_sample s = make(3, &random);
	uint8_t *bytes;
	size_t size;
	s.tau = records[2].id;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), -EINVAL);
	s = make(3, &random);
	records[1].id = records[0].id;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), -EINVAL);
	s = make(3, &random);
	records[1].time_ns = s.end_ns;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), -EINVAL);
	s = make(3, &random);
	s.point[0] = 0;
	assert_int_equal(ow_vantage_sample_encode(&s, &bytes, &size, NULL), -EINVAL);
	s = make(3, &random);
	s.end_ns--;
	assert_false(ow_vantage_sample_complete(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(wrong_bits),
		cmocka_unit_test(rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
