/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_station.h"
#include <signal.h>

/* The results of a run of the station. */
void ow_station_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample);

struct ow_monitoring_end {
	uint64_t results;
	uint64_t homeless;                  /* results that belong to no place */
	char homeless_name[OW_RESULT_NAME]; /* the segment of the first of them */
	bool broke;                         /* a path exceeded its target at some time */
};

struct ow_monitoring {
	const struct ow_station *station;
	int64_t since_ns, until_ns; /* from since_ns on, before until_ns */
	bool follow;                /* continue with new results, until: */
	const volatile sig_atomic_t *stop;
	/* A path whose state has changed, or that has more changed parts. */
	void (*on_news)(void *arg, int64_t now_ns, const struct ow_monitor_verdict *verdict, const char *hops);
	/* After these: all paths in an interval. */
	void (*on_interval)(void *arg, int64_t now_ns, const struct ow_monitor_verdict *verdict, uint32_t count,
	                    const char *hops);
	void (*on_network)(void *arg, int64_t now_ns, const char *changes);
	/* The network cannot be read again; the station keeps the last one. */
	void (*on_stale_network)(void *arg, const char *why);
	/* All results have been read. */
	void (*on_homeless)(void *arg, const struct ow_monitoring_end *end);
	/* The last verdict on every path. */
	void (*on_end)(void *arg, const struct ow_monitor_verdict *verdict, uint32_t count,
	               const struct ow_monitor_count *counts);
	void *arg;
};

/*
 * Reads results (station/input.h), composes the paths of the station from them interval by interval, and reports
 * changes. -ENODATA: no path could be judged at any time.
 */
int ow_monitoring_run(const struct ow_monitoring *how, char *const *paths, int count, struct ow_monitoring_end *ret_end,
                      struct ow_error *err);
