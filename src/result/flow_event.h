/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "reconcile/scope_verdict.h"
#include "result/interval_result.h"

#include <stdio.h>

/* What happened to flows of a lane: they no longer pass the other point, or pass it again, or take another way. */
struct ow_flow_event {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	int64_t start_ns; /* since 1970, by the clock of the sending point */
	struct ow_scope_event scope;
	uint64_t omitted; /* events before this one that were too many to report */
	bool last;        /* further ones are omitted for a while */
};

/* The words of enum ow_scope_event_kind in JSON and in the store: "stopped", ... */
const char *ow_flow_event_name(enum ow_scope_event_kind kind);
/* Whether someone should look at it: flows or packets do not pass. The others report that they do. */
bool ow_flow_event_is_warning(const struct ow_flow_event *event);

/* The networks of its flows: "10.1.0.0/16"; empty if they are several. */
#define OW_FLOW_EVENT_NETWORK 64
const char *ow_flow_event_network(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_NETWORK]);
/* The reverse. false: it is neither a network nor empty. */
bool ow_flow_event_set_network(struct ow_flow_event *event, const char *text);
/* One sentence: "since 10:02:13 17 flows of 10.1.0.0/16 no longer pass paris". Times are in UTC. */
#define OW_FLOW_EVENT_TEXT 400
const char *ow_flow_event_text(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_TEXT]);
/* The same without the time. */
const char *ow_flow_event_what(const struct ow_flow_event *event, char text[OW_FLOW_EVENT_TEXT]);
/* One line of JSON: {"event": {...}}. */
void ow_flow_event_json(FILE *out, const struct ow_flow_event *event);
/* The same as a member or element of another document: what "event" is. */
void ow_flow_event_json_put(struct ow_json *json, const char *name, const struct ow_flow_event *event);
/* The reverse. 1: an event of flows, 0: another JSON, -EINVAL. The bytes may be anybody's. */
int ow_flow_event_read(const char *text, size_t size, struct ow_flow_event *ret_event, struct ow_error *err);
#define OW_FLOW_EVENT_BYTES 4096

/*
 * Limits the events of a lane, so that a network that flaps does not fill a log: OW_FLOW_EVENTS_BURST at once, and one
 * more every OW_FLOW_EVENTS_EACH_NS. Begins as zero.
 */
#define OW_FLOW_EVENTS_BURST   12
#define OW_FLOW_EVENTS_EACH_NS INT64_C(10000000000)
struct ow_flow_event_limit {
	unsigned used;
	int64_t since_ns;
	uint64_t omitted;
};
/* Whether to report this event, which was found at now_ns. Fills in `omitted` and `last`. */
bool ow_flow_event_allow(struct ow_flow_event_limit *limit, int64_t now_ns, struct ow_flow_event *event);
