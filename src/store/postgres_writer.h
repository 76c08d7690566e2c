/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"
#include "result/period.h"
#include <oneway/error.h>
#include <stddef.h>

/*
 * Writes results of many points into PostgreSQL, a batch in a transaction. Any number of writers may write the same
 * results, in any order and several times: one row remains, the one that knows most. A result replaces the stored one if
 * it is final and that is not, else if it rests on more known intervals, else if it tells of more that are unknown, else
 * if fewer packets are pending.
 */
struct ow_postgres_writer;

struct ow_postgres_writer_options {
	const char *url;
	/* How long each period is kept; 0: for ever. Older results are refused. */
	int64_t retention_ns[OW_PERIODS];
	/* A point cannot make up more lanes than this; 0: OW_POSTGRES_LANES. */
	size_t lanes_max;
	/* A server that is silent for this long is given up, and the batch fails; 0: OW_POSTGRES_PATIENCE_S. */
	int patience_s;
	/* A copy of a store: hours and days are taken as well, and lanes of any points. */
	bool copy;
};
#define OW_POSTGRES_LANES      4096
#define OW_POSTGRES_PATIENCE_S 60

/* Connects. An empty database gets its tables; those of an earlier version are converted. */
int ow_postgres_writer_open(const struct ow_postgres_writer_options *options, struct ow_postgres_writer **ret_writer,
                            struct ow_error *err);
void ow_postgres_writer_close(struct ow_postgres_writer *writer);
/* The server's name for messages, without a password. */
const char *ow_postgres_writer_name(const struct ow_postgres_writer *writer);

/* Its connection, for questions between two calls. */
struct ow_postgres *ow_postgres_writer_connection(struct ow_postgres_writer *writer);

/* A result of this period that a point sent. */
struct ow_postgres_row {
	const char *point;
	enum ow_period period;
	const struct ow_interval_result *result;
};

struct ow_postgres_tally {
	uint64_t stored;     /* new, or in place of another one */
	uint64_t kept;       /* the stored one was as good, or it was twice in the batch */
	uint64_t refused;    /* never to be stored, see below */
	struct ow_error why; /* of the first one that was refused */
};

/*
 * 0: everything is stored, or refused: the caller acknowledges it. Negative errno: nothing is stored, and the caller
 * tries again later; after a lost connection it may be stored in spite of that, which does no harm.
 *
 * A row is refused if the point is neither the sender nor the receiver of the lane, if the names cannot be names, if the
 * time is before the retention or more than a day ahead, if the interval has no or another length than its period, or if
 * the point has too many lanes.
 */
int ow_postgres_write(struct ow_postgres_writer *writer, const struct ow_postgres_row *rows, size_t count,
                      struct ow_postgres_tally *ret_tally, struct ow_error *err);

struct ow_postgres_event {
	const char *point;
	const struct ow_flow_event *event;
};
/* The same for events of flows. */
int ow_postgres_write_events(struct ow_postgres_writer *writer, const struct ow_postgres_event *events, size_t count,
                             struct ow_postgres_tally *ret_tally, struct ow_error *err);

/*
 * Work that has to be done now and then: makes partitions ahead, drops old ones, adds minutes up to hours and hours to
 * days. Several collectors may call it. 1: there is more to do, 0: call again in some seconds; a negative errno.
 */
int ow_postgres_maintain(struct ow_postgres_writer *writer, int64_t now_ns, struct ow_error *err);
