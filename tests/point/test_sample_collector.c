/* SPDX-License-Identifier: Apache-2.0 */
#include "point/sample_collector.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define EPOCH  INT64_C(175000000)

struct got {
	unsigned count;
	struct ow_vantage_sample sample[8];
};

static void take(void *arg, int64_t start_ns, const uint8_t *bytes, size_t size)
{
	struct got *got = arg;
	assert_int_equal(ow_vantage_sample_decode(bytes, size, &got->sample[got->count], NULL), 0);
	assert_int_equal(start_ns, got->sample[got->count].epoch * 10 * SECOND);
	got->count++;
}

static struct ow_vantage_sample sample_of(int64_t epoch, enum ow_vantage_kind kind, uint64_t id)
{
	struct ow_vantage_sample sample = {.kind = kind,
	                                   .clock_generation = 1,
	                                   .epoch = epoch,
	                                   .epoch_ns = 10 * SECOND,
	                                   .start_ns = epoch * 10 * SECOND,
	                                   .end_ns = (epoch + 1) * 10 * SECOND,
	                                   .clock_error_ns = -1,
	                                   .packets = 1,
	                                   .tau = UINT64_MAX,
	                                   .count = 1};
	sample.record = calloc(1, sizeof *sample.record);
	sample.record[0] = (struct ow_sample_record){.id = id, .time_ns = sample.start_ns, .copies = 1};
	return sample;
}

static void give(const struct ow_sampler_options *options, unsigned source, int64_t epoch, enum ow_vantage_kind kind,
                 uint64_t id)
{
	struct ow_vantage_sample sample = sample_of(epoch, kind, id);
	options->on_sample(options->arg, source, &sample);
	ow_vantage_sample_done(&sample);
}

/* eth0 has one thread, eth1 two: its samples come when both are there, joined. */
static void threads(void **state)
{
	(void)state;
	struct ow_config_interface interfaces[] = {{.name = "eth0", .threads = 1}, {.name = "eth1", .threads = 2}};
	struct ow_config config = {.point = "london",
	                           .interfaces = interfaces,
	                           .interface_count = 2,
	                           .discovery = {.key = "sixteen letters!", .epoch_ns = 10 * SECOND, .records = 16}};
	struct ow_sample_collector *collector;
	struct ow_sampler_options options;
	struct got got = {0};
	assert_int_equal(ow_sample_collector_create(&config, take, &got, &collector, NULL), 0);
	ow_sample_collector_options(collector, &options);
	assert_int_equal(options.records, 16);
	give(&options, 0, EPOCH, OW_VANTAGE_IN, 1);
	assert_int_equal(got.count, 1);
	give(&options, 1, EPOCH, OW_VANTAGE_IN, 2);
	give(&options, 1, EPOCH, OW_VANTAGE_OUT, 3);
	give(&options, 1, EPOCH + 1, OW_VANTAGE_IN, 4);
	assert_int_equal(got.count, 1);
	give(&options, 1, EPOCH, OW_VANTAGE_IN, 5);
	assert_int_equal(got.count, 2);
	assert_string_equal(got.sample[1].point, "london");
	assert_string_equal(got.sample[1].interface, "eth1");
	assert_int_equal(got.sample[1].count, 2);
	assert_int_equal(got.sample[1].packets, 2);
	assert_true(got.sample[1].clock_generation > 1); /* of this process */
	/* A thread that gives nothing for long does not keep others waiting. */
	for (int i = 2; i < 600; i++)
		give(&options, 1, EPOCH + i, OW_VANTAGE_IN, 6);
	give(&options, 1, EPOCH + 599, OW_VANTAGE_IN, 7);
	assert_int_equal(got.count, 3);
	for (unsigned i = 0; i < got.count; i++)
		ow_vantage_sample_done(&got.sample[i]);
	ow_sample_collector_free(collector);
}

/* The same key gives the same sample everywhere; another key is known to be another one. */
static void keys(void **state)
{
	(void)state;
	const char *const key[] = {"sixteen letters!", "sixteen letters!", "sixteen letters?"};
	struct ow_sampler_options options[3];
	for (int i = 0; i < 3; i++) {
		struct ow_config config = {.point = "p",
		                           .discovery = {.key = key[i], .epoch_ns = SECOND, .records = 16}};
		struct ow_sample_collector *collector;
		assert_int_equal(ow_sample_collector_create(&config, take, NULL, &collector, NULL), 0);
		ow_sample_collector_options(collector, &options[i]);
		ow_sample_collector_free(collector);
	}
	assert_true(options[0].key == options[1].key && options[0].key_generation == options[1].key_generation);
	assert_true(options[0].key != options[2].key && options[0].key_generation != options[2].key_generation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads),
		cmocka_unit_test(keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
