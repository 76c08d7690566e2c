/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions in one process: frames of any size arrive unchanged; silence and the end are distinguished. */
#include "papers/tlspair.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 77
#define WAIT (20 * OW_NS_PER_S)

/* Sends back what comes until the connection ends. */
static void *echo(void *arg)
{
	struct ow_session *session = arg;
	const uint8_t *frame;
	size_t size;
	while (ow_tlspair_receive(session, ow_clock_steady_ns() + WAIT, &frame, &size, NULL) == 0 && frame)
		ow_session_send(session, frame, size);
	return NULL;
}

static void carries_frames(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 16, 1000, 65536, 300000, 5000000};
	struct ow_tlspair pair;
	struct ow_error err = {""};
	if (ow_tlspair_create(&pair, &err) < 0)
		fail_msg("%s", err.text);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, echo, pair.session[1]), 0);
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint8_t *bytes = malloc(sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			bytes[k] = (uint8_t)ow_random_u64(&random);
		assert_int_equal(ow_session_send(pair.session[0], bytes, sizes[i]), 0);
		const uint8_t *frame;
		size_t size = 0;
		assert_int_equal(ow_tlspair_receive(pair.session[0], ow_clock_steady_ns() + WAIT, &frame, &size, &err),
		                 0);
		assert_non_null(frame);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(frame, bytes, size);
		free(bytes);
	}
	const uint8_t *frame;
	size_t size;
	assert_int_equal(ow_tlspair_receive(pair.session[0], ow_clock_steady_ns(), &frame, &size, &err), 0);
	assert_null(frame);
	ow_session_close(pair.session[0]);
	assert_true(ow_tlspair_receive(pair.session[0], ow_clock_steady_ns() + WAIT, &frame, &size, &err) < 0);
	pthread_join(thread, NULL);
	ow_tlspair_done(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(carries_frames)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
