/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lab/lab.h"
#include "lab/labnet.h"
#include "lab/truth_file.h"

/* The lab at work, for its own files: run.c (phases, what comes back), start.c (children). */

enum ow_lab_child {
	RELAY,
	POINT_A,
	POINT_B,
	CAPTURE_A,
	CAPTURE_B,
	SINK_A,
	SINK_B,
	SOURCE_A,
	SOURCE_B,
	SERVER,
	SERVER_REVERSE,
	CLIENT,
	CLIENT_REVERSE,
	CHILDREN
};
extern const char *const ow_lab_child_name[CHILDREN];

enum ow_lab_phase {
	AGREEING, /* the points find each other; no traffic yet */
	RUNNING,
	FADING,  /* no new traffic; packets on their way arrive */
	CLOSING, /* the points give their last results */
	ENDING,  /* the relay gives its last reports */
	DONE
};

/* The output of a point: results, and separately its log. */
struct ow_lab_point {
	int out; /* -1 = it has ended */
	int log;
	char *line; /* the bytes read so far of the next lines */
	size_t length, size;
};

struct ow_lab {
	const struct ow_lab_options *options;
	struct ow_labnet net;
	pid_t pid[CHILDREN]; /* 0 = not running */
	int control;         /* of the relay */
	struct ow_lab_point point[OW_SIDES];
	int capture[OW_SIDES]; /* tcpdump's messages; -1 = it does not run */
	int signals;
	struct ow_relay_options relay;
	enum ow_lab_phase phase;
	int64_t deadline_ns; /* steady: of the phase */
	unsigned measuring;  /* directions from which a result has come, a bit each */
	int64_t client_ns;   /* steady: when iperf3's clients (re)start; INT64_MAX = they run */
	bool interrupted, no_iperf;
	struct ow_lab_results *results;
	struct ow_truth_file *truth; /* NULL: not asked for */
	struct ow_lab_show *show;
	struct ow_lab_measured total[OW_DIRECTIONS];
	bool has_total[OW_DIRECTIONS];
	struct ow_lab_end end;
	unsigned relay_totals;
};

/* iperf3's server listens after this time; a client that found none tries again after it. */
#define SERVER_NS (300 * OW_NS_PER_MS)

int ow_lab_start_relay(struct ow_lab *lab, struct ow_error *err);
/* Starts both points, with a key and configurations that only they can read. */
int ow_lab_start_points(struct ow_lab *lab, struct ow_error *err);
int ow_lab_start_captures(struct ow_lab *lab, struct ow_error *err);
/* When everything else is over: they are complete, and what they missed is known. */
void ow_lab_end_captures(struct ow_lab *lab);
/* Generators; iperf3's clients come later, when lab->client_ns is reached. */
int ow_lab_start_traffic(struct ow_lab *lab, struct ow_error *err);
/* Those that do not run. */
int ow_lab_start_clients(struct ow_lab *lab, struct ow_error *err);

/* Does nothing if it does not run. */
void ow_lab_signal(struct ow_lab *lab, enum ow_lab_child child, int number);

#define OW_LAB_TAIL 400
/* The last line of a file in memory. */
void ow_lab_tail(int fd, char text[OW_LAB_TAIL]);
