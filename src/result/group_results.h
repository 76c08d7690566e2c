/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_results.h"

/*
 * Several receivers: a packet of the sender passes one of them, by its flow or at random. Each member of the group has
 * a lane of its own, and a lane alone cannot tell a lost packet from one that went to another member. Here the lanes
 * are joined, interval by interval: a packet is lost if no member got it.
 *
 *     sent      packets that all lanes have of the interval (a lane leaves out its own session)
 *     matched   got by at least one member
 *     received  what all members got; what two of them got is one packet and a duplicate
 *
 * Late packets, doubts and scope are those of result/interval_results.h, over the union of what the members got. An
 * interval is closed when all members have told, or when `waiting` later ones have begun. Of a member that did not tell
 * nothing is known: the result is partial, with the cause, and packets that nobody else got stay pending. Delays are
 * those of the lanes, so there are none here.
 *
 * All lanes must name packets alike: the same identity, and the same seeds. Intervals begin at multiples of their
 * length, so those of all lanes are the same; numbers count from the first one here.
 */
#define OW_GROUP_MEMBERS_MAX 16

/* Whether `group`, the name of a point in a result, is that of several ("b1+b2"), and this is one of them. */
bool ow_group_has(const char *group, const char *member);

struct ow_group_results_options {
	struct ow_interval_result names; /* segment, class_name, from; to: of the group */
	unsigned members;
	char member[OW_GROUP_MEMBERS_MAX][OW_RESULT_NAME];
	int64_t length_ns;
	uint32_t horizon;
	unsigned waiting; /* intervals that wait for a member */
	bool shared;      /* scope */
};

struct ow_group_results;

/* event may be NULL. */
int ow_group_results_create(const struct ow_group_results_options *options, ow_interval_results_sink result,
                            ow_flow_event_sink event, void *arg, struct ow_group_results **ret_group);
void ow_group_results_free(struct ow_group_results *group);

/*
 * The lane of a member has compared an interval. `input`: as for the lane itself, with its packets; name: of each of
 * them; identity: a number for what makes packets the same: those of lanes with different ones cannot be joined.
 */
void ow_group_results_compared(struct ow_group_results *group, unsigned member, unsigned identity,
                               const struct ow_interval_results_input *input, const uint64_t *name);
/* What this member got in the interval stays unknown. Of the result: start_ns, the cause, counts of the sender. */
void ow_group_results_unknown(struct ow_group_results *group, unsigned member, const struct ow_interval_result *result);
/* Closes all intervals, and makes them final. */
void ow_group_results_finish(struct ow_group_results *group);
void ow_group_results_total(const struct ow_group_results *group, struct ow_interval_result *ret_total);
