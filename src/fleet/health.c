/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/health.h"

#include "base/json_writer.h"
#include "base/state_file.h"
#include "base/utf8.h"
#include "config/config_fleet.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum type { TEXT, COUNT, INTEGER, FLAG, CLOCK_ERROR /* null: not known */ };

struct field {
	const char *name;
	enum type type;
	size_t offset, size;
};

#define FIELD(member, type)                                                                                \
	{                                                                                                  \
#member, type, offsetof(struct ow_health, member), sizeof(((struct ow_health *)0)->member) \
	}
static const struct field fields[] = {
	FIELD(point, TEXT),
	FIELD(version, TEXT),
	FIELD(state, TEXT),
	FIELD(time_ns, INTEGER),
	FIELD(started_ns, INTEGER),
	FIELD(peers, COUNT),
	FIELD(connected, COUNT),
	FIELD(lanes, COUNT),
	FIELD(peers_why, TEXT),
	FIELD(frames, COUNT),
	FIELD(dropped, COUNT),
	FIELD(store_waiting, COUNT),
	FIELD(store_lost, COUNT),
	FIELD(store_failing, FLAG),
	FIELD(memory_bytes, COUNT),
	FIELD(clock_known, FLAG),
	FIELD(clock_synchronised, FLAG),
	FIELD(clock_error_ns, CLOCK_ERROR),
	FIELD(last_result_ns, INTEGER),
	FIELD(certificate_until_s, INTEGER),
	FIELD(config_version, COUNT),
	FIELD(config_refused, COUNT),
	FIELD(config_why, TEXT),
	FIELD(config_kept, TEXT),
};
#define FIELDS (sizeof fields / sizeof *fields)

/* unknown: with a null for what is not known; a reader of an earlier version refuses that. */
static void put(struct ow_json *json, const char *name, const struct ow_health *health, bool unknown)
{
	bool clock = health->clock_known && health->clock_synchronised;
	ow_json_object(json, name);
	for (size_t i = 0; i < FIELDS; i++) {
		const struct field *f = &fields[i];
		const void *value = (const char *)health + f->offset;
		if (f->type == TEXT)
			ow_json_string(json, f->name, value);
		else if (f->type == COUNT)
			ow_json_count(json, f->name, *(const uint64_t *)value);
		else if (f->type == CLOCK_ERROR && (clock || unknown))
			ow_json_integer_if(json, f->name, clock, *(const int64_t *)value);
		else if (f->type == INTEGER)
			ow_json_integer(json, f->name, *(const int64_t *)value);
		else if (f->type == FLAG)
			ow_json_flag(json, f->name, *(const bool *)value);
	}
	ow_json_end(json);
}

void ow_health_members(struct ow_json *json, const char *name, const struct ow_health *health)
{
	put(json, name, health, true);
}

void ow_health_print(FILE *out, const struct ow_health *health)
{
	struct ow_json json = {.out = out};
	put(&json, NULL, health, false);
}

/* A point can publish anything as its health: texts are made clean, and numbers have their type. */
static int take(const struct field *f, const json_t *member, struct ow_health *health)
{
	void *value = (char *)health + f->offset;
	bool good = f->type == TEXT          ? json_is_string(member)
	            : f->type == FLAG        ? json_is_boolean(member)
	            : f->type == CLOCK_ERROR ? json_is_integer(member) || json_is_null(member)
	                                     : json_is_integer(member);
	if (!good)
		return -EINVAL;
	if (f->type == TEXT) {
		snprintf(value, f->size, "%s", json_string_value(member));
		ow_utf8_clean(value);
	} else if (f->type == FLAG) {
		*(bool *)value = json_is_true(member);
	} else if (f->type == INTEGER || f->type == CLOCK_ERROR) {
		*(int64_t *)value = json_integer_value(member);
	} else {
		*(uint64_t *)value = json_integer_value(member) < 0 ? 0 : (uint64_t)json_integer_value(member);
	}
	return 0;
}

int ow_health_parse(const char *text, size_t size, struct ow_health *ret_health, struct ow_error *err)
{
	struct ow_health health = {0};
	json_error_t why;
	json_t *root = size <= OW_HEALTH_MAX ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &why) : NULL;
	int r = json_is_object(root) ? 0 : -EINVAL;
	for (size_t i = 0; r == 0 && i < FIELDS; i++) {
		const json_t *member = json_object_get(root, fields[i].name);
		if (member)
			r = take(&fields[i], member, &health);
	}
	json_decref(root);
	if (r < 0)
		return ow_error_set(err, EINVAL, "not the health of a point");
	*ret_health = health;
	return 0;
}

int ow_health_save(const char *folder, const struct ow_health *health, struct ow_error *err)
{
	char *text = NULL, *path = ow_state_path(folder, OW_FLEET_HEALTH);
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r = -ENOMEM;
	if (out) {
		ow_health_print(out, health);
		r = fclose(out) == 0 && path ? ow_state_write(path, text, size, err) : -ENOMEM;
	}
	free(text);
	free(path);
	return r == -ENOMEM ? ow_error_set(err, ENOMEM, "not enough memory") : r;
}
