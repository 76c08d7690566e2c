/* SPDX-License-Identifier: Apache-2.0 */
/* Events from one thread to another, in their order, with limited memory. */
#include "path/stream.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define EVENTS 20000u

static int failed;

static void *put_all(void *arg)
{
	struct ow_path_stream *stream = arg;
	failed = 0;
	for (unsigned i = 0; i < EVENTS && !failed; i++)
		failed = ow_path_stream_put(stream, &(struct ow_path_event){.number = {i + 1, 0}});
	ow_path_stream_end(stream);
	return NULL;
}

static void test_all_in_order(void **state)
{
	struct ow_path_stream *stream;
	struct ow_path_event event[OW_PATH_BATCH];
	pthread_t thread;
	uint64_t next = 1;
	(void)state;
	assert_int_equal(ow_path_stream_create(&stream), 0);
	assert_int_equal(pthread_create(&thread, NULL, put_all, stream), 0);
	for (unsigned count; (count = ow_path_stream_take(stream, event));) {
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(event[i].number[0], next++);
	}
	pthread_join(thread, NULL);
	assert_int_equal(next, EVENTS + 1);
	assert_int_equal(failed, 0);
	assert_int_equal(ow_path_stream_take(stream, event), 0);
	ow_path_stream_free(stream);
}

/* A thread that waits for room is told that nobody reads. */
static void test_cancel(void **state)
{
	struct ow_path_stream *stream;
	struct ow_path_event event[OW_PATH_BATCH];
	pthread_t thread;
	(void)state;
	assert_int_equal(ow_path_stream_create(&stream), 0);
	assert_int_equal(pthread_create(&thread, NULL, put_all, stream), 0);
	assert_int_equal(ow_path_stream_take(stream, event), OW_PATH_BATCH);
	ow_path_stream_cancel(stream);
	pthread_join(thread, NULL);
	assert_int_equal(failed, -ECANCELED);
	ow_path_stream_free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_in_order), cmocka_unit_test(test_cancel)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
