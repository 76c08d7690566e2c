/* SPDX-License-Identifier: Apache-2.0 */
/* The results of oneway doctor as text that fits the terminal, and as JSON. */
#include "report/doctor.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "base/table.h"

#include <oneway/oneway.h>
#include <string.h>

/* Two spaces, verdict and name are in front of the text, if the terminal is wide enough. */
#define VERDICT_WIDTH 9
#define NAME_WIDTH    17
#define TEXT_COLUMN   (2 + VERDICT_WIDTH + NAME_WIDTH + 1)
#define TEXT_WIDTH    40
#define NARROW_INDENT 4
#define WIDTH_MIN     30

static const char *const verdict_name[OW_VERDICTS] = {"ok", "note", "warning", "problem"};
static const char *const verdict_text[OW_VERDICTS] = {"OK", "note", "warning", "problem"};
static const char *const verdict_colour[OW_VERDICTS] = {"\033[32m", "\033[36m", "\033[33m", "\033[1;31m"};

/* Wrapped below the indent; the cursor is there already. */
static void put_text(FILE *out, const char *text, int indent, int width)
{
	char clean[1024];
	ow_format_clean(text, false, clean, sizeof clean);
	ow_format_wrap(out, clean, indent, width);
}

/* A command is printed in one line, however long, so that it can be copied. Advice is wrapped. */
static void put_fix(FILE *out, const char *fix, int indent, int width)
{
	char clean[OW_DIAGNOSIS_FIX + 1];
	fprintf(out, "%*sfix: ", indent, "");
	if (strncmp(fix, "# ", 2) == 0) {
		put_text(out, fix + 2, indent, width - (int)strlen("fix: "));
		return;
	}
	ow_format_clean(fix, false, clean, sizeof clean);
	fprintf(out, "%s\n", clean);
}

static void put_head(FILE *out, const struct ow_diagnosis *f, const struct ow_style *style, bool narrow)
{
	const char *verdict = verdict_text[f->verdict];
	char name[32];
	snprintf(name, sizeof name, "%s", f->name);
	for (char *p = name; *p; p++)
		*p = *p == '_' ? ' ' : *p;
	fprintf(out, "  %s%s%s", style->colour ? verdict_colour[f->verdict] : "", verdict,
	        style->colour ? "\033[0m" : "");
	if (narrow)
		fprintf(out, " %s:\n%*s", name, NARROW_INDENT, "");
	else
		fprintf(out, "%*s%-*s ", VERDICT_WIDTH - (int)strlen(verdict), "", NAME_WIDTH, name);
}

static void put_finding(FILE *out, const struct ow_diagnosis *f, const struct ow_style *style)
{
	bool narrow = style->width < TEXT_COLUMN + TEXT_WIDTH;
	int width = style->width > WIDTH_MIN ? style->width : WIDTH_MIN, indent = narrow ? NARROW_INDENT : TEXT_COLUMN;
	put_head(out, f, style, narrow);
	put_text(out, f->found, indent, width);
	if (*f->means) {
		fprintf(out, "%*s", indent, "");
		put_text(out, f->means, indent, width);
	}
	if (*f->fix)
		put_fix(out, f->fix, indent, width);
}

static const char *kind_of(const struct ow_link_facts *l)
{
	return l->loopback ? "loopback" : l->kind[0] ? l->kind : l->driver[0] ? l->driver : "card";
}

static const char *state_of(const struct ow_link_facts *l)
{
	return !l->up ? "down" : l->carrier ? "up" : "no carrier";
}

enum { STATE, KIND, SPEED, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[STATE] = {"", 10, 0, .left = true}, [KIND] = {"", 12, 1, .left = true}, [SPEED] = {"", 10, 2}};
#define LINK_FRONT 2
#define LINK_NAME  15

static void put_links(FILE *out, const struct ow_doctor_report *report, int width)
{
	struct ow_table table = {out, columns, COLUMNS, .colour = false};
	ow_table_fit_name(&table, (unsigned)width, LINK_FRONT, LINK_NAME, LINK_NAME);
	fputs("\nInterfaces ('oneway doctor NAME' checks one)\n", out);
	for (size_t i = 0; i < report->link_count && i < OW_DOCTOR_LINKS; i++) {
		const struct ow_link_facts *l = &report->links[i];
		char name[IF_NAMESIZE * 4];
		ow_table_cells cell = {0};
		ow_format_clean(l->name, true, name, sizeof name);
		snprintf(cell[STATE], OW_TABLE_CELL, "%s", state_of(l));
		snprintf(cell[KIND], OW_TABLE_CELL, "%s", kind_of(l));
		if (l->speed_mbps > 0)
			ow_format_rate((double)l->speed_mbps * 1e6, "b/s", cell[SPEED]);
		fprintf(out, "%*s", LINK_FRONT, "");
		ow_table_name(out, name, LINK_NAME);
		ow_table_row(&table, cell, 0);
	}
	if (report->link_count > OW_DOCTOR_LINKS)
		fprintf(out, "  and %zu more\n", report->link_count - OW_DOCTOR_LINKS);
}

static void put_title(FILE *out, const struct ow_doctor_report *report, const char *about, bool first)
{
	char clean[128];
	const char *kind = strcmp(about, "host") == 0 ? "Host" : strcmp(about, "point") == 0 ? "Point" : "Interface";
	const char *name = *kind == 'H' ? report->host : *kind == 'P' ? report->point : about;
	ow_format_clean(name ? name : "", false, clean, sizeof clean);
	fprintf(out, "%s%s %s\n", first ? "" : "\n", kind, clean);
}

static void put_summary(FILE *out, const struct ow_diagnoses *findings)
{
	static const char *const many[] = {"", "notes", "warnings", "problems"};
	const char *join = "\n";
	for (int v = OW_VERDICT_PROBLEM; v > OW_VERDICT_OK; v--) {
		size_t n = ow_diagnoses_count(findings, (enum ow_diagnosis_verdict)v);
		if (n == 0 && v != OW_VERDICT_PROBLEM)
			continue;
		if (n == 0)
			fprintf(out, "%sno problem", join);
		else
			fprintf(out, "%s%zu %s", join, n, n == 1 ? verdict_name[v] : many[v]);
		join = ", ";
	}
	fputs("\n", out);
}

void ow_report_doctor_text(FILE *out, const struct ow_doctor_report *report, const struct ow_style *style, bool quiet)
{
	const char *about = "";
	for (size_t i = 0; i < report->findings->count; i++) {
		const struct ow_diagnosis *f = &report->findings->list[i];
		if (quiet && f->verdict < OW_VERDICT_WARNING)
			continue;
		if (strcmp(f->about, about) != 0)
			put_title(out, report, f->about, *about == '\0');
		about = f->about;
		put_finding(out, f, style);
	}
	if (report->list && !quiet)
		put_links(out, report, style->width);
	put_summary(out, report->findings);
}

static void put_json_finding(struct ow_json *json, const struct ow_diagnosis *f)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "about", f->about);
	ow_json_string(json, "name", f->name);
	ow_json_string(json, "state", verdict_name[f->verdict]);
	ow_json_string(json, "found", f->found);
	ow_json_string(json, "means", f->means);
	ow_json_string(json, "fix", f->fix[0] ? f->fix : NULL);
	ow_json_end(json);
}

static void put_json_link(struct ow_json *json, const struct ow_link_facts *l)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "name", l->name);
	ow_json_string(json, "state", state_of(l));
	ow_json_string(json, "kind", kind_of(l));
	ow_json_integer_if(json, "speed_mbps", l->speed_mbps > 0, l->speed_mbps);
	ow_json_end(json);
}

void ow_report_doctor_json(FILE *out, const struct ow_doctor_report *report)
{
	const struct ow_diagnoses *findings = report->findings;
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_line(&json);
	ow_json_string(&json, "oneway", ow_version());
	ow_json_string(&json, "host", report->host);
	ow_json_string(&json, "point", report->point);
	ow_json_integer(&json, "time_ns", ow_clock_real_ns());
	ow_json_line(&json);
	ow_json_array(&json, "checks");
	ow_json_style(&json, OW_JSON_LINES);
	for (size_t i = 0; i < findings->count; i++)
		put_json_finding(&json, &findings->list[i]);
	ow_json_end(&json);
	ow_json_line(&json);
	ow_json_array(&json, "interfaces");
	ow_json_style(&json, OW_JSON_LINES);
	for (size_t i = 0; i < report->link_count; i++)
		put_json_link(&json, &report->links[i]);
	ow_json_line(&json);
	ow_json_end(&json);
	ow_json_line(&json);
	ow_json_count(&json, "problems", ow_diagnoses_count(findings, OW_VERDICT_PROBLEM));
	ow_json_count(&json, "warnings", ow_diagnoses_count(findings, OW_VERDICT_WARNING));
	ow_json_count(&json, "notes", ow_diagnoses_count(findings, OW_VERDICT_NOTE));
	ow_json_line(&json);
	ow_json_end(&json);
}
