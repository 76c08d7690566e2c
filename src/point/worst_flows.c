/* SPDX-License-Identifier: Apache-2.0 */
/* The flows of a recording that were certainly slow in an interval: worst_flows.h. */
#include "point/worst_flows.h"

#include "base/format.h"
#include "base/time.h"
#include "base/word.h"
#include "flows/epoch.h"
#include "flows/flow_query.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WORST 3 /* flows that JSON has; the log has the first */

static int write_json(int64_t begin_ns, int64_t end_ns, const struct ow_flow_answers *answers,
                      const struct ow_flow_rows *rows, char **ret_json)
{
	size_t size;
	FILE *out = open_memstream(ret_json, &size);
	if (!out)
		return -ENOMEM;
	ow_report_flow_worst_json(out, begin_ns, end_ns, answers, rows);
	if (fclose(out) == 0)
		return 0;
	free(*ret_json);
	*ret_json = NULL;
	return -ENOMEM;
}

static void tell(const struct ow_flow_answers *answers, const struct ow_flow_answer *flow, const char *time,
                 struct ow_error *ret_line)
{
	char name[OW_FLOW_SELECTED_TEXT], least[OW_DURATION_TEXT], mean[OW_DURATION_TEXT];
	const struct ow_value *value = &ow_flow_answer_whole(answers, flow)->mean_ns;
	ow_flow_select_key_text(&answers->select, &flow->key, name);
	ow_duration_text(value->low, least);
	ow_duration_text(value->value, mean);
	ow_error_set(ret_line, 0,
	             "%.200s: from %s on %.120s was certainly the slowest flow: a mean of at least %s (%s), %" PRIu64
	             " %s",
	             answers->point[answers->points - 1].path, time, name, least, mean, flow->packets,
	             ow_plural(flow->packets, "packet", "packets"));
}

/* The first warning that concerns means. */
static void warn(const struct ow_flow_answers *answers, const char *time, struct ow_error *ret_warning)
{
	struct ow_flow_answers means = ow_flow_answers_of_means(answers);
	char line[OW_FLOW_WARNING];
	if (ow_flow_answers_warning(&means, 0, line))
		ow_error_set(ret_warning, 0, "%.100s: from %s on, %s", answers->point[answers->points - 1].path, time,
		             line);
}

void ow_worst_flows_find(const char *from, const char *to, int64_t begin_ns, int64_t end_ns, size_t flows_max,
                         struct ow_worst_flows *ret_worst)
{
	const struct ow_flows_question question = {.path = {from, to},
	                                           .points = 2,
	                                           .since_ns = begin_ns,
	                                           .until_ns = end_ns,
	                                           .worst = true,
	                                           .flows_max = flows_max};
	const struct ow_flow_answer *row[WORST];
	struct ow_flow_rows rows = {.row = row};
	struct ow_flow_answers answers = {0};
	struct ow_flows_files *files = NULL;
	struct ow_error why;
	char time[OW_FORMAT];
	*ret_worst = (struct ow_worst_flows){0};
	ow_format_time(begin_ns, "%T", time);
	int r = ow_flows_ask(&question, &answers, &files, &why);
	for (size_t i = 0; r == 0 && i < answers.flows && rows.rows < WORST; i++)
		if (ow_flow_answer_whole(&answers, &answers.flow[i])->mean_ns.status != OW_VALUE_NONE)
			row[rows.rows++] = &answers.flow[i];
	for (unsigned i = 0; r == 0 && i < answers.points; i++)
		if (answers.point[i].flaws & OW_EPOCH_CLOCK_SET)
			r = ow_error_set(&why, ESTALE, "because the clock of %.200s was set", answers.point[i].path);
	if (r == 0 && !rows.rows)
		r = ow_error_set(&why, ENODATA, "no flow has an estimate");
	if (r == 0 && write_json(begin_ns, end_ns, &answers, &rows, &ret_worst->json) < 0)
		r = ow_error_set(&why, ENOMEM, "not enough memory");
	if (r == 0) {
		tell(&answers, row[0], time, &ret_worst->line);
		warn(&answers, time, &ret_worst->warning);
	} else {
		ow_error_set(&ret_worst->line, -r, "%.200s: the slowest flow from %s on is not known, %.250s", to, time,
		             why.text);
	}
	ow_flow_answers_done(&answers);
	ow_flows_files_free(files);
}
