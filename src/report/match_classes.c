/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_classes.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "packet/packet_class.h"
#include "result/json.h"
#include <inttypes.h>

#define NAME_LEAST 5
#define NAME_WHOLE 19 /* shorter names are not cut, whatever the width: those of sizes differ in the middle */
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
	unsigned least = longest < NAME_WHOLE ? (unsigned)longest : NAME_WHOLE;
	unsigned name = ow_table_fit_name(&table, width, 2, least, longest < NAME_MOST ? (unsigned)longest : NAME_MOST);
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

/* What is in the class. */
static void put_choice(struct ow_json *json, const struct ow_match_classes *classes, unsigned i)
{
	uint32_t least, most;
	ow_json_string(json, "filter", classes->by == OW_CLASS_BY_FILTER ? classes->filter[i] : NULL);
	if (classes->by == OW_CLASS_BY_DSCP)
		ow_json_count(json, "dscp", classes->number[i]);
	if (classes->by != OW_CLASS_BY_SIZE)
		return;
	ow_size_class_range(classes->number[i], &least, &most);
	ow_json_array(json, "bytes");
	ow_json_count(json, NULL, least);
	ow_json_count_if(json, NULL, most != UINT32_MAX, most);
	ow_json_end(json);
}

static void put_result(struct ow_json *json, const char *name, const struct ow_match_classes *classes, unsigned i,
                       enum ow_direction direction)
{
	const struct ow_result *result = &classes->result[i][direction];
	ow_json_object(json, name);
	ow_json_style(json, OW_JSON_OUTER);
	ow_json_result_members(json, result);
	ow_json_percentiles(json, classes->percentile[i][direction], classes->percentiles, &result->delay);
	ow_json_end(json);
}

void ow_match_classes_add(struct ow_match_classes *classes, uint8_t number)
{
	char *name = classes->name[classes->count], dscp[OW_DSCP_TEXT];
	uint32_t least, most;
	classes->number[classes->count++] = number;
	if (classes->by == OW_CLASS_BY_DSCP) {
		snprintf(name, OW_CLASS_NAME, "%s", ow_dscp_text(number, dscp));
		return;
	}
	ow_size_class_range(number, &least, &most);
	if (most == UINT32_MAX)
		snprintf(name, OW_CLASS_NAME, "%" PRIu32 " and more bytes", least);
	else
		snprintf(name, OW_CLASS_NAME, "%" PRIu32 " to %" PRIu32 " bytes", least, most);
}

void ow_report_match_classes_json(struct ow_json *json, const struct ow_match_classes *classes)
{
	ow_json_array(json, "classes");
	ow_json_style(json, OW_JSON_LINES);
	for (unsigned i = 0; i < classes->count; i++) {
		ow_json_object(json, NULL);
		ow_json_style(json, OW_JSON_LINES);
		ow_json_string(json, "name", classes->name[i]);
		put_choice(json, classes, i);
		put_result(json, "a_to_b", classes, i, OW_A_TO_B);
		put_result(json, "b_to_a", classes, i, OW_B_TO_A);
		ow_json_end(json);
	}
	ow_json_end(json);
}
