/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sends documents to an HTTP/1.1 server, one connection each. */

#define OW_HTTP_HOST 256
#define OW_HTTP_PATH 1024

struct ow_http_url {
	bool tls;
	char host[OW_HTTP_HOST]; /* a name or an address, without brackets */
	char port[6];
	char path[OW_HTTP_PATH]; /* from the first '/' on; "" if there is none */
};

/* http://HOST[:PORT][/PATH] or https://...; IPv6 addresses in brackets. */
int ow_http_url_parse(const char *text, struct ow_http_url *ret_url, struct ow_error *err);

/*
 * POSTs a JSON document to url->path followed by `path`, and waits for the answer; at most timeout_ns for all of it. ca:
 * a file of certificates that the server's must follow from; NULL = those of this host. 0 if the answer is 2xx; -EBADMSG
 * for other answers, with the first line of what the server says; other negative errnos.
 */
int ow_http_post(const struct ow_http_url *url, const char *path, const char *ca, const char *json, size_t length,
                 int64_t timeout_ns, struct ow_error *err);
