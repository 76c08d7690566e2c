/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the station: lines when something changes, a table at the end, JSON. */
#include "report/verdicts.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "base/word.h"
#include "result/json.h"

#include <math.h>
#include <string.h>

static const char *const state_name[] = {"ok", "broken", "unknown"};

static void put_finding(FILE *out, const struct ow_style *style, const struct ow_finding *finding)
{
	char usual[OW_DURATION_TEXT], spread[OW_DURATION_TEXT], now[OW_DURATION_TEXT], time[OW_FORMAT],
		name[OW_PLACE_TEXT];
	char before[OW_FORMAT], after[OW_FORMAT];
	ow_format_clean(finding->place, !style->utf8, name, sizeof(name));
	fprintf(out, "            %s since %s (", name, ow_format_local(finding->since_ns, "%H:%M:%S", time));
	if (isfinite(finding->z))
		fprintf(out, "%.1f sigma, ", finding->z);
	fprintf(out, "%u interval%s%s)\n", finding->intervals, ow_plural(finding->intervals, "", "s"),
	        finding->active ? ", by probes" : "");
	if (finding->delay) {
		ow_duration_text(finding->usual_ns, usual);
		ow_duration_text(finding->spread_ns, spread);
		ow_duration_text(finding->now_ns, now);
		fprintf(out, "              delay usually %s +- %s, now %s\n", usual, spread,
		        isfinite(finding->now_ns) ? now : "none: no packet arrives");
	}
	if (finding->loss)
		fprintf(out, "              loss usually %s, now %s\n", ow_format_percent(finding->usual_loss, before),
		        ow_format_percent(finding->now_loss, after));
}

static void put_path(FILE *out, const struct ow_style *style, const struct ow_monitor_verdict *verdict)
{
	char name[OW_FORMAT * 4];
	ow_format_clean(verdict->target->name, !style->utf8, name, sizeof(name));
	fputs(name, out);
}

static void put_clean(FILE *out, const struct ow_style *style, int indent, const char *text)
{
	char clean[OW_REPORT_SENTENCE];
	ow_format_clean(text, !style->utf8, clean, sizeof(clean));
	if (style->terminal)
		ow_format_wrap(out, clean, indent, style->width);
	else
		fprintf(out, "%s\n", clean);
}

#define INDENT 12

/* Text behind the cause gets its own line. */
static void put_cause(FILE *out, const struct ow_style *style, const char *before, const char *cause, int indent)
{
	char line[OW_REPORT_SENTENCE];
	const char *more = strstr(cause, "; ");
	snprintf(line, sizeof(line), "%s%.*s", before, more ? (int)(more - cause) : (int)strlen(cause), cause);
	put_clean(out, style, indent, line);
	if (more) {
		fprintf(out, "%*s", INDENT, "");
		put_clean(out, style, INDENT, more + 2);
	}
}

static void put_end(FILE *out, const struct ow_style *style, const struct ow_incident *incident, int indent)
{
	char line[OW_REPORT_SENTENCE], time[OW_FORMAT], lasted[OW_DURATION_TEXT];
	ow_duration_text((double)(incident->until_ns - incident->since_ns), lasted);
	snprintf(line, sizeof(line), "ended: %s since %s, after %s", incident->cause,
	         ow_format_local(incident->until_ns, "%H:%M:%S", time), lasted);
	put_clean(out, style, indent, line);
}

void ow_report_incident(FILE *out, const struct ow_style *style, enum ow_incident_event event, int64_t now_ns,
                        const struct ow_incident *incident)
{
	char time[OW_FORMAT], name[OW_INCIDENT_SUBJECT];
	int indent = (int)ow_format_clean(incident->subject, !style->utf8, name, sizeof(name)) + 16;
	if (indent > style->width / 2)
		indent = INDENT;
	fprintf(out, "%s  %s: ", ow_format_local(now_ns, "%H:%M:%S", time), name);
	if (event == OW_INCIDENT_END) {
		put_end(out, style, incident, indent);
		return;
	}
	put_cause(out, style,
	          incident->kind == OW_INCIDENT_UNMEASURED ? "not measured: "
	          : event == OW_INCIDENT_WORSE             ? "worse: "
	                                                   : "",
	          incident->cause, indent);
	for (uint32_t i = 0; incident->measured && i < incident->findings; i++)
		put_finding(out, style, &incident->finding[i]);
	/* More precise than the places, if it is not the same name. */
	if (incident->findings && *incident->hops && strcmp(incident->hops, incident->finding[0].place) != 0) {
		fprintf(out, "%*sall that has changed is explained by ", INDENT, "");
		put_clean(out, style, INDENT, incident->hops);
	}
}

/* "it loses 2.1%, usually 0%", "it takes 5 ms, usually 2 ms". */
static size_t put_numbers(const struct ow_finding *finding, char *text, size_t size)
{
	char now[OW_DURATION_TEXT], usual[OW_DURATION_TEXT], loss[OW_FORMAT], usual_loss[OW_FORMAT];
	size_t used = (size_t)snprintf(text, size, "%.200s", finding->place);
	ow_duration_text(finding->now_ns, now);
	ow_duration_text(finding->usual_ns, usual);
	if (finding->loss && used < size)
		used += (size_t)snprintf(text + used, size - used, " loses %s, usually %s",
		                         ow_format_percent(finding->now_loss, loss),
		                         ow_format_percent(finding->usual_loss, usual_loss));
	if (finding->delay && used < size && isfinite(finding->now_ns))
		used += (size_t)snprintf(text + used, size - used, "%s takes %s, usually %s",
		                         finding->loss ? " and" : "", now, usual);
	return used < size ? used : size - 1;
}

void ow_report_incident_sentence(const struct ow_incident *incident, char text[OW_REPORT_SENTENCE])
{
	size_t used =
		(size_t)snprintf(text, OW_REPORT_SENTENCE, "%.200s: %s%.300s", incident->subject,
	                         incident->kind == OW_INCIDENT_UNMEASURED ? "not measured: " : "", incident->cause);
	for (uint32_t i = 0; i < incident->findings && used + 3 < OW_REPORT_SENTENCE; i++) {
		used += (size_t)snprintf(text + used, OW_REPORT_SENTENCE - used, "; ");
		used += put_numbers(&incident->finding[i], text + used, OW_REPORT_SENTENCE - used);
	}
}

enum { STATE, MEAN, BOUND, STDDEV, LOSS, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[STATE] = {"state", 7, 0, true}, [MEAN] = {"mean", 10, 1}, [BOUND] = {"95 %", 13, 3},
	[STDDEV] = {"stddev", 10, 4},    [LOSS] = {"loss", 8, 2},
};
/* Columns of the name of a path. */
#define NAME_MIN 11
#define NAME_MAX 40

static void cells_of(const struct ow_monitor_verdict *verdict, ow_table_cells cell)
{
	const struct ow_composed *composed = &verdict->composed;
	char half[OW_DURATION_TEXT];
	for (int i = 0; i < COLUMNS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "%s", i == BOUND ? "" : "-");
	snprintf(cell[STATE], OW_TABLE_CELL, "%s", state_name[verdict->state]);
	if (composed->mean_ns.status != OW_VALUE_NONE) {
		ow_duration_text(composed->mean_ns.value, cell[MEAN]);
		ow_duration_text((composed->mean_ns.high - composed->mean_ns.low) / 2, half);
		snprintf(cell[BOUND], OW_TABLE_CELL, "+- %-10s", half);
	}
	if (composed->stddev_ns.status != OW_VALUE_NONE)
		ow_duration_text(composed->stddev_ns.value, cell[STDDEV]);
	if (composed->loss_ratio.status != OW_VALUE_NONE)
		ow_format_percent(composed->loss_ratio.value, cell[LOSS]);
}

void ow_report_verdict_table(FILE *out, const struct ow_style *style, const struct ow_monitor_verdict *verdict,
                             uint32_t count, const struct ow_monitor_count *counts)
{
	struct ow_table table = {out, columns, COLUMNS, .colour = false};
	/* Two columns stay free where there is room for them, and one is before the numbers. */
	unsigned spare = style->width > 64 ? 2 : 0;
	unsigned width = ow_table_fit_name(&table, (unsigned)style->width - spare, 1, NAME_MIN, NAME_MAX);
	fprintf(out, "\n%-*s ", (int)width, "path");
	ow_table_titles(&table);
	for (uint32_t i = 0; i < count; i++) {
		char name[OW_FORMAT * 4];
		ow_table_cells cell;
		ow_format_clean(verdict[i].target->name, !style->utf8, name, sizeof(name));
		ow_table_name(out, name, width);
		fputc(' ', out);
		cells_of(&verdict[i], cell);
		ow_table_row(&table, cell, 0);
	}
	/* For the other paths the reason was printed when it happened. */
	for (uint32_t i = 0; i < count; i++) {
		char cause[sizeof(verdict->cause)];
		if (verdict[i].state != OW_PATH_UNKNOWN)
			continue;
		ow_format_clean(verdict[i].cause, !style->utf8, cause, sizeof(cause));
		put_path(out, style, &verdict[i]);
		fprintf(out, ": unknown: %s\n", cause);
	}
	fprintf(out, "%u %s: %u with a new result, %u learning, %u changed\n", counts->places,
	        ow_plural(counts->places, "place", "places"), counts->fresh, counts->learning, counts->changed);
}

void ow_report_status(FILE *out, const struct ow_style *style, int64_t now_ns, const struct ow_monitor_verdict *verdict,
                      uint32_t count)
{
	uint32_t in[3] = {0};
	char time[OW_FORMAT], line[200];
	for (uint32_t i = 0; i < count; i++)
		in[verdict[i].state]++;
	int used = snprintf(line, sizeof(line), "%.8s  %u %s: %u ok", ow_format_local(now_ns, "%H:%M:%S", time), count,
	                    ow_plural(count, "path", "paths"), in[OW_PATH_OK]);
	for (int i = OW_PATH_BROKEN; i <= OW_PATH_UNKNOWN; i++)
		if (in[i])
			used += snprintf(line + used, sizeof(line) - (size_t)used, ", %u %s", in[i], state_name[i]);
	fprintf(out, "\r%.*s\033[K", style->width - 1, line);
}

void ow_report_status_clear(FILE *out)
{
	fputs("\r\033[K", out);
}

/* -- JSON --------------------------------------------------------------------------------------------------------- */

void ow_report_finding_json(struct ow_json *json, const struct ow_finding *finding)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "place", finding->place);
	ow_json_flag(json, "delay", finding->delay);
	ow_json_flag(json, "loss", finding->loss);
	ow_json_flag(json, "active", finding->active);
	ow_json_integer(json, "since_ns", finding->since_ns);
	ow_json_count(json, "intervals", finding->intervals);
	ow_json_number(json, "share", finding->share);
	ow_json_number(json, "usual_ns", finding->usual_ns);
	ow_json_number(json, "usual_stddev_ns", finding->spread_ns);
	ow_json_number(json, "now_ns", finding->now_ns);
	ow_json_number(json, "usual_loss", finding->usual_loss);
	ow_json_number(json, "now_loss", finding->now_loss);
	ow_json_number(json, "whole_flows", finding->whole_flows);
	ow_json_integer(json, "length_ns", finding->length_ns);
	ow_json_number(json, "sigmas", finding->z);
	ow_json_end(json);
}

static void json_composed(struct ow_json *json, const struct ow_composed *composed)
{
	ow_json_number(json, "mean_ns", ow_json_known(&composed->mean_ns));
	ow_json_number(json, "stddev_ns", ow_json_known(&composed->stddev_ns));
	ow_json_number(json, "loss_ratio", ow_json_known(&composed->loss_ratio));
	ow_json_object(json, "ci95");
	ow_json_bounds(json, "mean", &composed->mean_ns);
	ow_json_bounds(json, "stddev", &composed->stddev_ns);
	ow_json_bounds(json, "loss_ratio", &composed->loss_ratio);
	ow_json_end(json);
	ow_json_number(json, "clock_error_ns", composed->clock_error_ns);
	ow_json_count(json, "places", composed->places);
	ow_json_count(json, "missing", composed->missing);
	ow_json_count(json, "folded", composed->folded);
	ow_json_integer_if(json, "length_ns", composed->length_ns > 0, composed->length_ns);
	ow_json_flag(json, "active", composed->active);
}

static void json_verdict(struct ow_json *json, const struct ow_monitor_verdict *verdict)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "name", verdict->target->name);
	ow_json_string(json, "from", verdict->target->from);
	ow_json_string(json, "to", verdict->target->to);
	ow_json_string(json, "state", state_name[verdict->state]);
	if (*verdict->cause)
		ow_json_string(json, "cause", verdict->cause);
	json_composed(json, &verdict->composed);
	ow_json_array(json, "responsible");
	for (uint32_t i = 0; verdict->state == OW_PATH_BROKEN && i < verdict->findings; i++)
		ow_report_finding_json(json, &verdict->finding[i]);
	ow_json_end(json);
	ow_json_end(json);
}

void ow_report_verdicts_json(FILE *out, int64_t start_ns, int64_t length_ns, const struct ow_monitor_verdict *verdict,
                             uint32_t count, const char *hops)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_integer(&json, "start_ns", start_ns);
	ow_json_integer(&json, "length_ns", length_ns);
	ow_json_string(&json, "explained_by", hops);
	ow_json_array(&json, "paths");
	for (uint32_t i = 0; i < count; i++)
		json_verdict(&json, &verdict[i]);
	ow_json_end(&json);
	ow_json_end(&json);
}

void ow_report_incident_json(FILE *out, enum ow_incident_event event, int64_t now_ns,
                             const struct ow_incident *incident)
{
	struct ow_json json = {.out = out};
	char sentence[OW_REPORT_SENTENCE];
	ow_report_incident_sentence(incident, sentence);
	ow_json_object(&json, NULL);
	ow_json_object(&json, "incident");
	ow_json_string(&json, "id", incident->id);
	ow_json_string(&json, "event", ow_incident_event_name[event]);
	ow_json_count(&json, "number", incident->events);
	ow_json_string(&json, "kind", ow_incident_kind_name[incident->kind]);
	ow_json_string(&json, "subject", incident->subject);
	ow_json_string(&json, "from", incident->target ? incident->target->from : NULL);
	ow_json_string(&json, "to", incident->target ? incident->target->to : NULL);
	ow_json_integer(&json, "time_ns", now_ns);
	ow_json_integer(&json, "since_ns", incident->since_ns);
	ow_json_integer_if(&json, "until_ns", event == OW_INCIDENT_END, incident->until_ns);
	ow_json_flag(&json, "measured", incident->measured);
	ow_json_integer_if(&json, "length_ns", incident->length_ns > 0, incident->length_ns);
	ow_json_string(&json, "cause", incident->cause);
	ow_json_string(&json, "summary", sentence);
	ow_json_string(&json, "explained_by", incident->hops);
	ow_json_array(&json, "responsible");
	for (uint32_t i = 0; i < incident->findings; i++)
		ow_report_finding_json(&json, &incident->finding[i]);
	ow_json_end(&json);
	ow_json_end(&json);
	ow_json_end(&json);
}
