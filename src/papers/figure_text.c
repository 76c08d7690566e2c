/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the papers' statements and our numbers, as text and JSON. */
#include "papers/figure_text.h"

#include "base/format.h"

static void begin_document(FILE *out, struct ow_json *json)
{
	*json = (struct ow_json){.out = out, .indent = 2, .margin = -2};
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
}

void ow_report_figures_end(struct ow_json *json)
{
	ow_json_end(json);
	ow_json_end(json);
}

static void json_figure(struct ow_json *json, const struct ow_figure *figure)
{
	ow_json_row(json);
	ow_json_string(json, "name", figure->name);
	ow_json_string(json, "title", figure->title);
}

void ow_report_figures_json(FILE *out)
{
	struct ow_json json;
	begin_document(out, &json);
	ow_json_rows(&json, "figures");
	for (const struct ow_figure *const *set = ow_figure_sets; *set; set++) {
		for (const struct ow_figure *f = *set; f->name; f++) {
			json_figure(&json, f);
			ow_json_end(&json);
		}
	}
	ow_report_figures_end(&json);
}

void ow_report_figures_text(FILE *out)
{
	for (const struct ow_figure *const *set = ow_figure_sets; *set; set++) {
		for (const struct ow_figure *f = *set; f->name; f++)
			fprintf(out, "%-17s %s\n", f->name, f->title);
	}
	fputs("\noneway reproduce NAME... computes them; see 'oneway reproduce --help'\n", out);
}

void ow_report_figure_text(FILE *out, const struct ow_figure_outcome *o, int width)
{
	size_t claims;
	const struct ow_figure_claim *claim = ow_figure_claims(o->run, &claims);
	char title[256];
	snprintf(title, sizeof title, "%s: %s", o->figure->name, o->figure->title);
	ow_format_wrap(out, title, 2, width);
	for (size_t i = 0; i < claims; i++) {
		fputs("  paper  ", out);
		ow_format_wrap(out, claim[i].paper, 9, width);
		fprintf(out, "  %s ", claim[i].agrees ? "ours  " : "ours !");
		ow_format_wrap(out, claim[i].ours, 9, width);
	}
	fprintf(out, "  %zu points in %.1f s: %s%s%s\n\n", ow_figure_points(o->run), o->seconds, o->csv,
	        o->plot ? ", " : "", o->plot ? o->plot : "");
}

void ow_report_figure_json(struct ow_json *json, const struct ow_figure_outcome *o)
{
	size_t claims;
	const struct ow_figure_claim *claim = ow_figure_claims(o->run, &claims);
	char seconds[OW_FORMAT];
	snprintf(seconds, sizeof seconds, "%.3f", o->seconds);
	json_figure(json, o->figure);
	ow_json_count(json, "points", ow_figure_points(o->run));
	ow_json_raw(json, "seconds", seconds);
	ow_json_string(json, "csv", o->csv);
	ow_json_string(json, "plot", o->plot);
	ow_json_line(json);
	ow_json_rows(json, "claims");
	for (size_t i = 0; i < claims; i++) {
		ow_json_row(json);
		ow_json_string(json, "paper", claim[i].paper);
		ow_json_string(json, "ours", claim[i].ours);
		ow_json_flag(json, "agrees", claim[i].agrees);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
}

void ow_report_figures_begin(FILE *out, struct ow_json *json, uint64_t seed, bool quick)
{
	begin_document(out, json);
	ow_json_command(json, "reproduce");
	ow_json_count(json, "seed", seed);
	ow_json_flag(json, "quick", quick);
	ow_json_rows(json, "figures");
}
