/* SPDX-License-Identifier: Apache-2.0 */
/* Live results as messages, and back. */
#include "exchange/exchange_private.h"
#include "base/coder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void value_to(const struct ow_value *value, struct ow_message_value *ret_value)
{
	*ret_value = (struct ow_message_value){.status = (enum ow_message_value_status)value->status,
	                                       .value = value->value,
	                                       .low = value->low,
	                                       .high = value->high};
	/* What the codec would refuse: not a number, or not within its interval. */
	if (value->status != OW_VALUE_NONE &&
	    !(isfinite(value->value) && value->low <= value->value && value->value <= value->high))
		ret_value->status = OW_MESSAGE_VALUE_NONE;
	if (ret_value->status == OW_MESSAGE_VALUE_NONE)
		snprintf(ret_value->reason, sizeof ret_value->reason, "%s", ow_reason_text(value->reason));
}

static void value_from(const struct ow_message_value *value, struct ow_value *ret_value)
{
	*ret_value = (struct ow_value){(enum ow_value_status)value->status, value->value, value->low, value->high,
	                               OW_NO_REASON};
	if (value->status == OW_MESSAGE_VALUE_NONE)
		*ret_value = (struct ow_value){.reason = ow_reason_of(value->reason, OW_REASON_PEER_COULD_NOT_TELL)};
}

void ow_result_to_message(const struct ow_interval_result *r, uint64_t differences,
                          struct ow_message_result *ret_message)
{
	struct ow_message_result m = {
		.status = (enum ow_message_result_status)r->status,
		.final = r->final,
		.exact = r->exact,
		.sample_shift = (uint8_t)r->sample_shift,
		.differences = differences,
		.sent = r->sent,
		.received = r->received,
		.matched = r->matched,
		.late = r->late,
		.late_received = r->late_received,
		.lost = r->lost,
		.pending = r->pending,
		.extra = r->extra,
		.duplicated = r->duplicated,
		.ambiguous = r->ambiguous,
		.reordered = r->reordered,
		.bytes = r->bytes,
		.total_sent = r->total_sent,
		.total_received = r->total_received,
		.coverage = r->coverage,
		.ring_drops_from = r->ring_drops_from,
		.ring_drops_to = r->ring_drops_to,
		.unreadable = r->unreadable,
		.samples = r->samples,
		.clock_from = r->clock_from,
		.clock_to = r->clock_to,
		.cost_bytes = r->cost.bytes,
		.round_trips = r->cost.round_trips,
		.transmit_ns = r->cost.transmit_ns,
		.decode_ns = r->cost.decode_ns,
		.missing_ns = r->cost.missing_ns,
		.erase_ns = r->cost.erase_ns,
		.compute_ns = r->cost.compute_ns,
		.ready_ns = r->cost.ready_ns,
	};
	value_to(&r->mean_ns, &m.mean_ns);
	value_to(&r->stddev_ns, &m.stddev_ns);
	value_to(&r->min_ns, &m.min_ns);
	value_to(&r->max_ns, &m.max_ns);
	value_to(&r->loss_ratio, &m.loss_ratio);
	for (int q = 0; q < OW_QUANTILES; q++)
		value_to(&r->quantile_ns[q], &m.quantile_ns[q]);
	snprintf(m.cause, sizeof m.cause, "%s", r->cause);
	snprintf(m.synopsis, sizeof m.synopsis, "%s", r->synopsis);
	/* A name in another script may have been cut within a character. */
	ow_coder_cut(m.cause);
	if (!m.cause[0] && m.status != OW_MESSAGE_MEASURED)
		snprintf(m.cause, sizeof m.cause, "not known");
	*ret_message = m;
}

void ow_result_from_message(const struct ow_message_result *m, struct ow_interval_result *r)
{
	r->status = (enum ow_result_status)m->status;
	r->final = m->final;
	r->exact = m->exact;
	r->sample_shift = m->sample_shift;
	r->sent = m->sent;
	r->received = m->received;
	r->matched = m->matched;
	r->late = m->late;
	r->late_received = m->late_received;
	r->lost = m->lost;
	r->pending = m->pending;
	r->extra = m->extra;
	r->duplicated = m->duplicated;
	r->ambiguous = m->ambiguous;
	r->reordered = m->reordered;
	r->bytes = m->bytes;
	r->total_sent = m->total_sent;
	r->total_received = m->total_received;
	r->coverage = m->coverage;
	r->ring_drops_from = m->ring_drops_from;
	r->ring_drops_to = m->ring_drops_to;
	r->unreadable = m->unreadable;
	r->samples = m->samples;
	value_from(&m->mean_ns, &r->mean_ns);
	value_from(&m->stddev_ns, &r->stddev_ns);
	value_from(&m->min_ns, &r->min_ns);
	value_from(&m->max_ns, &r->max_ns);
	value_from(&m->loss_ratio, &r->loss_ratio);
	for (int q = 0; q < OW_QUANTILES; q++)
		value_from(&m->quantile_ns[q], &r->quantile_ns[q]);
	r->clock_from = m->clock_from;
	r->clock_to = m->clock_to;
	r->cost = (struct ow_result_cost){m->cost_bytes, m->round_trips, m->transmit_ns, m->decode_ns,
	                                  m->missing_ns, m->erase_ns,    m->compute_ns,  m->ready_ns};
	snprintf(r->cause, sizeof r->cause, "%s", m->cause);
	snprintf(r->synopsis, sizeof r->synopsis, "%s", m->synopsis);
}
