/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact results of each flow. The text shows the slowest flows and those that lost most. If a line cannot hold the
 * numbers and the flow, the flow gets its own line, uncut, so that it can be copied to other commands.
 */
#include "base/word.h"
#include "report/match_flows.h"

#include "base/time.h"
#include "estimate/packet_event.h"
#include "report/flow_name.h"
#include "result/json.h"
#include "base/format.h"
#include "base/table.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 64 /* columns of the numbers of a row; with fewer columns, two of the delays are omitted */

static const char *const direction_title[] = {"A to B", "B to A"};

static int by_mean(const void *a, const void *b)
{
	const struct ow_flow_result *x = a, *y = b;
	if (x->direction != y->direction)
		return x->direction < y->direction ? -1 : 1;
	if (!x->samples || !y->samples || x->mean_ns == y->mean_ns) {
		/*
		 * Flows without a delay come last; of the others the one with the larger delay first, in a fixed order.
		 */
		if (!x->samples != !y->samples)
			return x->samples ? -1 : 1;
		uint64_t p = x->matched + x->lost + x->extra, q = y->matched + y->lost + y->extra;
		return p != q ? (p > q ? -1 : 1) : memcmp(&x->key, &y->key, sizeof x->key);
	}
	return x->mean_ns > y->mean_ns ? -1 : 1;
}

int ow_match_flows_init(struct ow_match_flows *flows, const struct ow_flow_tally *tally,
                        const struct ow_flow_select *select)
{
	size_t count = ow_flow_tally_count(tally);
	*flows = (struct ow_match_flows){.select = *select, .coarse = ow_flow_tally_is_coarse(tally)};
	flows->flow = malloc((count + 1) * sizeof *flows->flow);
	if (!flows->flow)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct ow_flow_result *flow = &flows->flow[flows->flows];
		ow_flow_tally_get(tally, i, flow);
		flows->flows += flow->sent || flow->received;
	}
	qsort(flows->flow, flows->flows, sizeof *flows->flow, by_mean);
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct ow_flow_jitter *const *x = a, *const *y = b;
	return memcmp((*x)->flow, (*y)->flow, sizeof *(*x)->flow);
}

/* Of the flows of a direction, by the details of that direction. */
static int add_jitter(struct ow_match_flows *flows, enum ow_direction direction, const struct ow_details *details)
{
	size_t count = details->reason ? 0 : (size_t)details->jitter.flows;
	const struct ow_flow_jitter **sorted = malloc((count + 1) * sizeof *sorted);
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &details->flow_jitter[i];
	qsort(sorted, count, sizeof *sorted, by_key);
	for (size_t i = 0; i < flows->flows; i++) {
		const struct ow_flow_jitter sought = {.flow = &flows->flow[i].key}, *key = &sought;
		if (flows->flow[i].direction != direction)
			continue;
		const struct ow_flow_jitter **found = bsearch(&key, sorted, count, sizeof *sorted, by_key);
		flows->jitter[i] = found ? *found : NULL;
	}
	free(sorted);
	return 0;
}

int ow_match_flows_add_jitter(struct ow_match_flows *flows, const struct ow_match_report *report)
{
	if (!report->details[OW_A_TO_B] || flows->select.by != OW_FLOW_BY_FIVE_TUPLE)
		return 0;
	flows->jitter = calloc(flows->flows + 1, sizeof *flows->jitter);
	int r = flows->jitter ? 0 : -ENOMEM;
	for (unsigned d = 0; d < OW_DIRECTIONS && r == 0; d++)
		r = add_jitter(flows, d, report->details[d]);
	return r;
}

void ow_match_flows_done(struct ow_match_flows *flows)
{
	free(flows->jitter);
	free(flows->hops.flow);
	free(flows->flow);
	*flows = (struct ow_match_flows){0};
}

/* -- text --------------------------------------------------------------------------------------------------------- */

enum { MEAN, STDDEV, MIN, MAX, SENT, LOST, COLUMNS };

static const struct ow_table_column wide[COLUMNS] = {
	[MEAN] = {"mean", 10, 0}, [STDDEV] = {"stddev", 10, 4}, [MIN] = {"min", 10, 5},
	[MAX] = {"max", 10, 1},   [SENT] = {"sent", 9, 2},      [LOST] = {"lost", 8, 3},
};
static const struct ow_table_column narrow[COLUMNS] = {
	[MEAN] = {"mean", 10, 0}, [STDDEV] = {"stddev", 10, 4}, [MIN] = {"min", 10, 5},
	[MAX] = {"max", 10, 1},   [SENT] = {"sent", 7, 2},      [LOST] = {"lost", 6, 3},
};

static void cells_of(const struct ow_flow_result *flow, const struct ow_table *table, ow_table_cells cell)
{
	for (int i = 0; i < COLUMNS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	if (flow->samples) {
		ow_duration_text(flow->mean_ns, cell[MEAN]);
		ow_duration_text(flow->stddev_ns, cell[STDDEV]);
		ow_duration_text((double)flow->min_ns, cell[MIN]);
		ow_duration_text((double)flow->max_ns, cell[MAX]);
	}
	ow_format_short(flow->sent, (int)table->column[SENT].width, cell[SENT]);
	ow_format_short(flow->lost, (int)table->column[LOST].width, cell[LOST]);
}

static void put_table(FILE *out, const struct ow_match_flows *flows, const struct ow_flow_result *const *row,
                      size_t rows, int width, bool marked)
{
	char name[OW_FLOW_SELECTED_TEXT];
	size_t longest = 0;
	for (size_t i = 0; i < rows; i++) {
		ow_flow_select_key_text(&flows->select, &row[i]->key, name);
		longest = strlen(name) > longest ? strlen(name) : longest;
	}
	bool one_line = NUMBERS + 2 + longest <= (size_t)width;
	struct ow_table table = {out, width >= NUMBERS ? wide : narrow, COLUMNS, .marked = marked};
	/* Two of the delays, or all. */
	table.shown = width >= NUMBERS ? (1u << COLUMNS) - 1 : 1u << MEAN | 1u << MAX | 1u << SENT | 1u << LOST;
	fputc(' ', out);
	ow_table_heading(&table);
	fprintf(out, "%s%s\n", marked ? OW_MARK_LEFT : "", one_line ? "  flow" : "");
	for (size_t i = 0; i < rows; i++) {
		ow_table_cells cell;
		ow_flow_select_key_text(&flows->select, &row[i]->key, name);
		cells_of(row[i], &table, cell);
		if (!one_line)
			fprintf(out, "  %s\n", name);
		fputc(' ', out);
		ow_table_numbers(&table, cell, 0);
		fprintf(out, "%s%s%s\n", marked ? OW_MARK_LEFT : "", one_line ? "  " : "", one_line ? name : "");
	}
}

/* The flows of a direction, and which of them are shown. */
struct view {
	const struct ow_match_flows *flows;
	const struct ow_flow_result *from, *to;
	size_t top;
	uint64_t least;
	int width;
	bool marked;
	const char *bold, *plain;
	const struct ow_flow_result **row; /* room for `top` */
};

static size_t find_slowest(const struct view *view)
{
	size_t rows = 0;
	for (const struct ow_flow_result *flow = view->from; flow < view->to && rows < view->top; flow++) {
		if (flow->samples && flow->received >= view->least)
			view->row[rows++] = flow;
	}
	return rows;
}

/* Whether x comes before y among the flows that lost most. */
static bool worse(const struct ow_flow_result *x, const struct ow_flow_result *y)
{
	return x->lost > y->lost || (x->lost == y->lost && x->sent < y->sent);
}

/* By insertion, because top is small. */
static size_t find_lossiest(const struct view *view)
{
	const struct ow_flow_result **row = view->row;
	size_t rows = 0;
	for (const struct ow_flow_result *flow = view->from; flow < view->to; flow++) {
		if (!flow->lost || flow->received < view->least ||
		    (rows == view->top && (!rows || !worse(flow, row[rows - 1]))))
			continue;
		size_t at = rows < view->top ? rows++ : rows - 1;
		for (; at > 0 && worse(flow, row[at - 1]); at--)
			row[at] = row[at - 1];
		row[at] = flow;
	}
	return rows;
}

static void put_direction(FILE *out, const struct view *view)
{
	char count[OW_FORMAT], of[2 * OW_FORMAT + 40];
	size_t all = 0;
	for (const struct ow_flow_result *flow = view->from; flow < view->to; flow++)
		all += flow->received >= view->least;
	const char *title = direction_title[view->from->direction];
	ow_format_count(all, count);
	if (view->least > 1)
		snprintf(of, sizeof of, "%s %s of at least %" PRIu64 " packets", count, ow_plural(all, "flow", "flows"),
		         view->least);
	else
		snprintf(of, sizeof of, "%s %s", count, ow_plural(all, "flow", "flows"));
	size_t slow = find_slowest(view);
	if (slow) {
		fprintf(out, "\n%s%s, the slowest of %s%s\n", view->bold, title, of, view->plain);
		put_table(out, view->flows, view->row, slow, view->width, view->marked);
	}
	size_t lossy = find_lossiest(view);
	if (lossy) {
		fprintf(out, "\n%s%s, most packets lost of %s%s\n", view->bold, title, of, view->plain);
		put_table(out, view->flows, view->row, lossy, view->width, view->marked);
	} else {
		fprintf(out, "\n%s%s, no packet lost of %s%s\n", view->bold, title, of, view->plain);
	}
}

void ow_report_match_flows_text(FILE *out, const struct ow_match_flows *flows, size_t top, uint64_t least, int width,
                                enum ow_look look)
{
	const struct ow_flow_result *end = flows->flow + flows->flows;
	struct view view = {.flows = flows,
	                    .to = flows->flow,
	                    .top = top < flows->flows ? top : flows->flows,
	                    .least = least,
	                    .width = width,
	                    .marked = look == OW_LOOK_MARKED,
	                    .bold = look ? "\033[1m" : "",
	                    .plain = look ? "\033[0m" : ""};
	view.row = calloc(view.top + 1, sizeof(const struct ow_flow_result *));
	if (!view.row) {
		fputs("\nnot enough memory for the table of flows\n", out);
		return;
	}
	while (view.to < end) {
		view.from = view.to;
		while (view.to < end && view.to->direction == view.from->direction)
			view.to++;
		put_direction(out, &view);
	}
	if (flows->coarse)
		fputs("\nMore flows than can be kept apart: the last ones are added up by networks\n"
		      "(IPv4 /16, IPv6 /48, without ports).\n",
		      out);
	free(view.row);
	if (flows->hops.path)
		ow_report_flow_hops_text(out, &flows->hops, top, least, look);
}

/* -- machines ----------------------------------------------------------------------------------------------------- */

static void put_flow(struct ow_json *json, const struct ow_match_flows *flows, size_t i)
{
	const struct ow_flow_result *flow = &flows->flow[i];
	bool known = flow->samples > 0;
	double mean_ns = known ? flow->mean_ns : NAN, stddev_ns = known ? flow->stddev_ns : NAN;
	/* Exact: the interval is the value. */
	const struct ow_value mean = {
		.status = known ? OW_VALUE_EXACT : OW_VALUE_NONE, .low = mean_ns, .high = mean_ns};
	const struct ow_value stddev = {.status = mean.status, .low = stddev_ns, .high = stddev_ns};
	ow_json_object(json, NULL);
	ow_flow_name_json(json, "flow", &flows->select, &flow->key);
	ow_json_string(json, "direction", ow_direction_name[flow->direction]);
	ow_json_count(json, "packets", flow->received);
	ow_json_count(json, "sent", flow->sent);
	ow_json_count(json, "received", flow->received);
	ow_json_count(json, "matched", flow->matched);
	ow_json_count(json, "lost", flow->lost);
	ow_json_count(json, "extra", flow->extra);
	ow_json_count(json, "duplicated", flow->duplicated);
	ow_json_count(json, "ambiguous", flow->ambiguous);
	ow_json_count(json, "samples", flow->samples);
	ow_json_number(json, "mean_ns", mean_ns);
	ow_json_number(json, "stddev_ns", stddev_ns);
	ow_json_integer_if(json, "min_ns", known, flow->min_ns);
	ow_json_integer_if(json, "max_ns", known, flow->max_ns);
	if (flows->jitter) {
		ow_json_number(json, "jitter_ns", flows->jitter[i] ? flows->jitter[i]->final_ns : NAN);
		ow_json_number(json, "jitter_max_ns", flows->jitter[i] ? flows->jitter[i]->max_ns : NAN);
	}
	ow_json_object(json, "ci95");
	ow_json_bounds(json, "mean", &mean);
	ow_json_bounds(json, "stddev", &stddev);
	ow_json_end(json);
	ow_json_string(json, "estimator", "exact");
	ow_json_end(json);
}

void ow_report_match_flows_json(struct ow_json *json, const struct ow_match_flows *flows)
{
	ow_json_array(json, "flows");
	ow_json_style(json, OW_JSON_LINES);
	for (size_t i = 0; i < flows->flows; i++)
		put_flow(json, flows, i);
	ow_json_end(json);
	if (flows->hops.path)
		ow_report_flow_hops_json(json, &flows->hops);
}

static void put_numbers(FILE *out, double first, double second)
{
	fputc(',', out);
	ow_format_csv_number(out, first);
	fputc(',', out);
	ow_format_csv_number(out, second);
}

void ow_report_match_flows_csv(FILE *out, const struct ow_match_flows *flows)
{
	fputs(OW_FLOW_NAME_CSV ",direction,packets,sent,matched,lost,extra,duplicated,ambiguous,samples,mean_ns,"
	                       "stddev_ns,min_ns,max_ns,protocol_name,jitter_ns,jitter_max_ns\n",
	      out);
	for (size_t i = 0; i < flows->flows; i++) {
		const struct ow_flow_result *flow = &flows->flow[i];
		ow_flow_name_csv(out, &flows->select, &flow->key);
		fprintf(out,
		        ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		        ",%" PRIu64,
		        ow_direction_name[flow->direction], flow->received, flow->sent, flow->matched, flow->lost,
		        flow->extra, flow->duplicated, flow->ambiguous, flow->samples);
		char name[OW_PROTOCOL_TEXT] = "";
		if (flows->select.by == OW_FLOW_BY_FIVE_TUPLE)
			ow_flow_protocol_text(&flow->key, name);
		if (flow->samples) {
			put_numbers(out, flow->mean_ns, flow->stddev_ns);
			fprintf(out, ",%" PRId64 ",%" PRId64 ",%s", flow->min_ns, flow->max_ns, name);
		} else {
			fprintf(out, ",,,,,%s", name);
		}
		const struct ow_flow_jitter *jitter = flows->jitter ? flows->jitter[i] : NULL;
		if (jitter)
			put_numbers(out, jitter->final_ns, jitter->max_ns);
		fputs(jitter ? "\n" : ",,\n", out);
	}
}
