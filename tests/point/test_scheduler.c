/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes the daemon: descriptors that are ready, and a timer that ticks. */
#include "point/scheduler.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

#define MS      INT64_C(1000000)
#define HOUR_NS (3600 * 1000 * MS)

struct scene {
	struct ow_scheduler scheduler;
	int pipe[2];
	struct ow_watch watch; /* of the end that is read */
	unsigned ticks, ready;
};

static int on_tick(void *arg, struct ow_error *err)
{
	(void)err;
	((struct scene *)arg)->ticks++;
	return 0;
}

static int on_ready(void *arg, struct ow_error *err)
{
	(void)err;
	((struct scene *)arg)->ready++;
	return 0;
}

static void scene_open(struct scene *s, int64_t tick_ns)
{
	*s = (struct scene){0};
	assert_int_equal(ow_scheduler_open(&s->scheduler, tick_ns, on_tick, s, NULL), 0);
	assert_int_equal(pipe(s->pipe), 0);
	s->watch = (struct ow_watch){on_ready, s, s->pipe[0], POLLIN};
	assert_int_equal(ow_scheduler_add(&s->scheduler, &s->watch, NULL), 0);
}

static void scene_close(struct scene *s)
{
	ow_scheduler_close(&s->scheduler);
	close(s->pipe[0]);
	close(s->pipe[1]);
}

/* One turn of the loop; whether anything was ready. */
static bool turn(struct scene *s, bool at_once)
{
	struct ow_watch *ready;
	assert_int_equal(ow_scheduler_wait(&s->scheduler, at_once, &ready, NULL), 0);
	return ready && ready->ready(ready->arg, NULL) == 0;
}

static void test_descriptors(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, HOUR_NS);
	assert_false(turn(&s, true));
	assert_int_equal(write(s.pipe[1], "x", 1), 1);
	assert_true(turn(&s, false));
	assert_int_equal(s.ready, 1);
	/* It was not read: it is still ready, but not watched for that. */
	assert_int_equal(ow_scheduler_change(&s.scheduler, &s.watch, 0), 0);
	assert_false(turn(&s, true));
	assert_int_equal(ow_scheduler_change(&s.scheduler, &s.watch, POLLIN), 0);
	assert_true(turn(&s, true));
	ow_scheduler_remove(&s.scheduler, &s.watch);
	assert_false(turn(&s, true));
	assert_int_equal(s.ready, 2);
	assert_int_equal(s.ticks, 0);
	scene_close(&s);
}

static void test_ticks(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, MS);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(turn(&s, false));
		assert_int_equal(s.ticks, i);
	}
	assert_int_equal(s.ready, 0);
	scene_close(&s);
}

/* Missed ticks count as one. */
static void test_late(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, 300 * MS);
	usleep(650 * 1000);
	assert_true(turn(&s, true));
	assert_false(turn(&s, true));
	assert_int_equal(s.ticks, 1);
	scene_close(&s);
}

static void test_no_descriptor(void **state)
{
	(void)state;
	struct scene s;
	struct ow_watch none = {on_ready, &s, -1, POLLIN};
	struct ow_error err;
	scene_open(&s, HOUR_NS);
	assert_int_equal(ow_scheduler_add(&s.scheduler, &none, NULL), 0);
	assert_int_equal(ow_scheduler_change(&s.scheduler, &none, 0), 0);
	ow_scheduler_remove(&s.scheduler, &none);
	/* The same one twice. */
	assert_int_equal(ow_scheduler_add(&s.scheduler, &s.watch, &err), -EEXIST);
	assert_string_equal(err.text, "epoll: File exists");
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_no_descriptor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
