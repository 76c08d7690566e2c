/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_station.h"
#include "station/incidents.h"
#include "station/input.h"
#include <signal.h>

/* What became of the results so far. */
struct ow_monitoring_count {
	uint64_t results;
	uint64_t homeless; /* results that belong to no place */
	uint64_t ahead;    /* results that start later than now: a clock is wrong */
	uint64_t odd;      /* intervals that are too short or too long, or of an impossible time */
	uint64_t surplus;  /* results of more lanes than the station watches */
	/* The first lane of those that were not used: "segment london-paris", "point london". */
	char homeless_name[OW_RESULT_NAME + 16], ahead_name[OW_RESULT_NAME + 16], odd_name[OW_RESULT_NAME + 16];
	bool broke; /* a path exceeded its target at some time */
};

struct ow_monitoring {
	const struct ow_station *station;
	int64_t since_ns, until_ns; /* from since_ns on, before until_ns */
	bool follow;                /* continue with new results, until: */
	const volatile sig_atomic_t *stop;
	struct ow_station_access access;
	/* What begins, gets worse and ends. input: for ow_station_input_publish(). */
	void (*on_incident)(void *arg, enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident,
	                    struct ow_station_input *input);
	/* After these: all paths in an interval. */
	void (*on_interval)(void *arg, int64_t start_ns, int64_t length_ns, const struct ow_monitor_verdict *verdict,
	                    uint32_t count, const char *hops);
	void (*on_network)(void *arg, int64_t now_ns, const char *changes);
	/* All results that were there at the start have been judged. */
	void (*on_caught_up)(void *arg);
	/* Between two looks for results. */
	void (*on_idle)(void *arg);
	/* One line: the network cannot be read again, or results are not used. */
	void (*on_warning)(void *arg, const char *text);
	/* The last verdict on every path. */
	void (*on_end)(void *arg, const struct ow_monitor_verdict *verdict, uint32_t count,
	               const struct ow_monitor_count *counts);
	void *arg;
};

/*
 * Reads results (station/input.h), composes the paths of the station from them interval by interval, and reports
 * incidents. -ENODATA: no path could be judged at any time.
 */
int ow_monitoring_run(const struct ow_monitoring *how, char *const *paths, int count,
                      struct ow_monitoring_count *ret_count, struct ow_error *err);
