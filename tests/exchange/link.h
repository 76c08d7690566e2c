/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* A folder with keys: a CA with london, paris and rome; another CA with london; two pre-shared keys. */
struct keys {
	char folder[64];
};
void keys_make(struct keys *keys);
void keys_remove(struct keys *keys);
/* "PATH/NAME"; valid until the 64th call from now. */
const char *keys_path(const struct keys *keys, const char *name);
/* ca: "ca" or "other/ca"; name: "london", "other/london". */
struct ow_tls *keys_tls(const struct keys *keys, const char *name, const char *ca);
struct ow_tls *keys_psk(const struct keys *keys, const char *file, const char *name);

/* Two sessions and how they ended. */
struct link {
	struct ow_session *session[2]; /* 0 connects, 1 listens */
	int code[2];
	struct ow_error err[2];
};
enum { CLIENT, SERVER };

void socket_pair(int fds[2]);
void link_make(struct link *link, struct ow_tls *client, const char *client_expects, struct ow_tls *server,
               const char *server_expects);
void link_free(struct link *link);
/* Drives what poll says; true until both have ended or nothing happens for a second. */
bool link_step(struct link *link);
/* Until both know each other or one has ended. */
void link_shake(struct link *link);
/* The same, and both must. */
void link_open(struct link *link);
/* Until both have ended. */
void link_end(struct link *link);
/* Drives both until `to` has a frame; NULL if it cannot. */
const uint8_t *link_frame(struct link *link, int to, size_t *ret_size);
