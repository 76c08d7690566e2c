/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Points that do not measure: processes that write made-up results into stores as points do, and send all of them, also
 * the intervals, as agents do: every two seconds, those of a point as a message. For tests of bus, collectors and database. A process that is killed is started again, and
 * goes on from its store.
 */
struct ow_load_options {
	const char *urls;
	const char *folder; /* for the stores, one for each process, and `pids` */
	unsigned points, lanes, processes;
	double speed;     /* seconds of results in a second */
	int64_t run_ns;   /* how long results are made */
	int64_t drain_ns; /* how long to wait after that until all have arrived */
	int64_t ago_ns;   /* how long ago the last result is; 0 = it is of now */
};

/* What all processes did, up to now. */
struct ow_load_counts {
	uint64_t made, made_minutes; /* rows in the stores */
	uint64_t arrived;            /* rows that the stream has acknowledged, with repetitions */
	uint64_t messages, bytes, repeated, distrusted, restarts;
	uint64_t behind;    /* rows that were made and have not arrived */
	double cpu_seconds; /* of the processes that have ended */
};

/* Calls `each` about once a second. Returns 0 when all has arrived; -ETIMEDOUT: not in time. */
int ow_load_run(const struct ow_load_options *options, void (*each)(void *arg, const struct ow_load_counts *counts),
                void *arg, struct ow_error *err);
