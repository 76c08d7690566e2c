/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest flows as a picture: a line each, mean and 95 % interval. */
#include "flows/flow_answers.h"

#include "report/gnuplot.h"
#include "report/plot.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <string.h>

#define ROWS_MAX  40
#define WIDTH_PX  1100
#define ROW_PX    22
#define FRAME_PX  130 /* title and axis */
#define LETTER_PX 7.5 /* of a label, on average */

/* Columns: mean, low, high, row from below, label. */
static size_t put_data(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                       const struct ow_gnuplot_unit *unit, size_t *ret_longest)
{
	size_t shown = 0;
	fputs("$flows << EOD\n", out);
	for (size_t i = 0; i < rows->rows && shown < ROWS_MAX; i++) {
		const struct ow_value *mean = &ow_flow_answer_whole(answers, rows->row[i])->mean_ns;
		char name[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT];
		if (mean->status == OW_VALUE_NONE || !isfinite(mean->low) || !isfinite(mean->high))
			continue;
		ow_flow_select_key_text(&answers->select, &rows->row[i]->key, name);
		size_t columns = ow_format_clean(name, false, clean, sizeof clean);
		*ret_longest = columns > *ret_longest ? columns : *ret_longest;
		/* Names of classes may hold quotes, which end a label. */
		for (char *p = clean; (p = strchr(p, '"')); p++)
			*p = '\'';
		fprintf(out, "%.9g %.9g %.9g %zu \"%s\"\n", mean->value / unit->ns, mean->low / unit->ns,
		        mean->high / unit->ns, ++shown, clean);
	}
	fputs("EOD\n", out);
	return shown;
}

int ow_report_flow_answers_plot(const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                                const char *path, struct ow_error *err)
{
	FILE *out = NULL;
	int r = ow_plot_check_name(path, err);
	if (r == 0)
		r = ow_gnuplot_begin(path, &out, err);
	if (r < 0)
		return r;
	const struct ow_value *first = rows->rows ? &ow_flow_answer_whole(answers, rows->row[0])->mean_ns : NULL;
	struct ow_gnuplot_unit unit = ow_gnuplot_unit(first && first->status != OW_VALUE_NONE ? fabs(first->value) : 1);
	size_t longest = 0, shown = put_data(out, answers, rows, &unit, &longest);
	if (!shown) {
		fclose(out);
		return ow_error_set(err, ENODATA, "%.200s: no flow with an estimate to draw", path);
	}
	bool svg = ow_gnuplot_is_svg(path);
	fprintf(out, "set terminal %s noenhanced size %d,%zu font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, FRAME_PX + shown * ROW_PX, svg ? 13 : 10);
	fputs("set encoding utf8; set border 3 lc rgb '#636363'; set tics nomirror out scale 0.5\n"
	      "set grid x back lt 1 lc rgb '#e4e4e4' lw 1; unset key\nset title ",
	      out);
	ow_gnuplot_quote(out, rows->one ? "Mean delay of the flow, with its 95 % interval"
	                                : "Mean delay of the slowest flows, with its 95 % interval");
	fprintf(out, "\nset lmargin at screen %.3f; set xlabel 'delay (%s)'\n",
	        fmin(0.7, (30 + LETTER_PX * (double)longest) / WIDTH_PX), unit.name);
	fprintf(out, "set yrange [%zu.5:0.5] noextend\n", shown);
	fputs("plot $flows using 1:4:2:3:ytic(5) with xerrorbars pt 7 ps 0.7 lw 1.5 lc rgb '#0072b2'\n", out);
	r = ow_gnuplot_run(out, path, err);
	fclose(out);
	return r;
}
