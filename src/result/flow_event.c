/* SPDX-License-Identifier: Apache-2.0 */
/* Events of flows as text and JSON. */
#include "result/flow_event.h"

#include "base/format.h"
#include "base/json_writer.h"
#include "base/word.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *ow_flow_event_name(enum ow_scope_event_kind kind)
{
	static const char *const name[] = {[OW_SCOPE_STOPPED] = "stopped",
	                                   [OW_SCOPE_BACK] = "back",
	                                   [OW_SCOPE_REROUTED] = "rerouted",
	                                   [OW_SCOPE_SPRAYED] = "load_sharing",
	                                   [OW_SCOPE_MISSING] = "missing"};
	return name[kind];
}

bool ow_flow_event_is_warning(const struct ow_flow_event *event)
{
	enum ow_scope_event_kind kind = event->scope.kind;
	return kind != OW_SCOPE_BACK && kind != OW_SCOPE_REROUTED;
}

const char *ow_flow_event_network(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_NETWORK])
{
	const struct ow_scope_event *e = &event->scope;
	uint8_t address[16] = {0};
	char dotted[INET6_ADDRSTRLEN];
	memcpy(address, e->network, e->version == 6 ? 6 : 3);
	*text = 0;
	if (e->bits && inet_ntop(e->version == 6 ? AF_INET6 : AF_INET, address, dotted, sizeof dotted))
		snprintf(text, OW_FLOW_EVENT_NETWORK, "%s/%u", dotted, e->bits);
	return text;
}

bool ow_flow_event_set_network(struct ow_flow_event *event, const char *text)
{
	struct ow_scope_event *e = &event->scope;
	uint8_t address[16];
	char dotted[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : 0;
	e->bits = e->version = 0;
	memset(e->network, 0, sizeof e->network);
	if (!slash)
		return !*text;
	if (length >= sizeof dotted)
		return false;
	memcpy(dotted, text, length);
	dotted[length] = 0;
	bool six = strchr(dotted, ':');
	char *end;
	unsigned long bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > (six ? 48 : 24) || inet_pton(six ? AF_INET6 : AF_INET, dotted, address) != 1)
		return false;
	memcpy(e->network, address, six ? 6 : 3);
	e->version = six ? 6 : 4;
	e->bits = (uint8_t)bits;
	return true;
}

/* What happened, without its time. */
static void say_what(const struct ow_flow_event *event, char *text, size_t size)
{
	const struct ow_scope_event *e = &event->scope;
	char network[OW_FLOW_EVENT_NETWORK], to[OW_RESULT_NAME], count[OW_FORMAT], share[OW_FORMAT];
	const char *nets = *ow_flow_event_network(event, network) ? network : "several networks";
	ow_format_clean(event->to, false, to, sizeof to);
	ow_format_count(e->flows, count);
	ow_format_percent(round(100 * e->share) / 100, share);
	const char *flows = ow_plural(e->flows, "flow", "flows");
	switch (e->kind) {
	case OW_SCOPE_STOPPED:
		snprintf(text, size, "%s %s of %s no longer %s %s", count, flows, nets,
		         ow_plural(e->flows, "passes", "pass"), to);
		break;
	case OW_SCOPE_BACK:
		snprintf(text, size, "%s %s of %s %s %s again", count, flows, nets,
		         ow_plural(e->flows, "passes", "pass"), to);
		break;
	case OW_SCOPE_REROUTED:
		snprintf(text, size,
		         "flows of %s arrive at %s with a TTL that is %d %s than before: they were rerouted", nets, to,
		         abs(e->ttl_change), e->ttl_change < 0 ? "lower" : "higher");
		break;
	case OW_SCOPE_SPRAYED:
		snprintf(text, size,
		         "%s of the packets of %s %s of %s steadily do not pass %s: this looks like load sharing that "
		         "sends the packets of a flow different ways, so what counts as lost may have passed elsewhere",
		         share, count, flows, nets, to);
		break;
	case OW_SCOPE_MISSING:
		snprintf(text, size,
		         "more new flows than usual do not pass %s (%s of them): they take another way, or are lost "
		         "from their first packet on",
		         to, share);
		break;
	}
}

const char *ow_flow_event_text(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_TEXT])
{
	char time[OW_FORMAT], what[OW_FLOW_EVENT_TEXT];
	snprintf(text, OW_FLOW_EVENT_TEXT, "since %s %.380s", ow_format_time(event->start_ns, "%T", time),
	         ow_flow_event_what(event, what));
	return text;
}

const char *ow_flow_event_what(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_TEXT])
{
	char count[OW_FORMAT];
	say_what(event, text, OW_FLOW_EVENT_TEXT);
	size_t used = strlen(text);
	if (event->omitted)
		used += (size_t)snprintf(text + used, OW_FLOW_EVENT_TEXT - used, "; %s %s not reported before",
		                         ow_format_count(event->omitted, count),
		                         ow_plural(event->omitted, "event was", "events were"));
	if (event->last && used < OW_FLOW_EVENT_TEXT)
		snprintf(text + used, OW_FLOW_EVENT_TEXT - used, "; further events are not reported for a while");
	return text;
}

void ow_flow_event_json_put(struct ow_json *json, const char *name, const struct ow_flow_event *event)
{
	const struct ow_scope_event *e = &event->scope;
	char network[OW_FLOW_EVENT_NETWORK], text[OW_FLOW_EVENT_TEXT];
	ow_json_object(json, name);
	ow_json_string(json, "kind", ow_flow_event_name(e->kind));
	ow_json_string(json, "segment", event->segment);
	ow_json_string(json, "class", event->class_name);
	ow_json_string(json, "from", event->from);
	ow_json_string(json, "to", event->to);
	ow_json_integer(json, "interval", e->interval);
	ow_json_integer(json, "time_ns", event->start_ns);
	ow_json_string(json, "network", *ow_flow_event_network(event, network) ? network : NULL);
	ow_json_count(json, e->kind == OW_SCOPE_REROUTED ? "network_pairs" : "flows", e->flows);
	if (e->kind == OW_SCOPE_REROUTED)
		ow_json_integer(json, "ttl_change", e->ttl_change);
	if (e->kind == OW_SCOPE_SPRAYED || e->kind == OW_SCOPE_MISSING)
		ow_json_digits(json, "share", e->share, 4);
	if (event->omitted)
		ow_json_count(json, "omitted", event->omitted);
	ow_json_string(json, "text", ow_flow_event_text(event, text));
	ow_json_end(json);
}

void ow_flow_event_json(FILE *out, const struct ow_flow_event *event)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_flow_event_json_put(&json, "event", event);
	ow_json_end(&json);
}

bool ow_flow_event_allow(struct ow_flow_event_limit *limit, int64_t now_ns, struct ow_flow_event *event)
{
	int64_t earned = (now_ns - limit->since_ns) / OW_FLOW_EVENTS_EACH_NS;
	if (!limit->used || earned >= limit->used || earned < 0) {
		limit->used = 0;
		limit->since_ns = now_ns;
	} else {
		limit->used -= (unsigned)earned;
		limit->since_ns += earned * OW_FLOW_EVENTS_EACH_NS;
	}
	if (limit->used == OW_FLOW_EVENTS_BURST) {
		limit->omitted++;
		return false;
	}
	event->omitted = limit->omitted;
	event->last = ++limit->used == OW_FLOW_EVENTS_BURST;
	limit->omitted = 0;
	return true;
}
