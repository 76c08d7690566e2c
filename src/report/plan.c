/* SPDX-License-Identifier: Apache-2.0 */
/* The best order to upgrade routers: text, JSON, CSV and a plot. */
#include "report/plan.h"

#include "base/format.h"
#include "base/table.h"
#include "base/json_writer.h"
#include "base/word.h"
#include "report/curves.h"

#include <errno.h>
#include <inttypes.h>

static void put_router(const struct ow_topology *topology, uint32_t router, bool ascii, size_t columns, char *text,
                       size_t size)
{
	if (router == UINT32_MAX) {
		snprintf(text, size, "-");
		return;
	}
	ow_format_clean(ow_topology_name(topology, router), ascii, text, size);
	ow_format_cut(text, columns);
}

enum { PATHS, HOPS, MEAN, MIN, MAX, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[PATHS] = {"paths", 11, 1}, [HOPS] = {"probe hops", 12, 0}, [MEAN] = {"mean", 6, 2},
	[MIN] = {"min", 4, 3},      [MAX] = {"max", 4, 4},
};
/* Columns of a row without the name of the router, and of that name. */
#define NUMBERS  51
#define NAME_MIN 8

void ow_report_plan_text(FILE *out, const struct ow_style *style, const struct ow_topology *topology,
                         const struct ow_made_plan *plan)
{
	char number[OW_FORMAT], name[OW_TOPOLOGY_NAME_MAX + 1];
	struct ow_table table = {out, columns, COLUMNS, .colour = false};
	unsigned width = (unsigned)style->width, most = width >= 40 + NUMBERS ? 40 : 26;
	unsigned room = ow_table_fit_name(&table, width, 9, NAME_MIN, most);
	fprintf(out, "%u %s, %u directed %s, planner %s\n\n", ow_topology_nodes(topology),
	        ow_plural(ow_topology_nodes(topology), "router", "routers"), ow_topology_links(topology),
	        ow_plural(ow_topology_links(topology), "link", "links"), ow_planner_name[plan->planner]);
	fprintf(out, "%8s %-*s", "upgraded", (int)room, "router");
	ow_table_titles(&table);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct ow_plan_step *step = &plan->steps[i];
		ow_table_cells cell;
		put_router(topology, step->router, !style->utf8, room, name, sizeof(name));
		fprintf(out, "%8u ", i);
		ow_table_name(out, name, room);
		snprintf(cell[PATHS], OW_TABLE_CELL, "%s", ow_format_count(step->measure.paths, number));
		snprintf(cell[HOPS], OW_TABLE_CELL, "%s", ow_format_count(step->measure.probe_hops, number));
		snprintf(cell[MEAN], OW_TABLE_CELL, "%.2f", step->measure.mean);
		snprintf(cell[MIN], OW_TABLE_CELL, "%u", step->measure.min);
		snprintf(cell[MAX], OW_TABLE_CELL, "%u", step->measure.max);
		ow_table_row(&table, cell, 0);
	}
}

static void json_step(struct ow_json *json, const struct ow_topology *topology, const struct ow_made_plan *plan,
                      uint32_t i)
{
	const struct ow_plan_step *step = &plan->steps[i];
	bool none = step->router == UINT32_MAX;
	ow_json_row(json);
	ow_json_count(json, "upgraded", i);
	ow_json_string(json, "router", none ? NULL : ow_topology_name(topology, step->router));
	ow_json_count(json, "paths", step->measure.paths);
	ow_json_count(json, "probe_hops", step->measure.probe_hops);
	ow_json_object(json, "granularity");
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_digits(json, "mean", step->measure.mean, 6);
	ow_json_count(json, "min", step->measure.min);
	ow_json_count(json, "max", step->measure.max);
	ow_json_end(json);
	ow_json_end(json);
}

void ow_report_plan_json(FILE *out, const struct ow_topology *topology, const struct ow_made_plan *plan)
{
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_PADDED);
	ow_json_command(&json, "plane plan");
	ow_json_string(&json, "planner", ow_planner_name[plan->planner]);
	ow_json_line(&json);
	ow_json_count(&json, "routers", ow_topology_nodes(topology));
	ow_json_count(&json, "links", ow_topology_links(topology));
	ow_json_rows(&json, "steps");
	for (uint32_t i = 0; i < plan->count; i++)
		json_step(&json, topology, plan, i);
	ow_json_end(&json);
	ow_json_end(&json);
}

void ow_report_plans_csv(FILE *out, const struct ow_topology *topology, const struct ow_made_plan *plan, unsigned plans)
{
	fputs("planner,upgraded,router,paths,probe_hops,granularity_mean,granularity_min,granularity_max\n", out);
	for (unsigned p = 0; p < plans; p++) {
		for (uint32_t i = 0; i < plan[p].count; i++) {
			const struct ow_plan_step *step = &plan[p].steps[i];
			bool none = step->router == UINT32_MAX;
			fprintf(out, "%s,%u,", ow_planner_name[plan[p].planner], i);
			ow_format_csv(out, none ? NULL : ow_topology_name(topology, step->router));
			fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%.6f,%u,%u\n", step->measure.paths,
			        step->measure.probe_hops, step->measure.mean, step->measure.min, step->measure.max);
		}
	}
}

int ow_report_plans_plot(const struct ow_made_plan *plan, unsigned plans, const char *path, struct ow_error *err)
{
	struct ow_curves curves = {
		.title = "Probe hop count", .x_label = "upgraded routers", .y_label = "probe hops", .log_y = true};
	int r = 0;
	for (unsigned p = 0; p < plans; p++) {
		for (uint32_t i = 0; r == 0 && i < plan[p].count; i++) {
			double hops = (double)plan[p].steps[i].measure.probe_hops;
			if (hops > 0)
				r = ow_curves_add(&curves, ow_planner_name[plan[p].planner], i, hops, hops, hops);
		}
	}
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	else
		r = ow_curves_draw(&curves, path, err);
	ow_curves_done(&curves);
	return r;
}
