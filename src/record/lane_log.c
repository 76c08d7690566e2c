/* SPDX-License-Identifier: Apache-2.0 */
#include "record/lane_log.h"

#include "base/array.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ow_lane_logs_init(struct ow_lane_logs *logs, struct ow_recorder *recorder, unsigned sources)
{
	*logs = (struct ow_lane_logs){.recorder = recorder, .sources = sources};
}

static void free_log(struct ow_lane_log *log)
{
	ow_interval_log_free(log->packets);
	free(log);
}

void ow_lane_logs_done(struct ow_lane_logs *logs)
{
	while (logs->count > 0)
		free_log(logs->log[--logs->count]);
	free(logs->log);
	logs->log = NULL;
	logs->room = 0;
}

int ow_lane_log_create(struct ow_lane_logs *logs, const struct ow_lane_options *lane, size_t sightings_max,
                       size_t open_max, struct ow_lane_log **ret_log, struct ow_error *err)
{
	const struct ow_interval_log_options options = {.identity = lane->identity,
	                                                .t0_ns = lane->t0_ns,
	                                                .length_ns = lane->length_ns,
	                                                .sightings_max = sightings_max,
	                                                .open_max = open_max};
	struct ow_lane_log *log = calloc(1, sizeof *log);
	if (!log || OW_GROW(logs->log, logs->room, logs->count + 1) < 0) {
		free(log);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	*log = (struct ow_lane_log){
		.all = logs, .sources = lane->sources, .cuts = {lane->t0_ns, lane->length_ns, 0, 0, 0}};
	int r = ow_interval_log_create(&options, &log->packets);
	if (r < 0)
		ow_error_set(err, -r, "cannot keep the packets of intervals: %s", strerror(-r));
	else
		r = ow_recorder_add_lane(logs->recorder, lane, &log->lane, err);
	if (r < 0) {
		free_log(log);
		return r;
	}
	logs->log[logs->count++] = log;
	*ret_log = log;
	return 0;
}

/* Lane numbers only increase, so the logs are sorted by them. */
static size_t place_of(const struct ow_lane_logs *logs, uint32_t lane)
{
	size_t from = 0, to = logs->count;
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (logs->log[middle]->lane < lane)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void ow_lane_log_free(struct ow_lane_log *log)
{
	if (!log)
		return;
	struct ow_lane_logs *logs = log->all;
	size_t place = place_of(logs, log->lane);
	ow_recorder_remove_lane(logs->recorder, log->lane);
	memmove(logs->log + place, logs->log + place + 1, (--logs->count - place) * sizeof *logs->log);
	free_log(log);
}

void ow_lane_log_shift(struct ow_lane_log *log, int64_t shift_ns, int64_t now_ns, int64_t passed)
{
	struct ow_interval_cuts cuts = log->cuts;
	int64_t least_ns = cuts.after_ns - cuts.length_ns / 2;
	shift_ns = shift_ns > least_ns ? shift_ns : least_ns;
	if (shift_ns == cuts.after_ns || passed <= cuts.change)
		return;
	cuts.before_ns = cuts.after_ns;
	cuts.after_ns = shift_ns;
	/* The threads know by then. */
	cuts.change = ow_cuts_interval(&log->cuts, now_ns + OW_RECORDER_LAG_NS) + 2;
	if (ow_recorder_set_cuts(log->all->recorder, log->lane, &cuts) < 0)
		return;
	ow_interval_log_set_cuts(log->packets, &cuts);
	log->cuts = cuts;
}

static void enter_chunk(struct ow_lane_logs *logs, const struct ow_chunk *chunk)
{
	size_t place = place_of(logs, chunk->lane);
	if (place == logs->count || logs->log[place]->lane != chunk->lane)
		return;
	const struct ow_lane_log *log = logs->log[place];
	/* If memory runs out, the interval is reduced to a sample; its packets say so. */
	(void)ow_interval_log_add(log->packets, chunk);
	if (chunk->count == 0)
		return;
	int64_t last_ns = ow_cuts_origin(&log->cuts, chunk->interval) + chunk->sighting[chunk->count - 1].time_ns;
	logs->latest_ns = last_ns > logs->latest_ns ? last_ns : logs->latest_ns;
}

void ow_lane_logs_enter(struct ow_lane_logs *logs, struct ow_chunk *chunks)
{
	for (struct ow_chunk *next; chunks; chunks = next) {
		next = chunks->next;
		enter_chunk(logs, chunks);
		ow_chunk_free(chunks);
	}
	/* Frames that a ring dropped may have belonged to any lane. */
	for (unsigned source = 0; source < logs->sources; source++) {
		struct ow_drops drops;
		ow_recorder_drops(logs->recorder, source, &drops);
		for (size_t i = 0; drops.frames > 0 && i < logs->count; i++) {
			if (logs->log[i]->sources >> source & 1)
				ow_interval_log_drops(logs->log[i]->packets, &drops);
		}
	}
}

void ow_lane_logs_outage(struct ow_lane_logs *logs, unsigned source, const struct ow_outage *outage, bool *ret_new)
{
	uint32_t bit = UINT32_C(1) << source;
	struct ow_outage *last = logs->outage + source;
	bool known = logs->away & bit;
	int64_t from_ns = known ? last->from_ns : outage->from_ns;
	for (size_t i = 0; i < logs->count; i++) {
		if (logs->log[i]->sources & bit)
			ow_interval_log_outage(logs->log[i]->packets, outage);
	}
	*ret_new = !known || (!outage->over && strcmp(last->cause, outage->cause) != 0);
	*last = *outage;
	last->from_ns = from_ns;
	logs->away = outage->over ? logs->away & ~bit : logs->away | bit;
}

int ow_lane_logs_check(const struct ow_lane_logs *logs, struct ow_error *err)
{
	char causes[4 * OW_OUTAGE_CAUSE] = "";
	size_t used = 0;
	if (logs->sources == 0 || logs->away != (uint32_t)((UINT64_C(1) << logs->sources) - 1))
		return 0;
	for (unsigned i = 0; i < logs->sources && used < sizeof causes; i++)
		used += (size_t)snprintf(causes + used, sizeof causes - used, "%s%s", i ? ", " : "",
		                         logs->outage[i].cause);
	return ow_error_set(err, ENODEV, "no interface is left: %s", causes);
}
