/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets of an interval pass the other point: reconcile/scope_verdict.h, for the intervals that are open. */
#include "result/interval_results_private.h"

#include "result/cause.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If nothing is shared for this long, and this many packets were sent, the points do not measure the same traffic. */
#define UNSHARED_NS  INT64_C(10000000000)
#define UNSHARED_MIN 20

int ow_interval_results_keep_flows(const struct ow_interval_results *results,
                                   const struct ow_interval_results_input *in, struct ow_interval_results_open *open)
{
	open->flow = NULL;
	open->in_scope = NULL;
	open->flows = 0;
	open->strange = 0;
	open->newest_extra_ns = OW_INTERVAL_RESULTS_NO_TIME;
	for (size_t i = 0; results->scope && i < in->only_bs; i++) {
		open->strange += !in->only_b[i].flow;
		if (in->only_b[i].time_ns > open->newest_extra_ns)
			open->newest_extra_ns = in->only_b[i].time_ns;
	}
	if (!results->scope || !in->flows)
		return 0;
	open->flow = malloc(in->flows * sizeof *open->flow);
	if (!open->flow)
		return -ENOMEM;
	memcpy(open->flow, in->flow, in->flows * sizeof *open->flow);
	open->flows = in->flows;
	open->in_scope = in->in_scope ? malloc(in->flows) : NULL;
	if (open->in_scope)
		memcpy(open->in_scope, in->in_scope, in->flows);
	return 0;
}

void ow_interval_results_note_flows(struct ow_interval_results *results)
{
	const struct ow_interval_results_input *in = results->input;
	if (!results->scope || !in || !in->flows || in->result.interval == results->noted)
		return;
	results->noted = in->result.interval;
	/* Without memory the flows of this interval are as if none had matched: fewer packets are lost, more unshared. */
	(void)ow_scope_verdict_note(results->scope, in->result.interval, in->flow, in->flows, in->packet,
	                            in->is_matched, in->packets);
}

void ow_interval_results_note_late(struct ow_interval_results *results, const struct ow_interval_results_open *sender,
                                   uint32_t flow, int64_t sent_ns)
{
	if (results->scope && flow && flow <= sender->flows)
		ow_scope_verdict_late(results->scope, sender->result.interval, &sender->flow[flow - 1],
		                      sent_ns - sender->result.start_ns);
}

/* The packets whose flow is known, by its index; `from` says where each of them was. */
static size_t list_known(const struct ow_interval_results_open *open, const struct ow_scope_packet *packets,
                         size_t count, struct ow_scope_packet *known, size_t *from)
{
	size_t knowns = 0;
	for (size_t i = 0; i < count; i++) {
		if (!packets[i].flow || packets[i].flow > open->flows)
			continue;
		from[knowns] = i;
		uint32_t flow = packets[i].flow - 1;
		known[knowns++] = (struct ow_scope_packet){.flow = flow,
		                                           .compared = !open->in_scope || open->in_scope[flow],
		                                           .time_ns = packets[i].time_ns};
	}
	return knowns;
}

/* A packet whose flow was not listed may be for anybody. */
static int judge(struct ow_interval_results *results, struct ow_interval_results_open *open,
                 const struct ow_scope_packet *packets, size_t count, struct ow_scope_packet *known, size_t *from,
                 uint8_t *ret_fates)
{
	struct ow_scope_sums sums = {0};
	size_t knowns = list_known(open, packets, count, known, from);
	uint8_t *fate = calloc(knowns + 1, sizeof *fate);
	int r = fate ? 0 : -ENOMEM;
	if (r == 0 && knowns)
		r = ow_scope_verdict_judge(results->scope, open->result.interval, open->flow, open->flows, known,
		                           knowns, fate, &sums);
	if (r == 0) {
		memset(ret_fates, OW_SCOPE_UNSHARED, count);
		for (size_t i = 0; i < knowns; i++)
			ret_fates[from[i]] = fate[i];
		open->absent = sums.absent;
		open->unsure = sums.unsure;
		open->whole = sums.whole;
		open->unlisted = count - knowns;
	}
	free(fate);
	return r;
}

static int judge_by_scope(struct ow_interval_results *results, struct ow_interval_results_open *open,
                          const struct ow_scope_packet *packets, size_t count, uint8_t *ret_fates)
{
	ow_interval_results_note_flows(results);
	struct ow_scope_packet *known = malloc((count + 1) * sizeof *known);
	size_t *from = malloc((count + 1) * sizeof *from);
	int r = known && from ? judge(results, open, packets, count, known, from, ret_fates) : -ENOMEM;
	free(known);
	free(from);
	if (r < 0)
		results->doubt = OW_DOUBT_MEMORY;
	return r;
}

int ow_interval_results_on_judge(void *arg, const struct ow_scope_packet *packets, size_t count, uint8_t *ret_fates)
{
	struct ow_interval_results *results = arg;
	struct ow_interval_results_open *open = ow_interval_results_open_of(results, results->first);
	int r = results->scope ? judge_by_scope(results, open, packets, count, ret_fates) : 0;
	if (r == 0 && results->one_of_several) {
		memset(ret_fates, OW_SCOPE_UNSHARED, count);
		open->whole = open->unsure = 0;
	}
	return r;
}

void ow_interval_results_explain_unshared(struct ow_interval_results *results, struct ow_interval_result *result)
{
	struct ow_interval_result *r = result;
	if (!results->scope || r->status == OW_RESULT_UNKNOWN)
		return;
	results->unshared += r->unshared_sent;
	if (r->matched + r->late) {
		results->shared_ns = r->start_ns + r->length_ns;
		results->unshared = 0;
	}
	bool long_ago = results->shared_ns == INT64_MIN || r->start_ns - results->shared_ns >= UNSHARED_NS;
	/* What nobody sees does not go another way. */
	bool nothing = !r->total_sent && !r->total_received;
	if (r->sent || nothing || !long_ago || results->unshared < UNSHARED_MIN)
		return;
	/* Everything may go to the others now. */
	if (results->one_of_several && !r->unshared_received)
		return;
	r->status = OW_RESULT_UNKNOWN;
	if (r->unshared_received)
		snprintf(r->cause, sizeof r->cause, ow_cause_nothing_shared, r->to, r->from);
	else
		snprintf(r->cause, sizeof r->cause, ow_cause_nothing_arrives, r->to);
	r->received = r->extra = r->duplicated = r->late_received = 0;
	r->unshared_sent = r->unshared_received = r->absent = 0;
}

size_t ow_interval_results_fine(struct ow_interval_results *results, uint64_t *pair_keys, size_t max)
{
	return results->scope ? ow_scope_verdict_fine(results->scope, pair_keys, max) : 0;
}

void ow_interval_results_rerouted(struct ow_interval_results *results, int64_t interval, const uint64_t *pair_keys,
                                  const int8_t *ttl_change, size_t count)
{
	if (results->scope && count)
		ow_scope_verdict_ttl(results->scope, interval, pair_keys, ttl_change, count);
}

/* The names of the lane, and which interval is the newest, for events. */
static void place_events(struct ow_flow_event *newest, const struct ow_interval_result *r)
{
	snprintf(newest->segment, sizeof newest->segment, "%s", r->segment);
	snprintf(newest->class_name, sizeof newest->class_name, "%s", r->class_name);
	snprintf(newest->from, sizeof newest->from, "%s", r->from);
	snprintf(newest->to, sizeof newest->to, "%s", r->to);
	newest->start_ns = r->start_ns;
	newest->scope.interval = r->interval;
}

void ow_interval_results_tell_events(struct ow_interval_results *results, const struct ow_interval_result *newest)
{
	struct ow_scope_event found[OW_SCOPE_EVENTS_MAX];
	if (!results->scope || !results->event_sink)
		return;
	if (newest)
		place_events(&results->event, newest);
	size_t count = ow_scope_verdict_events(results->scope, found);
	for (size_t i = 0; i < count; i++) {
		struct ow_flow_event event = results->event;
		int64_t after = found[i].interval - event.scope.interval;
		event.start_ns += after * results->event_length_ns + found[i].time_ns;
		event.scope = found[i];
		if (ow_flow_event_allow(&results->event_limit, results->event.start_ns, &event))
			results->event_sink(results->arg, &event);
	}
}
