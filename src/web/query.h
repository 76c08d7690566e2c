/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a request asks for: "/api/v1/series?segment=wan&width=800". The text is anybody's. A query is refused if it is too
 * long, has too many parameters or one twice, or if its escapes are wrong or are characters that control something.
 */
#define OW_QUERY_BYTES      4096
#define OW_QUERY_PARAMETERS 16

struct ow_query {
	char text[OW_QUERY_BYTES]; /* what the pointers point to */
	const char *path;
	struct ow_query_parameter {
		const char *name, *value;
	} parameter[OW_QUERY_PARAMETERS];
	size_t count;
};

/* -E2BIG: too long; -EINVAL. */
int ow_query_parse(const char *url, struct ow_query *ret_query, struct ow_error *err);
/* NULL: it was not given. */
const char *ow_query_get(const struct ow_query *query, const char *name);
/* Refuses parameters that are not in the list, "segment class from": an error of writing must not change the answer. */
int ow_query_allow(const struct ow_query *query, const char *names, struct ow_error *err);
/* *ret_number stays as it is if it was not given. */
int ow_query_number(const struct ow_query *query, const char *name, int64_t least, int64_t most, int64_t *ret_number,
                    struct ow_error *err);
/* A time: NAME_ns as an integer, or NAME in words as base/when.h has them. Stays as it is if neither was given. */
int ow_query_time(const struct ow_query *query, const char *name, int64_t now_ns, int64_t *ret_ns,
                  struct ow_error *err);
