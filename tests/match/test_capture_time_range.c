/* SPDX-License-Identifier: Apache-2.0 */
#include "match/capture_time_range.h"
#include "base/random.h"
#include "base/time.h"
#include "capture/file/writer.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define SEED 27
#define S    OW_NS_PER_S

static int check(const int64_t *time_ns, size_t count, int64_t tolerance_ns, struct ow_error *err)
{
	struct ow_order order;
	ow_order_init(&order, tolerance_ns);
	for (size_t i = 0; i < count; i++)
		ow_order_add(&order, &(struct ow_frame){.time_ns = time_ns[i], .number = i + 1});
	return ow_order_check(&order, "x.pcap", err);
}

/* Frames that are out of order by no more than the tolerance are in order, whatever they do below it. */
static void tolerated(void **state)
{
	(void)state;
	static int64_t time_ns[5000];
	struct ow_random random;
	struct ow_error err;
	ow_random_seed(&random, SEED);
	for (size_t i = 0; i < 5000; i++)
		time_ns[i] = 100 * S + (int64_t)i * S / 1000 - (int64_t)ow_random_below(&random, S);
	assert_int_equal(check(time_ns, 5000, S, &err), 0);
	/* A few wrong times are none of order, and frames without a time say nothing. */
	for (size_t i = 1000; i < 1000 + OW_ORDER_BLOCK - 1; i++)
		time_ns[i] = 1;
	for (size_t i = 3000; i < 4000; i++)
		time_ns[i] = 0;
	assert_int_equal(check(time_ns, 5000, S, &err), 0);
}

/* Two files joined in the wrong order: the error names a frame of each part. */
static void joined(void **state)
{
	(void)state;
	static int64_t time_ns[400];
	struct ow_error err = {""};
	for (size_t i = 0; i < 400; i++)
		time_ns[i] = (i < 200 ? 1000 : 500) * S + (int64_t)i * S / 1000;
	assert_int_equal(check(time_ns, 400, S, &err), -EINVAL);
	assert_non_null(strstr(err.text, "packet 201 of 1970-01-01T00:08:20.200Z; 200 packets"));
	assert_int_equal(check(time_ns, 400, 600 * S, &err), 0);
}

static void write_file(const char *path, const int64_t *time_ns, size_t count)
{
	static const uint8_t bytes[60];
	struct ow_writer *writer;
	struct ow_error err = {""};
	const struct ow_writer_options options = {.linktype = 1, .nanoseconds = true};
	if (ow_writer_open(path, &options, &writer, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < count; i++) {
		struct ow_frame frame = {.time_ns = time_ns[i],
		                         .data = bytes,
		                         .caplen = sizeof bytes,
		                         .len = sizeof bytes,
		                         .linktype = 1};
		assert_int_equal(ow_writer_write(writer, &frame, &err), 0);
	}
	assert_int_equal(ow_writer_close(writer, &err), 0);
}

static void file(void **state)
{
	(void)state;
	char path[] = "/tmp/oneway-range-XXXXXX";
	struct ow_capture_time_range range;
	struct ow_error err = {""};
	close(mkstemp(path));
	write_file(path, (int64_t[]){20 * S, 0, 21 * S, 30 * S + 1, 29 * S}, 5);
	assert_int_equal(ow_capture_time_range_of_file(path, S, &range, &err), 0);
	assert_true(range.first_ns == 20 * S && range.last_ns == 30 * S + 1);
	assert_int_equal(range.untimed, 1);
	assert_int_equal(range.gap_ns, 9 * S + 1);
	assert_int_equal(range.gap_number, 4);
	write_file(path, (int64_t[]){0, 0}, 2);
	assert_int_equal(ow_capture_time_range_of_file(path, S, &range, &err), -ENODATA);
	write_file(path, NULL, 0);
	assert_int_equal(ow_capture_time_range_of_file(path, S, &range, &err), -ENODATA);
	unlink(path);
	assert_int_equal(ow_capture_time_range_of_file(path, S, &range, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tolerated), cmocka_unit_test(joined),
	                                   cmocka_unit_test(file)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
