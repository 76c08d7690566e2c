/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"

/* Rows that were sent a short time ago, to find those that have changed since. */
struct ow_recent_row {
	int64_t start_ns, lane;
	uint64_t digest;
};

struct ow_recent_rows {
	struct ow_recent_row *row; /* by start and lane */
	size_t count, room;
};

void ow_recent_rows_done(struct ow_recent_rows *recent);
/* Notes a row. true: it is new, or has changed. */
bool ow_recent_rows_note(struct ow_recent_rows *recent, int64_t lane, const struct ow_interval_result *result);
/* Forgets rows that begin before this time. */
void ow_recent_rows_trim(struct ow_recent_rows *recent, int64_t before_ns);
