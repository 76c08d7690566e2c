/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event_row.h"

#include <math.h>
#include <string.h>

#define COLUMNS "lane, time_ns, interval, kind, network, flows, ttl_change, share, omitted"

const char ow_event_row_schema[] = "CREATE TABLE IF NOT EXISTS event ( -- what happened to flows of a lane\n"
				   "  id INTEGER PRIMARY KEY,\n"
				   "  lane INTEGER NOT NULL REFERENCES lane,\n"
				   "  time_ns INTEGER NOT NULL, -- when it began, since 1970-01-01 UTC\n"
				   "  interval INTEGER NOT NULL,\n"
				   "  kind TEXT NOT NULL, -- stopped, back, rerouted, load_sharing, missing\n"
				   "  network TEXT, -- of the destinations: 10.1.0.0/16; NULL: several\n"
				   "  flows INTEGER NOT NULL, -- rerouted: pairs of networks\n"
				   "  ttl_change INTEGER, share REAL,\n"
				   "  omitted INTEGER NOT NULL); -- events before this one that were too many\n"
				   "CREATE INDEX IF NOT EXISTS event_time ON event (time_ns);\n";

const char ow_event_row_names[] = COLUMNS;
const char ow_event_row_insert[] = "INSERT INTO event (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
const char ow_event_row_select[] = "id, " COLUMNS;

enum { LANE = 1, TIME, INTERVAL, KIND, NETWORK, FLOWS, TTL, SHARE, OMITTED };

void ow_event_row_bind(const struct ow_statement *statement, int64_t lane, const struct ow_flow_event *event)
{
	const struct ow_scope_event *e = &event->scope;
	char network[OW_FLOW_EVENT_NETWORK];
	ow_bind_integer(statement, LANE, lane);
	ow_bind_integer(statement, TIME, event->start_ns);
	ow_bind_integer(statement, INTERVAL, e->interval);
	ow_bind_text(statement, KIND, ow_flow_event_name(e->kind));
	if (*ow_flow_event_network(event, network))
		ow_bind_text(statement, NETWORK, network);
	else
		ow_bind_null(statement, NETWORK);
	ow_bind_integer(statement, FLOWS, e->flows);
	if (e->kind == OW_SCOPE_REROUTED)
		ow_bind_integer(statement, TTL, e->ttl_change);
	else
		ow_bind_null(statement, TTL);
	if (e->kind == OW_SCOPE_SPRAYED || e->kind == OW_SCOPE_MISSING)
		ow_bind_real(statement, SHARE, e->share);
	else
		ow_bind_null(statement, SHARE);
	ow_bind_integer(statement, OMITTED, (int64_t)(event->omitted & INT64_MAX));
}

bool ow_event_row_read(const struct ow_statement *statement, struct ow_flow_event *event)
{
	struct ow_scope_event *e = &event->scope;
	const char *kind = ow_column_string(statement, KIND);
	double share = ow_column_real(statement, SHARE);
	int64_t flows = ow_column_integer(statement, FLOWS), omitted = ow_column_integer(statement, OMITTED);
	int64_t ttl = ow_column_integer(statement, TTL);
	*e = (struct ow_scope_event){.kind = OW_SCOPE_STOPPED};
	while (strcmp(kind, ow_flow_event_name(e->kind)) != 0) {
		if (e->kind == OW_SCOPE_MISSING)
			return false;
		e->kind++;
	}
	event->start_ns = ow_column_integer(statement, TIME);
	e->interval = ow_column_integer(statement, INTERVAL);
	e->flows = flows < 0 ? 0 : flows > UINT32_MAX ? UINT32_MAX : (uint32_t)flows;
	e->ttl_change = (int8_t)(ttl < INT8_MIN ? INT8_MIN : ttl > INT8_MAX ? INT8_MAX : ttl);
	e->share = isfinite(share) ? share : 0;
	event->omitted = omitted < 0 ? 0 : (uint64_t)omitted;
	event->last = false;
	return ow_flow_event_set_network(event, ow_column_string(statement, NETWORK));
}
