/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a store. The schema contains its own comments: `.schema` in the sqlite3 shell shows them. Writing uses a
 * write-ahead log, so that users can query while a point writes, and synchronous = NORMAL: after a power failure the
 * last results may be missing, but the file is consistent; a killed process loses nothing that was committed.
 */
#include "store/database.h"

#include "base/clock.h"
#include "base/text.h"
#include "store/event_row.h"
#include "store/row.h"
#include "store/sample_row.h"
#include "result/period.h"
#include <errno.h>
#include <limits.h>
#include <oneway/oneway.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define APPLICATION_ID 0x6f776179 /* "oway", in the header of the file */
/* How long to wait for the lock of another program: longer than a batch takes, shorter than people wait. */
#define BUSY_MS 2000
/*
 * On a file system smaller than this (bytes), the log is written into the file after this many pages, 256 KiB instead
 * of 4 MiB. If the log used all the space, it could never be written into the file, and nothing more could be stored.
 */
#define SMALL_DISK      (64u << 20)
#define SMALL_LOG_PAGES (size_t)64
/*
 * A transaction writes a page of an index for each lane, and the next one the same pages again. They stay in the cache,
 * and some transactions are in the log before its pages are written into the file, each page once. Up to 250 lanes
 * the cache (2 MB) and the log (1000 pages) are those that SQLite has anyway; from 4000 lanes on they are as large as
 * they get.
 */
#define CACHE_KIB      2000
#define CACHE_KIB_LANE 8
#define LOG_PAGES      1000
#define LOG_PAGES_LANE 4
#define LANES_MOST     4000
/* The log is truncated to this size a page when all of it is in the file, so that it does not keep the space of a burst:
 * a page, its header, and as a half more what the last transaction adds. */
#define LOG_PAGE_BYTES 6144

static const char schema[] =
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;\n"
	"CREATE TABLE lane ( -- the packets of one class that go one way over one segment\n"
	"  id INTEGER PRIMARY KEY,\n"
	"  segment TEXT NOT NULL, class TEXT NOT NULL, from_point TEXT NOT NULL, to_point TEXT NOT NULL,\n"
	"  UNIQUE (segment, class, from_point, to_point));\n";

/* The tables of results, minutes, hours and days. */
static const char *const table_comment[OW_PERIODS] = {
	"one row a lane and interval; NULL is what is not known",
	"the final results that begin in a minute, added up",
	"the minutes of an hour",
	"the hours of a day of UTC",
};

static void put_table(FILE *out, enum ow_period period)
{
	const char *name = ow_periods[period].table;
	fprintf(out, "CREATE TABLE %s ( -- %s\n", name, table_comment[period]);
	ow_row_schema(out, OW_DIALECT_SQLITE);
	fprintf(out,
	        "  UNIQUE (lane, start_ns));\n"
	        "CREATE INDEX %s_time ON %s (start_ns, lane);\n"
	        "CREATE VIEW %ss AS SELECT -- for people: names, readable times, percent and microseconds\n"
	        "  strftime('%%Y-%%m-%%d %%H:%%M:%%S', start_ns / 1000000000, 'unixepoch')\n"
	        "    || printf('.%%03d', start_ns / 1000000 %% 1000) AS time,\n"
	        "  segment, class, from_point, to_point, 100 * loss_ratio AS loss_percent,\n"
	        "  mean_ns / 1e3 AS mean_us, stddev_ns / 1e3 AS stddev_us, p50_ns / 1e3 AS p50_us, p99_ns / 1e3 AS "
	        "p99_us,\n"
	        "  %s.* FROM %s JOIN lane ON lane.id = %s.lane;\n",
	        name, name, name, name, name, name);
}

/* The first version of the schema that has minutes, hours and days. */
#define SUMS_SINCE 7

/*
 * The statements that convert schema n + 1 to n + 2, in addition to new columns. Each runs within the transaction that
 * also sets the version.
 */
static const char *const migrations[] = {
	/* 2: time ranges of selected lanes need only the index */
	"DROP INDEX IF EXISTS result_start; CREATE INDEX IF NOT EXISTS result_time ON result (start_ns, lane);",
	/* 3 to 5: only columns */
	"",
	"",
	"",
	[OW_EVENT_ROW_SINCE - 2] = ow_event_row_schema,
	/* 7: minutes, hours and days, see migrate */
	"",
	[OW_SAMPLE_ROW_SINCE - 2] = ow_sample_row_schema,
};
#define MIGRATIONS ((int)(sizeof migrations / sizeof *migrations))

int ow_database_newest(void)
{
	return ow_row_version() > MIGRATIONS + 1 ? ow_row_version() : MIGRATIONS + 1;
}

/* -- errors ------------------------------------------------------------------------------------------------------- */

/* Why there is no file: SQLite tries last to read it, so its reason hides that the folder cannot be written. */
static int reason_of_none(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int length = slash && slash != path ? (int)(slash - path) : 1;
	snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
	return access(folder, W_OK | X_OK) < 0 ? errno : ENOENT;
}

int ow_database_fail(const struct ow_database *database, struct ow_error *err)
{
	const char *path = database->path;
	int os = sqlite3_system_errno(database->db);
	switch (sqlite3_errcode(database->db) & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ow_error_set(err, EBUSY, "%s: locked by another program", path);
	case SQLITE_READONLY:
		return ow_error_set(err, EROFS, "%s: cannot be written, it or its directory is read-only", path);
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		/* The store exists, but its log does not and cannot be created. */
		if (os == ENOENT && sqlite3_db_readonly(database->db, "main") == 1)
			return ow_error_set(err, EROFS, "%s: cannot be written, it or its directory is read-only",
			                    path);
		os = os == ENOENT ? reason_of_none(path) : os ? os : EIO;
		return ow_error_set(err, os, "%s: cannot be opened: %s", path, strerror(os));
	case SQLITE_NOTADB:
		return ow_error_set(err, EINVAL, "%s: not an SQLite database", path);
	case SQLITE_CORRUPT:
		return ow_error_set(err, EUCLEAN, "%s: damaged; move it away and a new one will be made", path);
	case SQLITE_FULL:
		return ow_error_set(err, ENOSPC, "%s: no space left", path);
	case SQLITE_CONSTRAINT:
		return ow_error_set(err, EBADMSG, "%s: refused: %s", path, sqlite3_errmsg(database->db));
	case SQLITE_INTERRUPT:
		return ow_error_set(err, ETIME, "%s: takes too long", path);
	case SQLITE_NOMEM:
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	case SQLITE_IOERR:
		/* Some writes to a full disk give this error. */
		if (os == ENOSPC || os == EDQUOT)
			return ow_error_set(err, ENOSPC, "%s: no space left", path);
		return ow_error_set(err, EIO, "%s: %s", path, os ? strerror(os) : sqlite3_errmsg(database->db));
	default:
		return ow_error_set(err, EIO, "%s: %s", path, sqlite3_errmsg(database->db));
	}
}

int ow_database_run(const struct ow_database *database, const char *sql, struct ow_error *err)
{
	int r = 0;
	if (sqlite3_exec(database->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
		r = ow_database_fail(database, err);
		if (!sqlite3_get_autocommit(database->db))
			sqlite3_exec(database->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return r;
}

int ow_database_prepare(const struct ow_database *database, const char *sql, sqlite3_stmt **ret_statement,
                        struct ow_error *err)
{
	int code = sqlite3_prepare_v3(database->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
	return code == SQLITE_OK ? 0 : ow_database_fail(database, err);
}

int ow_database_ask(const struct ow_database *database, const char *sql, int64_t *ret_value, struct ow_error *err)
{
	sqlite3_stmt *statement;
	int r = ow_database_prepare(database, sql, &statement, err);
	if (r < 0)
		return r;
	if (sqlite3_step(statement) == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(statement, 0);
	else
		r = ow_database_fail(database, err);
	sqlite3_finalize(statement);
	return r;
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

/* The version of the schema; 0: an empty file; negative errno: not a store. */
static int recognise(const struct ow_database *d, struct ow_error *err)
{
	int64_t application = 0, version = 0, objects = 0;
	int r;
	if ((r = ow_database_ask(d, "SELECT count(*) FROM sqlite_schema", &objects, err)) < 0 ||
	    (r = ow_database_ask(d, "PRAGMA application_id", &application, err)) < 0 ||
	    (r = ow_database_ask(d, "PRAGMA user_version", &version, err)) < 0)
		return r;
	if (application == 0 && version == 0 && objects == 0)
		return 0;
	if (application != APPLICATION_ID)
		return ow_error_set(err, EINVAL, "%s: a database of another program, not a store of oneway", d->path);
	if (version > ow_database_newest())
		return ow_error_set(err, ENOTSUP,
		                    "%s: written by a newer version of oneway (schema %lld, this one knows %d)",
		                    d->path, (long long)version, ow_database_newest());
	if (version < 1)
		return ow_error_set(err, EUCLEAN, "%s: damaged: schema %lld", d->path, (long long)version);
	return (int)version;
}

/* Runs statements that were built from parts. */
static int run_text(struct ow_text *text, const struct ow_database *d, struct ow_error *err)
{
	char *sql = ow_text_close(text);
	int r = sql ? ow_database_run(d, sql, err) : ow_error_set(err, ENOMEM, "%s: out of memory", d->path);
	free(sql);
	return r;
}

/* Converts the previous version to this one. first: what the file had at first. */
static int migrate(const struct ow_database *d, int first, int version, struct ow_error *err)
{
	struct ow_text text;
	if (!ow_text_open(&text))
		return ow_error_set(err, ENOMEM, "%s: out of memory", d->path);
	if (version >= 2 && version - 2 < MIGRATIONS)
		fputs(migrations[version - 2], text.out);
	for (int p = 0; p < OW_PERIODS; p++) {
		if (p == OW_PERIOD_INTERVAL || first >= SUMS_SINCE)
			ow_row_migration(text.out, OW_DIALECT_SQLITE, ow_periods[p].table, version);
		else if (version == SUMS_SINCE)
			put_table(text.out, (enum ow_period)p);
	}
	return run_text(&text, d, err);
}

static int make_schema(const struct ow_database *d, struct ow_error *err)
{
	char sql[200];
	snprintf(sql, sizeof sql,
	         "INSERT INTO meta VALUES ('created_ns', %lld), ('created_by', 'oneway %s');"
	         "PRAGMA application_id = %d",
	         (long long)ow_clock_real_ns(), ow_version(), APPLICATION_ID);
	struct ow_text text;
	if (!ow_text_open(&text))
		return ow_error_set(err, ENOMEM, "%s: out of memory", d->path);
	fputs(schema, text.out);
	for (int p = 0; p < OW_PERIODS; p++)
		put_table(text.out, (enum ow_period)p);
	fputs(ow_event_row_schema, text.out);
	fputs(ow_sample_row_schema, text.out);
	int r = run_text(&text, d, err);
	return r < 0 ? r : ow_database_run(d, sql, err);
}

static bool is_small(const char *path)
{
	struct statvfs info;
	return statvfs(path, &info) == 0 && (uint64_t)info.f_blocks * info.f_frsize < SMALL_DISK;
}

static size_t at_least(size_t value, size_t least)
{
	return value < least ? least : value;
}

int ow_database_suit(const struct ow_database *database, size_t lanes, struct ow_error *err)
{
	char sql[160];
	lanes = lanes < LANES_MOST ? lanes : LANES_MOST;
	size_t cache = at_least(lanes * CACHE_KIB_LANE, CACHE_KIB), log = at_least(lanes * LOG_PAGES_LANE, LOG_PAGES);
	snprintf(sql, sizeof sql,
	         "PRAGMA cache_size = -%zu; PRAGMA wal_autocheckpoint = %zu; PRAGMA journal_size_limit = %zu", cache,
	         database->small_disk ? SMALL_LOG_PAGES : log, log * LOG_PAGE_BYTES);
	return ow_database_run(database, sql, err);
}

/* Converts to the current schema, completely or not at all. */
static int bring_up(const struct ow_database *d, struct ow_error *err)
{
	char sql[60];
	int r = ow_database_run(d, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	/* Another program may have done it already. */
	int version = recognise(d, err);
	if (version < 0) {
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
		return version;
	}
	if (version == 0)
		r = make_schema(d, err);
	for (int next = version + 1; version > 0 && r == 0 && next <= ow_database_newest(); next++)
		r = migrate(d, version, next, err);
	snprintf(sql, sizeof sql, "PRAGMA user_version = %d; COMMIT", ow_database_newest());
	return r < 0 ? r : ow_database_run(d, sql, err);
}

static int begin(struct ow_database *d, struct ow_error *err)
{
	/* Nothing is written before the file was recognised as ours. */
	int version = recognise(d, err), r;
	if (version < 0)
		return version;
	if (sqlite3_db_readonly(d->db, "main") == 1)
		return ow_error_set(err, EROFS, "%s: cannot be written, it or its directory is read-only", d->path);
	/* Incremental vacuum must be set before there are any pages. */
	if (version == 0 && (r = ow_database_run(d, "PRAGMA auto_vacuum = INCREMENTAL", err)) < 0)
		return r;
	d->small_disk = is_small(d->path);
	/*
	 * A confined point can create files only in the folder of the store, so temporary files are in memory. If a log
	 * is not possible (some network file systems), the mode is unchanged: slower, but correct.
	 */
	if ((r = ow_database_run(d,
	                         "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
	                         "PRAGMA temp_store = MEMORY",
	                         err)) < 0 ||
	    (r = ow_database_suit(d, 0, err)) < 0)
		return r;
	return version < ow_database_newest() ? bring_up(d, err) : 0;
}

/* Nobody asks SQLite how much memory it has; counting that takes a lock for each allocation. */
static void configure(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_file(const char *path, const char *name, int flags, struct ow_database *d, struct ow_error *err)
{
	static pthread_once_t configured = PTHREAD_ONCE_INIT;
	d->path = strdup(path);
	if (!d->path)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	/* Before the first use of SQLite; later it has no effect. */
	pthread_once(&configured, configure);
	/* A connection is for one thread at a time: no locks for each column. */
	if (sqlite3_open_v2(name, &d->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return d->db ? ow_database_fail(d, err) : ow_error_set(err, ENOMEM, "%s: out of memory", path);
	sqlite3_busy_timeout(d->db, BUSY_MS);
	return 0;
}

int ow_database_open(const char *path, struct ow_database *ret_database, struct ow_error *err)
{
	struct ow_database d = {0};
	int r = open_file(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &d, err);
	if (r == 0)
		r = begin(&d, err);
	if (r < 0)
		ow_database_close(&d);
	else
		*ret_database = d;
	return r;
}

static int look_at(const char *path, const char *name, int flags, struct ow_database *d, struct ow_error *err)
{
	int r = open_file(path, name, SQLITE_OPEN_READONLY | flags, d, err);
	int version = r < 0 ? r : recognise(d, err);
	if (version == 0)
		r = ow_error_set(err, ENODATA, "%s: empty, not a store of oneway", path);
	else if (version < 0)
		r = version;
	d->version = version;
	if (r < 0)
		ow_database_close(d);
	return r;
}

/* The name as a file: URI, with all special bytes escaped. NULL if there is no memory. */
static char *immutable_name(const char *path)
{
	struct ow_text name;
	FILE *out = ow_text_open(&name);
	if (!out)
		return NULL;
	fputs("file:", out);
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		fprintf(out, strchr("%?#", *p) ? "%%%02x" : "%c", *p);
	fputs("?immutable=1", out);
	return ow_text_close(&name);
}

/* Whether no file can be created in its folder. */
static bool folder_is_closed(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	bool closed = folder && access(folder, W_OK) != 0;
	free(folder);
	return closed;
}

/* Whether there are results in the log. */
static bool has_log(const char *path)
{
	char *name;
	struct stat info;
	if (asprintf(&name, "%s-wal", path) < 0)
		return false;
	bool yes = stat(name, &info) == 0 && info.st_size > 0;
	free(name);
	return yes;
}

int ow_database_look(const char *path, struct ow_database *ret_database, struct ow_error *err)
{
	struct ow_database d = {0};
	struct stat info;
	if (stat(path, &info) != 0)
		return ow_error_set(err, errno, "%s: %s", path, errno == ENOENT ? "no such store" : strerror(errno));
	int r = look_at(path, path, 0, &d, err);
	/*
	 * The log needs files next to the store. If they cannot be created, nobody writes either, and the store is read
	 * without a log.
	 */
	if ((r == -EROFS || r == -EACCES || r == -EPERM || r == -ENOENT || r == -EIO) && folder_is_closed(path)) {
		char *name = immutable_name(path);
		r = name ? look_at(path, name, SQLITE_OPEN_URI, &d, err)
		         : ow_error_set(err, ENOMEM, "%s: out of memory", path);
		free(name);
		d.without_log = r == 0 && has_log(path);
	}
	if (r == 0)
		*ret_database = d;
	return r;
}

void ow_database_close(struct ow_database *database)
{
	sqlite3_close(database->db);
	free(database->path);
	*database = (struct ow_database){0};
}
