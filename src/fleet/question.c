/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/question.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "base/utf8.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 4096

/* The names of a lane in JSON, and where they are. */
static const struct {
	const char *name;
	size_t offset;
} names[] = {{"segment", offsetof(struct ow_question, segment)},
             {"class", offsetof(struct ow_question, class_name)},
             {"from", offsetof(struct ow_question, from)},
             {"to", offsetof(struct ow_question, to)}};
#define NAMES (sizeof names / sizeof *names)

char *ow_question_text(const struct ow_question *q)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "period", ow_periods[q->period].table);
	ow_json_integer(&json, "since_ns", q->since_ns);
	ow_json_integer(&json, "until_ns", q->until_ns);
	for (size_t i = 0; *q->segment && i < NAMES; i++)
		ow_json_string(&json, names[i].name, (const char *)q + names[i].offset);
	ow_json_end(&json);
	return ow_text_close(&text);
}

static bool read_period(const char *name, enum ow_period *ret_period)
{
	for (*ret_period = OW_PERIOD_INTERVAL; name && *ret_period <= OW_PERIOD_MINUTE; (*ret_period)++) {
		if (strcmp(ow_periods[*ret_period].table, name) == 0)
			return true;
	}
	return false;
}

/* All four names, or none. */
static bool read_lane(const json_t *json, struct ow_question *q)
{
	unsigned found = 0;
	for (size_t i = 0; i < NAMES; i++) {
		const char *name = json_string_value(json_object_get(json, names[i].name));
		if (name && (!*name || strlen(name) >= OW_RESULT_NAME))
			return false;
		snprintf((char *)q + names[i].offset, OW_RESULT_NAME, "%s", name ? name : "");
		found += name != NULL;
	}
	return found == 0 || found == NAMES;
}

bool ow_question_read(const void *data, size_t size, struct ow_question *ret_question)
{
	struct ow_question q = {.period = OW_PERIOD_INTERVAL};
	json_t *json = size <= BYTES_MAX ? json_loadb(data, size, 0, NULL) : NULL;
	const json_t *since = json_object_get(json, "since_ns"), *until = json_object_get(json, "until_ns");
	int64_t span = 0;
	bool good = read_period(json_string_value(json_object_get(json, "period")), &q.period) &&
	            json_is_integer(since) && json_is_integer(until);
	q.since_ns = json_integer_value(since);
	q.until_ns = json_integer_value(until);
	good = good && !__builtin_sub_overflow(q.until_ns, q.since_ns, &span) && span > 0 &&
	       span <= OW_QUESTION_SPAN_NS && read_lane(json, &q);
	json_decref(json);
	*ret_question = q;
	return good;
}

char *ow_answer_text(const struct ow_answer *answer)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_count(&json, "rows", answer->rows);
	ow_json_integer(&json, "first_ns", answer->first_ns);
	if (*answer->error)
		ow_json_string(&json, "error", answer->error);
	ow_json_end(&json);
	return ow_text_close(&text);
}

bool ow_answer_read(const void *data, size_t size, struct ow_answer *ret_answer)
{
	json_t *json = size <= BYTES_MAX ? json_loadb(data, size, 0, NULL) : NULL;
	const json_t *rows = json_object_get(json, "rows"), *first = json_object_get(json, "first_ns");
	const char *error = json_string_value(json_object_get(json, "error"));
	bool good = json_is_integer(rows) && json_integer_value(rows) >= 0 && json_is_integer(first);
	*ret_answer =
		(struct ow_answer){.rows = (uint64_t)json_integer_value(rows), .first_ns = json_integer_value(first)};
	snprintf(ret_answer->error, sizeof ret_answer->error, "%s", error ? error : "");
	ow_utf8_clean(ret_answer->error);
	json_decref(json);
	return good;
}
