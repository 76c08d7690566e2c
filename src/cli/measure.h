/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "cli/stream_argument.h"
#include "config/config.h"
#include "point/local_pair.h"
#include "report/show.h"

/* A measurement between two sources of this process, as oneway live and oneway match --follow run it. */
struct ow_measure_classes {
	size_t count;
	struct ow_local_pair_class class[OW_CONFIG_CLASSES_MAX];
	char name[OW_CONFIG_CLASSES_MAX][OW_RESULT_NAME];
};

struct ow_measure {
	const char *command; /* "live", for messages */
	const char *from, *to, *filter, *forward;
	struct ow_measure_classes classes;
	enum ow_level level;
	enum ow_clock_mode clock;
	bool files;                          /* from and to are capture files, */
	bool streams;                        /* or captures that are still being written: */
	struct ow_stream_argument stream[2]; /* these */
	struct ow_streams opened[2];
	const char *name[2]; /* of the sources, for messages */
	bool one_way;        /* nothing goes from `to` to `from` */
	int signals;         /* signalfd; open once the sources are open */
	enum ow_scope_of scope;
	bool inner, outer;          /* tunnels are always entered; are never */
	enum ow_iface_kind capture; /* AUTO or KERNEL */
	bool hardware_stamps, no_sandbox;
	const char *user;
	int64_t interval_ns, wait_ns, run_ns, lag_ns;
	int64_t since_ns, until_ns; /* of streams: when to begin and to end, by their times */
	uint64_t count, threads, memory, ring;
	double speed;
	struct ow_show_options show;
	bool no_color;
	double max_loss;    /* above 1: no threshold was given */
	int64_t max_p99_ns; /* INT64_MAX: no threshold was given */
	bool help, version;
};

/* What holds if nothing is said. */
void ow_measure_defaults(const char *command, struct ow_measure *ret_measure);
/* The waiting time, if none was given; and that it fits the interval. */
int ow_measure_check_times(struct ow_measure *args, struct ow_error *err);
/* Returns the exit code. */
int ow_measure_run(struct ow_measure *args);
