/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include "match/extract.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define RECORDS 1000

static char folder[] = "/tmp/oneway-extract-XXXXXX";

static void set_against_array(void **state)
{
	(void)state;
	struct ow_records records = {0};
	static bool there[5000];
	struct ow_random random;
	uint64_t count = 0;
	ow_random_seed(&random, 1);
	for (int i = 0; i < 3000; i++) {
		uint64_t number = 1 + ow_random_below(&random, 4999);
		count += !there[number];
		there[number] = true;
		assert_int_equal(ow_records_add(&records, number), 0);
		assert_int_equal(records.count, count);
	}
	for (uint64_t number = 0; number < 5000; number++)
		assert_int_equal(ow_records_has(&records, number), there[number]);
	assert_false(ow_records_has(&records, UINT64_MAX));
	assert_int_equal(ow_records_add(&records, 0), -ERANGE);
	assert_int_equal(ow_records_add(&records, UINT64_MAX), -ERANGE);
	ow_records_done(&records);
	assert_false(ow_records_has(&records, 1));
}

/* Record k of side s is at time 2 k + s, and its bytes say so. */
static void write_source(const char *path, int side, uint16_t linktype)
{
	struct ow_writer *writer;
	struct ow_writer_options options = {.linktype = linktype, .nanoseconds = true};
	assert_int_equal(ow_writer_open(path, &options, &writer, NULL), 0);
	for (int k = 1; k <= RECORDS; k++) {
		uint8_t data[64];
		memset(data, k % 251, sizeof data);
		data[0] = (uint8_t)side;
		struct ow_frame frame = {
			.time_ns = 2 * k + side, .data = data, .caplen = 20 + (uint32_t)(k % 40), .len = 1500};
		assert_int_equal(ow_writer_write(writer, &frame, NULL), 0);
	}
	assert_int_equal(ow_writer_close(writer, NULL), 0);
}

static void merges_by_time(void **state)
{
	(void)state;
	struct ow_records chosen[OW_SIDES] = {0};
	static const char *const source[OW_SIDES] = {"a.pcap", "b.pcap"};
	struct ow_random random;
	struct ow_error err = {""};
	ow_random_seed(&random, 2);
	for (int i = 0; i < 300; i++)
		assert_int_equal(ow_records_add(&chosen[i % 2], 1 + ow_random_below(&random, RECORDS)), 0);
	assert_int_equal(ow_extract("x.pcap", source, chosen, &err), 0);

	struct ow_reader *reader;
	struct ow_frame frame;
	int64_t last = 0;
	uint64_t seen = 0;
	assert_int_equal(ow_reader_open("x.pcap", &reader, NULL), 0);
	while (ow_reader_read(reader, &frame, 1, NULL) == 1) {
		uint64_t side = (uint64_t)frame.time_ns & 1, k = (uint64_t)frame.time_ns >> 1;
		assert_true(frame.time_ns > last);
		last = frame.time_ns;
		assert_true(ow_records_has(&chosen[side], k));
		assert_int_equal(frame.caplen, 20 + k % 40);
		assert_int_equal(frame.len, 1500);
		assert_int_equal(frame.data[0], side);
		assert_int_equal(frame.data[1], k % 251);
		seen++;
	}
	assert_int_equal(seen, chosen[0].count + chosen[1].count);
	ow_reader_close(reader);
	ow_records_done(&chosen[0]);
	ow_records_done(&chosen[1]);
}

static void failures(void **state)
{
	(void)state;
	struct ow_records chosen[OW_SIDES] = {0}, none[OW_SIDES] = {0};
	static const char *const source[OW_SIDES] = {"a.pcap", "raw.pcap"}, *const missing[OW_SIDES] = {"a.pcap",
	                                                                                                "missing"};
	struct ow_error err = {""};
	ow_records_add(&chosen[OW_SIDE_A], 5);
	ow_records_add(&chosen[OW_SIDE_B], 6);
	assert_true(ow_extract("y.pcap", source, chosen, &err) < 0);
	assert_non_null(strstr(err.text, "link types, EN10MB and RAW"));
	assert_int_not_equal(access("y.pcap", F_OK), 0);
	assert_true(ow_extract("y.pcap", missing, chosen, &err) < 0);
	assert_non_null(strstr(err.text, "missing"));
	/* A record that is no longer there. */
	ow_records_add(&chosen[OW_SIDE_A], RECORDS + 1);
	assert_true(ow_extract("y.pcap", source, chosen, &err) < 0);
	assert_int_not_equal(access("y.pcap", F_OK), 0);
	/* Nothing chosen gives an empty capture. */
	assert_int_equal(ow_extract("y.pcap", source, none, &err), 0);
	struct ow_reader *reader;
	struct ow_frame frame;
	assert_int_equal(ow_reader_open("y.pcap", &reader, NULL), 0);
	assert_int_equal(ow_reader_read(reader, &frame, 1, NULL), 0);
	assert_int_equal(ow_reader_info(reader)->linktype, 1);
	ow_reader_close(reader);
	ow_records_done(&chosen[OW_SIDE_A]);
	ow_records_done(&chosen[OW_SIDE_B]);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return -1;
	write_source("a.pcap", 0, 1);
	write_source("b.pcap", 1, 1);
	write_source("raw.pcap", 1, 101);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	static const char *const names[] = {"a.pcap", "b.pcap", "raw.pcap", "x.pcap", "y.pcap"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(names[i]);
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_against_array),
		cmocka_unit_test(merges_by_time),
		cmocka_unit_test(failures),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
