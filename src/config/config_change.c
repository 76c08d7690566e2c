/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two configurations of a point: which changes a running point can accept. */
#include "config/config.h"

#include <errno.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_interface(const struct ow_config_interface *a, const struct ow_config_interface *b)
{
	return same(a->name, b->name) && same(a->file, b->file) && a->speed == b->speed && a->threads == b->threads &&
	       a->ring_bytes == b->ring_bytes && a->hardware_stamps == b->hardware_stamps && a->capture == b->capture &&
	       same(a->filter, b->filter);
}

static bool same_classes(const struct ow_config_segment *a, const struct ow_config_segment *b)
{
	if (a->class_count != b->class_count)
		return false;
	for (unsigned i = 0; i < a->class_count; i++) {
		if (!same(a->classes[i].name, b->classes[i].name) ||
		    !same(a->classes[i].filter, b->classes[i].filter) ||
		    ow_config_exact(a, &a->classes[i]) != ow_config_exact(b, &b->classes[i]))
			return false;
	}
	return true;
}

bool ow_config_same_segment(const struct ow_config_segment *a, const struct ow_config_segment *b)
{
	return same(a->name, b->name) && same(a->peer, b->peer) && same(a->group, b->group) &&
	       !a->connect == !b->connect && a->interfaces == b->interfaces && a->facing == b->facing &&
	       same(a->to_peer, b->to_peer) && a->stated == b->stated && a->interval_ns == b->interval_ns &&
	       a->wait_ns == b->wait_ns && a->method == b->method && a->level == b->level && a->scope == b->scope &&
	       a->inner == b->inner && a->exact == b->exact && a->clock == b->clock && same_classes(a, b);
}

static int check_interfaces(const struct ow_config *now, const struct ow_config *next, struct ow_error *err)
{
	for (unsigned i = 0; i < next->interface_count; i++) {
		const struct ow_config_interface *in = &next->interfaces[i];
		if (i >= now->interface_count || !same_interface(in, &now->interfaces[i]))
			return ow_error_set(err, EBUSY,
			                    "%s:%u: interface '%.60s' is new or has changed: needs a restart",
			                    next->path, in->line, in->name);
	}
	if (next->interface_count < now->interface_count)
		return ow_error_set(err, EBUSY, "%s: interface '%.60s' was removed: needs a restart", next->path,
		                    now->interfaces[next->interface_count].name);
	return 0;
}

static bool same_flows(const struct ow_config *a, const struct ow_config *b)
{
	bool same = a->flows_count == b->flows_count;
	for (unsigned i = 0; same && i < a->flows_count; i++)
		same = ow_config_flows_same(&a->flows[i], &b->flows[i]);
	return same;
}

int ow_config_check_change(const struct ow_config *now, const struct ow_config *next, struct ow_error *err)
{
	const struct {
		const char *key;
		bool same;
	} fixed[] = {
		{"point", same(now->point, next->point)},
		{"listen", same(now->listen, next->listen)},
		{"memory", now->memory == next->memory},
		{"store", same(now->store, next->store)},
		{"metrics", same(now->metrics, next->metrics)},
		{"web", same(now->web, next->web)},
		{"output", now->output == next->output},
		{"user", same(now->user, next->user)},
		{"sandbox", now->sandbox == next->sandbox},
		{"flows", same_flows(now, next)},
		{"discovery", same(now->discovery.key, next->discovery.key) &&
	                              now->discovery.epoch_ns == next->discovery.epoch_ns &&
	                              now->discovery.records == next->discovery.records},
	};
	for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		if (!fixed[i].same)
			return ow_error_set(err, EBUSY, "%s: '%s' has changed: needs a restart", next->path,
			                    fixed[i].key);
	}
	return check_interfaces(now, next, err);
}
