/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store written by somebody else, read as `oneway results` does. If the first byte is 0, the rest is the file.
 * Otherwise the rest changes a valid store: the contents of columns (any type, any number, large blobs), or the tables.
 * Each change is 11 bytes: what (1), column (1), row (1), value (8). Everything can be listed, summed up and printed,
 * or there is an error message.
 */
#include "base/bytes.h"
#include "base/time.h"
#include "report/interval_render.h"
#include "result/result_json.h"
#include "store/store.h"
#include "store/stored_sum.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHANGE      11
#define CHANGES_MAX 64
#define STORE_MAX   (1u << 20)
#define ROWS        6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static char folder[] = "/dev/shm/oneway-fuzz-XXXXXX", path[sizeof folder + 16];
static uint8_t good_store[STORE_MAX];
static size_t good_size;

static void remove_files(void)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char name[sizeof path + 16];
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
}

static void remove_folder(void)
{
	remove_files();
	rmdir(folder);
}

/* Rows as a point writes them. */
static void make_store(void)
{
	struct ow_store *store;
	struct ow_error err;
	check(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/store.db", folder);
	atexit(remove_folder);
	check(ow_store_open(path, &store, &err) == 0);
	for (int i = 0; i < ROWS; i++) {
		static struct ow_interval_result r;
		r = (struct ow_interval_result){.segment = "a-b", .class_name = "all", .from = "a", .to = "b"};
		snprintf(r.class_name, sizeof r.class_name, "%s", i % 2 ? "voice" : "all");
		r.interval = i;
		r.start_ns = INT64_C(1700000000) * OW_NS_PER_S + i * OW_NS_PER_S;
		r.length_ns = OW_NS_PER_S;
		r.final = true;
		r.status = i == 4 ? OW_RESULT_UNKNOWN : OW_RESULT_MEASURED;
		r.sent = r.received = r.matched = r.samples = i == 4 ? 0 : 100;
		r.mean_ns = r.stddev_ns = r.min_ns = r.max_ns = r.loss_ratio = ow_value_exact(1000);
		check(ow_store_add(store, &r, &err) == 0);
	}
	check(ow_store_commit(store, &err) == 0);
	ow_store_close(store);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, good_store, sizeof good_store);
	check(n > 0 && n < (ssize_t)sizeof good_store);
	close(fd);
	good_size = (size_t)n;
}

static void write_file(const uint8_t *data, size_t size)
{
	remove_files();
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void change_table(sqlite3 *db, unsigned which)
{
	static const char *const sql[] = {
		"DROP TABLE meta",
		"DROP TABLE lane",
		"DROP VIEW results; DROP TABLE result",
		"DROP INDEX result_time",
		"DELETE FROM lane WHERE id = 1",
		"DELETE FROM result",
		"ALTER TABLE result RENAME COLUMN sent TO went",
		"PRAGMA user_version = 99",
		"PRAGMA user_version = -1",
		"PRAGMA application_id = 1",
		"UPDATE lane SET id = -9223372036854775808 WHERE id = 2",
		"UPDATE OR IGNORE lane SET segment = zeroblob(70000), from_point = char(27, 91, 10, 0, 65)",
		"INSERT INTO lane SELECT id + 100, segment || id, class, from_point, to_point FROM lane",
		"UPDATE result SET not_estimated = '{\"mean\": [1, {\"x\": \"y\"}], \"quantiles\": 1e999}'",
		"INSERT OR REPLACE INTO meta VALUES ('results_lost', -5), ('opened_ns', 'never')",
		"DROP VIEW results; ALTER TABLE result RENAME TO r; CREATE VIEW result AS SELECT * FROM r, r AS s",
	};
	sqlite3_exec(db, sql[which % (sizeof sql / sizeof *sql)], NULL, NULL, NULL);
}

static void bind_value(sqlite3_stmt *update, unsigned kind, const uint8_t *value)
{
	uint64_t bits = ow_load_le64(value);
	double real;
	memcpy(&real, &bits, sizeof real);
	switch (kind % 6) {
	case 0:
		sqlite3_bind_int64(update, 1, (sqlite3_int64)bits);
		return;
	case 1:
		sqlite3_bind_double(update, 1, real);
		return;
	case 2:
		sqlite3_bind_text(update, 1, (const char *)value, 8, SQLITE_TRANSIENT);
		return;
	case 3:
		sqlite3_bind_blob(update, 1, value, 8, SQLITE_TRANSIENT);
		return;
	case 4:
		/* Only few large blobs: they only take time. */
		sqlite3_bind_zeroblob(update, 1, (int)(bits & (bits >> 56 == 0xff ? 0x3ffff : 0x3ff)));
		return;
	default:
		sqlite3_bind_null(update, 1);
	}
}

static void change_value(sqlite3 *db, const char *table, const uint8_t change[CHANGE])
{
	char sql[200];
	sqlite3_stmt *columns, *update;
	snprintf(sql, sizeof sql, "SELECT * FROM %s LIMIT 0", table);
	if (sqlite3_prepare_v2(db, sql, -1, &columns, NULL) != SQLITE_OK)
		return;
	int count = sqlite3_column_count(columns);
	snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = ?1 WHERE rowid = %d", table,
	         sqlite3_column_name(columns, change[1] % count), 1 + change[2] % (ROWS + 1));
	sqlite3_finalize(columns);
	if (sqlite3_prepare_v2(db, sql, -1, &update, NULL) != SQLITE_OK)
		return;
	bind_value(update, change[0] >> 2, change + 3);
	sqlite3_step(update);
	sqlite3_finalize(update);
}

static void change_store(const uint8_t *data, size_t size)
{
	sqlite3 *db;
	check(sqlite3_open(path, &db) == SQLITE_OK);
	sqlite3_exec(db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL);
	for (unsigned i = 0; i < CHANGES_MAX && size >= CHANGE; i++, data += CHANGE, size -= CHANGE) {
		if ((data[0] & 3) == 3)
			change_table(db, data[1]);
		else
			change_value(db, (data[0] & 3) == 2 ? "lane" : "result", data);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

struct shown {
	FILE *out;
	struct ow_render_text text;
	unsigned count;
};

static int show(void *arg, const struct ow_interval_result *result)
{
	struct shown *s = arg;
	s->count++;
	check(result->status <= OW_RESULT_UNKNOWN && result->sample_shift <= 63);
	ow_result_json(s->out, result);
	ow_render_text(&s->text, result);
	return 0;
}

static void add_up(struct ow_stored *stored, enum ow_stored_group group, FILE *out)
{
	struct ow_error err = {""};
	struct ow_stored_sums sums;
	const struct ow_stored_sum_options options = {group, 3600 * OW_NS_PER_S, 1000};
	int r = ow_stored_summarise(stored, &options, &sums, &err);
	check(r == 0 || err.text[0]);
	if (r < 0)
		return;
	for (size_t i = 0; i < sums.count; i++)
		check(sums.sum[i].intervals == sums.sum[i].measured + sums.sum[i].partial + sums.sum[i].unknown);
	if (group != OW_STORED_BIN) {
		ow_stored_show(&(struct ow_stored_show){.out = out, .width = 80}, stored, &sums, group);
		ow_stored_json(out, stored, &sums, group);
	}
	ow_stored_sums_done(&sums);
}

static void look(struct ow_stored *stored)
{
	char *text = NULL;
	size_t size;
	uint64_t rows;
	int64_t first, last;
	struct ow_error err = {""};
	struct shown s = {.out = open_memstream(&text, &size)};
	check(s.out != NULL);
	s.text = (struct ow_render_text){.out = s.out, .width = 80, .local = true};
	ow_stored_caveat(stored, &err);
	ow_stored_span(stored, &first, &last, &err);
	check(ow_stored_list(stored, 0, show, &s, &err) == 0 || err.text[0]);
	check(ow_stored_list(stored, 2, show, &s, &err) == 0 || err.text[0]);
	for (int by = OW_STORED_LOSS; by <= OW_STORED_MEAN; by++)
		check(ow_stored_worst(stored, (enum ow_stored_by)by, 3, show, &s, &err) == 0 || err.text[0]);
	check(ow_stored_csv(stored, 0, s.out, &rows, &err) == 0 || err.text[0]);
	for (int group = OW_STORED_LANE; group <= OW_STORED_BIN; group++)
		add_up(stored, (enum ow_stored_group)group, s.out);
	fclose(s.out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_stored *stored = NULL;
	struct ow_error err = {""};
	if (!good_size)
		make_store();
	if (size == 0)
		return 0;
	if (data[0]) {
		write_file(good_store, good_size);
		change_store(data + 1, size - 1);
	} else {
		write_file(data + 1, size - 1);
	}
	if (ow_stored_open(path, &stored, &err) < 0) {
		check(err.text[0] != 0);
		return 0;
	}
	look(stored);
	const struct ow_stored_filter filter = {
		.segment = "a-b", .since_ns = INT64_MIN, .until_ns = INT64_MAX, .statuses = 1, .final = true};
	if (ow_stored_choose(stored, &filter, &err) == 0)
		look(stored);
	else
		check(err.text[0] != 0);
	ow_stored_close(stored);
	return 0;
}
