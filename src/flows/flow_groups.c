/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of flows: flow_groups.h. */
#include "flows/flow_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A flow with the key of its group. */
struct member {
	struct ow_flow_key key;
	const struct ow_flow_answer *flow;
};

static int by_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return memcmp(&x->key, &y->key, sizeof x->key);
}

static int check(const struct ow_flow_select *from, const struct ow_flow_select *by, struct ow_error *err)
{
	char is[OW_FLOW_SELECT_TEXT], asked[OW_FLOW_SELECT_TEXT];
	ow_flow_select_text(from, is);
	ow_flow_select_text(by, asked);
	bool fits = (by->by == OW_FLOW_BY_ADDRESSES && from->by == OW_FLOW_BY_FIVE_TUPLE) ||
	            (by->by == OW_FLOW_BY_PREFIX && from->by <= OW_FLOW_BY_ADDRESSES) ||
	            (by->by == OW_FLOW_BY_PREFIX && from->by == OW_FLOW_BY_PREFIX && by->prefix4 <= from->prefix4 &&
	             by->prefix6 <= from->prefix6);
	if (fits)
		return 0;
	if (by->by == OW_FLOW_BY_CLASS)
		return ow_error_set(err, EINVAL,
		                    "flows cannot be grouped by class afterwards: record them with --key class");
	return ow_error_set(err, EINVAL, "flows that were recorded by %s cannot be grouped by %s", is, asked);
}

/* Sums over the flows of a group with an estimate, times their packets. */
struct sums {
	double packets, mean, low, high;
	bool exact;
};

static void add_mean(struct sums *sums, const struct ow_value *mean, double packets)
{
	if (mean->status == OW_VALUE_NONE)
		return;
	sums->packets += packets;
	sums->mean += packets * mean->value;
	sums->low += packets * mean->low;
	sums->high += packets * mean->high;
	sums->exact &= mean->status == OW_VALUE_EXACT;
}

/* Of one leg. members: those of the group. */
static struct ow_flow_estimate estimate_group(const struct member *member, size_t members, unsigned leg)
{
	struct sums sums = {.exact = true};
	const struct ow_flow_estimate *first = &member->flow->estimate[leg];
	if (members == 1)
		return *first;
	struct ow_flow_estimate group = {.mean_ns = ow_value_none(first->mean_ns.reason),
	                                 .stddev_ns = ow_value_none(OW_REASON_FLOW_GROUPED),
	                                 .estimator = first->estimator,
	                                 .no_spread = OW_REASON_FLOW_GROUPED};
	for (size_t i = 0; i < members; i++)
		add_mean(&sums, &member[i].flow->estimate[leg].mean_ns, (double)member[i].flow->packets);
	if (sums.packets > 0)
		group.mean_ns = (struct ow_value){
			.status = sums.exact ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED,
			.value = sums.mean / sums.packets,
			.low = sums.low / sums.packets,
			.high = sums.high / sums.packets,
		};
	group.packets = sums.packets;
	return group;
}

static struct ow_flow_answer add_up(const struct member *member, size_t members, unsigned whole)
{
	struct ow_flow_answer group = {.key = member->key};
	for (size_t i = 0; i < members; i++) {
		const struct ow_flow_answer *flow = member[i].flow;
		group.packets += flow->packets;
		group.sent =
			group.sent == UINT64_MAX || flow->sent == UINT64_MAX ? UINT64_MAX : group.sent + flow->sent;
		group.flows++;
		if (flow->estimate[whole].mean_ns.status != OW_VALUE_NONE)
			group.estimated_packets += flow->packets;
	}
	return group;
}

static size_t group_end(const struct member *member, size_t from, size_t members)
{
	size_t end = from;
	while (end < members && by_key(&member[end], &member[from]) == 0)
		end++;
	return end;
}

int ow_flow_answers_group(struct ow_flow_answers *a, const struct ow_flow_select *by, struct ow_error *err)
{
	int r = check(&a->select, by, err);
	if (r < 0)
		return r;
	struct member *member = calloc(a->flows + 1, sizeof *member);
	struct ow_flow_answer *group = calloc(a->flows + 1, sizeof *group);
	struct ow_flow_estimate *estimate = calloc((a->flows + 1) * a->legs, sizeof *estimate);
	if (!member || !group || !estimate) {
		free(member);
		free(group);
		free(estimate);
		return ow_error_set(err, ENOMEM, "not enough memory for groups of %zu flows", a->flows);
	}
	for (size_t i = 0; i < a->flows; i++) {
		member[i].flow = &a->flow[i];
		ow_flow_select_key(by, &a->flow[i].key, &member[i].key);
	}
	qsort(member, a->flows, sizeof *member, by_key);
	size_t groups = 0;
	a->estimated = a->never_arrived = 0;
	for (size_t i = 0, end; i < a->flows; i = end, groups++) {
		end = group_end(member, i, a->flows);
		group[groups] = add_up(member + i, end - i, a->legs - 1);
		group[groups].estimate = &estimate[groups * a->legs];
		for (unsigned leg = 0; leg < a->legs; leg++)
			estimate[groups * a->legs + leg] = estimate_group(member + i, end - i, leg);
		const struct ow_value *mean = &ow_flow_answer_whole(a, &group[groups])->mean_ns;
		a->estimated += mean->status != OW_VALUE_NONE;
		a->never_arrived += !group[groups].packets;
	}
	free(member);
	free(a->flow);
	free(a->estimates);
	a->flow = group;
	a->estimates = estimate;
	a->flows = groups;
	a->select = *by;
	a->grouped = true;
	return 0;
}
