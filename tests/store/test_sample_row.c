/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/sample_row.h"
#include "store/store.h"
#include "store/store_writer.h"
#include "store/stored_samples.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "store_file.h"

#define NOW INT64_C(1750000000000000000)

struct read {
	unsigned count;
	uint8_t byte[8];
	bool stop;
};

static int take(void *arg, const uint8_t *bytes, size_t size, struct ow_error *err)
{
	struct read *read = arg;
	assert_int_equal(size, 3);
	assert_true(bytes[0] == bytes[2]);
	read->byte[read->count++] = bytes[0];
	return read->stop ? ow_error_set(err, EPROTO, "enough") : 0;
}

static void kept_for_a_while(void **state)
{
	(void)state;
	const char *path = store_path;
	struct ow_store *store;
	struct ow_store_limits none = {.max_bytes = 0};
	struct read read = {0};
	struct ow_error err;
	assert_int_equal(ow_store_open(path, &store, NULL), 0);
	assert_int_equal(ow_stored_samples_read(path, take, &read, NULL), 0);
	assert_int_equal(read.count, 0);
	for (uint8_t i = 0; i < 3; i++) {
		uint8_t bytes[] = {i, 9, i};
		struct ow_sample_row row = {NOW - (2 - i) * OW_SAMPLE_ROW_KEPT_NS / 2 - 1, bytes, 3};
		assert_int_equal(ow_store_add_sample(store, &row, NULL), 0);
	}
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ow_stored_samples_read(path, take, &read, NULL), 0);
	assert_int_equal(read.count, 3);
	assert_int_equal(ow_store_trim(store, &none, NOW, NULL), 0);
	read = (struct read){.stop = true};
	assert_int_equal(ow_stored_samples_read(path, take, &read, &err), -EPROTO);
	assert_string_equal(err.text, "enough");
	assert_int_equal(read.byte[0], 1); /* the oldest is gone */
	ow_store_close(store);
}

/* Through the thread that writes: what it has written, and what nobody writes any more, is freed. */
static void by_the_writer(void **state)
{
	(void)state;
	struct ow_store_writer *writer;
	struct ow_store_writer_options options = {.path = store_path, .waiting_max = 2};
	struct read read = {0};
	assert_int_equal(ow_store_writer_create(&options, &writer, NULL), 0);
	for (uint8_t i = 0; i < 2; i++) {
		uint8_t bytes[] = {i, 9, i};
		ow_store_writer_add_sample(writer, &(struct ow_sample_row){ow_clock_real_ns(), bytes, 3});
	}
	ow_store_writer_stop(writer);
	assert_int_equal(ow_stored_samples_read(store_path, take, &read, NULL), 0);
	assert_int_equal(read.count, 2);
	assert_int_equal(read.byte[1], 1);
	for (int i = 0; i < 5; i++)
		ow_store_writer_add_sample(writer, &(struct ow_sample_row){NOW, (const uint8_t *)"abc", 3});
	ow_store_writer_free(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(kept_for_a_while, store_fresh),
		cmocka_unit_test_setup(by_the_writer, store_fresh),
	};
	if (store_make() < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)store_fresh(NULL);
	rmdir(store_folder);
	return failed;
}
