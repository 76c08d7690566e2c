/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"
#include "store/statement.h"

/* An event of flows as a row of table event. What a kind of event does not have is NULL. */

/* The version of the schema that has the table. */
#define OW_EVENT_ROW_SINCE 6

extern const char ow_event_row_schema[];
/* The columns in the order of ow_event_row_bind: the first is the lane. */
extern const char ow_event_row_names[];
#define OW_EVENT_ROW_COLUMNS 9
extern const char ow_event_row_insert[];
void ow_event_row_bind(const struct ow_statement *statement, int64_t lane, const struct ow_flow_event *event);
/* The columns to SELECT: id and lane, then those that ow_event_row_read reads. It leaves the names of the lane alone.
 * false: not a row of ours. */
extern const char ow_event_row_select[];
bool ow_event_row_read(const struct ow_statement *statement, struct ow_flow_event *event);
