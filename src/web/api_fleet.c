/* SPDX-License-Identifier: Apache-2.0 */
/* What only a fleet knows: how its points are, and results that are still at them. */
#include "base/clock.h"
#include "fleet/fleet_status.h"
#include "fleet/seconds.h"
#include "report/fleet_status.h"
#include "web/api_private.h"
#include <errno.h>
#include <stdio.h>

/* How long points may take to send what they are asked for. */
#define FETCH_MS 8000

/*
 * Connections to the bus: one at a time, whatever browsers ask. A request waits as long as the others take, which is
 * bounded by the four readers of the store.
 */
static pthread_mutex_t *lock_of(const struct ow_call *call)
{
	return &call->api->fleet_lock;
}

int ow_api_fleet_points(struct ow_call *call, struct ow_error *err)
{
	struct ow_fleet_status status = {0};
	pthread_mutex_lock(lock_of(call));
	int r = ow_fleet_status_read(call->api->options.fleet, "station", &status, err);
	pthread_mutex_unlock(lock_of(call));
	if (r < 0)
		return r;
	ow_json_object(&call->json, NULL);
	ow_json_string(&call->json, "source", "fleet");
	ow_json_null(&call->json, "problem");
	ow_report_fleet_points(&call->json, &status);
	ow_json_end(&call->json);
	ow_fleet_status_done(&status);
	return 0;
}

static void put_seconds(struct ow_call *call, const struct ow_seconds *seconds)
{
	struct ow_json *json = &call->json;
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	ow_json_object(json, NULL);
	ow_json_count(json, "asked", seconds->asked);
	ow_json_count(json, "rows", seconds->rows);
	ow_json_array(json, "missing");
	for (size_t i = 0; i < seconds->count; i++) {
		const struct ow_seconds_missing *m = &seconds->missing[i];
		ow_json_object(json, NULL);
		ow_api_lane(json, &lane[m->lane]);
		ow_json_integer(json, "since_ns", m->since_ns);
		ow_json_integer(json, "until_ns", m->until_ns);
		ow_json_string(json, "why", m->why);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
}

int ow_api_seconds(struct ow_call *call, struct ow_error *err)
{
	const char *fleet = call->api->options.fleet;
	struct ow_seconds seconds;
	if (!fleet)
		return ow_error_set(err, ENOENT, "no fleet: start with --fleet DIR");
	int r = ow_api_select(call, err);
	if (r < 0)
		return r;
	if (call->filter.since_ns == INT64_MIN)
		return ow_error_set(err, EINVAL, "since is needed");
	pthread_mutex_lock(lock_of(call));
	r = ow_seconds_fetch(fleet, call->stored, call->filter.since_ns, call->filter.until_ns, FETCH_MS, &seconds,
	                     err);
	pthread_mutex_unlock(lock_of(call));
	if (r < 0)
		return r == -E2BIG ? -EINVAL : r;
	put_seconds(call, &seconds);
	ow_seconds_done(&seconds);
	return 0;
}
