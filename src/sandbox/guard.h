/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sandbox/confine.h"

/*
 * Gives up the privileges of a capturing command when its sockets are open and its threads have not started: drops the
 * capabilities and enters the sandbox. In the sandbox it can read the folders of some files (to read them again) and
 * write those of its store and of its recordings.
 */
#define OW_GUARD_READ  64 /* captures that are followed, of both points */
#define OW_GUARD_FILE  10 /* certificates and key of a client, and what libpq reads */
#define OW_GUARD_WRITE 18 /* a store, the state of a fleet, recordings of flows and copies of those of peers */
struct ow_guard {
	enum ow_sandbox sandbox;
	const char *read[OW_GUARD_READ];   /* files; NULLs are skipped */
	const char *write[OW_GUARD_WRITE]; /* the same for writing */
	const char *file[OW_GUARD_FILE];   /* files that can be read, without their folders */
	bool database;                     /* a client of PostgreSQL, see ow_confine_options */
};

/* ret_text: what is in force, see ow_confine. */
int ow_guard_close(const struct ow_guard *guard, char ret_text[OW_CONFINE_TEXT], bool *ret_whole, struct ow_error *err);
