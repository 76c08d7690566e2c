/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"
#include "result/period.h"
#include <oneway/error.h>
#include <stdio.h>

/*
 * Reads a store: selects, lists, finds the worst, adds up. A point may write to it at the same time: it is read in
 * portions, and no lock or snapshot is held while results are passed on.
 */
struct ow_stored;

struct ow_stored_lane {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	int64_t id;
	bool chosen;
};

struct ow_stored_filter {
	const char *segment, *class_name, *from, *to; /* NULL = all */
	int64_t since_ns, until_ns;                   /* starts in since <= start < until */
	unsigned statuses;                            /* a bit for each enum ow_result_status; 0 = all */
	bool final;                                   /* only final ones */
	enum ow_period period;                        /* results of intervals, or minutes, hours or days */
};

/* path: of a file, or the URL of a PostgreSQL server. */
int ow_stored_open(const char *path, struct ow_stored **ret_stored, struct ow_error *err);
void ow_stored_close(struct ow_stored *stored);
/* For messages: the path, or the URL without user and password. */
const char *ow_stored_where(const struct ow_stored *stored);
/* A warning: results that could not be stored, or a log that cannot be read here. false: none. */
bool ow_stored_caveat(const struct ow_stored *stored, struct ow_error *ret_text);

/* What there is to be read: intervals; if these were deleted or never there, minutes, hours or days. */
enum ow_period ow_stored_finest(struct ow_stored *stored);
/* Selects results for the calls below; by default all. -ENOENT: no such name; the error has similar names. */
int ow_stored_choose(struct ow_stored *stored, const struct ow_stored_filter *filter, struct ow_error *err);
const struct ow_stored_lane *ow_stored_lanes(const struct ow_stored *stored, size_t *ret_count);
/* Gives a result the names of its lane. */
void ow_stored_name(const struct ow_stored_lane *lane, struct ow_interval_result *result);
/* The starts of the first and the last result of the selected lanes, ignoring other conditions. -ENODATA: none. */
int ow_stored_span(struct ow_stored *stored, int64_t *ret_first_ns, int64_t *ret_last_ns, struct ow_error *err);
/*
 * Selects the finest period that reaches back to the selected time, or as far as any does, and is not finer than
 * `least`.
 */
int ow_stored_choose_period(struct ow_stored *stored, enum ow_period least, struct ow_error *err);
enum ow_period ow_stored_period(const struct ow_stored *stored);
/* "intervals", "minutes", "hours", "days". */
extern const char *const ow_stored_period_name[OW_PERIODS];

/* What a lane has, of each period: the starts of its first and last row. INT64_MAX: nothing. */
struct ow_stored_lane_times {
	int64_t first_ns[OW_PERIODS], last_ns[OW_PERIODS];
	int64_t length_ns; /* of its newest intervals, the longest; 0: not known */
};
/* One for each of ow_stored_lanes, from calloc; of those that are not selected, it may say nothing. */
int ow_stored_lane_times(struct ow_stored *stored, struct ow_stored_lane_times **ret_times, struct ow_error *err);
/*
 * The start of the first and of the last row. Of several periods that reach as far the shortest counts: the others begin
 * at full minutes, hours and days. INT64_MAX and INT64_MIN: none.
 */
int64_t ow_stored_lane_first(const struct ow_stored_lane_times *times);
int64_t ow_stored_lane_last(const struct ow_stored_lane_times *times);

/* A part of the selected time, and what it is read from. */
struct ow_stored_part {
	enum ow_period period;
	int64_t since_ns, until_ns; /* starts in since <= start < until */
	int64_t lane;               /* the id of the only one, 0: all selected ones */
};

struct ow_stored_division {
	struct ow_stored_part *part;
	size_t count, room;
	enum ow_period longest; /* of all parts */
};

/*
 * Divides the selected time, so that every result of an interval is read once: as part of a minute, an hour or a day, of at
 * most `most`, where a whole one has been added up; by itself at the ends of the selected time. What was deleted is read
 * from what is left. `least`: nothing finer is read.
 */
int ow_stored_divide(struct ow_stored *stored, enum ow_period least, enum ow_period most,
                     struct ow_stored_division *ret_division, struct ow_error *err);
void ow_stored_division_done(struct ow_stored_division *division);

/* From now on, queries end with -ETIME after this time of the steady clock (ow_clock_steady_ns). */
int ow_stored_end_at(struct ow_stored *stored, int64_t steady_ns, struct ow_error *err);

/* A value other than 0 ends the listing, and is returned. */
typedef int ow_stored_each(void *arg, const struct ow_interval_result *result);
/* In the order of time and lane; with a limit (0 = none) only the newest ones. */
int ow_stored_list(struct ow_stored *stored, uint64_t limit, ow_stored_each *each, void *arg, struct ow_error *err);

enum ow_stored_by { OW_STORED_LOSS, OW_STORED_P99, OW_STORED_MEAN };
/* The worst first. Intervals in which the value is not known are omitted. */
int ow_stored_worst(struct ow_stored *stored, enum ow_stored_by by, uint64_t count, ow_stored_each *each, void *arg,
                    struct ow_error *err);

typedef int ow_stored_each_event(void *arg, const struct ow_flow_event *event);
/* Events of flows, in the order in which they were found; with a limit (0 = none) only the newest ones. Stores of
 * earlier versions have none. */
int ow_stored_events(struct ow_stored *stored, uint64_t limit, ow_stored_each_event *each, void *arg,
                     struct ow_error *err);
/* How many there are. */
int ow_stored_events_count(struct ow_stored *stored, uint64_t *ret_count, struct ow_error *err);

/* All columns as they are stored (docs/store.md), with the names of the lane. *ret_rows: their number. */
int ow_stored_csv(struct ow_stored *stored, uint64_t limit, FILE *out, uint64_t *ret_rows, struct ow_error *err);

/* The query of the functions above, for EXPLAIN: 0 list, 1 worst, 2 csv. */
char *ow_stored_sql(const struct ow_stored *stored, int which);
