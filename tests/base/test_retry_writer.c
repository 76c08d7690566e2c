/* SPDX-License-Identifier: Apache-2.0 */
/* Every item is written once and in order, or is still queued: whatever the disk does, and when it ends. */
#include "base/retry_writer.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MOST 100

/* A disk that fails while it is told to. */
struct disk {
	struct ow_retry_writer *writer;
	atomic_bool fails;
	atomic_uint tries, first_failures, recoveries, maintained;
	int written[1000];
	atomic_uint count;
};

static int write_items(void *owner, void *items, size_t count, struct ow_error *err)
{
	struct disk *disk = owner;
	disk->tries++;
	if (disk->fails)
		return ow_error_set(err, ENOSPC, "disk: full");
	for (const int *item = items; count; count = ow_retry_writer_remove(disk->writer, 0, 1, true))
		disk->written[disk->count++] = *item;
	return 0;
}

static void failed(void *owner, int code, const struct ow_error *why, bool first)
{
	struct disk *disk = owner;
	/* cmocka's asserts are for the main thread. */
	if (code != -ENOSPC || strcmp(why->text, "disk: full") != 0)
		abort();
	disk->first_failures += first;
	if (first)
		ow_retry_writer_tell(disk->writer, why);
}

static void worked(void *owner, int64_t failed_ns)
{
	struct disk *disk = owner;
	disk->recoveries += failed_ns > 0;
}

static int64_t maintain(void *owner, int64_t now_ns, bool failing)
{
	struct disk *disk = owner;
	(void)failing;
	disk->maintained++;
	return now_ns + INT64_C(3600000000000);
}

static void begin(struct disk *disk, int64_t delay_ns)
{
	const struct ow_retry_writer_options o = {.item_size = sizeof(int),
	                                          .waiting_max = MOST,
	                                          .batch_max = 7,
	                                          .delay_ns = delay_ns,
	                                          .retry_ns = 1000000,
	                                          .retry_max_ns = 4000000,
	                                          .owner = disk,
	                                          .write = write_items,
	                                          .failed = failed,
	                                          .worked = worked,
	                                          .maintain = maintain};
	assert_int_equal(ow_retry_writer_create(&o, &disk->writer), 0);
	assert_int_equal(ow_retry_writer_start(disk->writer), 0);
}

static void wait_until(const atomic_uint *value, unsigned least)
{
	for (int i = 0; i < 30000 && *value < least; i++)
		usleep(1000);
	assert_true(*value >= least);
}

static void expect_order(const struct disk *disk, unsigned count)
{
	assert_int_equal(disk->count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(disk->written[i], i);
}

static void in_order(void **state)
{
	(void)state;
	struct disk disk = {0};
	struct ow_retry_writer_state now;
	begin(&disk, 0);
	for (int i = 0; i < 1000; i++) {
		while (ow_retry_writer_add(disk.writer, &i) == -ENOSPC)
			usleep(1000);
	}
	ow_retry_writer_stop(disk.writer);
	expect_order(&disk, 1000);
	ow_retry_writer_state(disk.writer, &now);
	assert_int_equal(now.written, 1000);
	assert_int_equal(now.waiting, 0);
	assert_false(now.failing);
	ow_retry_writer_free(disk.writer);
	ow_retry_writer_free(NULL);
}

/* Items of one batch wait for each other, unless there is a hurry. */
static void hurry(void **state)
{
	(void)state;
	struct disk disk = {0};
	begin(&disk, INT64_C(3600000000000));
	wait_until(&disk.maintained, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ow_retry_writer_add(disk.writer, &i), 0);
	usleep(20000);
	assert_int_equal(disk.tries, 0);
	ow_retry_writer_hurry(disk.writer);
	wait_until(&disk.count, 3);
	assert_int_equal(disk.tries, 1);
	ow_retry_writer_free(disk.writer);
	expect_order(&disk, 3);
}

/* A failure is reported once and retried, and loses no item until the queue is full; then the caller decides. */
static void fails(void **state)
{
	(void)state;
	struct disk disk = {.fails = true};
	struct ow_retry_writer_state now;
	struct ow_error line;
	int added = 0, oldest;
	begin(&disk, 0);
	while (ow_retry_writer_add(disk.writer, &added) == 0)
		added++;
	assert_in_range(added, MOST, MOST + 7);
	wait_until(&disk.tries, 5);
	assert_int_equal(disk.first_failures, 1);
	ow_retry_writer_state(disk.writer, &now);
	assert_true(now.failing);
	assert_int_equal(now.waiting, added);
	assert_true(ow_retry_writer_news(disk.writer, &line));
	assert_string_equal(line.text, "disk: full");
	assert_false(ow_retry_writer_news(disk.writer, &line));
	disk.fails = false;
	wait_until(&disk.count, (unsigned)added);
	assert_false(ow_retry_writer_take(disk.writer, &oldest));
	ow_retry_writer_stop(disk.writer);
	expect_order(&disk, (unsigned)added);
	assert_int_equal(disk.recoveries, 1);
	ow_retry_writer_free(disk.writer);
}

/* The end does not wait for a disk that fails: what could not be written is handed back, in order. */
static void ends(void **state)
{
	(void)state;
	struct disk disk = {.fails = true};
	int item, expected = 0;
	begin(&disk, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ow_retry_writer_add(disk.writer, &i), 0);
	wait_until(&disk.tries, 2);
	ow_retry_writer_stop(disk.writer);
	for (; ow_retry_writer_take(disk.writer, &item); expected++)
		assert_int_equal(item, expected);
	assert_int_equal(expected, 20);
	ow_retry_writer_free(disk.writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(hurry),
		cmocka_unit_test(fails),
		cmocka_unit_test(ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
