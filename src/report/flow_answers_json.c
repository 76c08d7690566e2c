/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of all flows as JSON and CSV. */
#include "flows/flow_answers.h"

#include "report/flow_name.h"
#include "result/json.h"
#include "base/format.h"
#include <inttypes.h>
#include <math.h>
#include <oneway/oneway.h>

static void put_number(FILE *out, const char *name, double value)
{
	fprintf(out, "\"%s\": ", name);
	ow_report_json_number(out, value);
}

static void put_reason(FILE *out, const char *name, const struct ow_value *value, bool first)
{
	fprintf(out, "%s\"%s\": ", first ? "" : ", ", name);
	ow_report_json_string(out, ow_reason_text(value->reason));
}

static void put_estimate(FILE *out, const struct ow_flow_estimate *e)
{
	const struct ow_value *mean = &e->mean_ns, *stddev = &e->stddev_ns;
	bool no_mean = mean->status == OW_VALUE_NONE, no_stddev = stddev->status == OW_VALUE_NONE;
	put_number(out, "mean_ns", ow_report_json_known(mean));
	fputs(", ", out);
	put_number(out, "stddev_ns", ow_report_json_known(stddev));
	fputs(", \"ci95\": {\"mean\": ", out);
	ow_report_json_bounds(out, mean);
	fputs(", \"stddev\": ", out);
	ow_report_json_bounds(out, stddev);
	fprintf(out, "}, \"estimator\": \"%s\"", ow_flow_estimator_name(e->estimator));
	if (!no_mean && !no_stddev)
		return;
	fputs(", \"not_estimated\": {", out);
	if (no_mean)
		put_reason(out, "mean", mean, true);
	if (no_stddev)
		put_reason(out, "stddev", stddev, !no_mean);
	fputc('}', out);
}

static void put_flow(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_answer *flow)
{
	fputs("{\"flow\": ", out);
	ow_flow_name_json(out, &answers->select, &flow->key);
	fprintf(out, ", \"packets\": %" PRIu64 ", \"sent\": ", flow->packets);
	flow->sent == UINT64_MAX ? fputs("null", out) : fprintf(out, "%" PRIu64, flow->sent);
	fputs(", ", out);
	put_estimate(out, ow_flow_answer_whole(answers, flow));
	for (unsigned i = 0; i + 1 < answers->legs; i++) {
		fprintf(out, "%s{\"from\": %u, \"to\": %u, ", i ? ", " : ", \"legs\": [", answers->leg[i].from,
		        answers->leg[i].to);
		put_estimate(out, &flow->estimate[i]);
		fputc('}', out);
	}
	fputs(answers->legs > 1 ? "]}" : "}", out);
}

static void put_point(FILE *out, const struct ow_flow_point *point)
{
	fputs("{\"path\": ", out);
	ow_report_json_string(out, point->path);
	fprintf(out,
	        ", \"epochs\": %zu, \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"packets\": %" PRIu64
	        ", \"flows\": ",
	        point->epochs, point->begin_ns, point->end_ns, point->packets);
	point->counted ? fprintf(out, "%" PRIu64, point->flows) : fputs("null", out);
	fputs(", \"bits_per_packet\": {", out);
	put_number(out, "counters", point->counter_bits);
	fputs(", ", out);
	put_number(out, "flow_counts", point->count_bits);
	fputs("}}", out);
}

static void put_legs(FILE *out, const struct ow_flow_answers *answers)
{
	for (unsigned i = 0; i < answers->legs; i++) {
		const struct ow_flow_leg *leg = &answers->leg[i];
		fprintf(out,
		        "%s{\"from\": %u, \"to\": %u, \"counters\": %" PRIu64 ", \"clean\": %" PRIu64
		        ", \"unclean\": %" PRIu64 "}",
		        i ? ", " : "", leg->from, leg->to, leg->counters, leg->clean, leg->counters - leg->clean);
	}
}

void ow_report_flow_answers_json(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows)
{
	char key[OW_FLOW_SELECT_TEXT], line[OW_FLOW_WARNING];
	ow_flow_select_text(&answers->select, key);
	fprintf(out,
	        "{\n  \"tool\": \"oneway\",\n  \"version\": \"%s\",\n  \"command\": \"flows query\",\n  \"points\": [",
	        ow_version());
	for (unsigned i = 0; i < answers->points; i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		put_point(out, &answers->point[i]);
	}
	fprintf(out, "\n  ],\n  \"key\": \"%s\",\n  \"counts\": ", key);
	ow_report_json_string(out, answers->counts ? answers->counts : "recorded");
	fputs(",\n  \"legs\": [", out);
	put_legs(out, answers);
	fprintf(out,
	        "],\n  \"offset_ns\": %" PRId64 ",\n  \"flows_total\": %zu,\n  \"flows_estimated\": %zu,\n"
	        "  \"flows_never_arrived\": %" PRIu64 ",\n  \"flows\": [",
	        answers->offset_ns, answers->flows, answers->estimated, answers->never_arrived);
	for (size_t i = 0; i < rows->rows; i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		put_flow(out, answers, rows->row[i]);
	}
	fputs(rows->rows ? "\n  ],\n  \"warnings\": [" : "],\n  \"warnings\": [", out);
	for (unsigned i = 0; ow_flow_answers_warning(answers, i, line); i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		ow_report_json_string(out, line);
	}
	fputs("]\n}\n", out);
}

/* value,low,high; infinity and what is not there are empty. */
static void put_csv_value(FILE *out, const struct ow_value *value)
{
	const double number[] = {value->value, value->low, value->high};
	for (int i = 0; i < 3; i++) {
		fputc(',', out);
		if (value->status != OW_VALUE_NONE && isfinite(number[i]))
			ow_report_json_number(out, number[i]);
	}
}

void ow_report_flow_answers_csv(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows)
{
	fputs(OW_FLOW_NAME_CSV ",from,to,packets,sent,mean_ns,mean_low_ns,mean_high_ns,stddev_ns,stddev_low_ns,"
	                       "stddev_high_ns,estimator,not_estimated\n",
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
			fputc('\n', out);
		}
	}
}
