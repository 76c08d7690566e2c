/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for all flows as JSON and CSV. */
#include "flows/flow_answers.h"

#include "packet/flow.h"
#include "report/flow_name.h"
#include "result/json.h"
#include "base/format.h"
#include <inttypes.h>
#include <math.h>

static void put_quantile_bounds(struct ow_json *json, const struct ow_flow_spread *spread)
{
	ow_json_object(json, "quantiles");
	for (int i = 0; i < OW_QUANTILES; i++)
		ow_json_bounds(json, ow_quantile_name[i], &spread->quantile_ns[i]);
	ow_json_end(json);
}

static void put_spread(struct ow_json *json, const struct ow_flow_spread *spread)
{
	double quantile_ns[OW_QUANTILES];
	for (int i = 0; i < OW_QUANTILES; i++)
		quantile_ns[i] = ow_json_known(&spread->quantile_ns[i]);
	ow_json_quantiles(json, "quantiles", quantile_ns);
	ow_json_integer(json, "min_at_most_ns", spread->least_ns);
	ow_json_integer(json, "max_at_least_ns", spread->most_ns);
	ow_json_count(json, "samples", spread->samples);
}

static void put_estimate(struct ow_json *json, const struct ow_flow_estimate *e)
{
	const struct ow_value *mean = &e->mean_ns, *stddev = &e->stddev_ns;
	bool no_mean = mean->status == OW_VALUE_NONE, no_stddev = stddev->status == OW_VALUE_NONE;
	ow_json_number(json, "mean_ns", ow_json_known(mean));
	ow_json_number(json, "stddev_ns", ow_json_known(stddev));
	ow_json_object(json, "ci95");
	ow_json_bounds(json, "mean", mean);
	ow_json_bounds(json, "stddev", stddev);
	if (e->spread)
		put_quantile_bounds(json, e->spread);
	ow_json_end(json);
	if (e->spread)
		put_spread(json, e->spread);
	ow_json_string(json, "estimator", ow_flow_estimator_name(e->estimator));
	if (!no_mean && !no_stddev && e->spread)
		return;
	ow_json_object(json, "not_estimated");
	if (no_mean)
		ow_json_string(json, "mean", ow_reason_text(mean->reason));
	if (no_stddev)
		ow_json_string(json, "stddev", ow_reason_text(stddev->reason));
	if (!e->spread)
		ow_json_string(json, "quantiles", ow_reason_text(e->no_spread));
	ow_json_end(json);
}

static void put_ends(struct ow_json *json, const struct ow_flow_leg *leg)
{
	ow_json_count(json, "from", leg->from);
	ow_json_count(json, "to", leg->to);
}

static void put_flow(struct ow_json *json, const struct ow_flow_answers *answers, const struct ow_flow_answer *flow)
{
	ow_json_object(json, NULL);
	ow_flow_name_json(json, "flow", &answers->select, &flow->key);
	ow_json_count(json, "packets", flow->packets);
	ow_json_count_if(json, "sent", flow->sent != UINT64_MAX, flow->sent);
	if (answers->grouped) {
		ow_json_count(json, "flows", flow->flows);
		ow_json_count(json, "packets_estimated", flow->estimated_packets);
	}
	put_estimate(json, ow_flow_answer_whole(answers, flow));
	if (answers->legs > 1) {
		ow_json_array(json, "legs");
		for (unsigned i = 0; i + 1 < answers->legs; i++) {
			ow_json_object(json, NULL);
			put_ends(json, &answers->leg[i]);
			put_estimate(json, &flow->estimate[i]);
			ow_json_end(json);
		}
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_point(struct ow_json *json, const struct ow_flow_point *point)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "path", point->path);
	ow_json_count(json, "epochs", point->epochs);
	ow_json_integer(json, "begin_ns", point->begin_ns);
	ow_json_integer(json, "end_ns", point->end_ns);
	ow_json_count(json, "packets", point->packets);
	ow_json_count_if(json, "flows", point->counted, point->flows);
	ow_json_object(json, "bits_per_packet");
	ow_json_number(json, "counters", point->counter_bits);
	ow_json_number(json, "flow_counts", point->count_bits);
	ow_json_end(json);
	ow_json_end(json);
}

static void put_legs(struct ow_json *json, const struct ow_flow_answers *answers)
{
	ow_json_array(json, "legs");
	for (unsigned i = 0; i < answers->legs; i++) {
		const struct ow_flow_leg *leg = &answers->leg[i];
		ow_json_object(json, NULL);
		put_ends(json, leg);
		ow_json_count(json, "counters", leg->counters);
		ow_json_count(json, "clean", leg->clean);
		ow_json_count(json, "unclean", leg->counters - leg->clean);
		if (leg->searched) {
			ow_json_count(json, "repaired", leg->repaired);
			ow_json_count(json, "lost", leg->lost);
			ow_json_count(json, "extra", leg->extra);
			ow_json_flag(json, "complete", !leg->unread);
		}
		ow_json_end(json);
	}
	ow_json_end(json);
}

/* lines: each on a line of its own. */
static void put_warnings(struct ow_json *json, const struct ow_flow_answers *answers, bool lines)
{
	char line[OW_FLOW_WARNING];
	ow_json_array(json, "warnings");
	for (unsigned i = 0; ow_flow_answers_warning(answers, i, line); i++) {
		if (lines)
			ow_json_line(json);
		ow_json_string(json, NULL, line);
	}
	ow_json_end(json);
}

void ow_report_flow_answers_json(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows)
{
	struct ow_json json = {.out = out, .indent = 2};
	char key[OW_FLOW_SELECT_TEXT];
	ow_flow_select_text(&answers->select, key);
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_command(&json, "flows query");
	ow_json_array(&json, "points");
	ow_json_style(&json, OW_JSON_LINES);
	for (unsigned i = 0; i < answers->points; i++)
		put_point(&json, &answers->point[i]);
	ow_json_end(&json);
	ow_json_string(&json, "key", key);
	ow_json_string(&json, "counts", answers->counts ? answers->counts : "recorded");
	put_legs(&json, answers);
	ow_json_integer(&json, "offset_ns", answers->offset_ns);
	ow_json_count(&json, "flows_total", answers->flows);
	ow_json_count(&json, "flows_estimated", answers->estimated);
	ow_json_count(&json, "flows_never_arrived", answers->never_arrived);
	ow_json_array(&json, "flows");
	ow_json_style(&json, OW_JSON_LINES);
	for (size_t i = 0; i < rows->rows; i++)
		put_flow(&json, answers, rows->row[i]);
	ow_json_end(&json);
	put_warnings(&json, answers, true);
	ow_json_end(&json);
}

void ow_report_flow_worst_json(FILE *out, int64_t begin_ns, int64_t end_ns, const struct ow_flow_answers *answers,
                               const struct ow_flow_rows *rows)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_object(&json, "worst_flows");
	ow_json_string(&json, "from", answers->point[0].path);
	ow_json_string(&json, "to", answers->point[answers->points - 1].path);
	ow_json_integer(&json, "begin_ns", begin_ns);
	ow_json_integer(&json, "end_ns", end_ns);
	ow_json_count(&json, "flows_total", answers->flows);
	ow_json_count(&json, "flows_estimated", answers->estimated);
	ow_json_array(&json, "flows");
	for (size_t i = 0; i < rows->rows; i++)
		put_flow(&json, answers, rows->row[i]);
	ow_json_end(&json);
	put_warnings(&json, answers, false);
	ow_json_end(&json);
	ow_json_end(&json);
}

/* value,low,high; infinity and missing values are empty. */
static void put_csv_value(FILE *out, const struct ow_value *value)
{
	const double number[] = {value->value, value->low, value->high};
	for (int i = 0; i < 3; i++) {
		fputc(',', out);
		ow_format_csv_number(out, value->status == OW_VALUE_NONE ? NAN : number[i]);
	}
}

void ow_report_flow_answers_csv(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows)
{
	fputs(OW_FLOW_NAME_CSV ",from,to,packets,sent,mean_ns,mean_low_ns,mean_high_ns,stddev_ns,stddev_low_ns,"
	                       "stddev_high_ns,estimator,not_estimated,protocol_name\n",
	      out);
	for (size_t i = 0; i < rows->rows; i++) {
		const struct ow_flow_answer *flow = rows->row[i];
		for (unsigned k = 0; k < answers->legs; k++) {
			const struct ow_flow_estimate *e = &flow->estimate[k];
			const struct ow_value *none = e->mean_ns.status == OW_VALUE_NONE ? &e->mean_ns : &e->stddev_ns;
			ow_flow_name_csv(out, &answers->select, &flow->key);
			fputc(',', out);
			ow_format_csv(out, answers->point[answers->leg[k].from].path);
			fputc(',', out);
			ow_format_csv(out, answers->point[answers->leg[k].to].path);
			fprintf(out, ",%" PRIu64 ",", flow->packets);
			if (flow->sent != UINT64_MAX)
				fprintf(out, "%" PRIu64, flow->sent);
			put_csv_value(out, &e->mean_ns);
			put_csv_value(out, &e->stddev_ns);
			fprintf(out, ",%s,", ow_flow_estimator_name(e->estimator));
			ow_format_csv(out, none->status == OW_VALUE_NONE ? ow_reason_text(none->reason) : NULL);
			char name[OW_PROTOCOL_TEXT] = "";
			if (answers->select.by == OW_FLOW_BY_FIVE_TUPLE)
				ow_flow_protocol_text(&flow->key, name);
			fprintf(out, ",%s\n", name);
		}
	}
}
