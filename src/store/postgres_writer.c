/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of results for PostgreSQL. A batch is sorted, and of results of the same interval the best one is kept. It goes
 * into a temporary table by COPY, and from there into the table of its period; both in one transaction.
 */
#include "store/postgres_writer.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time.h"
#include "base/utf8.h"
#include "store/event_row.h"
#include "store/postgres_lanes.h"
#include "store/postgres_rollup.h"
#include "store/postgres_schema.h"
#include "store/row.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS (60 * OW_NS_PER_S)
#define DAY_NS    (24 * 3600 * OW_NS_PER_S)
/* A point's clock may be ahead by this much. */
#define AHEAD_NS DAY_NS
/* The clocks of collector and server may differ by this much. More would end hours too early, and refuse good results
 * because of their times. */
#define CLOCKS_NS (300 * OW_NS_PER_S)
/* Partitions are made this long before they are needed. */
#define EARLY_NS (2 * DAY_NS)
/* How often old partitions are looked for. */
#define TRIM_NS (600 * OW_NS_PER_S)
/* Memory of the server for what a batch has in temporary tables: 10,000 rows of some 1200 bytes. What does not fit is
 * written into files, and read again. */
#define STAGE_MEMORY "32MB"
/* Events that are deleted at once. */
#define TRIM_EVENTS "10000"

/* A result of the batch. */
struct entry {
	enum ow_period period;
	int64_t start_ns, lane;
	const struct ow_interval_result *result;
};

struct ow_postgres_writer {
	struct ow_postgres *postgres;
	struct ow_postgres_writer_options options;
	struct ow_postgres_lanes *lanes;
	bool prepared; /* the connection has its temporary tables, and lanes and parts are known */
	struct ow_postgres_part *part;
	size_t parts, parts_room;
	struct entry *entry;
	size_t entries_room;
	char *copy[OW_PERIODS], *merge[OW_PERIODS];
	struct ow_postgres_rollup_place rollup_place;
	int64_t trim_at_ns; /* by a steady clock */
};

/* -- opening ------------------------------------------------------------------------------------------------------ */

/* How good a stored result is; see the header. */
static void put_rank(FILE *out, const char *table, enum ow_period period)
{
	if (period == OW_PERIOD_INTERVAL)
		fprintf(out, "(%s.final, (%s.status <> 'unknown')::int, -coalesce(%s.pending, 0))", table, table,
		        table);
	else
		fprintf(out, "(%s.final, %s.intervals - %s.intervals_unknown, %s.intervals, -coalesce(%s.pending, 0))",
		        table, table, table, table, table);
}

static void put_ranked_merge(FILE *out, enum ow_period period)
{
	ow_postgres_put_merge(out, period);
	fputs(" WHERE ", out);
	put_rank(out, "excluded", period);
	fputs(" > ", out);
	put_rank(out, "old", period);
}

static char *text_of(void (*put)(FILE *out, enum ow_period period), enum ow_period period)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	put(out, period);
	return ow_text_close(&text);
}

static int no_memory(struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "out of memory for results");
}

static int make_texts(struct ow_postgres_writer *w, struct ow_error *err)
{
	for (int period = 0; period < OW_PERIODS; period++) {
		w->copy[period] = text_of(ow_postgres_put_copy, period);
		w->merge[period] = text_of(put_ranked_merge, period);
		if (!w->copy[period] || !w->merge[period])
			return no_memory(err);
	}
	return 0;
}

static int make_stages(struct ow_postgres_writer *w, struct ow_error *err)
{
	char sql[300];
	/* It can be set as long as no temporary table is used, or to what it is. */
	int r = ow_postgres_run(w->postgres, "SET temp_buffers = '" STAGE_MEMORY "'", err);
	for (int period = 0; r == 0 && period < OW_PERIODS; period++) {
		snprintf(sql, sizeof sql,
		         "CREATE TEMPORARY TABLE IF NOT EXISTS stage_%s (LIKE %s) ON COMMIT DELETE ROWS",
		         ow_periods[period].table, ow_periods[period].table);
		r = ow_postgres_run(w->postgres, sql, err);
	}
	snprintf(sql, sizeof sql,
	         "CREATE TEMPORARY TABLE IF NOT EXISTS stage_event ON COMMIT DELETE ROWS AS SELECT %s FROM event LIMIT "
	         "0",
	         ow_event_row_names);
	return r < 0 ? r : ow_postgres_run(w->postgres, sql, err);
}

/* Of one of the two, all points would be judged by a wrong time. Nothing is stored, and nothing lost, until they agree. */
static int compare_clocks(const struct ow_postgres_writer *w, struct ow_error *err)
{
	int64_t theirs_ns = 0;
	int r = ow_postgres_ask(w->postgres, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint",
	                        &theirs_ns, err);
	int64_t ahead_ns = ow_clock_real_ns() - theirs_ns;
	if (r < 0 || (ahead_ns <= CLOCKS_NS && ahead_ns >= -CLOCKS_NS))
		return r;
	return ow_error_set(err, EAGAIN,
	                    "%s: the clock of this host is %" PRId64
	                    " min %s that of the server: nothing is stored until they agree",
	                    ow_postgres_name(w->postgres), (ahead_ns < 0 ? -ahead_ns : ahead_ns) / MINUTE_NS,
	                    ahead_ns < 0 ? "behind" : "ahead of");
}

/* A new connection knows nothing; and the database may be another one than before, restored from a backup. */
static int prepare(struct ow_postgres_writer *w, struct ow_error *err)
{
	int r = ow_postgres_revive(w->postgres, err);
	if (r == 0)
		r = compare_clocks(w, err);
	if (r < 0 || w->prepared)
		return r;
	w->parts = 0;
	if ((r = ow_postgres_bring_up(w->postgres, err)) < 0 || (r = make_stages(w, err)) < 0 ||
	    (r = ow_postgres_lanes_load(w->lanes, w->postgres, err)) < 0)
		return r;
	w->prepared = true;
	return 0;
}

/* After any failure. */
static void give_up(struct ow_postgres_writer *w)
{
	if (ow_postgres_in_transaction(w->postgres))
		ow_postgres_run(w->postgres, "ROLLBACK", NULL);
	w->prepared &= ow_postgres_is_connected(w->postgres);
}

int ow_postgres_writer_open(const struct ow_postgres_writer_options *options, struct ow_postgres_writer **ret_writer,
                            struct ow_error *err)
{
	struct ow_postgres_writer *w = calloc(1, sizeof *w);
	if (!w)
		return no_memory(err);
	w->options = *options;
	w->options.url = NULL;
	w->options.lanes_max = options->lanes_max ? options->lanes_max : OW_POSTGRES_LANES;
	int r = ow_postgres_lanes_create(&w->lanes) < 0 ? no_memory(err) : make_texts(w, err);
	if (r == 0)
		r = ow_postgres_open(options->url, &w->postgres, err);
	if (r == 0)
		ow_postgres_be_patient(w->postgres, options->patience_s ? options->patience_s : OW_POSTGRES_PATIENCE_S);
	if (r == 0)
		r = prepare(w, err);
	if (r < 0)
		ow_postgres_writer_close(w);
	else
		*ret_writer = w;
	return r;
}

void ow_postgres_writer_close(struct ow_postgres_writer *w)
{
	if (!w)
		return;
	for (int period = 0; period < OW_PERIODS; period++) {
		free(w->copy[period]);
		free(w->merge[period]);
	}
	ow_postgres_close(w->postgres);
	ow_postgres_lanes_free(w->lanes);
	free(w->part);
	free(w->entry);
	free(w);
}

struct ow_postgres *ow_postgres_writer_connection(struct ow_postgres_writer *w)
{
	return w->postgres;
}

const char *ow_postgres_writer_name(const struct ow_postgres_writer *w)
{
	return ow_postgres_name(w->postgres);
}

/* -- partitions --------------------------------------------------------------------------------------------------- */

static int need_part(struct ow_postgres_writer *w, enum ow_period period, int64_t ns, struct ow_error *err)
{
	struct ow_postgres_part part = ow_postgres_part(period, ns);
	/* The last one is the most likely. */
	for (size_t i = w->parts; i-- > 0;) {
		if (w->part[i].period == period && w->part[i].start_ns == part.start_ns)
			return 0;
	}
	int r = ow_postgres_add_part(w->postgres, &part, err);
	if (r == 0 && OW_GROW(w->part, w->parts_room, w->parts + 1) == 0)
		w->part[w->parts++] = part;
	return r;
}

static int need_parts(struct ow_postgres_writer *w, const struct entry *entry, size_t count, struct ow_error *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = need_part(w, entry[i].period, entry[i].start_ns, err);
	return r;
}

/* -- which results are taken -------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
	uint32_t code;
	size_t length = strnlen(text, OW_RESULT_NAME);
	if (length == OW_RESULT_NAME)
		return false;
	for (size_t bytes; *text; text += bytes) {
		bytes = ow_utf8_next(text, &code);
		if (bytes == 0 || !ow_utf8_printable(code))
			return false;
	}
	return true;
}

static bool is_of_point(const char *point, const char *from, const char *to)
{
	return *point && (strcmp(point, from) == 0 || strcmp(point, to) == 0);
}

/* Why the names of a lane are refused; NULL: they are not. */
static const char *wrong_names(const struct ow_postgres_writer *w, const char *point,
                               const struct ow_interval_result *r)
{
	if (!is_name(r->segment) || !is_name(r->class_name) || !is_name(r->from) || !is_name(r->to))
		return "names that cannot be names";
	return w->options.copy || is_of_point(point, r->from, r->to) ? NULL : "a lane of other points";
}

static const char *wrong_time(const struct ow_postgres_writer *w, enum ow_period period, int64_t start_ns,
                              int64_t now_ns)
{
	int64_t kept = w->options.retention_ns[period];
	if (start_ns < 0 || (kept && start_ns < now_ns - kept))
		return "older than what is kept";
	return start_ns > now_ns + AHEAD_NS ? "more than a day ahead" : NULL;
}

/* An interval that is longer than a minute makes a minute of its length. */
static bool is_of_period(const struct ow_interval_result *r, enum ow_period period)
{
	int64_t least_ns = ow_periods[period].length_ns;
	if (!least_ns)
		return r->length_ns > 0;
	int64_t most_ns = period == OW_PERIOD_MINUTE ? ow_periods[OW_PERIOD_HOUR].length_ns : least_ns;
	return r->start_ns % least_ns == 0 && r->length_ns >= least_ns && r->length_ns <= most_ns;
}

static const char *wrong_row(const struct ow_postgres_writer *w, const struct ow_postgres_row *row, int64_t now_ns)
{
	const struct ow_interval_result *r = row->result;
	if (row->period > (w->options.copy ? OW_PERIOD_DAY : OW_PERIOD_MINUTE))
		return "neither a result nor a minute";
	if (!is_of_period(r, row->period))
		return "not an interval of its period";
	const char *wrong = wrong_names(w, row->point, r);
	return wrong ? wrong : wrong_time(w, row->period, r->start_ns, now_ns);
}

static void refuse(struct ow_postgres_tally *tally, const char *point, const char *segment, const char *why)
{
	if (tally->refused++)
		return;
	ow_error_set(&tally->why, EINVAL, "a result of point %.63s (segment %.63s) is refused: %s", point, segment,
	             why);
	ow_utf8_clean(tally->why.text);
}

/* The lane's number, or 0 if it waits to be added. -EDQUOT: the point has too many. */
static int64_t want_lane(struct ow_postgres_writer *w, const char *point, const struct ow_interval_result *r)
{
	int64_t lane = ow_postgres_lanes_find(w->lanes, r);
	return lane ? lane : ow_postgres_lanes_want(w->lanes, point, r, w->options.lanes_max);
}

/* Returns the number of entries, or a negative errno. */
static int64_t choose(struct ow_postgres_writer *w, const struct ow_postgres_row *rows, size_t count,
                      struct ow_postgres_tally *tally, struct ow_error *err)
{
	int64_t now_ns = ow_clock_real_ns();
	size_t used = 0;
	if (OW_GROW(w->entry, w->entries_room, count + 1) < 0)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		const struct ow_interval_result *r = rows[i].result;
		const char *wrong = wrong_row(w, &rows[i], now_ns);
		int64_t lane = wrong ? 0 : want_lane(w, rows[i].point, r);
		if (lane == -EDQUOT)
			wrong = "the point has too many lanes";
		else if (lane < 0)
			return no_memory(err);
		if (wrong)
			refuse(tally, rows[i].point, r->segment, wrong);
		else
			w->entry[used++] = (struct entry){rows[i].period, r->start_ns, lane, r};
	}
	int r = ow_postgres_lanes_add(w->lanes, w->postgres, err);
	if (r < 0) {
		w->prepared = false; /* lanes wait that are not in the database */
		return r;
	}
	for (size_t i = 0; i < used; i++) {
		struct entry *e = &w->entry[i];
		e->lane = e->lane ? e->lane : ow_postgres_lanes_find(w->lanes, e->result);
	}
	return (r = need_parts(w, w->entry, used, err)) < 0 ? r : (int64_t)used;
}

/* -- the order of a batch ----------------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int64_t known_intervals(const struct entry *e)
{
	const struct ow_interval_result *r = e->result;
	return e->period == OW_PERIOD_INTERVAL ? r->status != OW_RESULT_UNKNOWN
	                                       : (int64_t)(r->intervals - r->intervals_unknown);
}

/* By place in the table, then the best first. */
static int by_place(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int c = compare(a->period, b->period);
	if (!c)
		c = compare(a->start_ns, b->start_ns);
	if (!c)
		c = compare(a->lane, b->lane);
	if (!c)
		c = b->result->final - a->result->final;
	if (!c)
		c = compare(known_intervals(b), known_intervals(a));
	if (!c)
		c = compare((int64_t)b->result->intervals, (int64_t)a->result->intervals);
	return c ? c : compare((int64_t)a->result->pending, (int64_t)b->result->pending);
}

/* A statement cannot store two rows in one place. Returns the number that is left. */
static size_t sort_out(struct entry *entry, size_t count)
{
	size_t kept = 0;
	qsort(entry, count, sizeof *entry, by_place);
	for (size_t i = 0; i < count; i++) {
		const struct entry *last = kept ? &entry[kept - 1] : NULL;
		if (!last || last->period != entry[i].period || last->start_ns != entry[i].start_ns ||
		    last->lane != entry[i].lane)
			entry[kept++] = entry[i];
	}
	return kept;
}

/* -- the transaction ---------------------------------------------------------------------------------------------- */

static int copy_entries(struct ow_postgres_writer *w, const struct entry *entry, size_t count, struct ow_error *err)
{
	struct ow_postgres_copy *copy = NULL;
	int columns = ow_row_columns(), r = ow_postgres_copy_begin(w->postgres, w->copy[entry->period], &copy, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		ow_row_bind(ow_postgres_copy_row(copy, columns), entry[i].lane, entry[i].result);
	return ow_postgres_copy_end(copy, err);
}

/* Entries of one period. *stored: those that are new or better. */
static int write_level(struct ow_postgres_writer *w, const struct entry *entry, size_t count, uint64_t *stored,
                       struct ow_error *err)
{
	uint64_t changed = 0;
	int r = copy_entries(w, entry, count, err);
	if (r < 0)
		return r;
	bool late = false;
	if (entry->period == OW_PERIOD_MINUTE) {
		/* The first one is the oldest. */
		r = ow_postgres_rollup_is_late(w->postgres, OW_PERIOD_HOUR, entry->start_ns, err);
		late = r > 0;
	}
	if (r >= 0)
		r = late ? ow_postgres_rollup_merge(w->postgres, OW_PERIOD_HOUR, w->merge[entry->period], &changed, err)
		         : ow_postgres_change(w->postgres, w->merge[entry->period], &changed, err);
	*stored += r == 0 ? changed : 0;
	return r;
}

static int write_entries(struct ow_postgres_writer *w, const struct entry *entry, size_t count, uint64_t *stored,
                         struct ow_error *err)
{
	uint64_t changed = 0;
	int r = ow_postgres_run(w->postgres, "BEGIN", err);
	for (size_t i = 0, end; r == 0 && i < count; i = end) {
		for (end = i + 1; end < count && entry[end].period == entry[i].period;)
			end++;
		r = write_level(w, entry + i, end - i, &changed, err);
	}
	if (r == 0)
		r = ow_postgres_run(w->postgres, "COMMIT", err);
	if (r < 0)
		give_up(w);
	else
		*stored += changed;
	return r;
}

/* If the server refuses the data of a row, the others are stored without it. */
static int write_around(struct ow_postgres_writer *w, const struct entry *entry, size_t count,
                        struct ow_postgres_tally *tally, struct ow_error *err)
{
	struct ow_error why;
	int r = count ? write_entries(w, entry, count, &tally->stored, &why) : 0;
	if (r == -EBADMSG && count == 1) {
		refuse(tally, entry->result->from, entry->result->segment, why.text);
		return 0;
	}
	if (r == -EBADMSG) {
		r = write_around(w, entry, count / 2, tally, err);
		return r < 0 ? r : write_around(w, entry + count / 2, count - count / 2, tally, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int write_chosen(struct ow_postgres_writer *w, size_t count, struct ow_postgres_tally *tally,
                        struct ow_error *err)
{
	int r = count ? write_entries(w, w->entry, count, &tally->stored, err) : 0;
	if (r != -EBADMSG)
		return r;
	/* Perhaps somebody else has dropped a partition. */
	w->parts = 0;
	r = need_parts(w, w->entry, count, err);
	return r < 0 ? r : write_around(w, w->entry, count, tally, err);
}

int ow_postgres_write(struct ow_postgres_writer *w, const struct ow_postgres_row *rows, size_t count,
                      struct ow_postgres_tally *ret_tally, struct ow_error *err)
{
	struct ow_postgres_tally tally = {.stored = 0};
	int r = prepare(w, err);
	int64_t used = r < 0 ? r : choose(w, rows, count, &tally, err);
	r = used < 0 ? (int)used : 0;
	if (r == 0)
		r = write_chosen(w, sort_out(w->entry, (size_t)used), &tally, err);
	if (r < 0) {
		give_up(w);
		return r;
	}
	tally.kept = count - tally.refused - tally.stored;
	*ret_tally = tally;
	return 0;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

static void names_of(const struct ow_flow_event *event, struct ow_interval_result *ret_names)
{
	*ret_names = (struct ow_interval_result){.length_ns = 0};
	memcpy(ret_names->segment, event->segment, sizeof ret_names->segment);
	memcpy(ret_names->class_name, event->class_name, sizeof ret_names->class_name);
	memcpy(ret_names->from, event->from, sizeof ret_names->from);
	memcpy(ret_names->to, event->to, sizeof ret_names->to);
}

static int copy_events(struct ow_postgres_writer *w, const struct ow_postgres_event *events, size_t count,
                       const int64_t *lane, struct ow_error *err)
{
	char sql[300];
	struct ow_postgres_copy *copy = NULL;
	snprintf(sql, sizeof sql, "COPY pg_temp.stage_event (%s) FROM STDIN (FORMAT binary)", ow_event_row_names);
	int r = ow_postgres_copy_begin(w->postgres, sql, &copy, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (lane[i])
			ow_event_row_bind(ow_postgres_copy_row(copy, OW_EVENT_ROW_COLUMNS), lane[i], events[i].event);
	}
	return ow_postgres_copy_end(copy, err);
}

/* lane[i] is 0 for what is refused. */
static int find_lanes(struct ow_postgres_writer *w, const struct ow_postgres_event *events, size_t count, int64_t *lane,
                      struct ow_postgres_tally *tally, struct ow_error *err)
{
	int64_t now_ns = ow_clock_real_ns();
	struct ow_interval_result names;
	for (size_t i = 0; i < count; i++) {
		names_of(events[i].event, &names);
		const char *wrong = wrong_names(w, events[i].point, &names);
		wrong = wrong ? wrong : wrong_time(w, OW_PERIOD_MINUTE, events[i].event->start_ns, now_ns);
		int64_t found = wrong ? -EDQUOT : want_lane(w, events[i].point, &names);
		if (found == -ENOMEM)
			return no_memory(err);
		lane[i] = found >= 0;
		if (found < 0)
			refuse(tally, events[i].point, names.segment, wrong ? wrong : "the point has too many lanes");
	}
	int r = ow_postgres_lanes_add(w->lanes, w->postgres, err);
	w->prepared &= r == 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		names_of(events[i].event, &names);
		lane[i] = lane[i] ? ow_postgres_lanes_find(w->lanes, &names) : 0;
	}
	return r;
}

int ow_postgres_write_events(struct ow_postgres_writer *w, const struct ow_postgres_event *events, size_t count,
                             struct ow_postgres_tally *ret_tally, struct ow_error *err)
{
	struct ow_postgres_tally tally = {.stored = 0};
	char sql[400];
	snprintf(sql, sizeof sql, "INSERT INTO event (%s) SELECT %s FROM pg_temp.stage_event ON CONFLICT DO NOTHING",
	         ow_event_row_names, ow_event_row_names);
	int64_t *lane = calloc(count + 1, sizeof *lane);
	int r = lane ? prepare(w, err) : no_memory(err);
	if (r == 0)
		r = find_lanes(w, events, count, lane, &tally, err);
	if (r == 0 && (r = ow_postgres_run(w->postgres, "BEGIN", err)) == 0)
		r = copy_events(w, events, count, lane, err);
	if (r == 0)
		r = ow_postgres_change(w->postgres, sql, &tally.stored, err);
	if (r == 0)
		r = ow_postgres_run(w->postgres, "COMMIT", err);
	free(lane);
	if (r < 0) {
		give_up(w);
		return r;
	}
	tally.kept = count - tally.refused - tally.stored;
	*ret_tally = tally;
	return 0;
}

/* -- maintenance -------------------------------------------------------------------------------------------------- */

/*
 * The time for deleting: a clock that jumps ahead would delete everything, so it is not more than a day after the newest
 * result.
 */
static int trusted_now(struct ow_postgres_writer *w, int64_t now_ns, int64_t *ret_now_ns, struct ow_error *err)
{
	int64_t newest = 0;
	int r = ow_postgres_ask(
		w->postgres,
		"SELECT greatest((SELECT max(start_ns) FROM minute), (SELECT max(start_ns) FROM result), 0)", &newest,
		err);
	*ret_now_ns = newest + DAY_NS < now_ns ? newest + DAY_NS : now_ns;
	return r;
}

/* Returns 1 if something was dropped. */
static int trim(struct ow_postgres_writer *w, int64_t now_ns, struct ow_error *err)
{
	char sql[200];
	int64_t trusted_ns = 0;
	uint64_t events = 0;
	int r = trusted_now(w, now_ns, &trusted_ns, err);
	for (int period = 0; r == 0 && period < OW_PERIODS; period++) {
		int64_t kept = w->options.retention_ns[period];
		if (kept && trusted_ns > kept)
			r = ow_postgres_drop_part(w->postgres, period, trusted_ns - kept, err);
		if (r > 0)
			w->parts = 0;
	}
	int64_t kept = w->options.retention_ns[OW_PERIOD_MINUTE];
	if (r != 0 || !kept)
		return r;
	snprintf(sql, sizeof sql,
	         "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE time_ns < %" PRId64 " LIMIT " TRIM_EVENTS
	         ")",
	         trusted_ns - kept);
	r = ow_postgres_change(w->postgres, sql, &events, err);
	return r < 0 ? r : events > 0;
}

int ow_postgres_maintain(struct ow_postgres_writer *w, int64_t now_ns, struct ow_error *err)
{
	int64_t steady_ns = ow_clock_steady_ns();
	int r = prepare(w, err);
	for (int period = 0; r == 0 && period < OW_PERIODS; period++) {
		if ((r = need_part(w, period, now_ns, err)) == 0)
			r = need_part(w, period, now_ns + EARLY_NS, err);
	}
	if (r == 0 && steady_ns >= w->trim_at_ns) {
		r = trim(w, now_ns, err);
		w->trim_at_ns = r > 0 ? steady_ns : steady_ns + TRIM_NS;
		/* A table that somebody reads for hours is dropped another time. */
		r = r == -EAGAIN ? 0 : r;
	}
	if (r == 0)
		r = ow_postgres_rollup_step(w->postgres, &w->rollup_place, now_ns, err);
	if (r < 0)
		give_up(w);
	return r;
}
