/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the store as the result that it was. What is NULL there is unknown, not 0, wherever a result can say so. */
#include "result/result_json.h"
#include "store/stored_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUE(name) name "_ns, " name "_low_ns, " name "_high_ns, "
#define ROW                                                                                                           \
	"lane, start_ns, length_ns, interval, final, exact, status, cause, sent, received, matched, late, "           \
	"late_received, "                                                                                             \
	"lost, pending, extra, duplicated, ambiguous, reordered, bytes, sample_shift, total_sent, total_received, "   \
	"coverage, ring_drops_from, ring_drops_to, unreadable, samples, " VALUE("mean")                               \
		VALUE("stddev") "min_ns, max_ns, " VALUE("p50") VALUE("p90") VALUE("p95") VALUE("p99") VALUE(         \
			"p999") "loss_ratio, loss_low, loss_high, clock_error_from_ns, clock_error_to_ns, synopsis, " \
				"cost_bytes, round_trips, "                                                           \
				"transmit_ns, decode_ns, missing_ns, erase_ns, compute_ns, ready_ns, not_estimated"

/* Before schema 3 there were no probes. */
const char *ow_stored_row_columns(const struct ow_stored *stored)
{
	return stored->has_active ? ROW ", active" : ROW ", 0";
}

/* Their members of not_estimated, in the order of take_reasons. */
static const char reasons_sql[] =
	"SELECT json_extract(?1, '$.mean'), json_extract(?1, '$.stddev'), json_extract(?1, '$.min'), "
	"json_extract(?1, '$.max'), json_extract(?1, '$.quantiles'), json_extract(?1, '$.loss_ratio')";

/* Takes one column after the other. */
struct taker {
	sqlite3_stmt *statement;
	int at;
};

static int64_t take_integer(struct taker *t)
{
	return sqlite3_column_int64(t->statement, t->at++);
}

/* Anybody may have written the file. */
static uint64_t take_count(struct taker *t, uint64_t otherwise)
{
	int at = t->at++;
	int64_t value = sqlite3_column_int64(t->statement, at);
	return sqlite3_column_type(t->statement, at) == SQLITE_NULL || value < 0 ? otherwise : (uint64_t)value;
}

static double take_real(struct taker *t)
{
	int at = t->at++;
	return sqlite3_column_type(t->statement, at) == SQLITE_NULL ? NAN : sqlite3_column_double(t->statement, at);
}

static void take_text(struct taker *t, char *text, size_t size)
{
	const char *value = (const char *)sqlite3_column_text(t->statement, t->at++);
	snprintf(text, size, "%s", value ? value : "");
}

static enum ow_reason take_reason(struct taker *t)
{
	const char *text = (const char *)sqlite3_column_text(t->statement, t->at++);
	return text ? ow_reason_of(text, OW_REASON_OTHER) : OW_NO_REASON;
}

static struct ow_value take_value(struct taker *t, bool bounds)
{
	struct ow_value v = {.status = OW_VALUE_NONE, .value = take_real(t)};
	v.low = bounds ? take_real(t) : v.value;
	v.high = bounds ? take_real(t) : v.value;
	if (isnan(v.value))
		return (struct ow_value){.status = OW_VALUE_NONE};
	/* Infinity is stored as NULL. */
	v.low = isnan(v.low) ? -INFINITY : v.low;
	v.high = isnan(v.high) ? INFINITY : v.high;
	v.status = v.low == v.value && v.high == v.value ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED;
	return v;
}

static enum ow_result_status take_status(struct taker *t)
{
	char name[16];
	take_text(t, name, sizeof name);
	for (int i = OW_RESULT_MEASURED; i < OW_RESULT_UNKNOWN; i++) {
		if (strcmp(name, ow_result_status_name[i]) == 0)
			return (enum ow_result_status)i;
	}
	return OW_RESULT_UNKNOWN;
}

static void take_counts(struct taker *t, struct ow_interval_result *r)
{
	uint64_t *counts[] = {&r->sent, &r->received, &r->matched, &r->late,       &r->late_received,
	                      &r->lost, &r->pending,  &r->extra,   &r->duplicated, &r->ambiguous};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		*counts[i] = take_count(t, 0);
	r->reordered = take_count(t, OW_RESULT_NOT_COUNTED);
	r->bytes = take_count(t, 0);
	uint64_t shift = take_count(t, 0);
	r->sample_shift = shift < 63 ? (unsigned)shift : 63;
	r->total_sent = take_count(t, 0);
	r->total_received = take_count(t, 0);
	r->coverage = take_real(t);
	r->coverage = isnan(r->coverage) ? 0 : r->coverage;
	r->ring_drops_from = take_count(t, 0);
	r->ring_drops_to = take_count(t, 0);
	r->unreadable = take_count(t, 0);
	r->samples = take_count(t, 0);
}

static void take_clock(struct taker *t, struct ow_clock_state *clock)
{
	uint64_t error = take_count(t, (uint64_t)OW_CLOCK_UNKNOWN);
	*clock = (struct ow_clock_state){error < (uint64_t)OW_CLOCK_UNKNOWN, (int64_t)error};
}

static void take_cost(struct taker *t, struct ow_result_cost *cost)
{
	cost->bytes = take_count(t, 0);
	cost->round_trips = (unsigned)take_count(t, 0);
	int64_t *stages[] = {&cost->transmit_ns, &cost->decode_ns,  &cost->missing_ns,
	                     &cost->erase_ns,    &cost->compute_ns, &cost->ready_ns};
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		*stages[i] = take_integer(t);
}

/* Takes the JSON apart, unless it is that of the last row. What is no JSON has no reasons. */
static void read_reasons(struct ow_stored *stored, const char *json)
{
	if (stored->reasons_text && strcmp(stored->reasons_text, json) == 0)
		return;
	memset(stored->reason, 0, sizeof stored->reason);
	free(stored->reasons_text);
	stored->reasons_text = strdup(json);
	if (!stored->reasons && ow_database_prepare(&stored->file, reasons_sql, &stored->reasons, NULL) < 0)
		return;
	sqlite3_bind_text(stored->reasons, 1, json, -1, SQLITE_TRANSIENT);
	if (*json && sqlite3_step(stored->reasons) == SQLITE_ROW) {
		struct taker t = {stored->reasons, 0};
		for (int i = 0; i < OW_STORED_REASONS; i++)
			stored->reason[i] = take_reason(&t);
	}
	sqlite3_reset(stored->reasons);
}

static void take_reasons(struct ow_stored *stored, struct taker *t, struct ow_interval_result *r)
{
	struct ow_value *values[OW_STORED_REASONS] = {&r->mean_ns, &r->stddev_ns,      &r->min_ns,
	                                              &r->max_ns,  &r->quantile_ns[0], &r->loss_ratio};
	const char *json = (const char *)sqlite3_column_text(t->statement, t->at++);
	read_reasons(stored, json ? json : "");
	for (int i = 0; i < OW_STORED_REASONS; i++) {
		if (values[i]->status == OW_VALUE_NONE)
			values[i]->reason = stored->reason[i];
	}
	for (int i = 1; i < OW_QUANTILES; i++) {
		if (r->quantile_ns[i].status == OW_VALUE_NONE)
			r->quantile_ns[i].reason = r->quantile_ns[0].reason;
	}
}

void ow_stored_row(struct ow_stored *stored, sqlite3_stmt *statement, struct ow_interval_result *r)
{
	struct taker t = {statement, 0};
	memset(r, 0, sizeof *r);
	const struct ow_stored_lane *lane = ow_stored_lane(stored, take_integer(&t));
	if (lane) {
		memcpy(r->segment, lane->segment, sizeof r->segment);
		memcpy(r->class_name, lane->class_name, sizeof r->class_name);
		memcpy(r->from, lane->from, sizeof r->from);
		memcpy(r->to, lane->to, sizeof r->to);
	}
	r->start_ns = take_integer(&t);
	r->length_ns = take_integer(&t);
	r->interval = take_integer(&t);
	r->final = take_integer(&t) != 0;
	r->exact = take_integer(&t) != 0;
	r->status = take_status(&t);
	take_text(&t, r->cause, sizeof r->cause);
	take_counts(&t, r);
	r->mean_ns = take_value(&t, true);
	r->stddev_ns = take_value(&t, true);
	r->min_ns = take_value(&t, false);
	r->max_ns = take_value(&t, false);
	for (int i = 0; i < OW_QUANTILES; i++)
		r->quantile_ns[i] = take_value(&t, true);
	r->loss_ratio = take_value(&t, true);
	take_clock(&t, &r->clock_from);
	take_clock(&t, &r->clock_to);
	take_text(&t, r->synopsis, sizeof r->synopsis);
	take_cost(&t, &r->cost);
	take_reasons(stored, &t, r);
	r->active = take_integer(&t) != 0;
}
