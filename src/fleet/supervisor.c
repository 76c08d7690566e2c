/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/supervisor.h"

#include "base/clock.h"
#include "base/time.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pauses before the agent is started again. An agent that has worked for as long as the second begins with the first. */
#define PAUSE_LEAST_NS (1 * OW_NS_PER_S)
#define PAUSE_MOST_NS  (60 * OW_NS_PER_S)
/* Before a point that could not measure is started again. */
#define LATER_NS (5 * OW_NS_PER_S)
/* The agent may send what is left for this long after the point has ended. */
#define END_NS (5 * OW_NS_PER_S)

struct state {
	const struct ow_supervised *supervised;
	sigset_t signals;
	pid_t point, agent; /* 0 = does not run */
	int64_t agent_since_ns, agent_next_ns, pause_ns;
	int64_t point_next_ns; /* if it does not run */
	int code;              /* of the point */
	bool ending, ended;    /* told to end; the point has ended */
};

static pid_t start(const struct state *s, int (*run)(void *))
{
	pid_t parent = getpid(), pid = fork();
	if (pid != 0)
		return pid < 0 ? 0 : pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &s->signals, NULL);
	/* The parent may have ended before. */
	int code = getppid() == parent ? run(s->supervised->arg) : EXIT_FAILURE;
	fflush(NULL);
	_exit(code);
}

static void start_agent(struct state *s, int64_t now_ns)
{
	if (s->agent || s->ending || s->ended || now_ns < s->agent_next_ns)
		return;
	s->agent = start(s, s->supervised->agent);
	s->agent_since_ns = now_ns;
	if (!s->agent)
		s->agent_next_ns = now_ns + PAUSE_MOST_NS;
}

static void agent_ended(struct state *s, int status)
{
	char line[120];
	int64_t now_ns = ow_clock_steady_ns();
	s->agent = 0;
	/* What comes from a terminal, the agent gets, too. */
	if (s->ending || s->ended)
		return;
	if (now_ns - s->agent_since_ns > PAUSE_MOST_NS)
		s->pause_ns = 0;
	s->pause_ns = s->pause_ns == 0                  ? PAUSE_LEAST_NS
	              : s->pause_ns * 2 < PAUSE_MOST_NS ? s->pause_ns * 2
	                                                : PAUSE_MOST_NS;
	s->agent_next_ns = now_ns + s->pause_ns;
	if (WIFSIGNALED(status))
		snprintf(line, sizeof line, "the agent of the fleet was ended by signal %d (%s); it starts again",
		         WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(line, sizeof line, "the agent of the fleet ended with code %d; it starts again",
		         WEXITSTATUS(status));
	s->supervised->log(s->supervised->arg, line);
}

static void point_ended(struct state *s, int status)
{
	s->point = 0;
	s->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (s->code == OW_SUPERVISOR_AGAIN)
		s->point = start(s, s->supervised->point);
	if (s->code == OW_SUPERVISOR_LATER)
		s->point_next_ns = ow_clock_steady_ns() + LATER_NS;
	else
		s->ended = s->point == 0;
}

static void start_point_later(struct state *s, int64_t now_ns)
{
	if (s->point)
		return;
	if (s->ending) {
		s->code = EXIT_FAILURE;
		s->ended = true;
	} else if (now_ns >= s->point_next_ns) {
		s->point = start(s, s->supervised->point);
		s->ended = s->point == 0;
	}
}

static void reap(struct state *s)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (pid == s->point)
			point_ended(s, status);
		else if (pid == s->agent)
			agent_ended(s, status);
	}
}

/* Waits for a signal, up to half a second. */
static void wait_for_signal(struct state *s)
{
	struct timespec wait = {.tv_nsec = 500 * OW_NS_PER_MS};
	siginfo_t info;
	int signal = sigtimedwait(&s->signals, &info, &wait);
	s->ending = s->ending || signal == SIGTERM || signal == SIGINT;
	/* What comes from a terminal, the point gets itself; a second one would end it at once. */
	if (signal > 0 && signal != SIGCHLD && s->point && info.si_code != SI_KERNEL)
		kill(s->point, signal);
}

static void end_agent(struct state *s)
{
	int64_t until_ns = ow_clock_steady_ns() + END_NS;
	if (s->agent)
		kill(s->agent, SIGTERM);
	while (s->agent && ow_clock_steady_ns() < until_ns) {
		wait_for_signal(s);
		reap(s);
	}
	if (s->agent)
		kill(s->agent, SIGKILL);
}

int ow_supervise(const struct ow_supervised *supervised)
{
	struct state s = {.supervised = supervised, .code = EXIT_FAILURE};
	sigemptyset(&s.signals);
	sigaddset(&s.signals, SIGTERM);
	sigaddset(&s.signals, SIGINT);
	sigaddset(&s.signals, SIGHUP);
	sigaddset(&s.signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &s.signals, NULL);
	s.point = start(&s, supervised->point);
	s.ended = s.point == 0;
	while (!s.ended) {
		start_point_later(&s, ow_clock_steady_ns());
		start_agent(&s, ow_clock_steady_ns());
		wait_for_signal(&s);
		reap(&s);
	}
	end_agent(&s);
	return s.code;
}
