/* SPDX-License-Identifier: Apache-2.0 */
/* Plots the slowest flows: a line for each, with mean and 95 % interval. */
#include "flows/flow_answers.h"

#include "report/chart.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <string.h>

#define ROWS_MAX  40
#define WIDTH_PX  1100
#define ROW_PX    22
#define FRAME_PX  130 /* title and axis */
#define LETTER_PX 7.5 /* mean width of a letter of a label */

static const struct ow_value *mean_of(const struct ow_flow_answers *answers, const struct ow_flow_rows *rows, size_t i)
{
	return &ow_flow_answer_whole(answers, rows->row[i])->mean_ns;
}

static bool is_drawn(const struct ow_value *mean)
{
	return mean->status != OW_VALUE_NONE && isfinite(mean->low) && isfinite(mean->high);
}

/* Columns: mean, low, high, row from below, label. */
static void put_data(struct ow_chart *chart, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                     const struct ow_chart_unit *unit, size_t *ret_longest)
{
	size_t shown = 0;
	ow_chart_data(chart, "flows", 0);
	for (size_t i = 0; i < rows->rows && shown < ROWS_MAX; i++) {
		const struct ow_value *mean = mean_of(answers, rows, i);
		char name[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT];
		if (!is_drawn(mean))
			continue;
		ow_flow_select_key_text(&answers->select, &rows->row[i]->key, name);
		size_t columns = ow_format_clean(name, false, clean, sizeof clean);
		*ret_longest = columns > *ret_longest ? columns : *ret_longest;
		/* Names of classes may contain quotes, which would end a label. */
		for (char *p = clean; (p = strchr(p, '"')); p++)
			*p = '\'';
		fprintf(chart->script, "%.9g %.9g %.9g %zu \"%s\"\n", mean->value / unit->ns, mean->low / unit->ns,
		        mean->high / unit->ns, ++shown, clean);
	}
	ow_chart_data_end(chart);
}

int ow_report_flow_answers_plot(const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                                const char *path, struct ow_error *err)
{
	size_t shown = 0, longest = 0;
	for (size_t i = 0; i < rows->rows && shown < ROWS_MAX; i++)
		shown += is_drawn(mean_of(answers, rows, i));
	if (!shown)
		return ow_error_set(err, ENODATA, "%.200s: no flow has an estimate to plot", path);
	struct ow_chart chart;
	int r = ow_chart_begin(&chart, path, WIDTH_PX, (int)(FRAME_PX + shown * ROW_PX), err);
	if (r < 0)
		return r;
	const struct ow_value *first = mean_of(answers, rows, 0);
	struct ow_chart_unit unit = ow_chart_unit(first->status != OW_VALUE_NONE ? fabs(first->value) : 1);
	put_data(&chart, answers, rows, &unit, &longest);
	fputs("set grid noy; unset key\n", chart.script);
	ow_chart_set(&chart, "title",
	             rows->one ? "Mean delay of the flow, with its 95 % interval"
	                       : "Mean delay of the slowest flows, with its 95 % interval");
	fprintf(chart.script, "set lmargin at screen %.3f; set xlabel 'delay (%s)'; set yrange [%zu.5:0.5] noextend\n",
	        fmin(0.7, (30 + LETTER_PX * (double)longest) / WIDTH_PX), unit.name, shown);
	ow_chart_series(&chart, "flows", 0, "1:4:2:3:ytic(5)", "xerrorbars pt 7 ps 0.7 lw 1.5", "0072b2", NULL);
	ow_chart_plot(&chart);
	return ow_chart_end(&chart, 0, err);
}
