/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/question.h"
#include "fleet/unusual.h"
#include "result/flow_event.h"
#include "result/period.h"
#include <oneway/error.h>

/*
 * The point's store as the agent sees it: a file that another process writes. New rows are found by the numbers that
 * SQLite gives them (rowid), whatever time they are about; rows that changed since are found by looking again at the
 * recent ones.
 */
struct ow_spool;

/* -ENOENT: the point has not made it yet; -EAGAIN: nor converted it to the schema of this version. */
int ow_spool_open(const char *path, struct ow_spool **ret_spool, struct ow_error *err);
void ow_spool_close(struct ow_spool *spool);
/* When the store was created: another store has other numbers. */
int64_t ow_spool_created_ns(const struct ow_spool *spool);

/* Called for a row. A value other than 0 ends the listing, and is returned. */
typedef int ow_spool_each(void *arg, int64_t number, int64_t lane, const struct ow_interval_result *result);
/* Final rows of a period with larger numbers than this, in their order, at most `limit`. A store that does not have the
 * table has no rows. */
int ow_spool_new(struct ow_spool *spool, enum ow_period period, int64_t after, unsigned limit, ow_spool_each *each,
                 void *arg, struct ow_error *err);
/* Final rows that begin in [since, until), of one lane or of all (0), in the order of time, at most `limit`. */
int ow_spool_range(struct ow_spool *spool, enum ow_period period, int64_t lane, int64_t since_ns, int64_t until_ns,
                   unsigned limit, ow_spool_each *each, void *arg, struct ow_error *err);
/* The number of the lane that is asked about; 0 = there is none. */
int64_t ow_spool_lane(struct ow_spool *spool, const struct ow_question *question);
/* How many rows ow_spool_range would list for a question, and the start of the oldest one of the lane; 0 = none. */
int ow_spool_count(struct ow_spool *spool, const struct ow_question *question, int64_t lane, uint64_t *ret_rows,
                   int64_t *ret_first_ns, struct ow_error *err);
/* The largest number of a period; 0 if there are none. */
int ow_spool_last(struct ow_spool *spool, enum ow_period period, int64_t *ret_number, struct ow_error *err);
/* Start of the last one up to this number; 0 if there are none. */
int ow_spool_start(struct ow_spool *spool, enum ow_period period, int64_t number, int64_t *ret_start_ns,
                   struct ow_error *err);

/* What is looked at in final results, in the order of their starts: those whose next interval ends in (since, until],
 * because packets are waited for until then, or longer. */
typedef void ow_spool_each_look(void *arg, const struct ow_unusual_look *look);
int ow_spool_look(struct ow_spool *spool, int64_t since_ns, int64_t until_ns, ow_spool_each_look *each, void *arg,
                  struct ow_error *err);

typedef int ow_spool_each_event(void *arg, int64_t number, const struct ow_flow_event *event);
int ow_spool_events(struct ow_spool *spool, int64_t after, unsigned limit, ow_spool_each_event *each, void *arg,
                    struct ow_error *err);
/* Samples of packets, as messages. */
typedef int ow_spool_each_sample(void *arg, int64_t number, const void *bytes, size_t size);
int ow_spool_samples(struct ow_spool *spool, int64_t after, unsigned limit, ow_spool_each_sample *each, void *arg,
                     struct ow_error *err);
