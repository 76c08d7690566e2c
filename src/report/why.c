/* SPDX-License-Identifier: Apache-2.0 */
/* Why a path is worse than before: a table of its parts and the conclusion, or JSON. */
#include "report/why.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "result/json.h"

#include <math.h>

enum { BEFORE, AFTER, EXCESS, SIGMAS, LOSS_BEFORE, LOSS_AFTER, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[BEFORE] = {"before", 10, 2}, [AFTER] = {"after", 10, 1},     [EXCESS] = {"excess", 10, 0},
	[SIGMAS] = {"sigmas", 7, 3},  [LOSS_BEFORE] = {"loss", 7, 4}, [LOSS_AFTER] = {"after", 7, 5},
};
/* Columns of the name of a part. */
#define NAME_MIN 11
#define NAME_MAX 40

static void cells_of(const struct ow_why_part *part, ow_table_cells cell)
{
	const struct ow_era_change *change = &part->change;
	for (int i = 0; i < COLUMNS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	ow_duration_cell(part->before.intervals > 0 ? part->before.mean : NAN, cell[BEFORE]);
	ow_duration_cell(part->after.intervals > 0 ? part->after.mean : NAN, cell[AFTER]);
	ow_duration_cell(change->excess_ns, cell[EXCESS]);
	if (isfinite(change->loss_before)) {
		ow_format_percent(change->loss_before, cell[LOSS_BEFORE]);
		ow_format_percent(change->loss_after, cell[LOSS_AFTER]);
	}
	if (isfinite(change->delay_z))
		snprintf(cell[SIGMAS], OW_TABLE_CELL, "%.1f", change->delay_z);
}

static void put_parts(FILE *out, const struct ow_style *style, const struct ow_why *why)
{
	struct ow_table table = {out, columns, COLUMNS, .colour = false};
	/* In front a mark and a space; one column stays free where there is room for it. */
	unsigned width = ow_table_fit_name(&table, (unsigned)style->width - (style->width > 70), 2, NAME_MIN, NAME_MAX);
	fprintf(out, "  %-*s", (int)width, "part");
	ow_table_titles(&table);
	for (uint32_t i = 0; i < why->parts; i++) {
		const struct ow_why_part *part = &why->part[i];
		char name[OW_PLACE_TEXT];
		ow_table_cells cell;
		ow_format_clean(part->name, !style->utf8, name, sizeof(name));
		fputs(part->slower || part->lossier ? "* " : "  ", out);
		ow_table_name(out, name, width);
		cells_of(part, cell);
		ow_table_row(&table, cell, 0);
	}
}

static void put_conclusion(FILE *out, const struct ow_style *style, const struct ow_why *why)
{
	const struct ow_composed *composed = why->composed;
	char before[OW_DURATION_TEXT], after[OW_DURATION_TEXT], more[OW_DURATION_TEXT];
	double excess = composed[1].mean_ns.value - composed[0].mean_ns.value;
	bool known = composed[0].mean_ns.status != OW_VALUE_NONE && composed[1].mean_ns.status != OW_VALUE_NONE;
	bool any = false;
	if (known) {
		ow_duration_text(composed[0].mean_ns.value, before);
		ow_duration_text(composed[1].mean_ns.value, after);
		ow_duration_text(fabs(excess), more);
		fprintf(out, "The path takes %s, %s %s than before (%s).\n", after, more, excess < 0 ? "less" : "more",
		        before);
	} else {
		fputs("The path cannot be composed: a part of it has no results before or after.\n", out);
	}
	for (uint32_t i = 0; i < why->parts; i++) {
		const struct ow_why_part *part = &why->part[i];
		char name[OW_PLACE_TEXT];
		ow_format_clean(part->name, !style->utf8, name, sizeof(name));
		if (part->slower) {
			ow_duration_text(part->change.excess_ns, more);
			fprintf(out, "%s is slower by %s", name, more);
			if (part->share < 1)
				fprintf(out, " for %.3g %% of the packets", 100 * part->share);
			if (known && excess > 0)
				fprintf(out, ", %.0f %% of the path's excess",
				        100 * part->share * part->change.excess_ns / excess);
			fputs(".\n", out);
			any = true;
		}
		if (part->lossier) {
			fprintf(out, "%s loses %.3g %%, before %.3g %%.\n", name, part->change.loss_after * 100,
			        part->change.loss_before * 100);
			any = true;
		}
	}
	uint32_t unknown = why->parts - why->compared;
	if (!any)
		fprintf(out, "%s is significantly worse than before.\n",
		        unknown ? "No part with results" : "No part of it");
	if (unknown)
		fprintf(out, "%u of its %u parts cannot be judged: they have no results before, or none after.\n",
		        unknown, why->parts);
}

void ow_report_why_text(FILE *out, const struct ow_style *style, const struct ow_why_question *question,
                        const struct ow_why *why)
{
	char time[OW_FORMAT];
	fprintf(out, "%s to %s%s%s since %s, against the hour before\n\n", question->from, question->to,
	        question->class_name ? ", " : "", question->class_name ? question->class_name : "",
	        ow_format_local(question->since_ns, "%Y-%m-%d %H:%M:%S", time));
	put_parts(out, style, why);
	fputc('\n', out);
	put_conclusion(out, style, why);
}

static void json_part(struct ow_json *json, const struct ow_why_part *part)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "place", part->name);
	ow_json_flag(json, "responsible", part->slower || part->lossier);
	ow_json_number(json, "share", part->share);
	ow_json_number(json, "intervals_before", part->before.intervals);
	ow_json_number(json, "intervals_after", part->after.intervals);
	ow_json_number(json, "before_ns", part->before.intervals > 0 ? part->before.mean : NAN);
	ow_json_number(json, "after_ns", part->after.intervals > 0 ? part->after.mean : NAN);
	ow_json_number(json, "excess_ns", part->change.excess_ns);
	ow_json_number(json, "excess_error_ns", part->change.excess_error_ns);
	ow_json_number(json, "sigmas", part->change.delay_z);
	ow_json_number(json, "loss_before", part->change.loss_before);
	ow_json_number(json, "loss_after", part->change.loss_after);
	ow_json_number(json, "loss_sigmas", part->change.loss_z);
	ow_json_end(json);
}

void ow_report_why_json(FILE *out, const struct ow_why_question *question, const struct ow_why *why)
{
	const struct ow_composed *composed = why->composed;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_command(&json, "plane monitor");
	ow_json_string(&json, "from", question->from);
	ow_json_string(&json, "to", question->to);
	ow_json_integer(&json, "since_ns", question->since_ns);
	ow_json_number(&json, "before_ns", ow_json_known(&composed[0].mean_ns));
	ow_json_number(&json, "after_ns", ow_json_known(&composed[1].mean_ns));
	ow_json_number(&json, "loss_before", ow_json_known(&composed[0].loss_ratio));
	ow_json_number(&json, "loss_after", ow_json_known(&composed[1].loss_ratio));
	ow_json_array(&json, "parts");
	for (uint32_t i = 0; i < why->parts; i++)
		json_part(&json, &why->part[i]);
	ow_json_end(&json);
	ow_json_end(&json);
}
