/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a result's fields, in the order of JSON, and sums of results. */
#include "result/fields.h"

#include <stdio.h>
#include <string.h>

#define MEMBER(member) offsetof(struct ow_interval_result, member), sizeof(((struct ow_interval_result *)0)->member)
/* name in JSON, type, member, sum, flags, place in the message, columns, their place, since, meaning, and what it has
 * of METRIC() and .words */
#define FIELD(json_, type, member, sum, ...)                                              \
	{                                                                                 \
		.json = json_, OW_FIELD_##type, MEMBER(member), OW_SUM_##sum, __VA_ARGS__ \
	}
#define MADE(json_, type, ...)                                                       \
	{                                                                            \
		.json = json_, OW_FIELD_##type, 0, 0, OW_SUM_NONE, 0, 0, __VA_ARGS__ \
	}
#define NO_COLUMN                NULL, 0, 0, NULL
#define STAGE                    .metric = {.kind = OW_METRIC_STAGE}
#define METRIC(kind, name, help) .metric = {OW_METRIC_##kind, "oneway_" name, help}
/* A value and its interval. */
#define COLUMNS(name) name "_ns, " name "_low_ns, " name "_high_ns"

#define ALWAYS      OW_FIELD_ALWAYS
#define NOT_COUNTED OW_FIELD_NOT_COUNTED
#define NOT_NULL    OW_FIELD_NOT_NULL
#define NO_BOUNDS   OW_FIELD_NO_BOUNDS
#define OF_BYTES    OW_FIELD_OF_BYTES
#define OF_SAMPLE   OW_FIELD_OF_SAMPLE
#define OPTIONAL    OW_FIELD_OPTIONAL

/* clang-format off */
const struct ow_field ow_fields[] = {
	FIELD("segment", NAME, segment, FIRST, 0, 0, NO_COLUMN),
	FIELD("class", NAME, class_name, FIRST, 0, 0, NO_COLUMN),
	FIELD("from", NAME, from, FIRST, 0, 0, NO_COLUMN),
	FIELD("to", NAME, to, FIRST, 0, 0, NO_COLUMN),
	FIELD("interval", INTEGER, interval, NONE, NOT_NULL, 0, "interval", 3, 1, NULL),
	FIELD("start_ns", INTEGER, start_ns, FIRST, NOT_NULL, 0, "start_ns", 1, 1, "since 1970-01-01 UTC"),
	FIELD("length_ns", INTEGER, length_ns, NONE, NOT_NULL, 0, "length_ns", 2, 1, NULL),
	FIELD("intervals", COUNT, intervals, NONE, NOT_NULL | OPTIONAL | ALWAYS, 56, "intervals", 59, 7, "of a minute, an hour or a day: those in it, and"),
	FIELD("intervals_partial", COUNT, intervals_partial, NONE, NOT_NULL | OPTIONAL | ALWAYS, 57, "intervals_partial", 60, 7, "which of them are partial"),
	FIELD("intervals_unknown", COUNT, intervals_unknown, NONE, NOT_NULL | OPTIONAL | ALWAYS, 58, "intervals_unknown", 61, 7, "or unknown"),
	FIELD("final", FLAG, final, NONE, NOT_NULL, 2, "final", 4, 1, "0: what is pending may still arrive"),
	FIELD("status", STATUS, status, NONE, NOT_NULL, 1, "status", 6, 1, "measured, partial, unknown"),
	FIELD("cause", TEXT, cause, NONE, OPTIONAL, 41, "cause", 7, 1, "why it is partial or unknown"),
	{.json = "cause_code", OW_FIELD_CAUSE, offsetof(struct ow_interval_result, cause), .flags = OPTIONAL},
	FIELD("sent", COUNT, sent, ADD, OF_SAMPLE, 6, "sent", 8, 1, "= matched + late + lost + pending",
	 METRIC(COUNTER, "packets_sent_total", "Packets seen by the sending point.")),
	FIELD("received", COUNT, received, ADD, OF_SAMPLE, 7, "received", 9, 1, "= matched + late_received + extra",
	 METRIC(COUNTER, "packets_received_total", "Packets seen by the receiving point.")),
	FIELD("matched", COUNT, matched, ADD, OF_SAMPLE, 8, "matched", 10, 1, NULL),
	FIELD("late", COUNT, late, ADD, OF_SAMPLE, 9, "late", 11, 1, NULL,
	 METRIC(COUNTER, "packets_late_total", "Compared packets that arrived in a later interval than they were sent in."),
	 .words = "late: arrived in a later interval"),
	FIELD("late_received", COUNT, late_received, ADD, OF_SAMPLE, 10, "late_received", 12, 1, NULL),
	FIELD("lost", COUNT, lost, ADD, OF_SAMPLE, 11, "lost", 13, 1, NULL,
	 METRIC(COUNTER, "packets_lost_total", "Compared packets that did not arrive within the waiting time.")),
	FIELD("pending", COUNT, pending, ADD, OF_SAMPLE, 12, "pending", 14, 1, NULL,
	 METRIC(COUNTER, "packets_undecided_total", "Packets sent that may have arrived where nobody looked; neither lost nor arrived.")),
	FIELD("extra", COUNT, extra, ADD, OF_SAMPLE, 13, "extra", 15, 1, NULL,
	 METRIC(COUNTER, "packets_extra_total", "Packets received that nobody sent, with duplicated ones.")),
	FIELD("duplicated", COUNT, duplicated, ADD, OF_SAMPLE, 14, "duplicated", 16, 1, NULL,
	 METRIC(COUNTER, "packets_duplicated_total", "Packets received once more than they were sent.")),
	FIELD("ambiguous", COUNT, ambiguous, ADD, OF_SAMPLE, 15, "ambiguous", 17, 1, NULL,
	 METRIC(COUNTER, "packets_ambiguous_total", "Packets that arrived among identical ones, so that their delay cannot be told.")),
	FIELD("without_clock", COUNT, without_clock, ADD, OF_SAMPLE, 60, "without_clock", 63, 9, "arrived, without a delay, because the difference of the clocks was not known",
	 METRIC(COUNTER, "packets_without_clock_total", "Packets that arrived without a delay, because the difference of the clocks was not known."),
	 .words = "without a delay: the difference of the clocks was not known"),
	FIELD("reordered", COUNT, reordered, ADD, OF_SAMPLE | NOT_COUNTED, 16, "reordered", 18, 1, NULL,
	 METRIC(COUNTER, "packets_reordered_total", "Packets that arrived after packets sent later. Only where the method sees order.")),
	FIELD("unshared_sent", COUNT, unshared_sent, ADD, OF_SAMPLE, 43, "unshared_sent", 47, 4, "of flows that do not pass the other point; not in sent",
	 METRIC(COUNTER, "packets_unshared_sent_total", "Packets at the sending point of flows that do not pass the receiving one."),
	 .words = "unshared: of flows that do not pass the other point"),
	FIELD("unshared_received", COUNT, unshared_received, ADD, OF_SAMPLE, 44, "unshared_received", 48, 4, "of flows that do not pass the other point; not in received",
	 METRIC(COUNTER, "packets_unshared_received_total", "Packets at the receiving point of flows that do not pass the sending one."),
	 .words = "unshared received: of flows that do not come from the other point"),
	FIELD("absent", COUNT, absent, ADD, OF_SAMPLE, 45, "absent", 49, 4, "of unshared_sent: other flows between the same networks pass",
	 METRIC(COUNTER, "packets_absent_total", "Unshared packets between networks of which other flows pass the receiving point."),
	 .words = "absent: unshared, though other flows between the same networks pass"),
	FIELD("lost_whole_flows", COUNT, lost_whole_flows, ADD, OF_SAMPLE, 46, "lost_whole_flows", 50, 4, "of lost: nothing of the flow arrived until the decision",
	 METRIC(COUNTER, "packets_lost_whole_flows_total", "Lost packets of flows of which nothing arrived afterwards."),
	 .words = "lost with whole flows: nothing of the flow arrived until the decision"),
	FIELD("samples", COUNT, samples, ADD, 0, 23, "samples", 27, 1, "delays that the numbers rest on; _low.._high holds the truth in 95 % of cases",
	 METRIC(GAUGE, "delay_samples", "Delays that the numbers of the last final interval rest on.")),
	FIELD("bytes", COUNT, bytes, ADD, OF_BYTES, 17, "bytes", 19, 1, NULL,
	 METRIC(COUNTER, "bytes_sent_total", "Bytes of the IP packets seen by the sending point.")),
	FIELD("loss_ratio", VALUE, loss_ratio, NONE, 0, 39, "loss_ratio, loss_low, loss_high", 33, 1, NULL,
	 METRIC(GAUGE, "loss_ratio", "Lost packets as a share of the compared ones in the last final interval, 0 to 1.")),
	FIELD("delay_ns.mean", VALUE, mean_ns, NONE, 0, 35, COLUMNS("mean"), 28, 1, NULL,
	 METRIC(SECONDS, "delay_mean_seconds", "Mean one-way delay of the last final interval.")),
	FIELD("delay_ns.stddev", VALUE, stddev_ns, NONE, 0, 36, COLUMNS("stddev"), 29, 1, NULL,
	 METRIC(SECONDS, "delay_stddev_seconds", "Standard deviation of the one-way delay in the last final interval.")),
	FIELD("delay_ns.min", VALUE, min_ns, NONE, NO_BOUNDS, 37, "min_ns", 30, 1, NULL,
	 METRIC(SECONDS, "delay_min_seconds", "Least one-way delay of the last final interval, where all are known.")),
	FIELD("delay_ns.max", VALUE, max_ns, NONE, NO_BOUNDS, 38, "max_ns", 31, 1, NULL,
	 METRIC(SECONDS, "delay_max_seconds", "Greatest one-way delay of the last final interval, where all are known.")),
	FIELD("delay_ns.quantiles", QUANTILES, quantile_ns, NONE, 0, 40,
	 COLUMNS("p50") ", " COLUMNS("p90") ", " COLUMNS("p95") ", " COLUMNS("p99") ", " COLUMNS("p999"), 32, 1, NULL),
	FIELD("delay_ns.above_min", VALUE, above_min_ns, NONE, NO_BOUNDS, 54, "above_min_ns", 57, 5, "mean delay less the least one: whatever the clocks"),
	FIELD("delay_ns.histogram", HISTOGRAM, delays, NONE, OPTIONAL, 55, "delay_histogram", 58, 7, "of the packets of a final result (docs/store.md)"),
	FIELD("delay_ns.packets", COUNT, delay_packets, NONE, OPTIONAL, 59, "delay_packets", 62, 7, "of a minute, an hour or a day: those that the mean stands for"),
	MADE("jitter_ns", JITTER, NO_COLUMN),
	FIELD("round_trip_min_ns", VALUE, round_trip_min_ns, NONE, NO_BOUNDS, 52, "round_trip_min_ns", 55, 5, "both directions together: whatever the clocks"),
	FIELD("round_trip_mean_ns", VALUE, round_trip_mean_ns, NONE, NO_BOUNDS, 53, "round_trip_mean_ns", 56, 5, NULL),
	MADE("ci95", BOUNDS, NO_COLUMN),
	MADE("not_estimated", REASONS, "not_estimated", 34, 1, "JSON: the reasons by name"),
	FIELD("exact", FLAG, exact, ALL, NOT_NULL, 3, "exact", 5, 1, "1: every packet was compared one by one"),
	FIELD("active", FLAG, active, NONE, NOT_NULL | OPTIONAL, 0, "active", 46, 3, "1: of probes, not of the network's traffic"),
	MADE("sample.rate", RATE, NO_COLUMN,
	 METRIC(GAUGE, "sample_ratio", "Share of the packets that are compared at all; below 1 beyond the memory budget.")),
	FIELD("sample.shift", SHIFT, sample_shift, MOST, NOT_NULL, 4, "sample_shift", 20, 1, "counts are those of one packet in 2^shift"),
	FIELD("sample.total_sent", COUNT, total_sent, ADD, ALWAYS, 18, "total_sent", 21, 1, NULL),
	FIELD("sample.total_received", COUNT, total_received, ADD, ALWAYS, 19, "total_received", 22, 1, NULL),
	FIELD("coverage", SHARE, coverage, NONE, 0, 24, "coverage", 23, 1, "share of the packets sent whose fate is known",
	 METRIC(GAUGE, "coverage_ratio", "Share of the packets sent in the last final interval whose fate is known.")),
	FIELD("ring_drops.from", COUNT, ring_drops_from, ADD, ALWAYS, 20, "ring_drops_from", 24, 1, NULL),
	FIELD("ring_drops.to", COUNT, ring_drops_to, ADD, ALWAYS, 21, "ring_drops_to", 25, 1, NULL),
	FIELD("unreadable", COUNT, unreadable, ADD, ALWAYS, 22, "unreadable", 26, 1, NULL,
	 METRIC(COUNTER, "frames_unreadable_total", "Frames of IP packets that could not be identified, because they were cut.")),
	FIELD("clock.from", CLOCK, clock_from, WORSE, 0, 25, "clock_error_from_ns", 35, 1, "NULL: not synchronised"),
	FIELD("clock.to", CLOCK, clock_to, WORSE, 0, 26, "clock_error_to_ns", 36, 1, NULL),
	FIELD("clock.method", TEXT, clock_method, NONE, OPTIONAL, 48, "clock_method", 51, 5, "trusted, relative, none"),
	FIELD("clock.offset_ns", VALUE, clock_offset_ns, MOST, 0, 49, COLUMNS("clock_offset"), 52, 5, "added to the times of the receiving point"),
	MADE("clock.error_ns", ERROR, NO_COLUMN),
	FIELD("clock.drift_ppb", VALUE, clock_drift_ppb, LAST, NO_BOUNDS, 50, "clock_drift_ppb", 53, 5, NULL),
	FIELD("clock.event", TEXT, clock_event, LAST, OPTIONAL, 51, "clock_event", 54, 5, "a step or another route, seen by packets"),
	MADE("warnings", WARNINGS, NO_COLUMN),
	FIELD("synopsis", TEXT, synopsis, LAST, 0, 42, "synopsis", 37, 1, NULL),
	FIELD("cost.bytes", COUNT, cost.bytes, COST, ALWAYS | OF_BYTES, 27, "cost_bytes", 38, 1, "of messages, both ways",
	 METRIC(COUNTER, "protocol_bytes_total", "Bytes of messages between the points for the results, both ways.")),
	FIELD("cost.round_trips", NUMBER, cost.round_trips, COST, 0, 28, "round_trips", 39, 1, NULL,
	 METRIC(COUNTER, "protocol_round_trips_total", "Round trips between the points for the results.")),
	FIELD("cost.transmit_ns", INTEGER, cost.transmit_ns, MEAN, 0, 29, "transmit_ns", 40, 1, NULL, STAGE),
	FIELD("cost.decode_ns", INTEGER, cost.decode_ns, MEAN, 0, 30, "decode_ns", 41, 1, NULL, STAGE),
	FIELD("cost.missing_ns", INTEGER, cost.missing_ns, MEAN, 0, 31, "missing_ns", 42, 1, NULL, STAGE),
	FIELD("cost.erase_ns", INTEGER, cost.erase_ns, MEAN, 0, 32, "erase_ns", 43, 1, NULL, STAGE),
	FIELD("cost.compute_ns", INTEGER, cost.compute_ns, MEAN, 0, 33, "compute_ns", 44, 1, NULL, STAGE),
	FIELD("cost.ready_ns", INTEGER, cost.ready_ns, MEAN, 0, 34, "ready_ns", 45, 1, "from the end of the interval to the result"),
};
/* clang-format on */
const size_t ow_field_count = sizeof ow_fields / sizeof *ow_fields;

/* Fields by their places. Filled before main, so that a message does not search the table for each of its fields. */
#define PLACES (sizeof ow_fields / sizeof *ow_fields + 1)
static const struct ow_field *by_wire[PLACES], *by_place[PLACES];

__attribute__((constructor)) static void index_fields(void)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->wire && field->wire < PLACES)
			by_wire[field->wire] = field;
		if (field->columns && field->place < PLACES)
			by_place[field->place] = field;
	}
}

const struct ow_field *ow_field_wire(unsigned wire)
{
	return wire < PLACES ? by_wire[wire] : NULL;
}

const struct ow_field *ow_field_place(unsigned place)
{
	return place < PLACES ? by_place[place] : NULL;
}

const char *ow_field_name(const struct ow_field *field)
{
	const char *dot = strchr(field->json, '.');
	return dot ? dot + 1 : field->json;
}

const char *ow_field_object(const struct ow_field *field, char ret_name[OW_RESULT_NAME])
{
	int length = (int)(ow_field_name(field) - field->json);
	snprintf(ret_name, OW_RESULT_NAME, "%.*s", length ? length - 1 : 0, field->json);
	return ret_name;
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

void ow_field_add_count(const struct ow_field *field, uint64_t *sum, uint64_t more)
{
	bool may_be_unknown = field->flags & OW_FIELD_NOT_COUNTED;
	if ((may_be_unknown && (more == OW_RESULT_NOT_COUNTED || *sum == OW_RESULT_NOT_COUNTED)) ||
	    __builtin_add_overflow(*sum, more, sum))
		*sum = OW_RESULT_NOT_COUNTED; /* which is also the most that can be counted */
}

bool ow_field_is_empty(const struct ow_field *field, const struct ow_interval_result *result)
{
	const void *member = ow_field_of(field, result);
	if (field->type == OW_FIELD_COUNT)
		return *(const uint64_t *)member == 0;
	if (field->type == OW_FIELD_HISTOGRAM)
		return ((const struct ow_delay_histogram *)member)->packets == 0;
	return *(const char *)member == 0; /* a flag, or a text */
}

void ow_field_absent(const struct ow_field *field, struct ow_interval_result *result)
{
	if (field->flags & OW_FIELD_NOT_COUNTED)
		*(uint64_t *)ow_field_at(field, result) = OW_RESULT_NOT_COUNTED;
}

static void add(const struct ow_field *field, void *sum, const void *more)
{
	if (field->type == OW_FIELD_NUMBER)
		*(uint32_t *)sum += *(const uint32_t *)more;
	else if (field->type == OW_FIELD_COUNT)
		ow_field_add_count(field, sum, *(const uint64_t *)more);
	else /* Another point may send any number: durations wrap around, as their unsigned type does. */
		*(uint64_t *)sum += *(const uint64_t *)more;
}

static void less_certain(struct ow_value *sum, const struct ow_value *value)
{
	bool narrower = value->high - value->low <= sum->high - sum->low;
	if (sum->status != OW_VALUE_NONE && (value->status == OW_VALUE_NONE || !narrower))
		*sum = *value;
}

static void add_field(const struct ow_field *field, void *sum, const void *more)
{
	switch (field->sum) {
	case OW_SUM_NONE:
		break;
	case OW_SUM_FIRST:
	case OW_SUM_LAST:
		memcpy(sum, more, field->size);
		break;
	case OW_SUM_ADD:
	case OW_SUM_COST:
	case OW_SUM_MEAN:
		add(field, sum, more);
		break;
	case OW_SUM_MOST:
		if (field->type == OW_FIELD_VALUE)
			less_certain(sum, more);
		else if (*(const uint32_t *)more > *(uint32_t *)sum)
			*(uint32_t *)sum = *(const uint32_t *)more;
		break;
	case OW_SUM_ALL:
		*(bool *)sum &= *(const bool *)more;
		break;
	case OW_SUM_WORSE:
		ow_clock_state_worse(sum, more);
		break;
	}
}

void ow_fields_add(struct ow_interval_result *sum, const struct ow_interval_result *result, unsigned sums)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (sums & OW_SUM_BIT(field->sum))
			add_field(field, ow_field_at(field, sum), ow_field_of(field, result));
	}
}

void ow_fields_mean(struct ow_interval_result *sum, int64_t intervals)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].sum == OW_SUM_MEAN)
			*(int64_t *)ow_field_at(&ow_fields[i], sum) /= intervals;
	}
}
