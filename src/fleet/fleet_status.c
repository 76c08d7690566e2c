/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/fleet_status.h"

#include "base/array.h"
#include "base/clock.h"
#include "fleet/rollout.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "not enough memory");
}

/* Points that have something to measure, and that the fleet does not know. */
static int add_planned(void *arg, const char *name)
{
	struct ow_fleet_status *s = arg;
	struct ow_fleet_point key = {.state = OW_FLEET_PLANNED};
	snprintf(key.name, sizeof key.name, "%s", name);
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->point[i].name, name) == 0)
			return 0;
	}
	if (OW_GROW(s->point, s->room, s->count + 1) < 0)
		return -ENOMEM;
	s->point[s->count++] = key;
	return 0;
}

static int read_points(const struct ow_fleet *fleet, struct ow_fleet_status *s, struct ow_error *err)
{
	int r = ow_fleet_points(fleet, &s->point, &s->count, err);
	if (r < 0)
		return r;
	s->room = s->count;
	if (ow_applied_each(fleet, add_planned, s) < 0)
		return no_memory(err);
	if (s->count)
		qsort(s->point, s->count, sizeof *s->point, ow_fleet_point_by_name);
	s->desired = calloc(s->count + 1, sizeof *s->desired);
	if (!s->desired)
		return no_memory(err);
	for (size_t i = 0; i < s->count; i++)
		s->desired[i] = ow_applied_version(fleet, s->point[i].name);
	return 0;
}

static int read_healths(const struct ow_fleet *fleet, const char *service, struct ow_fleet_status *s,
                        struct ow_error *err)
{
	struct ow_bus *bus = NULL;
	int r = ow_control_open(fleet, service, &bus, err);
	if (r == 0 && strcmp(service, "controller") == 0)
		r = ow_control_setup(fleet, bus, err);
	if (r == 0)
		r = ow_healths_get(&s->healths, bus, s->point, s->count, err);
	ow_bus_free(bus);
	return r;
}

int ow_fleet_status_read(const char *dir, const char *service, struct ow_fleet_status *ret_status, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_fleet_status s = {.now_ns = 0};
	int r = ow_fleet_open_to_look(dir, &fleet, err);
	if (r == 0)
		r = read_points(fleet, &s, err);
	if (r == 0)
		r = read_healths(fleet, service, &s, err);
	ow_fleet_close(fleet);
	s.now_ns = ow_clock_real_ns();
	if (r < 0)
		ow_fleet_status_done(&s);
	else
		*ret_status = s;
	return r;
}

void ow_fleet_status_done(struct ow_fleet_status *s)
{
	ow_healths_done(&s->healths);
	free(s->desired);
	free(s->point);
	*s = (struct ow_fleet_status){.now_ns = 0};
}
