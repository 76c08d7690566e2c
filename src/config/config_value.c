/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of a configuration: texts, addresses, sizes, durations and words, each with its limits. */
#include "config/config_value.h"

#include "base/size.h"
#include "base/time.h"
#include "base/word.h"
#include "exchange/session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ow_config_fail(struct ow_config_reader *r, const struct ow_yaml *node, const char *why)
{
	return ow_error_set(r->err, EINVAL, "%s:%u: %s%s: %.300s", r->config->path, node->line,
	                    node->key ? node->key : "entry", r->where, why);
}

int ow_config_no_memory(struct ow_config_reader *r)
{
	return ow_error_set(r->err, ENOMEM, "%s: not enough memory", r->config->path);
}

static int unknown_key(struct ow_config_reader *r, const struct ow_config_field *table, const struct ow_yaml *node)
{
	struct ow_word_guess guess = {.written = node->key};
	char in[sizeof r->where + 2] = "";
	for (; table->name; table++)
		ow_word_offer(&guess, table->name);
	if (*r->where)
		snprintf(in, sizeof in, " in%s", r->where + strlen(" of"));
	return ow_error_set(r->err, EINVAL, "%s:%u: unknown key '%.60s'%s%s%s%s", r->config->path, node->line,
	                    node->key, in, guess.best ? ", did you mean '" : "", guess.best ? guess.best : "",
	                    guess.best ? "'?" : "");
}

int ow_config_read_mapping(struct ow_config_reader *r, struct ow_yaml *mapping, const struct ow_config_field *table,
                           void *target, unsigned *ret_stated)
{
	if (mapping->kind != OW_YAML_MAPPING)
		return ow_config_fail(r, mapping, "must be keys with values");
	for (struct ow_yaml *node = mapping->first; node; node = node->next) {
		const struct ow_config_field *f = table;
		while (f->name && strcmp(f->name, node->key) != 0)
			f++;
		if (!f->name)
			return unknown_key(r, table, node);
		int code = f->read(r, node, (char *)target + f->offset);
		if (code < 0)
			return code;
		if (ret_stated)
			*ret_stated |= f->stated;
	}
	return 0;
}

int ow_config_check_text(struct ow_config_reader *r, const struct ow_yaml *node)
{
	if (node->kind != OW_YAML_TEXT)
		return ow_config_fail(r, node, "must be a single value");
	return *node->text ? 0 : ow_config_fail(r, node, "is empty");
}

int ow_config_read_text(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_check_text(r, node);
	if (code == 0)
		*(const char **)field = node->text;
	return code;
}

int ow_config_read_name(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = ow_config_read_text(r, node, field);
	if (code == 0 && ow_name_check(node->text, &why) < 0)
		code = ow_config_fail(r, node, why.text);
	return code;
}

/* Names of points stand in certificates, too. */
int ow_config_read_peer(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_text(r, node, field);
	if (code == 0 && !ow_point_name_valid(node->text))
		code = ow_config_fail(r, node, "a point's name has 1 to 63 letters, digits, '.', '_' and '-'");
	return code;
}

int ow_config_read_point(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	const char *name;
	int code = ow_config_read_peer(r, node, &name);
	if (code == 0)
		snprintf(field, OW_RESULT_NAME, "%s", node->text);
	return code;
}

/* A path; if it is relative, then to the folder of the configuration. */
int ow_config_read_path(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_text(r, node, field);
	const char *slash = strrchr(r->config->path, '/');
	if (code < 0 || *node->text == '/' || !slash)
		return code;
	char *path;
	if (asprintf(&path, "%.*s/%s", (int)(slash - r->config->path), r->config->path, node->text) < 0)
		return ow_config_no_memory(r);
	free(node->text);
	node->text = path;
	*(const char **)field = path;
	return 0;
}

int ow_config_read_filter(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_text(r, node, field);
	if (code == 0 && strlen(node->text) > OW_CONFIG_FILTER_MAX)
		code = ow_config_fail(r, node, "is too long for a filter");
	return code;
}

/* host:port, [v6]:port, :port */
int ow_config_read_address(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_text(r, node, field);
	if (code < 0)
		return code;
	const char *text = node->text, *colon = strrchr(text, ':');
	if (!colon || strlen(text) > OW_CONFIG_ADDRESS_MAX)
		return ow_config_fail(
			r, node, "is no address (examples: 192.0.2.7:8620, point.example:8620, [2001:db8::7]:8620)");
	if (*text == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t)(colon - text)) != NULL)
		return ow_config_fail(r, node, "is ambiguous: write [address]:port for IPv6");
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (!colon[1] || *end || colon[1] < '0' || colon[1] > '9' || port > 65535)
		return ow_config_fail(r, node, "has no port in 0 .. 65535");
	return 0;
}

int ow_config_read_connect(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_address(r, node, field);
	if (code == 0 && *node->text == ':')
		return ow_config_fail(r, node, "names no host");
	if (code == 0 && strtoul(strrchr(node->text, ':') + 1, NULL, 10) == 0)
		return ow_config_fail(r, node, "has port 0");
	return code;
}

/* An address of this host. Metrics are for whoever runs it: all addresses must be asked for. */
int ow_config_read_metrics(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_read_address(r, node, field);
	if (code == 0 && *node->text == ':')
		return ow_config_fail(r, node,
		                      "names no host (127.0.0.1:9620, or 0.0.0.0:9620 and [::]:9620 for everybody)");
	return code;
}

int ow_config_read_bool(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_config_check_text(r, node);
	if (code < 0)
		return code;
	bool yes = strcmp(node->text, "true") == 0 || strcmp(node->text, "yes") == 0;
	if (!yes && strcmp(node->text, "false") != 0 && strcmp(node->text, "no") != 0)
		return ow_config_fail(r, node, "is not true or false");
	*(bool *)field = yes;
	return 0;
}

static int read_size(struct ow_config_reader *r, struct ow_yaml *node, uint64_t min, uint64_t max, uint64_t *field)
{
	struct ow_error why;
	int code = ow_config_check_text(r, node);
	if (code < 0)
		return code;
	if (ow_size_parse(node->text, field, &why) < 0)
		return ow_config_fail(r, node, why.text);
	if (*field < min || *field > max) {
		ow_error_set(&why, EINVAL, "'%.40s' is not in %juMiB .. %juMiB", node->text, (uintmax_t)(min >> 20),
		             (uintmax_t)(max >> 20));
		return ow_config_fail(r, node, why.text);
	}
	return 0;
}

int ow_config_read_memory(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	return read_size(r, node, OW_CONFIG_MEMORY_MIN, OW_CONFIG_MEMORY_MAX, field);
}

static bool is_zero(const struct ow_yaml *node)
{
	return node->kind == OW_YAML_TEXT && strcmp(node->text, "0") == 0;
}

int ow_config_read_store_max(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	if (!is_zero(node))
		return read_size(r, node, OW_CONFIG_STORE_MIN, OW_CONFIG_STORE_MAX, field);
	*(uint64_t *)field = 0;
	return 0;
}

int ow_config_read_ring(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	return read_size(r, node, OW_CONFIG_RING_MIN, OW_CONFIG_RING_MAX, field);
}

int ow_config_read_threads(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	char *end;
	int code = ow_config_check_text(r, node);
	if (code < 0)
		return code;
	unsigned long n = strtoul(node->text, &end, 10);
	if (*node->text < '0' || *node->text > '9' || *end || n < 1 || n > OW_CONFIG_THREADS_MAX)
		return ow_config_fail(r, node, "is no number in 1 .. 64");
	*(uint64_t *)field = n;
	return 0;
}

int ow_config_read_speed(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	char *end;
	int code = ow_config_check_text(r, node);
	if (code < 0)
		return code;
	double speed = strtod(node->text, &end);
	if (end == node->text || *end || !(speed > 0 && speed <= OW_CONFIG_SPEED_MAX))
		return ow_config_fail(r, node, "is no number above 0, up to 1000 (1 = in the capture's own time)");
	*(double *)field = speed;
	return 0;
}

static int read_duration(struct ow_config_reader *r, struct ow_yaml *node, int64_t min, int64_t max, int64_t *field)
{
	struct ow_error why;
	int64_t ns;
	int code = ow_config_check_text(r, node);
	if (code < 0)
		return code;
	if (ow_duration_parse(node->text, &ns, &why) < 0)
		return ow_config_fail(r, node, why.text);
	if (ns < min || ns > max) {
		char low[OW_DURATION_TEXT], high[OW_DURATION_TEXT];
		ow_duration_text((double)min, low);
		ow_duration_text((double)max, high);
		ow_error_set(&why, EINVAL, "'%.40s' is not in %s .. %s", node->text, low, high);
		return ow_config_fail(r, node, why.text);
	}
	*field = ns;
	return 0;
}

int ow_config_read_interval(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	return read_duration(r, node, OW_INTERVAL_MIN_NS, OW_INTERVAL_MAX_NS, field);
}

int ow_config_read_wait(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	return read_duration(r, node, OW_NS_PER_US, 24 * 3600 * OW_NS_PER_S, field);
}

int ow_config_read_retention(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	if (!is_zero(node))
		return read_duration(r, node, 60 * OW_NS_PER_S, 36500 * INT64_C(86400) * OW_NS_PER_S, field);
	*(int64_t *)field = 0;
	return 0;
}

static int read_choice(struct ow_config_reader *r, struct ow_yaml *node, const char *const *names, unsigned count,
                       unsigned *ret_index)
{
	struct ow_error why;
	int code = ow_config_check_text(r, node);
	for (unsigned i = 0; code == 0 && i < count; i++) {
		if (strcmp(node->text, names[i]) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	if (code < 0)
		return code;
	ow_error_set(&why, EINVAL, "'%.40s' is not %s%s%s%s%s", node->text, names[0], count > 2 ? ", " : " or ",
	             names[1], count > 2 ? " or " : "", count > 2 ? names[2] : "");
	return ow_config_fail(r, node, why.text);
}

int ow_config_read_output(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"text", "json", "none"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 3, &i);
	if (code == 0)
		*(enum ow_config_output *)field = (enum ow_config_output)i;
	return code;
}

int ow_config_read_sandbox(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"true", "false", "log"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 3, &i);
	if (code == 0)
		*(enum ow_sandbox *)field = (enum ow_sandbox)i;
	return code;
}

int ow_config_read_facing(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"peer", "away"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(bool *)field = i == 1;
	return code;
}

int ow_config_read_method(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"fold", "rda"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(enum ow_method *)field = i ? OW_METHOD_RDA : OW_METHOD_FOLD;
	return code;
}

int ow_config_read_level(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"ip", "nat"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(enum ow_level *)field = i ? OW_LEVEL_NAT : OW_LEVEL_IP;
	return code;
}
