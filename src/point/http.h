/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>

/*
 * A small web server for a few pages that are made on request (libmicrohttpd). It has its own thread and supports only
 * GET and HEAD, one request per connection. A client that is slow or sends too much loses its connection; others are
 * not affected.
 */
#define OW_HTTP_CONNECTIONS   16   /* beyond these the oldest one is closed */
#define OW_HTTP_SILENT_S      10   /* a connection that is silent for this long is closed */
#define OW_HTTP_REQUEST_BYTES 8192 /* of a request with its headers, approximately */

struct ow_http_page {
	unsigned status;
	const char *type;
	char *body; /* from malloc; the server frees it */
	size_t size;
};

struct ow_http_options {
	const char *address; /* "host:port" */
	/* Called by the server's thread. accept: the header, NULL = none. -ENOENT: there is no such page. */
	int (*page)(void *arg, const char *path, const char *accept, struct ow_http_page *ret_page);
	void *arg;
};

struct ow_http;

/* Listens; clients wait until it has started. */
int ow_http_create(const struct ow_http_options *options, struct ow_http **ret_http, struct ow_error *err);
/* Starts its thread. Needs neither files nor name lookups, so that a confined process can call it. */
int ow_http_start(struct ow_http *http, struct ow_error *err);
/* After the return, no page is being made. */
void ow_http_free(struct ow_http *http);
/* The address, "127.0.0.1:9620": the port may have been 0. */
const char *ow_http_address(const struct ow_http *http);
