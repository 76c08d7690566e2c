/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of files: what an argument names, and the frames of all files in the order of time. */
#include "craft.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* A capture with a frame of len bytes at each of these seconds. */
static const char *save(struct scratch *scratch, const char *name, uint32_t len, const uint32_t *time, size_t count)
{
	struct craft *c = craft_new(false);
	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	for (size_t i = 0; i < count; i++)
		craft_record(c, time[i], 0, 4, len);
	const char *path = scratch_save(scratch, name, c->bytes, c->size);
	free(c);
	return path;
}
#define SAVE(scratch, name, len, ...) \
	save(scratch, name, len, (const uint32_t[]){__VA_ARGS__}, LENGTH(((const uint32_t[]){__VA_ARGS__})))

/* Reads the files of the scratch with such names; they have frames at these seconds. */
static struct outcome check(struct scratch *scratch, const char *pattern, const uint32_t *time, size_t count)
{
	struct outcome o = read_all(scratch_path(scratch, pattern));
	assert_string_equal(o.text, "");
	assert_int_equal(o.n, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(o.frames[i].time_ns, time[i] * INT64_C(1000000000));
		assert_int_equal(o.frames[i].number, i + 1);
		assert_int_equal(o.first[i], 0x40 + time[i]);
	}
	return o;
}
#define CHECK(scratch, pattern, ...) \
	check(scratch, pattern, (const uint32_t[]){__VA_ARGS__}, LENGTH(((const uint32_t[]){__VA_ARGS__})))

static void test_rotated_in_any_order(void **state)
{
	SAVE(*state, "r3.pcap", 60, 1, 2, 3);
	SAVE(*state, "r1.pcap", 60, 7, 8);
	SAVE(*state, "r2.pcap", 60, 4, 5, 6);
	struct outcome o = CHECK(*state, "r?.pcap", 1, 2, 3, 4, 5, 6, 7, 8);
	assert_int_equal(o.info.files, 3);
}

static void test_overlapping(void **state)
{
	SAVE(*state, "o1.pcap", 60, 1, 3, 5, 7);
	SAVE(*state, "o2.pcap", 80, 2, 4, 4, 6);
	CHECK(*state, "o*.pcap", 1, 2, 3, 4, 4, 5, 6, 7);
	/* Frames of 5 and 7 are in two files: once. Two frames of one file are two, though they are the same. */
	SAVE(*state, "o3.pcap", 60, 5, 7, 9, 9);
	CHECK(*state, "o*.pcap", 1, 2, 3, 4, 4, 5, 6, 7, 9, 9);
	/* The same in more than two files. */
	SAVE(*state, "o4.pcap", 60, 5, 7, 9);
	SAVE(*state, "o5.pcap", 60, 7, 9, 9);
	CHECK(*state, "o*.pcap", 1, 2, 3, 4, 4, 5, 6, 7, 9, 9);
}

static void test_file_without_frames(void **state)
{
	SAVE(*state, "e1.pcap", 60, 1, 2);
	save(*state, "e2.pcap", 60, NULL, 0);
	struct outcome o = CHECK(*state, "e*.pcap", 1, 2);
	assert_int_equal(o.info.files, 2);
}

static void test_sum(void **state)
{
	char sum[2048];
	const char *a = SAVE(*state, "s-a.pcap", 60, 1, 3), *b = SAVE(*state, "s-b.pcap", 80, 2, 4);
	snprintf(sum, sizeof sum, "%s+%s+%s", a, b, a);
	struct outcome o = read_all(sum);
	assert_int_equal(o.n, 4);
	assert_int_equal(o.info.files, 2);
	/* A file of that name comes first. */
	const char *plus = SAVE(*state, "s-a+b.pcap", 60, 9);
	assert_int_equal(read_all(plus).n, 1);
	assert_int_equal(read_all(plus).info.files, 0);
	snprintf(sum, sizeof sum, "%s+", a);
	assert_int_equal(read_all(sum).opened, -EINVAL);
}

/* Parts that cover the same time, however long it is. */
static void test_sum_of_all_times(void **state)
{
	char sum[2048];
	struct ow_reader *reader;
	struct ow_frame frames[8];
	struct ow_error err;
	const char *a = SAVE(*state, "t-a.pcap", 60, 2, 3, UINT32_MAX);
	const char *b = SAVE(*state, "t-b.pcap", 80, 1, 2, 3, UINT32_MAX - 1);
	snprintf(sum, sizeof sum, "%s+%s", a, b);
	assert_int_equal(ow_reader_open(sum, &reader, &err), 0);
	while (ow_reader_read(reader, frames, LENGTH(frames), &err) > 0)
		;
	assert_null(ow_reader_note(reader));
	ow_reader_close(reader);
}

static void test_second_pass(void **state)
{
	struct ow_reader *reader;
	struct ow_frame frame[64];
	struct ow_error err;
	SAVE(*state, "p1.pcap", 60, 1, 2);
	SAVE(*state, "p2.pcap", 60, 5, 6);
	assert_int_equal(ow_reader_open(scratch_path(*state, "p?.pcap"), &reader, &err), 0);
	for (int pass = 0; pass < 3; pass++) {
		uint64_t n = 0;
		int got;
		while ((got = ow_reader_read(reader, frame, 64, &err)) > 0) {
			/* Between the files is a time that none covers. */
			assert_int_equal(ow_reader_info(reader)->after_gap, frame[0].time_ns == INT64_C(5000000000));
			for (int i = 0; i < got; i++)
				assert_int_equal(frame[i].number, ++n);
		}
		assert_int_equal(got, 0);
		assert_int_equal(n, 4);
		assert_int_equal(ow_reader_position(reader), ow_reader_info(reader)->size_bytes);
		assert_int_equal(ow_reader_rewind(reader, &err), 0);
	}
	ow_reader_close(reader);
}

/* What was a file when the set was listed is a pipe without a writer now. */
static void test_replaced(void **state)
{
	struct ow_reader *reader;
	struct ow_frame frame[8];
	struct ow_error err;
	char path[1024];
	SAVE(*state, "w1.pcap", 60, 1);
	snprintf(path, sizeof path, "%s", SAVE(*state, "w2.pcap", 60, 2));
	assert_int_equal(ow_reader_open(scratch_path(*state, "w?.pcap"), &reader, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	int r;
	do
		r = ow_reader_read(reader, frame, LENGTH(frame), &err);
	while (r > 0);
	assert_int_equal(r, -EIO);
	assert_non_null(strstr(err.text, "w2.pcap: is not a file any more"));
	ow_reader_close(reader);
	unlink(path);
}

static void test_refused(void **state)
{
	struct outcome o = read_all(scratch_path(*state, "none*.pcap"));
	assert_int_equal(o.opened, -ENOENT);
	assert_non_null(strstr(o.text, "none*.pcap: no file has such a name"));
	/* A file that a pattern names has to be a capture. */
	scratch_save(*state, "x1.pcap", "hello", 5);
	SAVE(*state, "x2.pcap", 60, 1);
	o = read_all(scratch_path(*state, "x?.pcap"));
	assert_int_equal(o.opened, -EINVAL);
	assert_non_null(strstr(o.text, "x1.pcap: not a capture file"));
	/* An empty file is not read: this one fails, others of /proc never end. */
	o = read_all("/proc/self/me[m]");
	assert_int_equal(o.opened, -EINVAL);
	assert_non_null(strstr(o.text, "none of its files is a capture"));
}

static void test_folder(void **state)
{
	struct ow_reader *reader;
	struct ow_error err;
	char folder[1024];
	SAVE(*state, "f1.pcap", 60, 1);
	scratch_save(*state, "notes.txt", "hello", 5);
	SAVE(*state, ".hidden.pcap", 60, 7);
	snprintf(folder, sizeof folder, "%s", scratch_path(*state, "f1.pcap"));
	*strrchr(folder, '/') = 0;
	assert_int_equal(ow_reader_open(folder, &reader, &err), 0);
	assert_int_equal(ow_reader_info(reader)->files, 1);
	assert_non_null(strstr(ow_reader_note(reader), "1 file is no capture"));
	ow_reader_close(reader);
	unlink(scratch_path(*state, "f1.pcap"));
	assert_int_equal(ow_reader_open(folder, &reader, &err), -EINVAL);
	assert_non_null(strstr(err.text, "none of its files is a capture"));
}

/* A file that is cut off ends there, and the next one goes on. */
static void test_damaged(void **state)
{
	struct craft *c = craft_new(false);
	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	craft_record(c, 1, 0, 4, 60);
	craft_record(c, 2, 0, 4, 60);
	scratch_save(*state, "d1.pcap", c->bytes, c->size - 2);
	free(c);
	SAVE(*state, "d2.pcap", 60, 5, 6);
	struct outcome o = read_all(scratch_path(*state, "d?.pcap"));
	assert_int_equal(o.n, 3);
	assert_true(o.damaged);
	assert_non_null(strstr(o.text, "d1.pcap: cut off in record 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rotated_in_any_order, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_overlapping, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_file_without_frames, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_sum, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_sum_of_all_times, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_second_pass, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_replaced, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_refused, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_folder, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
