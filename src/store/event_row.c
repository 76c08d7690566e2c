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

const char ow_event_row_insert[] = "INSERT INTO event (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
const char ow_event_row_select[] = "id, " COLUMNS;

enum { LANE = 1, TIME, INTERVAL, KIND, NETWORK, FLOWS, TTL, SHARE, OMITTED };

void ow_event_row_bind(sqlite3_stmt *statement, int64_t lane, const struct ow_flow_event *event)
{
	const struct ow_scope_event *e = &event->scope;
	char network[OW_FLOW_EVENT_NETWORK];
	sqlite3_clear_bindings(statement);
	sqlite3_bind_int64(statement, LANE, lane);
	sqlite3_bind_int64(statement, TIME, event->start_ns);
	sqlite3_bind_int64(statement, INTERVAL, e->interval);
	sqlite3_bind_text(statement, KIND, ow_flow_event_name(e->kind), -1, SQLITE_STATIC);
	if (*ow_flow_event_network(event, network))
		sqlite3_bind_text(statement, NETWORK, network, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(statement, FLOWS, e->flows);
	if (e->kind == OW_SCOPE_REROUTED)
		sqlite3_bind_int(statement, TTL, e->ttl_change);
	if (e->kind == OW_SCOPE_SPRAYED || e->kind == OW_SCOPE_MISSING)
		sqlite3_bind_double(statement, SHARE, e->share);
	sqlite3_bind_int64(statement, OMITTED, (int64_t)(event->omitted & INT64_MAX));
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	return text ? text : "";
}

bool ow_event_row_read(sqlite3_stmt *statement, struct ow_flow_event *event)
{
	struct ow_scope_event *e = &event->scope;
	const char *kind = text_of(statement, KIND);
	double share = sqlite3_column_double(statement, SHARE);
	int64_t flows = sqlite3_column_int64(statement, FLOWS), omitted = sqlite3_column_int64(statement, OMITTED);
	int ttl = sqlite3_column_int(statement, TTL);
	*e = (struct ow_scope_event){.kind = OW_SCOPE_STOPPED};
	while (strcmp(kind, ow_flow_event_name(e->kind)) != 0) {
		if (e->kind == OW_SCOPE_MISSING)
			return false;
		e->kind++;
	}
	event->start_ns = sqlite3_column_int64(statement, TIME);
	e->interval = sqlite3_column_int64(statement, INTERVAL);
	e->flows = flows < 0 ? 0 : flows > UINT32_MAX ? UINT32_MAX : (uint32_t)flows;
	e->ttl_change = (int8_t)(ttl < INT8_MIN ? INT8_MIN : ttl > INT8_MAX ? INT8_MAX : ttl);
	e->share = isfinite(share) ? share : 0;
	event->omitted = omitted < 0 ? 0 : (uint64_t)omitted;
	event->last = false;
	return ow_flow_event_set_network(event, text_of(statement, NETWORK));
}
