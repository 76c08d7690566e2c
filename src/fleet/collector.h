/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"
#include "store/postgres_writer.h"

/*
 * Takes results and events from the bus and writes them into PostgreSQL: commits, then acknowledges. It has no state:
 * any number of collectors share the work, and what one had when it was killed goes to the others. Who sent a message
 * is told by its subject, which the bus guards; results of lanes of which that point is no end are refused. What can
 * never be stored is logged, counted and acknowledged, so that it does not come again for ever.
 */
struct ow_collector;

struct ow_collector_options {
	struct ow_bus_options bus; /* `news` is not used */
	struct ow_postgres_writer_options database;
	size_t rows;     /* of a transaction; 0 = OW_COLLECTOR_ROWS */
	int64_t wait_ns; /* how long a row may wait for others; 0 = OW_COLLECTOR_WAIT_NS */
	void (*log)(void *arg, bool warning, const char *line);
	void *arg;
};
#define OW_COLLECTOR_ROWS    10000
#define OW_COLLECTOR_WAIT_NS INT64_C(500000000)
/* Rows of one point: so many at once, and so many a second. What exceeds that waits in the stream. */
#define OW_COLLECTOR_POINT_BURST 200000
#define OW_COLLECTOR_POINT_RATE  5000

struct ow_collector_counts {
	uint64_t messages, bytes, events; /* taken from the bus */
	uint64_t stored, kept, refused;   /* rows: stored, known already, never to be stored */
	uint64_t undecodable;             /* messages */
	uint64_t postponed;               /* messages of points that send too much */
	uint64_t commits, failures;       /* transactions */
	uint64_t gaps;                    /* times that points were asked for */
	uint64_t waiting;                 /* rows that are here and not stored */
	int64_t lag_ns;                   /* from the end of the newest row to its commit */
	bool connected;                   /* to the bus */
};

/* The database need not be there yet. */
int ow_collector_create(const struct ow_collector_options *options, struct ow_collector **ret_collector,
                        struct ow_error *err);
void ow_collector_free(struct ow_collector *collector);
/* Works for about wait_ms. Problems are logged. */
void ow_collector_work(struct ow_collector *collector, int wait_ms);
/* Takes no more, and stores and acknowledges what is here. 0, or a negative errno if that was not possible in time: then
 * others get it. */
int ow_collector_drain(struct ow_collector *collector, int wait_ms);
/* May be called by any thread. */
void ow_collector_counts(struct ow_collector *collector, struct ow_collector_counts *ret_counts);
