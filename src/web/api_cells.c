/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of all lanes, and the state that follows from each. */
#include "web/api_cells.h"

#include "base/format.h"
#include "base/time.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ow_cell_state_name[] = {"good", "partial", "delay", "loss", "unknown"};

/* -- state -------------------------------------------------------------------------------------------------------- */

static void judge_unknown(struct ow_cell *c)
{
	c->state = OW_CELL_UNKNOWN;
	snprintf(c->why, sizeof c->why, "%s",
	         !c->sum     ? "no results in this time"
	         : *c->cause ? c->cause
	                     : "no packets were compared");
}

static void judge(struct ow_cell *c)
{
	char a[OW_FORMAT], b[OW_DURATION_TEXT], d[OW_DURATION_TEXT];
	const struct ow_stored_sum *sum = c->sum;
	if (!sum || !(sum->measured + sum->partial)) {
		judge_unknown(c);
		return;
	}
	uint64_t all = sum->intervals + sum->missing, less = all - sum->measured;
	if (c->loss >= OW_CELL_LOSS_MIN) {
		c->state = OW_CELL_LOSS;
		snprintf(c->why, sizeof c->why, "%s of the packets were lost", ow_format_percent(c->loss, a));
	} else if (c->p99_low > OW_CELL_DELAY_FACTOR * c->usual_p99_high) {
		c->state = OW_CELL_DELAY;
		snprintf(c->why, sizeof c->why, "p99 %s, usually %s", ow_duration_cell(c->p99, b),
		         ow_duration_cell(c->usual_p99, d));
	} else if ((double)less > OW_CELL_PARTIAL_MIN * (double)all) {
		c->state = OW_CELL_PARTIAL;
		snprintf(c->why, sizeof c->why, "%" PRIu64 " of %" PRIu64 " intervals were not fully measured%s%.100s",
		         less, all, *c->cause ? ": " : "", c->cause);
	} else if (isnan(c->loss) && isnan(c->mean)) {
		judge_unknown(c);
	} else {
		c->state = OW_CELL_GOOD;
		snprintf(c->why, sizeof c->why, "no unusual loss or delay");
	}
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static void fill(struct ow_cell *c, const struct ow_stored_sum *sum)
{
	struct ow_value p50 = ow_stored_sum_quantile(sum, 0.5), p99 = ow_stored_sum_quantile(sum, 0.99);
	c->sum = sum;
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	c->sent = n.sent;
	c->received = n.received;
	c->lost = n.lost;
	c->samples = n.samples;
	c->loss = ow_stored_sum_loss(sum);
	c->mean = ow_stored_sum_mean(sum);
	c->min = ow_stored_sum_min(sum);
	c->p50 = ow_value_known(&p50, p50.value);
	c->p99 = ow_value_known(&p99, p99.value);
	c->p99_low = ow_value_known(&p99, p99.low);
	c->p99_high = ow_value_known(&p99, p99.high);
	c->availability = ow_stored_sum_availability(sum);
	c->last_ns = sum->last_ns;
}

static void on_notice(void *arg, const struct ow_stored_notice *notice)
{
	struct ow_cell *by_lane = arg;
	if (notice->status != OW_RESULT_MEASURED)
		snprintf(by_lane[notice->lane].cause, OW_RESULT_CAUSE, "%s", notice->cause);
}

/* The week before the selected time. A store that has none has no usual delay. */
static int add_usual(struct ow_call *call, struct ow_cell *by_lane, struct ow_error *err)
{
	const struct ow_stored_filter keep = call->filter;
	const struct ow_stored_sum_options o = {.group = OW_STORED_LANE, .p99_limit_ns = INT64_MAX};
	struct ow_stored_sums sums;
	if (keep.since_ns < INT64_MIN + OW_CELL_USUAL_NS)
		return 0;
	/* Where exactly the week begins does not matter: from whole days, if there is one, else from whole hours. */
	int64_t day_ns = ow_periods[OW_PERIOD_DAY].length_ns, hour_ns = ow_periods[OW_PERIOD_HOUR].length_ns, first,
		last;
	int64_t day = ow_floor_div(keep.since_ns, day_ns) * day_ns;
	if (ow_stored_span(call->stored, &first, &last, err) != 0)
		return 0;
	call->filter.until_ns = first < day - day_ns ? day : ow_floor_div(keep.since_ns, hour_ns) * hour_ns;
	call->filter.since_ns = call->filter.until_ns - OW_CELL_USUAL_NS;
	int r = ow_stored_choose(call->stored, &call->filter, err);
	if (r == 0)
		r = ow_stored_summarise_any(call->stored, &o, OW_PERIOD_DAY, &sums, err);
	call->filter = keep;
	if (r != 0)
		return r;
	for (size_t i = 0; i < sums.count; i++) {
		struct ow_value p99 = ow_stored_sum_quantile(&sums.sum[i], 0.99);
		by_lane[sums.sum[i].lane].usual_p99 = ow_value_known(&p99, p99.value);
		by_lane[sums.sum[i].lane].usual_p99_high = ow_value_known(&p99, p99.high);
	}
	ow_stored_sums_done(&sums);
	return ow_stored_choose(call->stored, &call->filter, err);
}

static void blank(struct ow_cell *c, const struct ow_stored_lane *lane)
{
	*c = (struct ow_cell){.lane = lane, .last_ns = INT64_MIN};
	c->loss = c->mean = c->min = c->p50 = c->p99 = c->p99_low = c->p99_high = NAN;
	c->usual_p99 = c->usual_p99_high = c->availability = NAN;
}

int ow_cells_make(struct ow_call *call, struct ow_cells *ret_cells, struct ow_error *err)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	struct ow_cell *cell = calloc(lanes + 1, sizeof *cell);
	if (!cell)
		return ow_error_set(err, ENOMEM, "not enough memory for %zu lanes", lanes);
	*ret_cells = (struct ow_cells){.cell = cell};
	for (size_t i = 0; i < lanes; i++)
		blank(&cell[i], &lane[i]);
	const struct ow_stored_sum_options o = {
		.group = OW_STORED_LANE, .p99_limit_ns = INT64_MAX, .on_notice = on_notice, .arg = cell};
	int r = add_usual(call, cell, err);
	if (r == 0)
		r = ow_stored_summarise_any(call->stored, &o, OW_PERIOD_DAY, &ret_cells->sums, err);
	if (r < 0) {
		free(cell);
		*ret_cells = (struct ow_cells){0};
		return r;
	}
	for (size_t i = 0; i < ret_cells->sums.count; i++)
		fill(&cell[ret_cells->sums.sum[i].lane], &ret_cells->sums.sum[i]);
	for (size_t i = 0; i < lanes; i++) {
		judge(&cell[i]);
		if (lane[i].chosen)
			cell[ret_cells->count++] = cell[i];
	}
	return 0;
}

void ow_cells_done(struct ow_cells *cells)
{
	ow_stored_sums_done(&cells->sums);
	free(cells->cell);
	*cells = (struct ow_cells){0};
}

/* -- JSON --------------------------------------------------------------------------------------------------------- */

void ow_cell_put(struct ow_json *json, const struct ow_cell *cell)
{
	bool is_known = cell->sum && cell->sum->measured + cell->sum->partial;
	ow_api_lane(json, cell->lane);
	ow_json_string(json, "state", ow_cell_state_name[cell->state]);
	ow_json_string(json, "why", cell->why);
	ow_json_count_if(json, "sent", is_known, cell->sent);
	ow_json_count_if(json, "received", is_known, cell->received);
	ow_json_count_if(json, "lost", is_known, cell->lost);
	ow_json_count_if(json, "samples", is_known, cell->samples);
	ow_json_number(json, "loss_ratio", cell->loss);
	ow_json_number(json, "mean", cell->mean);
	ow_json_number(json, "p50", cell->p50);
	ow_json_number(json, "p99", cell->p99);
	ow_json_number(json, "p99_low", cell->p99_low);
	ow_json_number(json, "p99_high", cell->p99_high);
	ow_json_number(json, "usual_p99", cell->usual_p99);
	ow_json_integer_if(json, "clock_error_ns",
	                   cell->sum && !cell->sum->clock_unknown && cell->sum->clock_error_ns >= 0,
	                   cell->sum ? cell->sum->clock_error_ns : 0);
	ow_json_number(json, "availability", cell->availability);
	ow_json_integer_if(json, "last_ns", cell->last_ns != INT64_MIN, cell->last_ns);
}

void ow_cells_put(struct ow_json *json, const struct ow_cells *cells)
{
	ow_json_array(json, "cells");
	for (size_t i = 0; i < cells->count; i++) {
		ow_json_object(json, NULL);
		ow_cell_put(json, &cells->cell[i]);
		ow_json_end(json);
	}
	ow_json_end(json);
}
