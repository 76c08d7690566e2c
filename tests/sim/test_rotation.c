/* SPDX-License-Identifier: Apache-2.0 */
/* Captures as files of periods. */
#include "base/time.h"
#include "capture/file/reader.h"
#include "sim/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static int frames_in(const char *path)
{
	struct ow_reader *reader;
	struct ow_frame frame[64];
	if (ow_reader_open(path, &reader, NULL) < 0)
		return -1;
	int n = ow_reader_read(reader, frame, 64, NULL);
	ow_reader_close(reader);
	return n;
}

static void periods_are_files(void **state)
{
	(void)state;
	/* in tenths of a second after the start, and the file */
	static const int at[] = {-3, 0, 9, 10, 14, 9, 35, 39, 40};
	const struct ow_writer_options options = {.linktype = 1, .nanoseconds = true};
	struct ow_rotation *rotation;
	int64_t start_ns = 1000 * OW_NS_PER_S;
	assert_int_equal(ow_rotation_open("x.y.pcap", &options, OW_NS_PER_S, start_ns, &rotation, NULL), 0);
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct ow_frame frame = {.time_ns = start_ns + at[i] * (OW_NS_PER_S / 10),
		                         .data = (const uint8_t[60]){1},
		                         .caplen = 60,
		                         .len = 60};
		assert_int_equal(ow_rotation_write(rotation, &frame, NULL), 0);
	}
	assert_int_equal(ow_rotation_files(rotation), 4);
	assert_int_equal(ow_rotation_close(rotation, NULL), 0);
	assert_int_equal(frames_in("x_00001.y.pcap"), 3);
	/* The earlier frame stays in the open file. */
	assert_int_equal(frames_in("x_00002.y.pcap"), 3);
	assert_int_equal(frames_in("x_00003.y.pcap"), -1);
	assert_int_equal(frames_in("x_00004.y.pcap"), 2);
	assert_int_equal(frames_in("x_00005.y.pcap"), 1);
}

int main(void)
{
	char folder[] = "/tmp/oneway-rotation-XXXXXX";
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return 1;
	const struct CMUnitTest tests[] = {cmocka_unit_test(periods_are_files)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char line[64];
	snprintf(line, sizeof line, "rm -r '%s'", folder);
	return system(line) != 0 || failed;
}
