/* SPDX-License-Identifier: Apache-2.0 */
/* The connection, its errors, and simple statements. */
#include "store/postgres_private.h"

#include "base/utf8.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- errors ------------------------------------------------------------------------------------------------------- */

/* Classes and codes of SQLSTATE, more specific ones first. */
static const struct {
	const char *state;
	int code;
} states[] = {
	{"53100", ENOSPC},     {"53", EAGAIN},    {"22", EBADMSG},    {"23", EBADMSG},
	{"28", EACCES},        {"3D000", ENOENT}, {"42501", EACCES},  {"42P01", ENOENT},
	{"40", EAGAIN},        {"55P03", EAGAIN}, {"57014", EAGAIN},  {"57P01", ECONNRESET},
	{"57P02", ECONNRESET}, {"57P03", EAGAIN}, {"08", ECONNRESET}, {"25006", EROFS},
};

static int code_of(const char *state)
{
	for (size_t i = 0; state && i < sizeof states / sizeof *states; i++) {
		if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
			return states[i].code;
	}
	return EIO;
}

/* The first line, without the name of its severity. */
static int note(struct ow_postgres *p, int code, const char *text)
{
	char line[300];
	text += strncmp(text, "ERROR:  ", 8) == 0 ? 8 : strncmp(text, "FATAL:  ", 8) == 0 ? 8 : 0;
	snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
	ow_utf8_clean(line);
	p->failed = ow_error_set(&p->why, code, "%s: %s", p->name, *line ? line : "no connection");
	return p->failed;
}

int ow_postgres_note(struct ow_postgres *p, const PGresult *result)
{
	const char *text = result ? ow_pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *state = result ? ow_pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	if (p->is_silent)
		return note(p, ECONNRESET, "the server does not answer");
	if (ow_pq.PQstatus(p->connection) != CONNECTION_OK || !text)
		return note(p, ow_pq.PQstatus(p->connection) != CONNECTION_OK ? ECONNRESET : EIO,
		            text ? text : ow_pq.PQerrorMessage(p->connection));
	return note(p, code_of(state), text);
}

int ow_postgres_note_memory(struct ow_postgres *p)
{
	return note(p, ENOMEM, "out of memory");
}

int ow_postgres_fail(const struct ow_postgres *p, struct ow_error *err)
{
	if (err)
		*err = p->why;
	return p->failed;
}

/* -- waiting ------------------------------------------------------------------------------------------------------ */

void ow_postgres_be_patient(struct ow_postgres *p, int seconds)
{
	p->patience_ms = seconds * 1000;
}

/* Waits for the socket, and takes what has come. false: for too long, or the connection is lost. */
static bool await(struct ow_postgres *p, short events)
{
	struct pollfd socket = {.fd = ow_pq.PQsocket(p->connection), .events = events};
	int ready;
	do
		ready = poll(&socket, 1, p->patience_ms);
	while (ready < 0 && errno == EINTR);
	p->is_silent = ready == 0;
	return ready > 0 && ow_pq.PQconsumeInput(p->connection);
}

PGresult *ow_postgres_next(struct ow_postgres *p)
{
	while (!p->is_silent && ow_pq.PQisBusy(p->connection)) {
		if (!await(p, POLLIN))
			break;
	}
	/* Of a lost connection it is the error. */
	return p->is_silent ? NULL : ow_pq.PQgetResult(p->connection);
}

int ow_postgres_flush(struct ow_postgres *p)
{
	int left;
	while ((left = ow_pq.PQflush(p->connection)) > 0 && await(p, POLLIN | POLLOUT))
		;
	return left == 0 ? 0 : ow_postgres_note(p, NULL);
}

/* Of a command, each row is one. */
#define RESULTS_MAX 1000

PGresult *ow_postgres_exec(struct ow_postgres *p, const char *sql)
{
	PGresult *last = NULL, *result;
	unsigned results = 0;
	ow_postgres_end_active(p);
	if (p->is_silent || !ow_pq.PQsendQuery(p->connection, sql) || ow_postgres_flush(p) < 0)
		return NULL;
	/* Nobody needs the rows of a command: libpq shall not gather those of a server that sends them without an end. */
	ow_pq.PQsetSingleRowMode(p->connection);
	while ((result = ow_postgres_next(p))) {
		ow_pq.PQclear(last);
		last = result;
		p->is_silent = ++results > RESULTS_MAX;
		if (p->is_silent)
			break;
		if (ow_pq.PQresultStatus(result) == PGRES_COPY_IN)
			break;
	}
	if (p->is_silent) {
		ow_pq.PQclear(last);
		last = NULL;
	}
	return last;
}

/* -- the statement that runs -------------------------------------------------------------------------------------- */

/* Rows that are read and thrown away rather than cancelled: a cancellation takes another connection. */
#define LEFT_MAX 1000

/* Reads at most so many of the results that are left. Returns whether all are read. */
static bool drain(struct ow_postgres *p, int most)
{
	for (int i = 0; i < most; i++) {
		PGresult *result = ow_postgres_next(p);
		if (!result) {
			p->active = NULL;
			return true;
		}
		ow_pq.PQclear(result);
	}
	return false;
}

void ow_postgres_end_active(struct ow_postgres *p)
{
	char text[256];
	if (!p->active)
		return;
	ow_pq.PQclear(p->row);
	p->row = NULL;
	if (drain(p, LEFT_MAX))
		return;
	PGcancel *cancel = ow_pq.PQgetCancel(p->connection);
	if (cancel)
		ow_pq.PQcancel(cancel, text, sizeof text);
	ow_pq.PQfreeCancel(cancel);
	drain(p, INT_MAX);
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

bool ow_postgres_is_url(const char *name)
{
	return strncmp(name, "postgresql://", 13) == 0 || strncmp(name, "postgres://", 11) == 0;
}

/* Messages and logs never have the password, or options that may contain one. */
static void find_name(struct ow_postgres *p)
{
	const char *host = ow_pq.PQhost(p->connection), *port = ow_pq.PQport(p->connection),
		   *database = ow_pq.PQdb(p->connection);
	snprintf(p->name, sizeof p->name, "postgresql://%.80s%s%.10s/%.80s", host ? host : "", port && *port ? ":" : "",
	         port ? port : "", database ? database : "");
	ow_utf8_clean(p->name);
}

/* libpq's message about a URL that it cannot read quotes the URL, and with it a password. */
static int check_url(const char *url, struct ow_error *err)
{
	char *message = NULL;
	PQconninfoOption *options = ow_pq.PQconninfoParse(url, &message);
	bool readable = options != NULL;
	ow_pq.PQconninfoFree(options);
	ow_pq.PQfreemem(message);
	return readable ? 0
	                : ow_error_set(
				  err, EINVAL,
				  "not a URL that libpq can read: postgresql://USER@HOST:PORT/DATABASE?OPTION=VALUE "
				  "(special characters as %%XX)");
}

/* Where libpq finds the name of a file: in an option of the URL, in the environment, or in the user's home. */
static const struct {
	const char *option, *variable, *home;
} named_files[OW_POSTGRES_FILES] = {
	{"passfile", "PGPASSFILE", ".pgpass"},
	{"sslcert", "PGSSLCERT", ".postgresql/postgresql.crt"},
	{"sslkey", "PGSSLKEY", ".postgresql/postgresql.key"},
	{"sslrootcert", "PGSSLROOTCERT", ".postgresql/root.crt"},
	{"sslcrl", "PGSSLCRL", ".postgresql/root.crl"},
	{"", "PGSERVICEFILE", ".pg_service.conf"},
};

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
	for (const PQconninfoOption *o = options; o && o->keyword; o++) {
		if (strcmp(o->keyword, keyword) == 0)
			return o->val;
	}
	return NULL;
}

int ow_postgres_files(const char *url, struct ow_postgres_files *ret_files, struct ow_error *err)
{
	int r = ow_libpq_load(err);
	if (r < 0 || (r = check_url(url, err)) < 0)
		return r;
	PQconninfoOption *options = ow_pq.PQconninfoParse(url, NULL);
	const char *home = getenv("HOME");
	for (unsigned i = 0; i < OW_POSTGRES_FILES; i++) {
		const char *path = value_of(options, named_files[i].option);
		char *to = ret_files->path[i];
		if (!path)
			path = getenv(named_files[i].variable);
		if (path)
			snprintf(to, sizeof ret_files->path[i], "%s", path);
		else
			snprintf(to, sizeof ret_files->path[i], "%s/%s", home ? home : "", named_files[i].home);
	}
	ow_pq.PQconninfoFree(options);
	return 0;
}

static void ignore_notice(void *arg, const PGresult *result)
{
	(void)arg;
	(void)result;
}

static int settle(struct ow_postgres *p, struct ow_error *err)
{
	find_name(p);
	if (ow_pq.PQstatus(p->connection) != CONNECTION_OK) {
		ow_postgres_note(p, NULL);
		return ow_postgres_fail(p, err);
	}
	ow_pq.PQsetNoticeReceiver(p->connection, ignore_notice, NULL);
	ow_pq.PQsetnonblocking(p->connection, 1);
	/* Names of ours are not looked up in the schemas of others. To compile our statements takes longer than to run
	 * them. */
	return ow_postgres_run(p, "SET search_path = public, pg_temp; SET jit = off", err);
}

int ow_postgres_open(const char *url, struct ow_postgres **ret_postgres, struct ow_error *err)
{
	/* What comes later wins: the URL may say otherwise, except for the encoding. A silent server is given up. */
	static const char *const keys[] = {"connect_timeout",  "keepalives_idle",  "keepalives_interval",
	                                   "keepalives_count", "tcp_user_timeout", "fallback_application_name",
	                                   "dbname",           "client_encoding",  NULL};
	const char *values[] = {OW_POSTGRES_CONNECT_S, "10", "5", "3", "30000", "oneway", url, "UTF8", NULL};
	int r = ow_libpq_load(err);
	if (r < 0 || (r = check_url(url, err)) < 0)
		return r;
	struct ow_postgres *p = calloc(1, sizeof *p);
	if (p)
		p->patience_ms = -1;
	if (p)
		p->connection = ow_pq.PQconnectdbParams(keys, values, 1);
	if (!p || !p->connection) {
		free(p);
		return ow_error_set(err, ENOMEM, "out of memory for a connection to PostgreSQL");
	}
	r = settle(p, err);
	if (r < 0)
		ow_postgres_close(p);
	else
		*ret_postgres = p;
	return r;
}

int ow_postgres_revive(struct ow_postgres *p, struct ow_error *err)
{
	if (ow_postgres_is_connected(p))
		return 0;
	ow_pq.PQreset(p->connection);
	p->is_silent = false;
	return settle(p, err);
}

void ow_postgres_close(struct ow_postgres *p)
{
	if (!p)
		return;
	ow_postgres_end_active(p);
	ow_pq.PQfinish(p->connection);
	free(p);
}

const char *ow_postgres_name(const struct ow_postgres *p)
{
	return p->name;
}

bool ow_postgres_is_connected(const struct ow_postgres *p)
{
	return !p->is_silent && ow_pq.PQstatus(p->connection) == CONNECTION_OK;
}

/* -- statements without rows -------------------------------------------------------------------------------------- */

bool ow_postgres_in_transaction(const struct ow_postgres *p)
{
	PGTransactionStatusType status = ow_pq.PQtransactionStatus(p->connection);
	return ow_postgres_is_connected(p) && (status == PQTRANS_INTRANS || status == PQTRANS_INERROR);
}

int ow_postgres_change(struct ow_postgres *p, const char *sql, uint64_t *ret_rows, struct ow_error *err)
{
	PGresult *result = ow_postgres_exec(p, sql);
	ExecStatusType status = ow_pq.PQresultStatus(result);
	int r = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : ow_postgres_note(p, result);
	if (r == 0)
		*ret_rows = strtoull(ow_pq.PQcmdTuples(result), NULL, 10);
	ow_pq.PQclear(result);
	return r < 0 ? ow_postgres_fail(p, err) : 0;
}

int ow_postgres_run(struct ow_postgres *p, const char *sql, struct ow_error *err)
{
	uint64_t rows;
	return ow_postgres_change(p, sql, &rows, err);
}
