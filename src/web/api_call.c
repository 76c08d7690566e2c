/* SPDX-License-Identifier: Apache-2.0 */
/* What the resources of the interface share: the selected lanes and times, their sums, names. */
#include "web/api_private.h"

#include <errno.h>
#include <stdint.h>

int ow_api_select(struct ow_call *call, struct ow_error *err)
{
	struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	const struct ow_query *query = call->query;
	filter.segment = ow_query_get(query, "segment");
	filter.class_name = ow_query_get(query, "class");
	filter.from = ow_query_get(query, "from");
	filter.to = ow_query_get(query, "to");
	int r = ow_query_time(query, "since", call->now_ns, &filter.since_ns, err);
	if (r == 0)
		r = ow_query_time(query, "until", call->now_ns, &filter.until_ns, err);
	if (r == 0 && filter.since_ns >= filter.until_ns)
		r = ow_error_set(err, EINVAL, "since is not before until");
	call->filter = filter;
	return r < 0 ? r : ow_stored_choose(call->stored, &filter, err);
}

const char *ow_api_period(enum ow_period period)
{
	return period ? ow_periods[period].table : "interval";
}

void ow_api_lane(struct ow_json *json, const struct ow_stored_lane *lane)
{
	ow_json_string(json, "segment", lane->segment);
	ow_json_string(json, "class", lane->class_name);
	ow_json_string(json, "from", lane->from);
	ow_json_string(json, "to", lane->to);
}
