/* SPDX-License-Identifier: Apache-2.0 */
#include "point/daemon_group.h"

#include "base/array.h"
#include "config/memory_budget.h"
#include "point/daemon_events.h"
#include "point/daemon_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void on_result(void *arg, const struct ow_interval_result *result)
{
	struct ow_daemon_group *g = arg;
	ow_daemon_result(g->daemon, result);
}

static void on_event(void *arg, const struct ow_flow_event *event)
{
	struct ow_daemon_group *g = arg;
	char text[OW_FLOW_EVENT_TEXT];
	ow_daemon_log(g->daemon, ow_flow_event_is_warning(event) ? OW_EVENT_WARNING : OW_EVENT_NOTICE,
	              "%s/%s to %s: %s", event->segment, event->class_name, event->to, ow_flow_event_text(event, text));
	ow_daemon_flow_event(g->daemon, event);
}

/* Names, peers and times by the configuration, to which all peers agree. */
static void set_options(const struct ow_daemon *d, const struct ow_config_segment *s, const char *class_name,
                        struct ow_group_results_options *o)
{
	struct ow_retention retention;
	ow_agree_retention(s->interval_ns, 0, d->clock.speed, &retention);
	*o = (struct ow_group_results_options){.length_ns = s->interval_ns,
	                                       .horizon = ow_config_horizon(s->wait_ns, s->interval_ns),
	                                       .waiting = retention.intervals_max,
	                                       .shared = s->scope == OW_SCOPE_OF_SHARED};
	snprintf(o->names.segment, sizeof o->names.segment, "%s", s->name);
	snprintf(o->names.class_name, sizeof o->names.class_name, "%s", class_name);
	snprintf(o->names.from, sizeof o->names.from, "%s", d->config->point);
	snprintf(o->names.to, sizeof o->names.to, "%s", s->group);
	for (const struct ow_yaml *peer = s->peers->first; peer; peer = peer->next)
		snprintf(o->member[o->members++], OW_RESULT_NAME, "%s", peer->text);
}

static void free_group(struct ow_daemon_group *g)
{
	if (!g)
		return;
	ow_group_results_free(g->results);
	free(g);
}

static struct ow_daemon_group *add_group(struct ow_daemon *d, const struct ow_config_segment *s, const char *class_name)
{
	uint64_t seed[2];
	struct ow_daemon_group *g = calloc(1, sizeof *g);
	if (!g || getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed ||
	    OW_GROW(d->groups.group, d->groups.room, d->groups.count + 1) < 0) {
		free(g);
		return NULL;
	}
	g->daemon = d;
	g->identity_seed = seed[0];
	g->synopsis_seed = seed[1];
	set_options(d, s, class_name, &g->options);
	if (ow_group_results_create(&g->options, on_result, on_event, g, &g->results) < 0) {
		free(g);
		return NULL;
	}
	d->groups.group[d->groups.count++] = g;
	return g;
}

struct ow_daemon_group *ow_daemon_group_of(struct ow_daemon *d, const struct ow_config_segment *segment,
                                           const char *class_name)
{
	for (unsigned i = 0; i < d->groups.count; i++) {
		struct ow_daemon_group *g = d->groups.group[i];
		if (!g->ending && strcmp(g->options.names.segment, segment->name) == 0 &&
		    strcmp(g->options.names.class_name, class_name) == 0)
			return g;
	}
	return add_group(d, segment, class_name);
}

static unsigned member_of(const struct ow_daemon_group *g, const char *peer)
{
	unsigned k = 0;
	while (k < g->options.members && strcmp(g->options.member[k], peer) != 0)
		k++;
	return k;
}

void ow_daemon_group_compared(struct ow_daemon_group *g, const char *peer, unsigned identity,
                              const struct ow_interval_results_input *input, const uint64_t *name)
{
	unsigned member = member_of(g, peer);
	if (member == g->options.members)
		return;
	if (name)
		ow_group_results_compared(g->results, member, identity, input, name);
	else
		ow_group_results_unknown(g->results, member, &input->result);
}

void ow_daemon_group_gap(struct ow_daemon *d, const struct ow_interval_result *result)
{
	const struct ow_config_segment *s = ow_config_segment_find(d->config, result->segment, result->to);
	if (!s || !s->peers || result->length_ns != s->interval_ns)
		return;
	struct ow_daemon_group *g = ow_daemon_group_of(d, s, result->class_name);
	struct ow_interval_results_input input = {.result = *result};
	if (g)
		ow_daemon_group_compared(g, result->to, 0, &input, NULL);
}

/* -- the end --------------------------------------------------------------------------------------------------------- */

static bool stays(const struct ow_daemon_group *g, const struct ow_config *now, const struct ow_config *next)
{
	for (unsigned i = 0; next && i < now->segment_count; i++) {
		const struct ow_config_segment *s = &now->segments[i];
		if (strcmp(s->name, g->options.names.segment) != 0)
			continue;
		const struct ow_config_segment *then = ow_config_segment_find(next, s->name, s->peer);
		if (!then || !ow_config_same_segment(s, then))
			return false;
	}
	return next != NULL;
}

void ow_daemon_groups_retire(struct ow_daemon *d, const struct ow_config *next)
{
	for (unsigned i = 0; i < d->groups.count; i++)
		d->groups.group[i]->ending |= !stays(d->groups.group[i], d->config, next);
}

static void end_group(struct ow_daemon *d, unsigned n)
{
	struct ow_daemon_group *g = d->groups.group[n];
	struct ow_interval_result total;
	d->groups.group[n] = d->groups.group[--d->groups.count];
	ow_group_results_finish(g->results);
	ow_group_results_total(g->results, &total);
	if (total.interval > 0)
		ow_daemon_total(d, &total);
	free_group(g);
}

static bool has_lane(const struct ow_daemon *d, const struct ow_daemon_group *g)
{
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->group == g)
			return true;
	}
	return false;
}

void ow_daemon_groups_tick(struct ow_daemon *d)
{
	for (unsigned i = d->groups.count; i-- > 0;) {
		if (d->groups.group[i]->ending && !has_lane(d, d->groups.group[i]))
			end_group(d, i);
	}
}

void ow_daemon_groups_end(struct ow_daemon *d)
{
	while (d->groups.count)
		end_group(d, d->groups.count - 1);
}

void ow_daemon_groups_free(struct ow_daemon *d)
{
	while (d->groups.count)
		free_group(d->groups.group[--d->groups.count]);
	free(d->groups.group);
}
