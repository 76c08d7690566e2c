/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A point of a fleet is two processes, the one that measures and its agent, and this one, which only waits for them. The
 * agent is started again whenever it ends, with growing pauses. The point is started again if it ends with
 * OW_SUPERVISOR_AGAIN (a new configuration that a running point cannot take over), and after a pause if it ends with
 * OW_SUPERVISOR_LATER (it cannot measure what the fleet wants; the agent may bring something else); otherwise its end is
 * the end of all.
 * SIGTERM, SIGINT and SIGHUP are passed on to the point. If this process is killed, the others end, too.
 */
#define OW_SUPERVISOR_AGAIN 75
#define OW_SUPERVISOR_LATER 76

struct ow_supervised {
	/* Runs in a process of its own and returns its exit code. Called before threads exist. */
	int (*point)(void *arg);
	int (*agent)(void *arg);
	void *arg;
	/* The agent has ended, as one line. */
	void (*log)(void *arg, const char *line);
};

/* Returns the exit code of the point. */
int ow_supervise(const struct ow_supervised *supervised);
