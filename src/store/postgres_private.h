/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/libpq.h"
#include "store/postgres.h"

/* Private to the files postgres*.c. */
struct ow_postgres {
	PGconn *connection;
	char name[200];
	struct ow_postgres_query *active; /* the statement whose rows have not all been read */
	PGresult *row;                    /* of it: the last one */
	int patience_ms;                  /* -1: waits for ever */
	bool is_silent;                   /* it did not answer in time: the connection is given up */
	int failed;                       /* negative errno of the last failure, and its text */
	struct ow_error why;
};

/* Notes the failure of a result or, if it is NULL, of the connection. Returns a negative errno. */
int ow_postgres_note(struct ow_postgres *postgres, const PGresult *result);
int ow_postgres_note_memory(struct ow_postgres *postgres);
/* The next result of the server; NULL if there is none, or if it does not answer in time (see is_silent). */
PGresult *ow_postgres_next(struct ow_postgres *postgres);
/* Sends what waits to be sent. 0 or a negative errno. */
int ow_postgres_flush(struct ow_postgres *postgres);
/* Runs statements. The last result, or the first that is an error or a COPY; NULL: see ow_postgres_note. */
PGresult *ow_postgres_exec(struct ow_postgres *postgres, const char *sql);
/* Ends the statement whose rows are being read, if there is one. */
void ow_postgres_end_active(struct ow_postgres *postgres);
