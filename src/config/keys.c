/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values according to a table of keys: config/keys.h. */
#include "config/keys.h"

#include "base/size.h"
#include "base/time.h"
#include "base/word.h"
#include "exchange/session.h"
#include "result/interval_result.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_MAX 256
#define FILTER_MAX  1024

int ow_key_fail(struct ow_key_reader *r, const struct ow_yaml *node, const char *why)
{
	return ow_error_set(r->err, EINVAL, "%s:%u: %s%s: %.300s", r->path, node->line, node->key ? node->key : "entry",
	                    r->where, why);
}

int ow_key_no_memory(struct ow_key_reader *r)
{
	return ow_error_set(r->err, ENOMEM, "%s: not enough memory", r->path);
}

int ow_key_check_text(struct ow_key_reader *r, const struct ow_yaml *node)
{
	if (node->kind != OW_YAML_TEXT)
		return ow_key_fail(r, node, "must be a single value");
	return *node->text ? 0 : ow_key_fail(r, node, "is empty");
}

/* -- values by type ------------------------------------------------------------------------------------------------ */

int ow_name_check(const char *name, struct ow_error *err)
{
	if (strlen(name) >= OW_RESULT_NAME)
		return ow_error_set(err, EINVAL, "'%.20s...' is longer than %d characters", name, OW_RESULT_NAME - 1);
	for (const char *c = name; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f || *c == '/')
			return ow_error_set(err, EINVAL,
			                    "'%.60s' has a space, a slash or a character that is not printable ASCII",
			                    name);
	}
	return *name ? 0 : ow_error_set(err, EINVAL, "is empty");
}

/* host:port, [v6]:port, :port */
static int check_address(const struct ow_key *key, const char *text, struct ow_error *why)
{
	const char *colon = strrchr(text, ':');
	if (!colon || strlen(text) > ADDRESS_MAX)
		return ow_error_set(
			why, EINVAL,
			"is not an address (examples: 192.0.2.7:8620, point.example:8620, [2001:db8::7]:8620)");
	if (*text == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t)(colon - text)) != NULL)
		return ow_error_set(why, EINVAL, "is ambiguous: write [address]:port for IPv6");
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || port > 65535)
		return ow_error_set(why, EINVAL, "has no port in 0 .. 65535");
	if (key->type == OW_KEY_HOST && *text == ':')
		return ow_error_set(why, EINVAL,
		                    "names no host (127.0.0.1:9620, or 0.0.0.0:9620 and [::]:9620 for everybody)");
	if (key->type == OW_KEY_PEER && *text == ':')
		return ow_error_set(why, EINVAL, "names no host");
	if (key->type == OW_KEY_PEER && port == 0)
		return ow_error_set(why, EINVAL, "has port 0");
	return 0;
}

static int check_text(const struct ow_key *key, const char *text, struct ow_error *why)
{
	switch (key->type) {
	case OW_KEY_NAME:
		return ow_name_check(text, why);
	case OW_KEY_POINT: /* names of points are also in certificates */
		return ow_point_name_valid(text)
		               ? 0
		               : ow_error_set(why, EINVAL,
		                              "a point's name has 1 to 63 letters, digits, '.', '_' and '-'");
	case OW_KEY_FILTER:
		return strlen(text) <= FILTER_MAX ? 0 : ow_error_set(why, EINVAL, "is too long for a filter");
	case OW_KEY_ADDRESS:
	case OW_KEY_HOST:
	case OW_KEY_PEER:
		return check_address(key, text, why);
	default:
		return 0;
	}
}

static int set_bool(const char *text, bool *field, struct ow_error *why)
{
	*field = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0;
	if (!*field && strcmp(text, "false") != 0 && strcmp(text, "no") != 0)
		return ow_error_set(why, EINVAL, "is not true or false");
	return 0;
}

static int set_count(const struct ow_key *key, const char *text, uint64_t *field, struct ow_error *why)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < key->least || value > key->most)
		return ow_error_set(why, EINVAL, "'%.40s' is not a number in %llu .. %llu", text,
		                    (unsigned long long)key->least, (unsigned long long)key->most);
	*field = value;
	return 0;
}

static int set_size(const struct ow_key *key, const char *text, uint64_t *field, struct ow_error *why)
{
	int r = ow_size_parse(text, field, why);
	if (r == 0 && (*field < key->least || *field > key->most))
		r = ow_error_set(why, EINVAL, "'%.40s' is not in %juMiB .. %juMiB", text, (uintmax_t)(key->least >> 20),
		                 (uintmax_t)(key->most >> 20));
	return r;
}

static int set_duration(const struct ow_key *key, const char *text, int64_t *field, struct ow_error *why)
{
	int64_t ns;
	int r = ow_duration_parse(text, &ns, why);
	if (r == 0 && (ns < 0 || (uint64_t)ns < key->least || (uint64_t)ns > key->most)) {
		char low[OW_DURATION_TEXT], high[OW_DURATION_TEXT];
		ow_duration_text((double)key->least, low);
		ow_duration_text((double)key->most, high);
		return ow_error_set(why, EINVAL, "'%.40s' is not in %s .. %s", text, low, high);
	}
	if (r == 0)
		*field = ns;
	return r;
}

static int set_real(const struct ow_key *key, const char *text, double *field, struct ow_error *why)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value > 0 && value <= (double)key->most))
		return ow_error_set(why, EINVAL, "'%.40s' is not a number above 0, up to %llu", text,
		                    (unsigned long long)key->most);
	*field = value;
	return 0;
}

static int set_share(const char *text, double *field, struct ow_error *why)
{
	char *end;
	double share = strtod(text, &end);
	if (end != text && strcmp(end, "%") == 0) {
		share /= 100;
		end++;
	}
	if (end == text || *end || !(share >= 0 && share <= 1))
		return ow_error_set(why, EINVAL, "'%.40s' is not a share, like 0.1%% or 0.001", text);
	*field = share;
	return 0;
}

static int set_choice(const struct ow_key *key, const char *text, int *field, struct ow_error *why)
{
	char list[80] = "";
	for (const struct ow_choice *c = key->choices; c->name; c++) {
		if (strcmp(text, c->name) == 0) {
			*field = c->value;
			return 0;
		}
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s", !used ? "" : c[1].name ? ", " : " or ", c->name);
	}
	return ow_error_set(why, EINVAL, "'%.40s' is not %s", text, list);
}

int ow_key_set(const struct ow_key *key, const char *text, void *field, struct ow_error *why)
{
	if (key->or_zero && strcmp(text, "0") == 0) {
		memset(field, 0, sizeof(uint64_t));
		return 0;
	}
	switch (key->type) {
	case OW_KEY_BOOL:
		return set_bool(text, field, why);
	case OW_KEY_COUNT:
		return set_count(key, text, field, why);
	case OW_KEY_SIZE:
		return set_size(key, text, field, why);
	case OW_KEY_DURATION:
		return set_duration(key, text, field, why);
	case OW_KEY_REAL:
		return set_real(key, text, field, why);
	case OW_KEY_SHARE:
		return set_share(text, field, why);
	case OW_KEY_CHOICE:
		return set_choice(key, text, field, why);
	default:
		*(const char **)field = text;
		return check_text(key, text, why);
	}
}

/* -- mappings and lists -------------------------------------------------------------------------------------------- */

/* A relative path starts at the folder of the file. The tree owns the text. */
static int resolve(struct ow_key_reader *r, struct ow_yaml *node, const char **field)
{
	const char *slash = strrchr(r->path, '/');
	char *path;
	if (*node->text == '/' || !slash)
		return 0;
	if (asprintf(&path, "%.*s/%s", (int)(slash - r->path), r->path, node->text) < 0)
		return ow_key_no_memory(r);
	free(node->text);
	*field = node->text = path;
	return 0;
}

int ow_key_read_value(struct ow_key_reader *r, const struct ow_key *key, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	if (key->type == OW_KEY_OTHER)
		return key->read(r, node, field);
	int code = ow_key_check_text(r, node);
	if (code == 0 && ow_key_set(key, node->text, field, &why) < 0)
		code = ow_key_fail(r, node, why.text);
	if (code == 0 && key->type == OW_KEY_PATH)
		code = resolve(r, node, field);
	return code;
}

const struct ow_key *ow_key_find(const struct ow_key *table, const char *name)
{
	for (; table->name; table++) {
		if (strcmp(table->name, name) == 0)
			return table;
	}
	return NULL;
}

static int unknown_key(struct ow_key_reader *r, const struct ow_key *table, const struct ow_yaml *node)
{
	struct ow_word_guess guess = {.written = node->key};
	char in[sizeof r->where + 2] = "";
	for (; table->name; table++)
		ow_word_offer(&guess, table->name);
	if (*r->where)
		snprintf(in, sizeof in, " in%s", r->where + strlen(" of"));
	return ow_error_set(r->err, EINVAL, "%s:%u: unknown key '%.60s'%s%s%s%s", r->path, node->line, node->key, in,
	                    guess.best ? ", did you mean '" : "", guess.best ? guess.best : "", guess.best ? "'?" : "");
}

void ow_key_default(const struct ow_key *table, const char *name, void *field)
{
	const struct ow_key *key = ow_key_find(table, name);
	struct ow_error why;
	assert(key && key->fallback);
	int r = ow_key_set(key, key->fallback, field, &why);
	assert(r == 0);
	(void)r;
}

static void set_defaults(const struct ow_key *table, void *target)
{
	for (const struct ow_key *key = table; key->name; key++) {
		if (key->fallback && key->type != OW_KEY_OTHER)
			ow_key_default(table, key->name, (char *)target + key->offset);
	}
}

int ow_keys_read(struct ow_key_reader *r, struct ow_yaml *mapping, const struct ow_key *table, void *target,
                 unsigned *ret_stated)
{
	if (mapping->kind != OW_YAML_MAPPING)
		return ow_key_fail(r, mapping, "must be keys with values");
	set_defaults(table, target);
	for (struct ow_yaml *node = mapping->first; node; node = node->next) {
		const struct ow_key *key = ow_key_find(table, node->key);
		if (!key)
			return unknown_key(r, table, node);
		int code = ow_key_read_value(r, key, node, (char *)target + key->offset);
		if (code < 0)
			return code;
		if (ret_stated)
			*ret_stated |= key->bit;
	}
	for (; table->name; table++) {
		if (table->needed && !ow_yaml_entry(mapping, table->name))
			return ow_error_set(r->err, EINVAL, "%s:%u: '%s'%s is missing", r->path, mapping->line,
			                    table->name, r->where);
	}
	return 0;
}

int ow_keys_read_list(struct ow_key_reader *r, const struct ow_yaml *node, unsigned max, size_t size, void **ret_items,
                      unsigned *ret_count, ow_key_read *read)
{
	if (node->kind != OW_YAML_SEQUENCE || node->count == 0)
		return ow_key_fail(r, node, "must be a list of at least one entry");
	if (node->count > max)
		return ow_key_fail(r, node, "has too many entries");
	*ret_items = calloc(node->count, size);
	if (!*ret_items)
		return ow_key_no_memory(r);
	char outer[sizeof r->where];
	memcpy(outer, r->where, sizeof outer);
	for (struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		r->number = *ret_count + 1;
		int code = read(r, entry, (char *)*ret_items + (*ret_count)++ * size);
		if (code < 0)
			return code;
		memcpy(r->where, outer, sizeof outer);
	}
	return 0;
}

void ow_keys_enter(struct ow_key_reader *r, const char *kind, const struct ow_yaml *entry, const char *key)
{
	const struct ow_yaml *name = entry->kind == OW_YAML_MAPPING ? ow_yaml_entry(entry, key) : NULL;
	if (name && name->kind == OW_YAML_TEXT)
		snprintf(r->where, sizeof r->where, " of %s '%.60s'", kind, name->text);
	else
		snprintf(r->where, sizeof r->where, " of %s %u", kind, r->number);
}
