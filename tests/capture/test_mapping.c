/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files: contents, files that are cut or grow while they are read, bus errors of other code. */
#include "craft.h"

#include "capture/file/mapping.h"
#include "capture/file/source.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORDS 20000u
#define CAPLEN  100u
#define SIZE    (24 + RECORDS * (16 + CAPLEN))

/* A capture of RECORDS records of CAPLEN bytes, each of which begins with its number. */
static const char *long_capture(struct scratch *scratch)
{
	struct craft *c = craft_new(false);
	craft_pcap(c, 0xa1b23c4d, 65535, 1);
	for (uint32_t i = 0; i < RECORDS; i++) {
		size_t at = c->size + 16;
		craft_record(c, 1 + i, 0, CAPLEN, CAPLEN);
		memcpy(c->bytes + at, &i, sizeof i);
	}
	const char *path = scratch_save(scratch, "long.pcap", c->bytes, c->size);
	free(c);
	return path;
}

/* Reads on; true while every frame is the one that it should be. */
static bool read_on(struct ow_reader *reader, uint32_t *number, int *ret_result, struct ow_error *err)
{
	struct ow_frame frame[64];
	bool right = true;
	while ((*ret_result = ow_reader_read(reader, frame, 64, err)) > 0) {
		for (int i = 0; i < *ret_result; i++) {
			uint32_t is;
			memcpy(&is, frame[i].data, sizeof is);
			right &= is == (*number)++ && frame[i].caplen == CAPLEN;
		}
	}
	return right;
}

static void test_same_as_read(void **state)
{
	ow_mapping_allow();
	const char *path = long_capture(*state);
	struct ow_error err;
	struct ow_reader *reader;
	assert_int_equal(ow_reader_open(path, &reader, &err), 0);
	for (int round = 0; round < 3; round++) {
		uint32_t number = 0;
		int result;
		assert_true(ow_reader_info(reader)->mapped);
		assert_true(read_on(reader, &number, &result, &err));
		assert_int_equal(result, 0);
		assert_int_equal(number, RECORDS);
		assert_null(ow_reader_damage(reader));
		assert_int_equal(ow_reader_position(reader), ow_reader_info(reader)->size_bytes);
		assert_int_equal(ow_reader_rewind(reader, &err), 0);
	}
	ow_reader_close(reader);
}

/* Cut anywhere while it is read: an error that says so, whether or not the cut part was reached by then. */
static void test_cut_while_read(void **state)
{
	ow_mapping_allow(); /* cmocka has put a handler of its own before each test */
	static const off_t cuts[] = {0, 100, 4096, 65536, 1 << 20, SIZE - 1};
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		const char *path = long_capture(*state);
		struct ow_frame frame[64];
		struct ow_error err = {""};
		struct ow_reader *reader;
		uint32_t number = 64;
		int result;
		assert_int_equal(ow_reader_open(path, &reader, &err), 0);
		assert_int_equal(ow_reader_read(reader, frame, 64, &err), 64);
		assert_int_equal(truncate(path, cuts[i]), 0);
		read_on(reader, &number, &result, &err);
		assert_int_equal(result, -EIO);
		assert_non_null(strstr(err.text, "long.pcap: was truncated"));
		/* It stays so. */
		result = ow_reader_rewind(reader, &err);
		assert_int_equal(result == 0 ? ow_reader_read(reader, frame, 64, &err) : result, -EIO);
		ow_reader_close(reader);
	}
}

/* What is appended while it is read is read, too, also where a record was cut by the end of what there was. */
static void test_growing(void **state)
{
	ow_mapping_allow();
	const char *path = long_capture(*state);
	size_t size;
	uint8_t *bytes = scratch_load(*state, "long.pcap", &size);
	size_t half = 24 + (size_t)(RECORDS / 2) * (16 + CAPLEN) + 50;
	scratch_save(*state, "growing.pcap", bytes, half);
	const char *growing = scratch_path(*state, "growing.pcap");
	struct ow_error err;
	struct ow_reader *reader;
	struct ow_frame frame[64];
	uint32_t number = 64;
	int result;
	assert_int_equal(ow_reader_open(growing, &reader, &err), 0);
	assert_int_equal(ow_reader_read(reader, frame, 64, &err), 64);
	int fd = open(growing, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, bytes + half, size - half), size - half);
	close(fd);
	assert_true(read_on(reader, &number, &result, &err));
	assert_int_equal(result, 0);
	assert_int_equal(number, RECORDS);
	ow_reader_close(reader);
	free(bytes);
	assert_non_null(path);
}

/* More files at a time than there is room for: the others are read. */
static void test_many(void **state)
{
	ow_mapping_allow();
	enum { MANY = 100 };
	const char *path = long_capture(*state);
	struct ow_reader *reader[MANY];
	struct ow_error err;
	unsigned mapped = 0;
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(ow_reader_open(path, &reader[i], &err), 0);
		mapped += ow_reader_info(reader[i])->mapped;
	}
	assert_int_equal(mapped, 64);
	for (unsigned i = 0; i < MANY; i++) {
		uint32_t number = 0;
		int result;
		assert_true(read_on(reader[i], &number, &result, &err));
		assert_int_equal(number, RECORDS);
		ow_reader_close(reader[i]);
	}
}

/* What a child that does this dies of. */
static int death(void (*act)(const char *path), const char *path)
{
	pid_t child = fork();
	if (child == 0) {
		const struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGBUS, SIG_DFL);
		act(path);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void touch_foreign(const char *path)
{
	ow_mapping_allow();
	int fd = open(path, O_RDWR);
	volatile const uint8_t *p = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || ftruncate(fd, 0) < 0)
		_exit(1);
	_exit(1 + p[8192]);
}

static void send_itself(const char *path)
{
	(void)path;
	ow_mapping_allow();
	raise(SIGBUS);
}

/* Bus errors that are not ours end the process as ever. In children, before this process has a handler. */
static void test_of_others(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its own handler stands between */
#endif
	assert_int_equal(death(touch_foreign, long_capture(*state)), SIGBUS);
	assert_int_equal(death(send_itself, NULL), SIGBUS);
}

/* A library does not map by itself. */
static void test_not_allowed(void **state)
{
	struct ow_error err;
	struct ow_reader *reader;
	assert_int_equal(ow_reader_open(long_capture(*state), &reader, &err), 0);
	assert_false(ow_reader_info(reader)->mapped);
	ow_reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest before[] = {
		cmocka_unit_test_setup_teardown(test_of_others, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_not_allowed, scratch_setup, scratch_teardown),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_as_read, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_cut_while_read, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_growing, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_many, scratch_setup, scratch_teardown),
	};
	int failed = cmocka_run_group_tests(before, NULL, NULL);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
