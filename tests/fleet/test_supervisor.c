/* SPDX-License-Identifier: Apache-2.0 */
/* A point and its agent as processes: which end, which are started again, and who gets signals. */
#include "fleet/supervisor.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* In memory that all processes share. */
struct shared {
	_Atomic int points, agents, agent_ended, hangups, logged;
	_Atomic pid_t point;
};
static struct shared *shared;

static volatile sig_atomic_t stopping;

static void on_stop(int signal)
{
	if (signal == SIGHUP)
		shared->hangups++;
	else
		stopping = 1;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Works until it is told to end. */
static int run_until_stopped(void *arg)
{
	(void)arg;
	catch_signals();
	shared->points++;
	shared->point = getpid();
	while (!stopping)
		usleep(10000);
	return 7;
}

/* Its last interval takes longer than the agent does. */
static int run_until_agent_ended(void *arg)
{
	int code = run_until_stopped(arg);
	while (shared->agent_ended == 0)
		usleep(10000);
	usleep(300000);
	return code;
}

/* The first one wants to be started again. */
static int run_twice(void *arg)
{
	(void)arg;
	usleep(300000);
	return ++shared->points == 1 ? OW_SUPERVISOR_AGAIN : 3;
}

/* The first one cannot measure. */
static int run_later(void *arg)
{
	(void)arg;
	usleep(100000);
	return ++shared->points == 1 ? OW_SUPERVISOR_LATER : 3;
}

static int agent_until_stopped(void *arg)
{
	(void)arg;
	catch_signals();
	shared->agents++;
	while (!stopping)
		usleep(10000);
	shared->agent_ended++;
	return 0;
}

static int agent_that_crashes(void *arg)
{
	(void)arg;
	if (shared->agents == 0) {
		shared->agents++;
		raise(SIGKILL);
	}
	return agent_until_stopped(arg);
}

static void on_log(void *arg, const char *line)
{
	(void)arg;
	shared->logged += strstr(line, "it starts again") != NULL;
}

static int clean(void **state)
{
	(void)state;
	memset(shared, 0, sizeof *shared);
	return 0;
}

static void a_point_that_wants_it_is_started_again(void **state)
{
	(void)state;
	struct ow_supervised s = {run_twice, agent_until_stopped, NULL, on_log};
	assert_int_equal(ow_supervise(&s), 3);
	assert_int_equal(shared->points, 2);
	/* The agent was one process for all of it, and ended by itself. */
	assert_int_equal(shared->agents, 1);
	assert_int_equal(shared->agent_ended, 1);
}

/* Meanwhile the agent may bring what it can measure. */
static void a_point_that_cannot_measure_tries_again(void **state)
{
	(void)state;
	struct ow_supervised s = {run_later, agent_until_stopped, NULL, on_log};
	assert_int_equal(ow_supervise(&s), 3);
	assert_int_equal(shared->points, 2);
	assert_int_equal(shared->agents, 1);
	assert_int_equal(shared->agent_ended, 1);
}

/* Told to end between two attempts. */
static void a_point_that_cannot_measure_ends(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct ow_supervised s = {run_later, agent_until_stopped, NULL, on_log};
		_exit(ow_supervise(&s));
	}
	for (int i = 0; i < 1000 && (shared->points == 0 || shared->agents == 0); i++)
		usleep(10000);
	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(shared->points, 1);
	assert_int_equal(shared->agent_ended, 1);
}

/* In a process of its own, because signals are blocked there. */
static void signals_go_to_the_point(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct ow_supervised s = {run_until_stopped, agent_that_crashes, NULL, on_log};
		_exit(ow_supervise(&s));
	}
	for (int i = 0; i < 1000 && shared->logged == 0; i++)
		usleep(10000);
	kill(pid, SIGHUP);
	for (int i = 0; i < 1000 && (shared->hangups == 0 || shared->agents < 2); i++)
		usleep(10000);
	assert_int_equal(shared->hangups, 1);
	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_int_equal(shared->points, 1);
	assert_int_equal(shared->logged, 1);
	assert_int_equal(shared->agent_ended, 1);
}

/* Ctrl-C at a terminal: the agent ends, too, and nobody says that it starts again. */
static void all_are_told_to_end(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		struct ow_supervised s = {run_until_agent_ended, agent_until_stopped, NULL, on_log};
		_exit(ow_supervise(&s));
	}
	for (int i = 0; i < 1000 && (shared->points == 0 || shared->agents == 0); i++)
		usleep(10000);
	kill(-pid, SIGINT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_int_equal(shared->logged, 0);
	assert_int_equal(shared->agents, 1);
}

/* Nobody is left when the process that waits is killed. */
static void nobody_is_left(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		struct ow_supervised s = {run_until_stopped, agent_until_stopped, NULL, on_log};
		_exit(ow_supervise(&s));
	}
	for (int i = 0; i < 1000 && (shared->points == 0 || shared->agents == 0); i++)
		usleep(10000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 1000 && (shared->agent_ended == 0 || kill(shared->point, 0) == 0); i++)
		usleep(10000);
	assert_int_equal(shared->agent_ended, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_point_that_wants_it_is_started_again, clean),
		cmocka_unit_test_teardown(a_point_that_cannot_measure_ends, clean),
		cmocka_unit_test_teardown(a_point_that_cannot_measure_tries_again, clean),
		cmocka_unit_test_teardown(signals_go_to_the_point, clean),
		cmocka_unit_test_teardown(all_are_told_to_end, clean),
		cmocka_unit_test_teardown(nobody_is_left, clean),
	};
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
