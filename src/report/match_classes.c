/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_classes.h"

#include "base/format.h"
#include "base/time.h"
#include "result/json.h"
#include <string.h>

static void put_row(FILE *out, const char *name, int width, const char *direction, const struct ow_result *result)
{
	char sent[OW_FORMAT], lost[OW_FORMAT], loss[16] = "-", mean[OW_DURATION_TEXT] = "-",
					       p99[OW_DURATION_TEXT] = "-";
	ow_format_count(result->sent, sent);
	ow_format_count(result->lost, lost);
	if (result->sent)
		snprintf(loss, sizeof loss, "%.3g%%", 100 * (double)result->lost / (double)result->sent);
	if (result->delay.samples) {
		ow_duration_text(result->delay.mean_ns, mean);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], p99);
	}
	fprintf(out, "  %-*s  %s %11s %9s %7s %10s %10s\n", width, name, direction, sent, lost, loss, mean, p99);
}

void ow_report_match_classes_text(FILE *out, const struct ow_match_classes *classes)
{
	int width = 5;
	for (unsigned i = 0; i < classes->count; i++) {
		int length = (int)strlen(classes->name[i]);
		width = length > width ? length : width;
	}
	fprintf(out, "\n  %-*s  %-6s %11s %9s %7s %10s %10s\n", width, "class", "", "sent", "lost", "loss", "mean",
	        "p99");
	for (unsigned i = 0; i < classes->count; i++) {
		const struct ow_result *result = classes->result[i];
		put_row(out, classes->name[i], width, "A to B", &result[OW_A_TO_B]);
		if (result[OW_B_TO_A].sent + result[OW_B_TO_A].received)
			put_row(out, "", width, "B to A", &result[OW_B_TO_A]);
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
