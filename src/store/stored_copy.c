/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored_copy.h"

#include "store/postgres_writer.h"
#include "store/stored_file.h"
#include <errno.h>
#include <stdlib.h>

/* Results in a transaction. */
#define BATCH 5000

struct copy {
	struct ow_postgres_writer *writer;
	enum ow_period period;
	struct ow_interval_result *result;
	struct ow_flow_event *event;
	size_t count;
	struct ow_stored_copied copied;
	struct ow_error *err;
};

static void note(struct copy *c, const struct ow_postgres_tally *tally, uint64_t *stored)
{
	if (!c->copied.refused)
		c->copied.why = tally->why;
	*stored += tally->stored;
	c->copied.there += tally->kept;
	c->copied.refused += tally->refused;
	c->count = 0;
}

static int write_results(struct copy *c)
{
	struct ow_postgres_row row[BATCH];
	struct ow_postgres_tally tally;
	for (size_t i = 0; i < c->count; i++)
		row[i] = (struct ow_postgres_row){c->result[i].from, c->period, &c->result[i]};
	int r = c->count ? ow_postgres_write(c->writer, row, c->count, &tally, c->err) : 0;
	if (r == 0 && c->count)
		note(c, &tally, &c->copied.results);
	return r;
}

static int add_result(void *arg, const struct ow_interval_result *result)
{
	struct copy *c = arg;
	c->result[c->count++] = *result;
	return c->count == BATCH ? write_results(c) : 0;
}

static int write_events(struct copy *c)
{
	struct ow_postgres_event row[BATCH];
	struct ow_postgres_tally tally;
	for (size_t i = 0; i < c->count; i++)
		row[i] = (struct ow_postgres_event){c->event[i].from, &c->event[i]};
	int r = c->count ? ow_postgres_write_events(c->writer, row, c->count, &tally, c->err) : 0;
	if (r == 0 && c->count)
		note(c, &tally, &c->copied.events);
	return r;
}

static int add_event(void *arg, const struct ow_flow_event *event)
{
	struct copy *c = arg;
	c->event[c->count++] = *event;
	return c->count == BATCH ? write_events(c) : 0;
}

static int copy_all(struct copy *c, struct ow_stored *stored, struct ow_error *err)
{
	struct ow_stored_filter filter = stored->filter;
	int r = 0;
	for (c->period = OW_PERIOD_INTERVAL; r == 0 && c->period < OW_PERIODS; c->period++) {
		struct ow_stored_filter its = filter;
		its.period = c->period;
		if (its.period != OW_PERIOD_INTERVAL && !ow_stored_has_periods(stored))
			break;
		if ((r = ow_stored_choose(stored, &its, err)) == 0 &&
		    (r = ow_stored_list(stored, 0, add_result, c, err)) == 0)
			r = write_results(c);
	}
	stored->filter = filter;
	if (r == 0)
		r = ow_stored_events(stored, 0, add_event, c, err);
	return r < 0 ? r : write_events(c);
}

int ow_stored_copy(struct ow_stored *stored, const char *url, struct ow_stored_copied *ret_copied, struct ow_error *err)
{
	struct ow_postgres_writer_options options = {.url = url, .lanes_max = SIZE_MAX, .copy = true};
	struct copy c = {.err = err};
	c.result = calloc(BATCH, sizeof *c.result);
	c.event = calloc(BATCH, sizeof *c.event);
	int r = c.result && c.event ? ow_postgres_writer_open(&options, &c.writer, err)
	                            : ow_error_set(err, ENOMEM, "out of memory for a copy of results");
	if (r == 0)
		r = copy_all(&c, stored, err);
	ow_postgres_writer_close(c.writer);
	free(c.result);
	free(c.event);
	*ret_copied = c.copied;
	return r;
}
