/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "result/group_results.h"

/*
 * A segment with several peers, one of its classes: the lanes to all of them are joined (result/group_results.h). They
 * have the same seeds, so that a packet has the same id in each. A group stays while lanes come and go.
 */
struct ow_daemon;

struct ow_daemon_group {
	struct ow_daemon *daemon;
	struct ow_group_results_options options; /* with the names */
	uint64_t identity_seed, synopsis_seed;
	struct ow_group_results *results;
	uint32_t followed; /* a bit for each enum ow_variant that all lanes have been given because one needs it */
	bool ending;       /* takes no more lanes: ends with the last one */
};

struct ow_daemon_groups {
	struct ow_daemon_group **group;
	unsigned count, room;
};

/* The group of a class of the segment, which has several peers. NULL: there is no memory for it. */
struct ow_daemon_group *ow_daemon_group_of(struct ow_daemon *daemon, const struct ow_config_segment *segment,
                                           const char *class_name);
/* What the lane to a peer found out of an interval; name NULL: nothing. identity: an enum ow_variant. */
void ow_daemon_group_compared(struct ow_daemon_group *group, const char *peer, unsigned identity,
                              const struct ow_interval_results_input *input, const uint64_t *name);
/* The same for an interval without a lane, of any segment. */
void ow_daemon_group_gap(struct ow_daemon *daemon, const struct ow_interval_result *result);
/* Ends groups whose segments change, or all with NULL, when their lanes have ended. */
void ow_daemon_groups_retire(struct ow_daemon *daemon, const struct ow_config *next);
void ow_daemon_groups_tick(struct ow_daemon *daemon);
/* Everything has ended: makes all results final, and reports the sums. */
void ow_daemon_groups_end(struct ow_daemon *daemon);
void ow_daemon_groups_free(struct ow_daemon *daemon);
