/* SPDX-License-Identifier: Apache-2.0 */
#include "report/path_view.h"

#include "base/format.h"
#include "base/time.h"
#include <math.h>
#include <string.h>

#define NAME_BYTES   200
#define MARK         100  /* the first number of our labels, arrows and rectangles in the script */
#define CROWDED_FROM 9    /* points */
#define SHARE_SHOWN  0.06 /* a share that is at least this has room for its number */
/* Where things are in the panel, from its bottom to its top. */
#define NAME_AT  0.93
#define POINT_AT 0.80
#define MEAN_AT  0.64
#define P99_AT   0.48
#define LOSS_AT  0.32
#define BAR_HIGH 0.19
#define BAR_LOW  0.03

static void cells_of(const struct ow_result *result, bool known, double share, ow_table_cells cell)
{
	for (int i = 0; i < OW_HOP_CELLS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	ow_format_short(result->sent, 10, cell[OW_HOP_SENT]);
	ow_format_short(result->lost, 8, cell[OW_HOP_LOST]);
	if (result->sent)
		ow_format_percent((double)result->lost / (double)result->sent, cell[OW_HOP_LOSS]);
	if (result->delay.samples) {
		ow_duration_text(result->delay.mean_ns, cell[OW_HOP_MEAN]);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], cell[OW_HOP_P99]);
	}
	if (known)
		ow_format_percent(share, cell[OW_HOP_SHARE]);
}

void ow_path_hop_cells(const struct ow_path_report *path, const struct ow_path_segment *segment,
                       enum ow_direction direction, ow_table_cells ret_cell)
{
	static const struct ow_result none;
	double share = 0;
	bool has = segment->report && segment->report->has_direction[direction];
	bool known = has && ow_path_delay_share(path, segment, direction, &share);
	cells_of(has ? &segment->result[direction] : &none, known, share, ret_cell);
}

const struct ow_details *ow_path_hop_details(const struct ow_path_segment *segment, enum ow_direction direction)
{
	static const struct ow_details corrected = {.reason = "packets of this segment pass one of its points unseen"};
	const struct ow_path_correction *correction = &segment->correction[direction];
	const struct ow_details *details = segment->report ? segment->report->details[direction] : NULL;
	bool is = correction->around_to || correction->around_from || correction->undecided;
	return details && is ? &corrected : details;
}

void ow_path_ends_cells(const struct ow_path_report *path, enum ow_direction direction, ow_table_cells ret_cell)
{
	const struct ow_result *result = &path->ends->direction[direction];
	cells_of(result, result->delay.samples > 0, 1, ret_cell);
}

/* -- the view -- */

struct view {
	struct ow_chart *chart;
	const struct ow_path_report *path;
	enum ow_direction direction;
	unsigned hops, labels, rectangles;
	int font;
};

/* The hop that packets pass as the i-th. */
static const struct ow_path_segment *hop_of(const struct view *view, unsigned i)
{
	return &view->path->segment[view->direction == OW_B_TO_A ? view->hops - 1 - i : i];
}

/* The number of the point after `hops` hops. */
static unsigned point_of(const struct view *view, unsigned hops)
{
	return view->direction == OW_B_TO_A ? view->hops - hops : hops;
}

static void put_label(struct view *view, const char *text, double x, double y, const char *align, const char *colour)
{
	char at[120];
	snprintf(at, sizeof at, "first %.6f, first %.6f %s font ',%d' tc rgb '#%s'", x, y, align, view->font, colour);
	ow_chart_label(view->chart, MARK + (int)view->labels++, text, at);
}

static void put_rectangle(struct view *view, double from, double to, const char *colour)
{
	fprintf(view->chart->script,
	        "set object %u rect from first %.6f, first %.6f to first %.6f, first %.6f fc rgb '#%s' fs solid "
	        "noborder\n",
	        MARK + view->rectangles++, from, BAR_LOW, to, BAR_HIGH, colour);
}

/* Names, cut to the room of a hop; every other one is higher where they would touch. */
static void put_points(struct view *view)
{
	bool crowded = view->path->points >= CROWDED_FROM;
	size_t columns = (crowded ? 200 : 110) / view->path->points;
	for (unsigned i = 0; i <= view->hops; i++) {
		char name[NAME_BYTES];
		ow_format_clean(view->path->point[point_of(view, i)].name, false, name, sizeof name);
		ow_format_cut(name, columns);
		put_label(view, name, i, NAME_AT + (crowded && i % 2 ? 0.11 : 0), "center", "000000");
	}
}

/* Packets that were lost on the i-th hop or on one next to it: a point between them does not show all packets. */
static uint64_t perhaps_lost(const struct view *view, unsigned i)
{
	uint64_t lost = 0;
	for (unsigned from = 0; from <= i; from++) {
		if (!hop_of(view, from)->correction[view->direction].undecided)
			continue;
		for (unsigned to = i > from ? i + 1 : from + 2; to <= view->hops; to++)
			lost += view->path->lost_at[view->direction][point_of(view, from)][point_of(view, to)];
	}
	return lost;
}

static void put_loss(struct view *view, unsigned i, const char *known)
{
	const struct ow_result *result = &hop_of(view, i)->result[view->direction];
	uint64_t perhaps = hop_of(view, i)->report ? perhaps_lost(view, i) : 0;
	bool lost = hop_of(view, i)->report && (result->lost || perhaps);
	char text[2 * OW_TABLE_CELL + 8], most[OW_FORMAT];
	snprintf(text, sizeof text, "%s", known);
	if (perhaps) {
		ow_format_percent((double)(result->lost + perhaps) / (double)(result->sent + perhaps), most);
		snprintf(text, sizeof text, "%s to %s", known, most);
	}
	put_label(view, text, i + 0.5, LOSS_AT, "center", lost ? "cb181d" : "000000");
}

static void put_hop(struct view *view, unsigned i)
{
	ow_table_cells cell;
	const struct ow_path_segment *hop = hop_of(view, i);
	double middle = i + 0.5;
	ow_path_hop_cells(view->path, hop, view->direction, cell);
	put_label(view, cell[OW_HOP_MEAN], middle, MEAN_AT, "center", "000000");
	put_label(view, cell[OW_HOP_P99], middle, P99_AT, "center", "000000");
	/* Points without packets in common, as those of parallel links, are not joined. */
	fprintf(view->chart->script, "set arrow %u from first %u, first %.2f to first %u, first %.2f nohead back %s\n",
	        MARK + i, i, POINT_AT, i + 1, POINT_AT,
	        hop->report ? "lw 3 lc rgb '#9ecae1'" : "lw 1 dt 3 lc rgb '#" OW_CHART_GREY "'");
	put_loss(view, i, cell[OW_HOP_LOSS]);
}

/* The shares as parts of a bar that is as long as the path; none if one of them is not known. */
static void put_shares(struct view *view)
{
	static const char *const colour[] = {"9ecae1", "c6dbef"};
	double share[OW_PATH_POINTS], sum = 0, at = 0;
	for (unsigned i = 0; i < view->hops; i++) {
		const struct ow_path_segment *hop = hop_of(view, i);
		bool has = hop->report && hop->report->has_direction[view->direction];
		if (!has || !ow_path_delay_share(view->path, hop, view->direction, &share[i]) || !(share[i] >= 0)) {
			put_label(view, "not known", view->hops / 2., (BAR_LOW + BAR_HIGH) / 2, "center",
			          OW_CHART_GREY);
			return;
		}
		sum += share[i];
	}
	for (unsigned i = 0; i < view->hops && sum > 0; i++) {
		char text[OW_FORMAT];
		double width = share[i] / fmax(sum, 1) * view->hops;
		put_rectangle(view, at, at + width, colour[i % 2]);
		ow_format_percent(share[i], text);
		if (share[i] >= SHARE_SHOWN)
			put_label(view, text, at + width / 2, (BAR_LOW + BAR_HIGH) / 2, "center", "000000");
		at += width;
	}
}

/* What the rows are, and the path from end to end. */
static void put_sides(struct view *view)
{
	static const struct {
		const char *name;
		double at;
		enum ow_hop_cell cell;
	} row[] = {{"mean", MEAN_AT, OW_HOP_MEAN},
	           {"p99", P99_AT, OW_HOP_P99},
	           {"loss", LOSS_AT, OW_HOP_LOSS},
	           {"share of the delay", (BAR_LOW + BAR_HIGH) / 2, OW_HOP_CELLS}};
	ow_table_cells cell;
	double left = -0.02 * view->hops, right = 1.03 * view->hops;
	ow_path_ends_cells(view->path, view->direction, cell);
	put_label(view, "end to end", right, POINT_AT, "left", OW_CHART_GREY);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		put_label(view, row[i].name, left, row[i].at, "right", OW_CHART_GREY);
		if (row[i].cell < OW_HOP_CELLS)
			put_label(view, cell[row[i].cell], right, row[i].at, "left", "000000");
	}
}

static void put_marks(struct view *view)
{
	struct ow_chart *chart = view->chart;
	size_t number = view->direction;
	ow_chart_data(chart, "way", number);
	for (unsigned i = 0; i <= view->hops; i++)
		ow_chart_numbers(chart, (const double[]){i, POINT_AT}, 2);
	ow_chart_data_end(chart);
	fprintf(chart->script,
	        "unset border; unset tics; unset grid; unset key; unset xlabel; unset ylabel; unset logscale\n"
	        "set xrange [0:%u]; set yrange [0:1]\n",
	        view->hops);
	ow_chart_series(chart, "way", number, "1:2", "points pt 7 ps 1.2", "08519c", NULL);
	ow_chart_plot(chart);
}

void ow_path_view(struct ow_chart *chart, const struct ow_path_report *path, enum ow_direction direction, double top,
                  double height)
{
	struct view view = {.chart = chart,
	                    .path = path,
	                    .direction = direction,
	                    .hops = path->points - 1,
	                    .font = path->points >= CROWDED_FROM ? 10 : 13};
	ow_chart_panel(chart, 0.16, 0.88, top + 0.12 * height, top + 0.95 * height);
	put_points(&view);
	for (unsigned i = 0; i < view.hops; i++)
		put_hop(&view, i);
	put_shares(&view);
	put_sides(&view);
	put_marks(&view);
	for (unsigned i = 0; i < view.labels; i++)
		fprintf(chart->script, "unset label %u\n", MARK + i);
	for (unsigned i = 0; i < view.hops; i++)
		fprintf(chart->script, "unset arrow %u\n", MARK + i);
	for (unsigned i = 0; i < view.rectangles; i++)
		fprintf(chart->script, "unset object %u\n", MARK + i);
	fputs("set border 3 lc rgb '#" OW_CHART_GREY "'; set tics " OW_CHART_TICS "; set autoscale\n" OW_CHART_GRID,
	      chart->script);
}
