/* SPDX-License-Identifier: Apache-2.0 */
/* A map of the network as text and as JSON: map.h. */
#include "report/map.h"

#include "base/format.h"
#include "base/json_writer.h"
#include "base/table.h"
#include "base/time.h"
#include "base/word.h"
#include "result/json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LEAST 20
#define NAME_MOST  60
/* So few packets of the sample say nothing of neighbours. */
#define SHARED_PACKETS 20

void ow_map_delay_bounds(const struct ow_map_pair *pair, double *ret_least, double *ret_most)
{
	const struct ow_value *delay = &pair->delay_ns;
	bool known = delay->status != OW_VALUE_NONE;
	*ret_least =
		known && pair->offset_most_ns != INT64_MAX ? fmax(0, delay->low - (double)pair->offset_most_ns) : 0;
	*ret_most = known && pair->offset_least_ns != INT64_MIN ? fmax(0, delay->high - (double)pair->offset_least_ns)
	                                                        : INFINITY;
}

/* -- text ----------------------------------------------------------------------------------------------------------- */

enum { ADJACENT, HOPS, SHARE, LOSS, DELAY, PACKETS, COLUMNS };
static const struct ow_table_column columns[COLUMNS] = {
	[ADJACENT] = {"", 13, 0, true},  [HOPS] = {"hops", 4, 2, false},    [SHARE] = {"share", 6, 1, false},
	[LOSS] = {"loss", 22, 3, false}, [DELAY] = {"delay", 20, 4, false}, [PACKETS] = {"samples", 8, 5, false},
};

static void percent_cell(const struct ow_value *value, bool at_most, char cell[OW_TABLE_CELL])
{
	char low[OW_FORMAT], high[OW_FORMAT], middle[OW_FORMAT];
	if (value->status == OW_VALUE_NONE)
		snprintf(cell, OW_TABLE_CELL, "-");
	else if (at_most)
		snprintf(cell, OW_TABLE_CELL, "up to %s", ow_format_percent(value->high, high));
	else
		snprintf(cell, OW_TABLE_CELL, "%s %s-%s", ow_format_percent(value->value, middle),
		         ow_format_percent(value->low, low), ow_format_percent(value->high, high));
}

static void delay_cell(const struct ow_map_pair *pair, char cell[OW_TABLE_CELL])
{
	char low[OW_DURATION_TEXT], high[OW_DURATION_TEXT];
	double least, most;
	ow_map_delay_bounds(pair, &least, &most);
	ow_duration_text(least, low);
	ow_duration_text(most, high);
	if (pair->delay_ns.status == OW_VALUE_NONE || isinf(most))
		snprintf(cell, OW_TABLE_CELL, pair->delay_ns.status == OW_VALUE_NONE ? "-" : "at least %s", low);
	else
		snprintf(cell, OW_TABLE_CELL, "%.24s to %.24s", low, high);
}

static void put_pair(const struct ow_table *table, const struct ow_style *style, unsigned width,
                     const struct ow_map_view *view, const struct ow_map_pair *pair)
{
	const struct ow_map_vantage *from = &view->map->vantage[pair->from], *to = &view->map->vantage[pair->to];
	char name[4 * OW_SAMPLE_NAME + 8], clean[sizeof name], count[OW_FORMAT];
	ow_table_cells cells = {{0}};
	snprintf(name, sizeof name, "%s %s %s %s %s", from->point, from->interface,
	         pair->adjacency == OW_UNKNOWN_ORDER ? "-" : ">", to->point, to->interface);
	ow_format_clean(name, !style->utf8, clean, sizeof clean);
	snprintf(cells[ADJACENT], OW_TABLE_CELL, "%s", ow_adjacency_name[pair->adjacency]);
	if (pair->hops_known)
		snprintf(cells[HOPS], OW_TABLE_CELL, "%u", pair->hops);
	else
		snprintf(cells[HOPS], OW_TABLE_CELL, "?");
	if (pair->share.status == OW_VALUE_NONE)
		snprintf(cells[SHARE], OW_TABLE_CELL, "-");
	else
		snprintf(cells[SHARE], OW_TABLE_CELL, "%s", ow_format_percent(pair->share.value, count));
	delay_cell(pair, cells[DELAY]);
	percent_cell(&pair->loss, pair->loss_at_most, cells[LOSS]);
	snprintf(cells[PACKETS], OW_TABLE_CELL, "%s", ow_format_short(pair->packets, 8, count));
	ow_table_name(table->out, clean, width);
	ow_table_row(table, cells, 0);
}

static void put_pairs(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	struct ow_table table = {.out = out, .column = columns, .count = COLUMNS, .colour = style->colour};
	unsigned width = ow_table_fit_name(&table, (unsigned)style->width, 0, NAME_LEAST, NAME_MOST);
	ow_table_bold(&table);
	ow_table_name(out, "from > to", width);
	ow_table_titles(&table);
	for (uint32_t i = 0; i < view->map->pairs; i++) {
		const struct ow_map_pair *pair = &view->map->pair[i];
		bool same = view->points->point_of[pair->from] == view->points->point_of[pair->to];
		if (view->all || (pair->adjacency != OW_NOT_ADJACENT && !same))
			put_pair(&table, style, width, view, pair);
	}
}

static void put_line(FILE *out, const struct ow_style *style, const char *text)
{
	char clean[1024];
	ow_format_clean(text, !style->utf8, clean, sizeof clean);
	ow_format_wrap(out, clean, 0, style->width);
}

static void put_changes(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	for (uint32_t i = 0; i < view->map->changes; i++) {
		const struct ow_map_change *change = &view->map->change[i];
		const struct ow_map_vantage *from = &view->map->vantage[change->from],
					    *to = &view->map->vantage[change->to];
		char line[512], time[OW_FORMAT];
		snprintf(line, sizeof line,
		         "%s  the route has changed: %ju of %ju packets of flows from %s %s no longer pass %s %s",
		         ow_format_local(change->time_ns, "%Y-%m-%d %H:%M:%S", time), (uintmax_t)change->missing,
		         (uintmax_t)change->packets, from->point, from->interface, to->point, to->interface);
		put_line(out, style, line);
	}
}

/* What the map cannot say, and why. */
static void put_doubts(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	const struct ow_map_counts *c = &view->map->counts;
	const struct doubt {
		uint64_t count;
		const char *one, *many;
	} doubts[] = {
		{c->missing, "sample is missing", "samples are missing; what they would have shown is not concluded"},
		{c->clock_steps, "time a clock was set",
	         "times clocks were set; the epochs around them are not compared"},
		{c->other_keys, "sample is under another key", "samples are under another key than most"},
		{c->late, "sample came too late", "samples came too late"},
		{c->ahead, "sample has a time that is far ahead",
	         "samples have times that are far ahead: clocks are wrong"},
		{c->refused, "sample is of a vantage beyond the limits", "samples are of vantages beyond the limits"},
		{c->pairs_refused, "pair is beyond the limit", "pairs are beyond the limit"},
		{c->spans, "packet takes longer than 3 s",
	         "packets take longer than 3 s, or clocks differ by as much: not used"},
		{c->rewritten, "packet left a point with a larger TTL than it came in: not used",
	         "packets left a point with a larger TTL than they came in: what sets TTLs hides the order, they are "
	         "not used"},
		{c->loops, "packet has no consistent order", "packets have no consistent order: not used"},
		{c->clock_contradictions, "bound of clocks contradicts others",
	         "bounds of clocks contradict others, and were dropped"},
	};
	for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++) {
		char line[256], count[OW_FORMAT];
		if (doubts[i].count == 0)
			continue;
		snprintf(line, sizeof line, "note: %s %s", ow_format_count(doubts[i].count, count),
		         doubts[i].count == 1 ? doubts[i].one : doubts[i].many);
		put_line(out, style, line);
	}
}

static void put_provisional(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	for (uint32_t i = 0; i < view->map->pairs; i++) {
		const struct ow_map_pair *pair = &view->map->pair[i];
		const struct ow_map_vantage *v = view->map->vantage;
		char line[512];
		if (pair->adjacency != OW_PROVISIONAL || pair->between == UINT32_MAX ||
		    view->points->point_of[pair->from] == view->points->point_of[pair->to])
			continue;
		snprintf(line, sizeof line,
		         "note: %s %s may lie between %s %s and %s %s; its sample is too coarse to tell",
		         v[pair->between].point, v[pair->between].interface, v[pair->from].point,
		         v[pair->from].interface, v[pair->to].point, v[pair->to].interface);
		put_line(out, style, line);
	}
}

static uint32_t root_of(uint32_t *next, uint32_t i)
{
	while (next[i] != i)
		i = next[i] = next[next[i]];
	return i;
}

/* Points that share packets, and no way on the map leads from one to the other. */
static void put_unconnected(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	const struct ow_map *map = view->map;
	uint32_t *next = calloc(view->points->points + 1, sizeof *next);
	for (uint32_t i = 0; next && i < view->points->points; i++)
		next[i] = i;
	for (uint32_t i = 0; next && i < 2 * map->pairs; i++) {
		const struct ow_map_pair *pair = &map->pair[i % map->pairs];
		const struct ow_map_vantage *a = &map->vantage[pair->from], *b = &map->vantage[pair->to];
		uint32_t from = root_of(next, view->points->point_of[pair->from]);
		uint32_t to = root_of(next, view->points->point_of[pair->to]);
		bool is_edge = pair->adjacency != OW_NOT_ADJACENT, told = i >= map->pairs;
		char line[512];
		if (from == to || !(is_edge || (told && pair->packets >= SHARED_PACKETS)))
			continue;
		snprintf(
			line, sizeof line,
			"note: packets pass %s %s and %s %s, but what lies next to what is not known: neither TTLs nor "
			"clocks nor directions tell the order",
			a->point, a->interface, b->point, b->interface);
		if (!is_edge)
			put_line(out, style, line);
		next[from] = to;
	}
	free(next);
}

static void put_least(FILE *out, const struct ow_style *style, const struct ow_map *map)
{
	double least = 0;
	char line[256], text[OW_FORMAT];
	for (uint32_t i = 0; i < map->vantages; i++)
		least = map->vantage[i].packets ? fmax(least, map->vantage[i].least_share) : least;
	if (least <= 0)
		return;
	snprintf(line, sizeof line, "Pairs with less than %s of a vantage's packets may not have been seen yet.",
	         ow_format_percent(least, text));
	put_line(out, style, line);
}

void ow_report_map_text(FILE *out, const struct ow_style *style, const struct ow_map_view *view)
{
	const struct ow_map *map = view->map;
	char from[OW_FORMAT], until[OW_FORMAT], packets[OW_FORMAT];
	fprintf(out, "%u point%s, %u vantage%s, %s sampled packets, %s to %s\n\n", view->points->points,
	        ow_plural(view->points->points, "", "s"), map->vantages, ow_plural(map->vantages, "", "s"),
	        ow_format_count(map->counts.packets, packets), ow_format_local(map->from_ns, "%Y-%m-%d %H:%M:%S", from),
	        ow_format_local(map->until_ns, "%H:%M:%S", until));
	put_pairs(out, style, view);
	fputc('\n', out);
	put_changes(out, style, view);
	for (size_t i = 0; i < view->disagreements; i++) {
		char text[OW_DISAGREEMENT_TEXT], line[OW_DISAGREEMENT_TEXT + 16];
		ow_disagreement_text(view->points, &view->disagreement[i], text);
		snprintf(line, sizeof line, "topology: %s", text);
		put_line(out, style, line);
	}
	if (view->compared && view->disagreements == 0)
		put_line(out, style, "topology: agrees");
	if (map->pairs == 0 && map->vantages > 1)
		put_line(out, style,
		         "note: no packet was seen at two vantages: they share no traffic, their clocks differ by more "
		         "than an "
		         "epoch, or they sample by different keys");
	put_provisional(out, style, view);
	put_unconnected(out, style, view);
	put_doubts(out, style, view);
	put_least(out, style, map);
}

/* -- JSON ----------------------------------------------------------------------------------------------------------- */

static void json_value(struct ow_json *json, const char *name, const char *interval, const struct ow_value *value)
{
	ow_json_number(json, name, ow_json_known(value));
	ow_json_bounds(json, interval, value);
}

static void json_vantages(struct ow_json *json, const struct ow_map *map)
{
	ow_json_rows(json, "vantages");
	for (uint32_t i = 0; i < map->vantages; i++) {
		const struct ow_map_vantage *v = &map->vantage[i];
		ow_json_row(json);
		ow_json_string(json, "point", v->point);
		ow_json_string(json, "interface", v->interface);
		ow_json_string(json, "direction", ow_vantage_kind_name[v->kind]);
		ow_json_flag(json, "bridge", v->bridge);
		ow_json_count(json, "packets", v->packets);
		ow_json_count(json, "dropped", v->drops);
		ow_json_count(json, "epochs", v->epochs);
		ow_json_number(json, "least_share", v->least_share);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void json_pairs(struct ow_json *json, const struct ow_map *map)
{
	ow_json_rows(json, "pairs");
	for (uint32_t i = 0; i < map->pairs; i++) {
		const struct ow_map_pair *pair = &map->pair[i];
		double least, most;
		ow_map_delay_bounds(pair, &least, &most);
		ow_json_row(json);
		ow_json_count(json, "from", pair->from);
		ow_json_count(json, "to", pair->to);
		ow_json_string(json, "from_point", map->vantage[pair->from].point);
		ow_json_string(json, "to_point", map->vantage[pair->to].point);
		ow_json_string(json, "adjacency", ow_adjacency_name[pair->adjacency]);
		ow_json_count_if(json, "between", pair->between != UINT32_MAX, pair->between);
		ow_json_count(json, "samples", pair->packets);
		ow_json_count_if(json, "hops", pair->hops_known, pair->hops);
		ow_json_flag(json, "ttl_rewritten", pair->ttl_void);
		json_value(json, "share", "share_ci95", &pair->share);
		json_value(json, "delay_by_clocks_ns", "delay_by_clocks_ns_ci95", &pair->delay_ns);
		ow_json_number(json, "delay_least_ns", least);
		ow_json_number(json, "delay_most_ns", most);
		ow_json_integer_if(json, "offset_least_ns", pair->offset_least_ns != INT64_MIN, pair->offset_least_ns);
		ow_json_integer_if(json, "offset_most_ns", pair->offset_most_ns != INT64_MAX, pair->offset_most_ns);
		json_value(json, "loss", "loss_ci95", &pair->loss);
		ow_json_count(json, "loss_samples", pair->loss_packets);
		ow_json_flag(json, "loss_at_most", pair->loss_at_most);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void json_edges(struct ow_json *json, const struct ow_point_map *points)
{
	ow_json_rows(json, "edges");
	for (uint32_t i = 0; i < points->edges; i++) {
		const struct ow_point_edge *edge = &points->edge[i];
		ow_json_row(json);
		ow_json_string(json, "from", points->point[edge->from]);
		ow_json_string(json, "to", points->point[edge->to]);
		ow_json_string(json, "adjacency", ow_adjacency_name[edge->adjacency]);
		ow_json_count(json, "samples", edge->packets);
		ow_json_count_if(json, "links", edge->links >= 0, (uint64_t)edge->links);
		ow_json_count(json, "pair", edge->pair);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void json_changes(struct ow_json *json, const struct ow_map *map)
{
	ow_json_rows(json, "changes");
	for (uint32_t i = 0; i < map->changes; i++) {
		const struct ow_map_change *change = &map->change[i];
		ow_json_row(json);
		ow_json_integer(json, "time_ns", change->time_ns);
		ow_json_count(json, "from", change->from);
		ow_json_count(json, "to", change->to);
		ow_json_count(json, "samples", change->packets);
		ow_json_count(json, "missing", change->missing);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void json_counts(struct ow_json *json, const struct ow_map_counts *c)
{
	const struct {
		const char *name;
		uint64_t count;
	} members[] = {{"epochs", c->epochs},
	               {"messages", c->messages},
	               {"missing", c->missing},
	               {"incomplete", c->incomplete},
	               {"clock_steps", c->clock_steps},
	               {"other_keys", c->other_keys},
	               {"late", c->late},
	               {"ahead", c->ahead},
	               {"refused", c->refused},
	               {"packets", c->packets},
	               {"copies", c->copies},
	               {"repeats", c->repeats},
	               {"spans", c->spans},
	               {"loops", c->loops},
	               {"rewritten", c->rewritten},
	               {"clock_contradictions", c->clock_contradictions},
	               {"pairs_refused", c->pairs_refused}};
	ow_json_object(json, "counts");
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		ow_json_count(json, members[i].name, members[i].count);
	ow_json_end(json);
}

static void json_disagreements(struct ow_json *json, const struct ow_map_view *view)
{
	static const char *const kind[OW_DISAGREEMENTS] = {"no_router", "no_link", "length", "not_seen"};
	ow_json_rows(json, "topology");
	for (size_t i = 0; i < view->disagreements; i++) {
		const struct ow_disagreement *one = &view->disagreement[i];
		char text[OW_DISAGREEMENT_TEXT];
		ow_disagreement_text(view->points, one, text);
		ow_json_row(json);
		ow_json_string(json, "kind", kind[one->kind]);
		ow_json_string(json, "from", view->points->point[one->from]);
		ow_json_string(json, "to", view->points->point[one->to]);
		ow_json_string(json, "text", text);
		ow_json_end(json);
	}
	ow_json_end(json);
}

void ow_report_map_json(FILE *out, const struct ow_map_view *view)
{
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_command(&json, "fleet map");
	ow_json_integer(&json, "from_ns", view->map->from_ns);
	ow_json_integer(&json, "until_ns", view->map->until_ns);
	json_counts(&json, &view->map->counts);
	json_vantages(&json, view->map);
	json_edges(&json, view->points);
	json_pairs(&json, view->map);
	json_changes(&json, view->map);
	if (view->compared)
		json_disagreements(&json, view);
	ow_json_end(&json);
}
