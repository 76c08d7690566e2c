/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sandbox/guard.h"
#include "exchange/session.h"
#include "active/stamp.h"

/* Declarations that `oneway plane probe` and `oneway plane reflect` have in common. */

struct ow_stamp_secret {
	uint8_t bytes[OW_PSK_MAX];
	struct ow_stamp_key key; /* size 0: no key */
};
/* path NULL: no key. */
int ow_stamp_secret_load(struct ow_stamp_secret *secret, const char *path, struct ow_error *err);
const struct ow_stamp_key *ow_stamp_secret_key(const struct ow_stamp_secret *secret);
void ow_stamp_secret_forget(struct ow_stamp_secret *secret);

/* A descriptor that becomes readable on SIGINT and SIGTERM. SIGPIPE is ignored: it becomes an error of writing. */
int ow_stamp_signals(struct ow_error *err);
/* Drops all privileges. Reports which parts of the sandbox the kernel does not support. */
int ow_stamp_confine(const char *command, const struct ow_guard *guard, struct ow_error *err);
