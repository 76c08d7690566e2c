/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/api.h"

/*
 * The web server: the page and the interface behind it, over HTTP/1.1 (libmicrohttpd, a thread for each connection). Only
 * GET and HEAD. On an address of this host alone anybody may ask; on others TLS, and a token or a certificate, are required.
 */
#define OW_WEB_CONNECTIONS     512 /* at once */
#define OW_WEB_BY_ADDRESS      64  /* of one address, unless it is this host */
#define OW_WEB_HEADER_BYTES    16384
#define OW_WEB_REQUEST_S       20  /* a connection without a complete request for so long is closed */
#define OW_WEB_ANSWER_S        120 /* one that has not taken its answer by then as well */
#define OW_WEB_RATE            100 /* requests a second by address, and bursts of four seconds of it */
#define OW_WEB_RATE_LOOPBACK   2000
#define OW_WEB_TOKEN_BYTES_MIN 16

struct ow_web_options {
	const char *address;                       /* "host:port" */
	const char *page;                          /* for tests: a folder to serve instead of the embedded files */
	const char *token;                         /* NULL: none */
	const char *certificate, *key, *client_ca; /* texts in PEM; NULL: none */
	unsigned rate;                             /* 0: as above */
};

struct ow_web;

/* Listens; clients wait until it has started. -EPERM: such an address needs more. The strings stay the caller's. */
int ow_web_create(const struct ow_web_options *options, struct ow_web **ret_web, struct ow_error *err);
/* Starts its threads: in the sandbox. What it answers comes from the api, which stays the caller's. */
int ow_web_start(struct ow_web *web, struct ow_api *api, struct ow_error *err);
/* To be called about once a second: closes connections of clients that are too slow. */
void ow_web_tick(struct ow_web *web);
void ow_web_free(struct ow_web *web);
/* "http://127.0.0.1:8080/": the port may have been 0. */
const char *ow_web_url(const struct ow_web *web);
