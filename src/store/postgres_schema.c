/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_schema.h"

#include "base/time.h"
#include "store/row.h"
#include <errno.h>
#include <inttypes.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_NS (24 * 3600 * OW_NS_PER_S)
/* Others wait behind a lock that waits. */
#define LOCK_WAIT "SET LOCAL lock_timeout = '2s';"

/* How much time a partition has: days since 1970. */
static const int64_t part_days[OW_PERIODS] = {1, 1, 30, 365};

/* -- the text ----------------------------------------------------------------------------------------------------- */

static const char schema[] =
	"CREATE TABLE meta (key text PRIMARY KEY, value text);\n"
	"CREATE TABLE lane ( -- the packets of one class that go one way over one segment\n"
	"  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
	"  segment text NOT NULL, class text NOT NULL, from_point text NOT NULL, to_point text NOT NULL,\n"
	"  point text NOT NULL, -- who sent the first result of it\n"
	"  UNIQUE (segment, class, from_point, to_point));\n";

static const char *const comment[OW_PERIODS] = {
	"one row a lane and interval; NULL is what is not known",
	"results added up by the points",
	"minutes added up by collectors",
	"hours added up by collectors",
};

static const char schema_rest[] =
	"CREATE TABLE rollup_due ( -- hours and days that are to be added up (again), for these lanes\n"
	"  period bigint NOT NULL, start_ns bigint NOT NULL, first_lane bigint NOT NULL, last_lane bigint NOT NULL);\n"
	"CREATE INDEX rollup_due_time ON rollup_due (period, start_ns);\n"
	"CREATE TABLE event ( -- what happened to flows of a lane\n"
	"  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
	"  lane bigint NOT NULL,\n"
	"  time_ns bigint NOT NULL, -- when it began, since 1970-01-01 UTC\n"
	"  interval bigint NOT NULL,\n"
	"  kind text NOT NULL, -- stopped, back, rerouted, load_sharing, missing\n"
	"  network text, -- of the destinations: 10.1.0.0/16; NULL: several\n"
	"  flows bigint NOT NULL, -- rerouted: pairs of networks\n"
	"  ttl_change bigint, share double precision,\n"
	"  omitted bigint NOT NULL); -- events before this one that were too many\n"
	"CREATE UNIQUE INDEX event_once ON event (time_ns, lane, kind, interval, coalesce(network, ''));\n";

static void put_view(FILE *out, const char *view, const char *table)
{
	fprintf(out,
	        "CREATE VIEW %s AS SELECT -- for people: names, readable times, percent and microseconds\n"
	        "  to_char(to_timestamp(start_ns / 1000000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')\n"
	        "    || '.' || lpad((start_ns / 1000000 %% 1000)::text, 3, '0') AS time,\n"
	        "  segment, class, from_point, to_point, 100 * loss_ratio AS loss_percent,\n"
	        "  mean_ns / 1e3 AS mean_us, stddev_ns / 1e3 AS stddev_us, p50_ns / 1e3 AS p50_us, p99_ns / 1e3 AS "
	        "p99_us,\n"
	        "  %s.* FROM %s JOIN lane ON lane.id = %s.lane;\n",
	        view, table, table, table);
}

static void put_tables(FILE *out)
{
	fputs(schema, out);
	for (int period = 0; period < OW_PERIODS; period++) {
		fprintf(out, "CREATE TABLE %s ( -- %s\n", ow_periods[period].table, comment[period]);
		ow_row_schema(out, OW_DIALECT_POSTGRES);
		fputs("  PRIMARY KEY (start_ns, lane)) PARTITION BY RANGE (start_ns);\n", out);
		fprintf(out, "CREATE INDEX %s_lane ON %s (lane, start_ns);\n", ow_periods[period].table,
		        ow_periods[period].table);
	}
	fputs(schema_rest, out);
	for (int period = 0; period < OW_PERIODS; period++) {
		char view[20];
		snprintf(view, sizeof view, "%ss", ow_periods[period].table);
		put_view(out, view, ow_periods[period].table);
	}
	fprintf(out,
	        "INSERT INTO meta VALUES ('schema', '%d'), ('created_by', 'oneway %s'),\n"
	        "  ('created_ns', (extract(epoch FROM now()) * 1000000)::bigint || '000'),\n"
	        "  ('hour_until_ns', '0'), ('day_until_ns', '0'), -- added up before these times\n"
	        "  ('running_ns', '0'); -- when what is not over was added up the last time\n",
	        ow_row_version(), ow_version());
}

static const char roles[] =
	"-- The collector owns the tables: it makes a partition for each day, and drops old ones. It can do nothing "
	"else.\n"
	"-- Give it a way to log in: a certificate (pg_hba.conf: hostssl ... cert) or ALTER ROLE oneway_collector "
	"PASSWORD.\n"
	"DO $$ BEGIN\n"
	"  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oneway_collector') THEN\n"
	"    CREATE ROLE oneway_collector LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE; END IF;\n"
	"  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oneway_reader') THEN\n"
	"    CREATE ROLE oneway_reader LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE; END IF;\n"
	"END $$;\n"
	"REVOKE CREATE ON SCHEMA public FROM PUBLIC;\n"
	"GRANT USAGE, CREATE ON SCHEMA public TO oneway_collector;\n"
	"GRANT USAGE ON SCHEMA public TO oneway_reader;\n"
	"ALTER DEFAULT PRIVILEGES FOR ROLE oneway_collector IN SCHEMA public GRANT SELECT ON TABLES TO oneway_reader;\n"
	"SET ROLE oneway_collector;\n";

void ow_postgres_schema(FILE *out)
{
	fputs("-- The database of a fleet's results. Run it once, as an administrator, in a database of its own:\n"
	      "--   createdb oneway && psql -1 -v ON_ERROR_STOP=1 -d oneway -f this-file\n",
	      out);
	fputs(roles, out);
	put_tables(out);
	fputs("RESET ROLE;\n", out);
}

/* -- versions ----------------------------------------------------------------------------------------------------- */

int ow_postgres_version(struct ow_postgres *p, struct ow_error *err)
{
	int64_t tables = 0, ours = 0, version = 0;
	int r = ow_postgres_ask(p, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", &tables, err);
	if (r == 0)
		r = ow_postgres_ask(p,
		                    "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND"
		                    " tablename IN ('meta', 'lane', 'result')",
		                    &ours, err);
	if (r < 0)
		return r;
	if (tables == 0)
		return 0;
	r = ours == 3 ? ow_postgres_ask(p, "SELECT value::bigint FROM meta WHERE key = 'schema'", &version, err)
	              : -ENODATA;
	if (r == -ENODATA)
		return ow_error_set(err, EINVAL, "%s: a database of another program, not a store of oneway",
		                    ow_postgres_name(p));
	if (r < 0)
		return r;
	if (version > ow_row_version())
		return ow_error_set(err, ENOTSUP,
		                    "%s: written by a newer version of oneway (schema %" PRId64 ", this one knows %d)",
		                    ow_postgres_name(p), version, ow_row_version());
	return version < 1 ? ow_error_set(err, EUCLEAN, "%s: damaged: schema %" PRId64, ow_postgres_name(p), version)
	                   : (int)version;
}

/* Converts the previous versions to this one. Views are made again, because they name their columns. */
static void put_migration(FILE *out, int version)
{
	for (int period = 0; period < OW_PERIODS; period++)
		fprintf(out, "DROP VIEW IF EXISTS %ss;\n", ow_periods[period].table);
	for (int next = version + 1; next <= ow_row_version(); next++) {
		for (int period = 0; period < OW_PERIODS; period++)
			ow_row_migration(out, OW_DIALECT_POSTGRES, ow_periods[period].table, next);
	}
	for (int period = 0; period < OW_PERIODS; period++) {
		char view[20];
		snprintf(view, sizeof view, "%ss", ow_periods[period].table);
		put_view(out, view, ow_periods[period].table);
	}
	fprintf(out, "UPDATE meta SET value = '%d' WHERE key = 'schema';\n", ow_row_version());
}

static int run_text(struct ow_postgres *p, void (*put)(FILE *out, int version), int version, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (out)
		put(out, version);
	int r = out && fclose(out) == 0 ? ow_postgres_run(p, sql, err)
	                                : ow_error_set(err, ENOMEM, "%s: out of memory", ow_postgres_name(p));
	free(sql);
	return r;
}

static void put_new(FILE *out, int version)
{
	(void)version;
	put_tables(out);
}

#define LOCK_SCHEMA "SELECT pg_advisory_xact_lock(" OW_POSTGRES_LOCK_CLASS ", 1);"

int ow_postgres_bring_up(struct ow_postgres *p, struct ow_error *err)
{
	int version = ow_postgres_version(p, err);
	if (version < 0 || version == ow_row_version())
		return version < 0 ? version : 0;
	int r = ow_postgres_run(p, "BEGIN;" LOCK_SCHEMA, err);
	/* Another collector may have done it already. */
	if (r == 0)
		r = version = ow_postgres_version(p, err);
	if (r >= 0)
		r = version == ow_row_version() ? 0 : run_text(p, version ? put_migration : put_new, version, err);
	if (r == 0)
		return ow_postgres_run(p, "COMMIT", err);
	ow_postgres_run(p, "ROLLBACK", NULL);
	return r;
}

/* -- partitions --------------------------------------------------------------------------------------------------- */

struct ow_postgres_part ow_postgres_part(enum ow_period period, int64_t ns)
{
	int64_t length = part_days[period] * DAY_NS, start = ow_floor_div(ns, length) * length;
	return (struct ow_postgres_part){period, start, start + length};
}

/* minute_20261116: the day of UTC on which it begins. */
#define PART_NAME 32
static void part_name(const struct ow_postgres_part *part, char ret_name[PART_NAME])
{
	time_t second = (time_t)(part->start_ns / OW_NS_PER_S);
	struct tm tm = {0};
	char day[16] = "";
	gmtime_r(&second, &tm);
	strftime(day, sizeof day, "%Y%m%d", &tm);
	snprintf(ret_name, PART_NAME, "%s_%s", ow_periods[part->period].table, day);
}

int ow_postgres_add_part(struct ow_postgres *p, const struct ow_postgres_part *part, struct ow_error *err)
{
	char name[PART_NAME], sql[900];
	const char *table = ow_periods[part->period].table;
	part_name(part, name);
	/* Attaching does not wait for those who read the table, as CREATE TABLE ... PARTITION OF would. */
	snprintf(sql, sizeof sql,
	         "BEGIN; " LOCK_WAIT LOCK_SCHEMA "DO $$ BEGIN IF to_regclass('public.%s') IS NULL THEN"
	         " CREATE TABLE %s (LIKE %s INCLUDING ALL);"
	         " ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%" PRId64 ") TO (%" PRId64 ");"
	         " END IF; END $$; COMMIT",
	         name, name, table, table, name, part->start_ns, part->end_ns);
	int r = ow_postgres_run(p, sql, err);
	if (r < 0 && ow_postgres_in_transaction(p))
		ow_postgres_run(p, "ROLLBACK", NULL);
	return r;
}

int ow_postgres_drop_part(struct ow_postgres *p, enum ow_period period, int64_t before_ns, struct ow_error *err)
{
	char name[PART_NAME], sql[600];
	struct ow_postgres_part last = ow_postgres_part(period, before_ns);
	int64_t old = 0;
	part_name(&last, name);
	/* Names sort by time. */
	snprintf(
		sql, sizeof sql,
		"SELECT coalesce(min(substr(relname, %zu)::bigint), 0) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
		" WHERE inhparent = 'public.%s'::regclass AND relname < '%s' AND relname ~ '^%s_[0-9]{8}$'",
		strlen(ow_periods[period].table) + 2, ow_periods[period].table, name, ow_periods[period].table);
	int r = ow_postgres_ask(p, sql, &old, err);
	if (r < 0 || old == 0)
		return r;
	snprintf(sql, sizeof sql, "BEGIN; " LOCK_WAIT LOCK_SCHEMA "DROP TABLE IF EXISTS %s_%08" PRId64 "; COMMIT",
	         ow_periods[period].table, old);
	r = ow_postgres_run(p, sql, err);
	if (r < 0 && ow_postgres_in_transaction(p))
		ow_postgres_run(p, "ROLLBACK", NULL);
	return r < 0 ? r : 1;
}

/* -- rows --------------------------------------------------------------------------------------------------------- */

void ow_postgres_put_copy(FILE *out, enum ow_period period)
{
	fprintf(out, "COPY pg_temp.stage_%s (", ow_periods[period].table);
	ow_row_names(out);
	fputs(") FROM STDIN (FORMAT binary)", out);
}

void ow_postgres_put_merge(FILE *out, enum ow_period period)
{
	fprintf(out, "INSERT INTO %s AS old (", ow_periods[period].table);
	ow_row_names(out);
	fputs(") SELECT ", out);
	ow_row_names(out);
	fprintf(out, " FROM pg_temp.stage_%s ON CONFLICT (start_ns, lane) ", ow_periods[period].table);
	ow_row_replace(out);
}
