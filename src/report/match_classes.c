/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_classes.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "result/json.h"

#define NAME_LEAST 5
#define NAME_MOST  32

enum { WAY, SENT, LOST, LOSS, MEAN, P99, NUMBERS };

static const struct ow_table_column columns[NUMBERS] = {
	[WAY] = {"", 7, 0, .left = true}, [SENT] = {"sent", 11, 4}, [LOST] = {"lost", 9, 1},
	[LOSS] = {"loss", 7, 3},          [MEAN] = {"mean", 10, 2}, [P99] = {"p99", 10, 5},
};

static void put_row(const struct ow_table *table, const char *name, unsigned name_columns, const char *way,
                    const struct ow_result *result)
{
	ow_table_cells cell = {[LOSS] = "-", [MEAN] = "-", [P99] = "-"};
	snprintf(cell[WAY], OW_TABLE_CELL, "%s", way);
	ow_format_short(result->sent, 11, cell[SENT]);
	ow_format_short(result->lost, 9, cell[LOST]);
	if (result->sent)
		ow_format_percent((double)result->lost / (double)result->sent, cell[LOSS]);
	if (result->delay.samples) {
		ow_duration_text(result->delay.mean_ns, cell[MEAN]);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], cell[P99]);
	}
	fputs("  ", table->out);
	ow_table_name(table->out, name, name_columns);
	ow_table_row(table, cell, result->lost ? 1u << LOST : 0);
}

void ow_report_match_classes_text(FILE *out, const struct ow_match_classes *classes, unsigned width, enum ow_look look)
{
	struct ow_table table = {out, columns, NUMBERS, .colour = look != OW_LOOK_PLAIN,
	                         .marked = look == OW_LOOK_MARKED};
	size_t longest = NAME_LEAST;
	for (unsigned i = 0; i < classes->count; i++) {
		size_t length = ow_format_columns(classes->name[i]);
		longest = length > longest ? length : longest;
	}
	unsigned name =
		ow_table_fit_name(&table, width, 2, NAME_LEAST, longest < NAME_MOST ? (unsigned)longest : NAME_MOST);
	fputs("\n  ", out);
	ow_table_name(out, "class", name);
	ow_table_titles(&table);
	for (unsigned i = 0; i < classes->count; i++) {
		const struct ow_result *result = classes->result[i];
		put_row(&table, classes->name[i], name, " A to B", &result[OW_A_TO_B]);
		if (result[OW_B_TO_A].sent + result[OW_B_TO_A].received)
			put_row(&table, "", name, " B to A", &result[OW_B_TO_A]);
	}
}

void ow_report_match_classes_json(struct ow_json *json, const struct ow_match_classes *classes)
{
	ow_json_array(json, "classes");
	ow_json_style(json, OW_JSON_LINES);
	for (unsigned i = 0; i < classes->count; i++) {
		ow_json_object(json, NULL);
		ow_json_style(json, OW_JSON_LINES);
		ow_json_string(json, "name", classes->name[i]);
		ow_json_string(json, "filter", classes->filter[i]);
		ow_json_result(json, "a_to_b", &classes->result[i][OW_A_TO_B]);
		ow_json_result(json, "b_to_a", &classes->result[i][OW_B_TO_A]);
		ow_json_end(json);
	}
	ow_json_end(json);
}
