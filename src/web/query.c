/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the target of a request: path, parameters, percent escapes (RFC 3986). */
#include "web/query.h"

#include "base/when.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* Decodes the text in its place. plus: a '+' is a space. */
static int decode(char *text, bool plus, struct ow_error *err)
{
	char *out = text;
	for (const char *in = text; *in; in++) {
		int value = (unsigned char)*in;
		if (value == '%') {
			int high = hex(in[1]), low = high < 0 ? -1 : hex(in[2]);
			if (low < 0)
				return ow_error_set(err, EINVAL, "%% without two hexadecimal digits");
			value = high * 16 + low;
			in += 2;
		} else if (plus && value == '+') {
			value = ' ';
		}
		if (value < 0x20 || value == 0x7f)
			return ow_error_set(err, EINVAL, "control characters are not allowed");
		*out++ = (char)value;
	}
	*out = 0;
	return 0;
}

static int add_parameter(struct ow_query *query, char *name, struct ow_error *err)
{
	static char none[] = "";
	char *value = strchr(name, '=');
	if (query->count == OW_QUERY_PARAMETERS)
		return ow_error_set(err, EINVAL, "more than %d parameters", OW_QUERY_PARAMETERS);
	if (value)
		*value++ = 0;
	int r = decode(name, true, err);
	if (r == 0 && value)
		r = decode(value, true, err);
	if (r < 0)
		return r;
	if (ow_query_get(query, name))
		return ow_error_set(err, EINVAL, "parameter '%.60s' is given twice", name);
	query->parameter[query->count++] = (struct ow_query_parameter){name, value ? value : none};
	return 0;
}

int ow_query_parse(const char *url, struct ow_query *ret_query, struct ow_error *err)
{
	struct ow_query *query = ret_query;
	size_t length = strlen(url);
	query->count = 0;
	query->path = query->text;
	if (length >= sizeof query->text)
		return ow_error_set(err, E2BIG, "the address is longer than %d bytes", OW_QUERY_BYTES - 1);
	memcpy(query->text, url, length + 1);
	char *next = strchr(query->text, '?');
	if (next)
		*next++ = 0;
	int r = *url == '/' ? decode(query->text, false, err) : ow_error_set(err, EINVAL, "a path begins with /");
	while (r == 0 && next) {
		char *parameter = strsep(&next, "&");
		r = *parameter ? add_parameter(query, parameter, err) : 0;
	}
	return r;
}

const char *ow_query_get(const struct ow_query *query, const char *name)
{
	for (size_t i = 0; i < query->count; i++) {
		if (strcmp(query->parameter[i].name, name) == 0)
			return query->parameter[i].value;
	}
	return NULL;
}

/* Whether a list of words has this one. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; length && (at = strstr(at, word)); at += length) {
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	}
	return false;
}

int ow_query_allow(const struct ow_query *query, const char *names, struct ow_error *err)
{
	for (size_t i = 0; i < query->count; i++) {
		const char *name = query->parameter[i].name;
		if (strchr(name, ' ') || !has_word(names, name))
			return ow_error_set(err, EINVAL, "no parameter '%.60s' here; there is: %.300s", name,
			                    *names ? names : "none");
	}
	return 0;
}

static int read_number(const char *name, const char *text, int64_t *ret_number, struct ow_error *err)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || !*text || *end || *text == ' ' || *text == '+')
		return ow_error_set(err, EINVAL, "%s: '%.40s' is not an integer", name, text);
	*ret_number = value;
	return 0;
}

int ow_query_number(const struct ow_query *query, const char *name, int64_t least, int64_t most, int64_t *ret_number,
                    struct ow_error *err)
{
	const char *text = ow_query_get(query, name);
	int64_t number = 0;
	if (!text)
		return 0;
	int r = read_number(name, text, &number, err);
	if (r < 0)
		return r;
	if (number < least || number > most)
		return ow_error_set(err, EINVAL, "%s: %" PRId64 " is not between %" PRId64 " and %" PRId64, name,
		                    number, least, most);
	*ret_number = number;
	return 0;
}

int ow_query_time(const struct ow_query *query, const char *name, int64_t now_ns, int64_t *ret_ns, struct ow_error *err)
{
	char integer[32];
	snprintf(integer, sizeof integer, "%s_ns", name);
	const char *words = ow_query_get(query, name), *number = ow_query_get(query, integer);
	if (words && number)
		return ow_error_set(err, EINVAL, "%s and %s exclude each other", name, integer);
	struct ow_error why;
	if (words && ow_when_parse(words, now_ns, ret_ns, &why) < 0)
		return ow_error_set(err, EINVAL, "%s: %.300s", name, why.text);
	return number ? read_number(integer, number, ret_ns, err) : 0;
}
