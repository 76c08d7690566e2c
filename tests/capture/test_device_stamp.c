/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps of capture devices: each format, and bytes of any kind. tests/cli/check-stamps compares them with tshark. */
#include "capture/device_stamp.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FRAME 60u /* an IPv4 packet of 40 bytes, and 6 bytes of padding */

static void make_frame(uint8_t data[128])
{
	memset(data, 0, 128);
	ow_store_be16(data + 12, 0x0800);
	data[14] = 0x45;
	ow_store_be16(data + 16, 40);
}

static bool read_stamp(struct ow_device_format format, const uint8_t *data, uint32_t size,
                       struct ow_device_stamp *stamp)
{
	struct ow_frame frame = {
		.data = data, .caplen = size, .len = size, .linktype = 1, .time_ns = 1700000100 * OW_NS_PER_S};
	return ow_device_stamp_read(&format, &frame, stamp);
}

static void test_metawatch(void **state)
{
	struct ow_device_format format = {OW_DEVICE_METAWATCH, 0, 0}, behind = {OW_DEVICE_METAWATCH, 4, 0};
	struct ow_device_stamp stamp;
	uint8_t data[128];

	(void)state;
	make_frame(data);
	ow_store_be32(data + FRAME + 4, 1700000000);
	ow_store_be32(data + FRAME + 8, 999999999);
	ow_store_be16(data + FRAME + 13, 515);
	data[FRAME + 15] = 9;
	assert_true(read_stamp(format, data, FRAME + 16, &stamp));
	assert_int_equal(stamp.time_ns, INT64_C(1700000000999999999));
	assert_true(stamp.has_port && stamp.port == (UINT64_C(515) << 32 | 9));
	assert_true(read_stamp(behind, data, FRAME + 20, &stamp));
	assert_int_equal(stamp.time_ns, INT64_C(1700000000999999999));
	ow_store_be32(data + FRAME + 8, 1000000000);
	assert_false(read_stamp(format, data, FRAME + 16, &stamp));
}

/* The time must not be part of the packet. */
static void test_inside_of_packet(void **state)
{
	struct ow_device_format format = {OW_DEVICE_METAWATCH, 0, 0};
	struct ow_device_stamp stamp;
	uint8_t data[128];

	(void)state;
	make_frame(data);
	ow_store_be32(data + FRAME + 4, 1700000000);
	ow_store_be16(data + 16, FRAME - 14 + 1); /* the packet has a byte of the trailer */
	assert_false(read_stamp(format, data, FRAME + 16, &stamp));
	ow_store_be16(data + 16, FRAME - 14);
	assert_true(read_stamp(format, data, FRAME + 16, &stamp));
	ow_store_be16(data + 16, 0); /* a superframe without a length */
	assert_false(read_stamp(format, data, FRAME + 16, &stamp));
}

/* TAI is 37 s ahead, before 2017 less; 48 bits have only the low bits of the seconds. */
static void test_arista(void **state)
{
	struct ow_device_format format = {OW_DEVICE_ARISTA, 0, 0};
	struct ow_device_stamp stamp;
	uint8_t data[128] = {0};

	(void)state;
	memcpy(data + 12, (const uint8_t[]){0xd2, 0x8b, 0, 1, 0, 0x10}, 6);
	ow_store_be32(data + 18, 1700000037);
	ow_store_be32(data + 22, 5);
	assert_true(read_stamp(format, data, FRAME, &stamp));
	assert_int_equal(stamp.time_ns, INT64_C(1700000000000000005));
	assert_false(stamp.has_port);
	ow_store_be32(data + 18, 1483228836); /* the leap second of 2016 */
	assert_true(read_stamp(format, data, FRAME, &stamp));
	assert_int_equal(stamp.time_ns, INT64_C(1483228800000000005));
	ow_store_be32(data + 18, 1483228837);
	assert_true(read_stamp(format, data, FRAME, &stamp));
	assert_int_equal(stamp.time_ns, INT64_C(1483228800000000005));
	data[16] = 1; /* UTC */
	data[17] = 0x20;
	for (int64_t s = 1700000100 - 30000; s < 1700000100 + 30000; s += 9999) {
		ow_store_be16(data + 18, (uint16_t)s);
		ow_store_be32(data + 20, 7);
		assert_true(read_stamp(format, data, FRAME, &stamp));
		assert_int_equal(stamp.time_ns, s * OW_NS_PER_S + 7);
	}
	data[16] = 2; /* no such scale */
	assert_false(read_stamp(format, data, FRAME, &stamp));
}

/* Bytes of any kind and length: nothing is read beyond them (a sanitizer would see it), and nothing is found. */
static void test_noise(void **state)
{
	static const uint16_t types[] = {0x0800, 0x86dd, 0x8100, 0xd28b, 0x8847, 0x8864, 0x0806};
	static const uint16_t magics[] = {0x22e5, 0xaf12};
	struct ow_device_survey survey = {0};
	struct ow_random random;

	(void)state;
	ow_random_seed(&random, 17);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t size = (uint32_t)(ow_random_u64(&random) % 100);
		uint8_t *data = malloc(size ? size : 1);
		assert_non_null(data);
		for (uint32_t k = 0; k < size; k++)
			data[k] = (uint8_t)ow_random_u64(&random);
		if (size >= 14)
			ow_store_be16(data + 12, types[i % 7]);
		if (size >= 20 && i % 3 == 0)
			memset(data + 14, 0, 6);
		if (size >= 20 && i % 11 < 2)
			ow_store_be16(data + size - 4 - i % 2 * 4, magics[i % 11]);
		struct ow_frame frame = {
			.data = data, .caplen = size, .len = size + (i % 4 == 0), .linktype = 1, .time_ns = i * 1000};
		ow_device_survey_add(&survey, &frame);
		free(data);
	}
	assert_int_equal(ow_device_survey_result(&survey).device, OW_DEVICE_NONE);
}

/* What a survey finds in frames that end in seconds and nanoseconds: `size` bytes, the first stamp late by `late_s`. */
static enum ow_device survey_of(uint8_t *data, uint32_t size, uint32_t late_s)
{
	struct ow_device_survey survey = {0};
	for (uint32_t i = 0; i < 200; i++) {
		struct ow_frame frame = {.data = data,
		                         .caplen = size,
		                         .len = size,
		                         .linktype = 1,
		                         .time_ns = 1700000000 * OW_NS_PER_S + i * 1000};
		ow_store_be32(data + size - 8, 1700000000 + (i ? 0 : late_s));
		ow_store_be32(data + size - 4, i * 1000);
		ow_device_survey_add(&survey, &frame);
	}
	return ow_device_survey_result(&survey).device;
}

/* A time at the end of a packet is not a trailer, whatever carries the packet. */
static void test_time_in_packet(void **state)
{
	static const uint16_t types[] = {0x8847, 0x8848, 0x8864, 0x88e5, 0x88f7};
	(void)state;
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		uint32_t header = types[i] == 0x8864 ? 22 : 18;
		uint8_t data[128] = {0};
		ow_store_be16(data + 12, types[i]);
		data[16] = 1; /* the only label */
		data[header] = 0x45;
		ow_store_be16(data + header + 2, 40);
		assert_int_equal(survey_of(data, header + 40, 0), OW_DEVICE_NONE);
		assert_int_equal(survey_of(data, header + 48, 0), i < 3 ? OW_DEVICE_VSS : OW_DEVICE_NONE);
	}
}

static void test_first_stamp_is_wrong(void **state)
{
	uint8_t data[128];
	(void)state;
	make_frame(data);
	assert_int_equal(survey_of(data, FRAME + 8, 0), OW_DEVICE_VSS);
	assert_int_equal(survey_of(data, FRAME + 8, 5000), OW_DEVICE_VSS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metawatch),      cmocka_unit_test(test_inside_of_packet),
		cmocka_unit_test(test_arista),         cmocka_unit_test(test_noise),
		cmocka_unit_test(test_time_in_packet), cmocka_unit_test(test_first_stamp_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
