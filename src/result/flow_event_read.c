/* SPDX-License-Identifier: Apache-2.0 */
#include "result/flow_event.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

/* A name that fits; a truncated one could be that of another lane. */
static bool read_name(const json_t *object, const char *member, char name[OW_RESULT_NAME])
{
	const char *text = json_string_value(json_object_get(object, member));
	if (!text || !*text || strlen(text) >= OW_RESULT_NAME)
		return false;
	memcpy(name, text, strlen(text) + 1);
	return true;
}

static bool read_kind(const json_t *object, enum ow_scope_event_kind *ret_kind)
{
	const char *text = json_string_value(json_object_get(object, "kind"));
	for (enum ow_scope_event_kind kind = OW_SCOPE_STOPPED; text && kind <= OW_SCOPE_MISSING; kind++) {
		if (strcmp(text, ow_flow_event_name(kind)) == 0) {
			*ret_kind = kind;
			return true;
		}
	}
	return false;
}

static int64_t within(const json_t *object, const char *member, int64_t least, int64_t most)
{
	int64_t value = json_integer_value(json_object_get(object, member));
	return value < least ? least : value > most ? most : value;
}

static bool read_event(const json_t *object, struct ow_flow_event *event)
{
	struct ow_scope_event *e = &event->scope;
	const char *network = json_string_value(json_object_get(object, "network"));
	double share = json_number_value(json_object_get(object, "share"));
	if (!read_kind(object, &e->kind) || !read_name(object, "segment", event->segment) ||
	    !read_name(object, "class", event->class_name) || !read_name(object, "from", event->from) ||
	    !read_name(object, "to", event->to) || !json_is_integer(json_object_get(object, "time_ns")))
		return false;
	event->start_ns = within(object, "time_ns", INT64_MIN, INT64_MAX);
	event->omitted = (uint64_t)within(object, "omitted", 0, INT64_MAX);
	e->interval = within(object, "interval", INT64_MIN, INT64_MAX);
	e->flows = (uint32_t)within(object, e->kind == OW_SCOPE_REROUTED ? "network_pairs" : "flows", 0, UINT32_MAX);
	e->ttl_change = (int8_t)within(object, "ttl_change", INT8_MIN, INT8_MAX);
	e->share = isfinite(share) ? share : 0;
	return ow_flow_event_set_network(event, network ? network : "");
}

int ow_flow_event_read(const char *text, size_t size, struct ow_flow_event *ret_event, struct ow_error *err)
{
	struct ow_flow_event event = {.start_ns = 0};
	json_t *json = size <= OW_FLOW_EVENT_BYTES ? json_loadb(text, size, 0, NULL) : NULL;
	if (!json)
		return ow_error_set(err, EINVAL, "an event that is not JSON, or has more than %d bytes",
		                    OW_FLOW_EVENT_BYTES);
	const json_t *object = json_object_get(json, "event");
	int r = !object                      ? 0
	        : read_event(object, &event) ? 1
	                                     : ow_error_set(err, EINVAL, "an event without a kind, a lane or a time");
	json_decref(json);
	if (r == 1)
		*ret_event = event;
	return r;
}
