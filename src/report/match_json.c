/* SPDX-License-Identifier: Apache-2.0 */
/* What `oneway match --json` prints. The names are those of docs/json.md. */
#include "result/json.h"
#include "report/match_flows.h"
#include "report/report.h"

#include <inttypes.h>
#include <oneway/oneway.h>

static const char *const level_name[] = {"auto", "ip", "nat", "frame"};
static const char *const clock_name[] = {"none", "given", "estimated"};

static void put_capture(FILE *out, const char *name, const struct ow_capture_info *info, bool first)
{
	ow_report_json_name(out, 4, name, first);
	fputs("{\"path\": ", out);
	ow_report_json_string(out, info->path);
	fprintf(out, ", \"packets\": %" PRIu64 ", \"first_ns\": ", info->packets);
	if (info->packets)
		fprintf(out, "%" PRId64 ", \"last_ns\": %" PRId64, info->first_ns, info->last_ns);
	else
		fputs("null, \"last_ns\": null", out);
	fputs(", \"linktype\": ", out);
	ow_report_json_string(out, info->linktype);
	fprintf(out, ", \"resolution_ns\": %" PRId64 "}", info->resolution_ns);
}

static void put_pair(FILE *out, const char *name, const uint64_t count[OW_SIDES])
{
	ow_report_json_name(out, 2, name, false);
	fprintf(out, "{\"a\": %" PRIu64 ", \"b\": %" PRIu64 "}", count[OW_SIDE_A], count[OW_SIDE_B]);
}

static void put_result(FILE *out, int indent, const char *name, const struct ow_result *result, bool there)
{
	ow_report_json_name(out, indent, name, false);
	if (there)
		ow_report_result_json(out, result, indent);
	else
		fputs("null", out);
}

static void put_intervals(FILE *out, const struct ow_match_report *report)
{
	ow_report_json_name(out, 2, "intervals", false);
	fputc('[', out);
	for (size_t i = 0; i < report->intervals; i++) {
		const struct ow_interval *interval = &report->interval[i];
		fprintf(out, "%s\n    {\"start_ns\": %" PRId64, i ? "," : "", interval->start_ns);
		ow_report_json_members(out, &interval->direction[OW_A_TO_B], 6, false);
		put_result(out, 6, "b_to_a", &interval->direction[OW_B_TO_A], report->has_direction[OW_B_TO_A]);
		fputs("\n    }", out);
	}
	fputs("\n  ]", out);
}

static void put_bound(FILE *out, int64_t ns, int64_t none)
{
	if (ns == none)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, ns);
}

static void put_offset_bounds(FILE *out, const struct ow_match_report *report)
{
	fputs(", \"error_ns\": ", out);
	put_bound(out, report->offset_error_ns, -1);
	fputs(", \"bounds_ns\": ", out);
	if (report->offset_low_ns > report->offset_high_ns) {
		fputs("null", out);
		return;
	}
	fputc('[', out);
	put_bound(out, report->offset_low_ns, INT64_MIN);
	fputs(", ", out);
	put_bound(out, report->offset_high_ns, INT64_MAX);
	fputc(']', out);
}

static void put_holes(FILE *out, const struct ow_match_report *report)
{
	ow_report_json_name(out, 2, "holes", false);
	fputc('[', out);
	for (size_t i = 0; i < report->holes; i++) {
		const struct ow_hole *hole = &report->hole[i];
		fprintf(out,
		        "%s\n    {\"capture\": \"%s\", \"start_ns\": %" PRId64 ", \"length_ns\": %" PRId64
		        ", \"packets\": %" PRIu64 ", \"certain\": %s}",
		        i ? "," : "", hole->side == OW_SIDE_A ? "a" : "b", hole->start_ns, hole->length_ns,
		        hole->packets, hole->certain ? "true" : "false");
	}
	fputs(report->holes ? "\n  ]" : "]", out);
}

void ow_report_match_json(FILE *out, const struct ow_match_report *report, const struct ow_match_flows *flows)
{
	fprintf(out, "{\n  \"tool\": \"oneway\",\n  \"version\": \"%s\",\n  \"command\": \"match\"", ow_version());
	ow_report_json_name(out, 2, "inputs", false);
	fputc('{', out);
	put_capture(out, "a", &report->capture[OW_SIDE_A], true);
	put_capture(out, "b", &report->capture[OW_SIDE_B], false);
	fputs("\n  }", out);
	ow_report_json_name(out, 2, "identity", false);
	fprintf(out,
	        "{\"level\": \"%s\", \"inner\": %s, \"segments\": %s, \"fragments\": %s, \"ip_id\": %s, "
	        "\"tcp_numbers\": %s, \"tcp_options\": %s}",
	        level_name[report->level], report->inner ? "true" : "false", report->segments ? "true" : "false",
	        report->fragments ? "true" : "false", report->ip_id ? "true" : "false",
	        report->tcp_numbers ? "true" : "false", report->tcp_options ? "true" : "false");
	ow_report_json_name(out, 2, "clock", false);
	fprintf(out, "{\"offset_ns\": %" PRId64 ", \"drift_ppb\": ", report->offset_ns);
	ow_report_json_number(out, report->drift_ppb);
	fprintf(out, ", \"method\": \"%s\"", clock_name[report->clock]);
	put_offset_bounds(out, report);
	fputc('}', out);
	ow_report_json_name(out, 2, "window_ns", false);
	fprintf(out, "%" PRId64, report->window_ns);
	put_result(out, 2, "a_to_b", &report->direction[OW_A_TO_B], true);
	put_result(out, 2, "b_to_a", &report->direction[OW_B_TO_A], report->has_direction[OW_B_TO_A]);
	put_pair(out, "unclassified", report->unclassified);
	put_pair(out, "outside_overlap", report->outside_overlap);
	put_pair(out, "skipped", report->skipped);
	put_holes(out, report);
	if (report->intervals)
		put_intervals(out, report);
	if (flows) {
		ow_report_json_name(out, 2, "flows", false);
		ow_report_match_flows_json(out, flows);
	}
	ow_report_json_name(out, 2, "warnings", false);
	fputc('[', out);
	for (size_t i = 0; i < report->warnings; i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		ow_report_json_string(out, report->warning[i]);
	}
	fputs(report->warnings ? "\n  ]\n}\n" : "]\n}\n", out);
}
