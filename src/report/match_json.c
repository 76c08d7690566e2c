/* SPDX-License-Identifier: Apache-2.0 */
/* What `oneway match --json` prints. The names are those of docs/json.md. */
#include "result/json.h"
#include "path/path.h"
#include "report/match_classes.h"
#include "report/match_details.h"
#include "report/path_view.h"
#include "report/match_flows.h"
#include "report/match_packets.h"
#include "report/report.h"
#include <math.h>

static const char *const level_name[] = {"auto", "ip", "nat", "frame"};
static const char *const clock_name[] = {"none", "given", "estimated"};

static void put_capture(struct ow_json *json, const struct ow_capture_info *info, uint32_t files)
{
	ow_json_string(json, "path", info->path);
	if (files)
		ow_json_count(json, "files", files);
	ow_json_count_if(json, "packets", info->linktype, info->packets);
	ow_json_integer_if(json, "first_ns", info->packets, info->first_ns);
	ow_json_integer_if(json, "last_ns", info->packets, info->last_ns);
	ow_json_string(json, "linktype", info->linktype);
	ow_json_integer_if(json, "resolution_ns", info->linktype, info->resolution_ns);
}

static void put_inputs(struct ow_json *json, const struct ow_match_report *report, const char *const *name)
{
	ow_json_object(json, "inputs");
	ow_json_style(json, OW_JSON_LINES);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ow_json_object(json, side == OW_SIDE_A ? "a" : "b");
		if (name && name[side])
			ow_json_string(json, "name", name[side]);
		put_capture(json, &report->capture[side], report->files[side]);
		ow_json_string(json, "stamps", report->stamps[side]);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_identity(struct ow_json *json, const struct ow_match_report *report)
{
	ow_json_object(json, "identity");
	ow_json_string(json, "level", level_name[report->level]);
	ow_json_flag(json, "inner", report->inner);
	ow_json_flag(json, "segments", report->segments);
	ow_json_flag(json, "fragments", report->fragments);
	ow_json_flag(json, "ip_id", report->ip_id);
	ow_json_flag(json, "tcp_numbers", report->tcp_numbers);
	ow_json_flag(json, "tcp_options", report->tcp_options);
	ow_json_end(json);
}

static void put_clock(struct ow_json *json, const struct ow_match_report *report)
{
	ow_json_object(json, "clock");
	ow_json_integer(json, "offset_ns", report->offset_ns);
	ow_json_number(json, "drift_ppb", report->drift_ppb);
	ow_json_string(json, "method", clock_name[report->clock]);
	ow_json_integer_if(json, "error_ns", report->offset_error_ns != -1, report->offset_error_ns);
	if (report->offset_low_ns > report->offset_high_ns) {
		ow_json_null(json, "bounds_ns");
	} else {
		ow_json_array(json, "bounds_ns");
		ow_json_integer_if(json, NULL, report->offset_low_ns != INT64_MIN, report->offset_low_ns);
		ow_json_integer_if(json, NULL, report->offset_high_ns != INT64_MAX, report->offset_high_ns);
		ow_json_end(json);
	}
	ow_json_end(json);
}

/* The members that only directions and hops have. */
static void put_more(struct ow_json *json, const struct ow_match_report *report, enum ow_direction direction)
{
	ow_json_percentiles(json, report->percentile[direction], report->percentiles,
	                    &report->direction[direction].delay);
	if (report->details[direction])
		ow_report_match_details_json(json, report->details[direction]);
}

/* The same of a hop. */
static void put_more_of_hop(struct ow_json *json, const struct ow_path_segment *segment, enum ow_direction direction)
{
	struct ow_match_report report = *segment->report;
	report.details[direction] = ow_path_hop_details(segment, direction);
	put_more(json, &report, direction);
}

static void put_direction(struct ow_json *json, const char *name, const struct ow_match_report *report,
                          enum ow_direction direction)
{
	if (direction == OW_B_TO_A && !report->has_direction[OW_B_TO_A]) {
		ow_json_null(json, name);
		return;
	}
	ow_json_object(json, name);
	ow_json_style(json, OW_JSON_LINES);
	ow_json_result_members(json, &report->direction[direction]);
	put_more(json, report, direction);
	ow_json_end(json);
}

/* Of an interval. */
static void put_percentiles(struct ow_json *json, const struct ow_match_report *report, size_t i,
                            enum ow_direction direction)
{
	if (report->interval_percentile)
		ow_json_percentiles(json,
		                    &report->interval_percentile[(i * OW_DIRECTIONS + direction) * report->percentiles],
		                    report->percentiles, &report->interval[i].direction[direction].delay);
}

static void put_intervals(struct ow_json *json, const struct ow_match_report *report)
{
	ow_json_array(json, "intervals");
	ow_json_style(json, OW_JSON_LINES);
	for (size_t i = 0; i < report->intervals; i++) {
		const struct ow_interval *interval = &report->interval[i];
		ow_json_object(json, NULL);
		ow_json_integer(json, "start_ns", interval->start_ns);
		ow_json_style(json, OW_JSON_LINES);
		ow_json_result_members(json, &interval->direction[OW_A_TO_B]);
		put_percentiles(json, report, i, OW_A_TO_B);
		if (report->has_direction[OW_B_TO_A]) {
			ow_json_object(json, "b_to_a");
			ow_json_result_members(json, &interval->direction[OW_B_TO_A]);
			put_percentiles(json, report, i, OW_B_TO_A);
			ow_json_end(json);
		} else {
			ow_json_null(json, "b_to_a");
		}
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_holes(struct ow_json *json, const struct ow_match_report *report)
{
	ow_json_array(json, "holes");
	ow_json_style(json, OW_JSON_LINES);
	for (size_t i = 0; i < report->holes; i++) {
		const struct ow_hole *hole = &report->hole[i];
		ow_json_object(json, NULL);
		ow_json_string(json, "capture", hole->side == OW_SIDE_A ? "a" : "b");
		ow_json_integer(json, "start_ns", hole->start_ns);
		ow_json_integer(json, "length_ns", hole->length_ns);
		ow_json_count(json, "packets", hole->packets);
		ow_json_flag(json, "certain", hole->certain);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_warnings(struct ow_json *json, const struct ow_match_report *report)
{
	ow_json_array(json, "warnings");
	ow_json_style(json, OW_JSON_LINES);
	for (size_t i = 0; i < report->warnings; i++)
		ow_json_string(json, NULL, report->warning[i]);
	ow_json_end(json);
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

static const char *const order_name[] = {"given", "ttl", "time", "unknown"};

static void put_points(struct ow_json *json, const struct ow_path_report *path)
{
	ow_json_rows(json, "points");
	for (unsigned i = 0; i < path->points; i++) {
		ow_json_row(json);
		ow_json_string(json, "name", path->point[i].name);
		put_capture(json, &path->capture[i], path->files[i]);
		ow_json_count(json, "argument", path->argument[i] + 1);
		ow_json_integer(json, "offset_ns", path->offset_ns[i]);
		ow_json_integer_if(json, "offset_error_ns", path->clocks_joined && path->error_ns[i] >= 0,
		                   path->error_ns[i]);
		ow_json_object(json, "unseen");
		ow_json_count(json, "a_to_b", path->around[OW_A_TO_B][i]);
		ow_json_count(json, "b_to_a", path->around[OW_B_TO_A][i]);
		ow_json_end(json);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_hop(struct ow_json *json, const char *name, const struct ow_path_report *path,
                    const struct ow_path_segment *segment, enum ow_direction direction)
{
	const struct ow_path_correction *correction = &segment->correction[direction];
	double share;
	if (!segment->report || !segment->report->has_direction[direction]) {
		ow_json_null(json, name);
		return;
	}
	ow_json_object(json, name);
	ow_json_style(json, OW_JSON_LINES);
	ow_json_result_members(json, &segment->result[direction]);
	put_more_of_hop(json, segment, direction);
	ow_json_number(json, "delay_share", ow_path_delay_share(path, segment, direction, &share) ? share : NAN);
	ow_json_count(json, "around_to", correction->around_to);
	ow_json_count(json, "around_from", correction->around_from);
	ow_json_count(json, "undecided", correction->undecided);
	ow_json_end(json);
}

static void put_segments(struct ow_json *json, const struct ow_path_report *path)
{
	ow_json_array(json, "segments");
	ow_json_style(json, OW_JSON_LINES);
	for (unsigned i = 0; i < path->segments; i++) {
		const struct ow_path_segment *segment = &path->segment[i];
		ow_json_object(json, NULL);
		ow_json_style(json, OW_JSON_LINES);
		ow_json_string(json, "from", path->point[segment->from].name);
		ow_json_string(json, "to", path->point[segment->to].name);
		if (segment->report) {
			put_identity(json, segment->report);
			put_clock(json, segment->report);
			ow_json_integer(json, "window_ns", segment->report->window_ns);
		}
		put_hop(json, "a_to_b", path, segment, OW_A_TO_B);
		put_hop(json, "b_to_a", path, segment, OW_B_TO_A);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_lost_at(struct ow_json *json, const struct ow_path_report *path)
{
	static const char *const name[] = {"a_to_b", "b_to_a"};
	ow_json_object(json, "lost_at");
	ow_json_style(json, OW_JSON_LINES);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		ow_json_rows(json, name[d]);
		for (unsigned i = 0; i < path->points * path->points; i++) {
			unsigned from = i / path->points, to = i % path->points;
			if (!path->lost_at[d][from][to])
				continue;
			ow_json_row(json);
			ow_json_string(json, "from", path->point[from].name);
			ow_json_string(json, "to", path->point[to].name);
			ow_json_count(json, "lost", path->lost_at[d][from][to]);
			ow_json_end(json);
		}
		if (path->lost_unknown[d]) {
			ow_json_row(json);
			ow_json_null(json, "from");
			ow_json_null(json, "to");
			ow_json_count(json, "lost", path->lost_unknown[d]);
			ow_json_end(json);
		}
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_path(struct ow_json *json, const struct ow_path_report *path)
{
	ow_json_string(json, "order", order_name[path->order]);
	put_points(json, path);
	put_segments(json, path);
	put_lost_at(json, path);
}

void ow_report_match_json(FILE *out, const struct ow_match_report *report, const char *const *name,
                          const struct ow_match_flows *flows, const struct ow_match_classes *classes,
                          const struct ow_match_packets *packets, const struct ow_path_report *path)
{
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_command(&json, "match");
	put_inputs(&json, report, name);
	put_identity(&json, report);
	put_clock(&json, report);
	ow_json_integer(&json, "window_ns", report->window_ns);
	put_direction(&json, "a_to_b", report, OW_A_TO_B);
	put_direction(&json, "b_to_a", report, OW_B_TO_A);
	ow_json_sides(&json, "unclassified", report->unclassified);
	ow_json_sides(&json, "outside_overlap", report->outside_overlap);
	ow_json_sides(&json, "skipped", report->skipped);
	ow_json_sides(&json, "dropped", report->dropped);
	ow_json_sides(&json, "filtered", report->filtered);
	put_holes(&json, report);
	if (path)
		put_path(&json, path);
	if (report->intervals)
		put_intervals(&json, report);
	if (classes)
		ow_report_match_classes_json(&json, classes);
	if (flows)
		ow_report_match_flows_json(&json, flows);
	if (packets)
		ow_report_match_packets_json(&json, packets);
	put_warnings(&json, report);
	ow_json_end(&json);
}
