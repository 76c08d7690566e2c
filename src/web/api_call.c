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

/* Points send minutes to a server, and intervals of few lanes: then minutes are the finest. */
static int finest(struct ow_call *call, enum ow_period *ret_least, struct ow_error *err)
{
	struct ow_stored_filter filter = call->filter;
	*ret_least = ow_stored_finest(call->stored);
	if (*ret_least != OW_PERIOD_MINUTE)
		return 0;
	filter.period = OW_PERIOD_INTERVAL;
	int r = ow_stored_choose(call->stored, &filter, err);
	if (r == 0)
		r = ow_stored_choose_period(call->stored, OW_PERIOD_INTERVAL, err);
	size_t lanes, chosen = 0;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	for (size_t i = 0; i < lanes; i++)
		chosen += lane[i].chosen;
	if (r == 0 && chosen == 1)
		*ret_least = ow_stored_period(call->stored);
	return r;
}

int ow_api_sum(struct ow_call *call, const struct ow_stored_sum_options *options, enum ow_period most,
               struct ow_stored_sums *ret_sums, struct ow_error *err)
{
	struct ow_stored_division division = {0};
	struct ow_stored_sum_options o = *options;
	enum ow_period least = OW_PERIOD_INTERVAL;
	int r = finest(call, &least, err);
	if (r == 0)
		r = ow_stored_divide(call->stored, least, most > least ? most : least, &division, err);
	if (r < 0)
		return r;
	o.division = &division;
	r = ow_stored_summarise(call->stored, &o, ret_sums, err);
	ow_stored_division_done(&division);
	return r;
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
