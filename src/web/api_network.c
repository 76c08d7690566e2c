/* SPDX-License-Identifier: Apache-2.0 */
/* All lanes at a time: points by points, the network, and a path through it. */
#include "base/array.h"
#include "base/time.h"
#include "plane/topology.h"
#include "web/api_cells.h"
#include "web/verdicts.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS    (INT64_C(3600) * OW_NS_PER_S)
#define DEFAULT_COST OW_COST_ONE
/* A window of this length or more begins at a whole minute. */
#define WHOLE_NS  (INT64_C(600) * OW_NS_PER_S)
#define MINUTE_NS (INT64_C(60) * OW_NS_PER_S)

/* -- points ------------------------------------------------------------------------------------------------------- */

struct points {
	const char **name;
	size_t count, room;
};

static size_t find_point(const struct points *points, const char *name)
{
	size_t i = 0;
	while (i < points->count && strcmp(points->name[i], name) != 0)
		i++;
	return i;
}

static int add_point(struct points *points, const char *name)
{
	if (find_point(points, name) < points->count)
		return 0;
	if (OW_GROW(points->name, points->room, points->count + 1) < 0)
		return -ENOMEM;
	points->name[points->count++] = name;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of all cells, and of a network if there is one. */
static int collect_points(const struct ow_cells *cells, const struct ow_topology *topology, struct points *points)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < cells->count; i++) {
		r = add_point(points, cells->cell[i].lane->from);
		if (r == 0)
			r = add_point(points, cells->cell[i].lane->to);
	}
	for (uint32_t i = 0; r == 0 && topology && i < ow_topology_nodes(topology); i++)
		r = add_point(points, ow_topology_name(topology, i));
	if (points->count)
		qsort(points->name, points->count, sizeof *points->name, by_name);
	return r;
}

static int no_memory(struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "not enough memory");
}

/* -- matrix ------------------------------------------------------------------------------------------------------- */

int ow_api_matrix(struct ow_call *call, struct ow_error *err)
{
	struct ow_json *json = &call->json;
	struct ow_cells cells = {0};
	struct points points = {0};
	int r = ow_api_select(call, err);
	if (r == 0)
		r = ow_cells_make(call, &cells, err);
	if (r == 0 && collect_points(&cells, NULL, &points) < 0)
		r = no_memory(err);
	if (r == 0) {
		ow_json_object(json, NULL);
		ow_json_array(json, "points");
		for (size_t i = 0; i < points.count; i++)
			ow_json_string(json, NULL, points.name[i]);
		ow_json_end(json);
		ow_cells_put(json, &cells);
		ow_json_end(json);
	}
	free(points.name);
	ow_cells_done(&cells);
	return r;
}

/* -- network ------------------------------------------------------------------------------------------------------ */

/* Two points and the lanes between them. */
struct edge {
	const char *a, *b;
	bool is_measured, is_linked; /* has lanes; is a link of the network file */
};

struct edges {
	struct edge *edge;
	size_t count, room;
};

static int add_edge(struct edges *edges, const char *a, const char *b, bool is_measured)
{
	size_t i = 0;
	while (i < edges->count && !(strcmp(edges->edge[i].a, a) == 0 && strcmp(edges->edge[i].b, b) == 0) &&
	       !(strcmp(edges->edge[i].a, b) == 0 && strcmp(edges->edge[i].b, a) == 0))
		i++;
	if (i == edges->count) {
		if (OW_GROW(edges->edge, edges->room, edges->count + 1) < 0)
			return -ENOMEM;
		edges->edge[edges->count++] = (struct edge){.a = a, .b = b};
	}
	if (is_measured)
		edges->edge[i].is_measured = true;
	else
		edges->edge[i].is_linked = true;
	return 0;
}

static int collect_edges(const struct ow_cells *cells, const struct ow_topology *topology, struct edges *edges)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && topology && i < ow_topology_nodes(topology); i++) {
		uint32_t count;
		const struct ow_link *link = ow_topology_from(topology, i, &count);
		for (uint32_t k = 0; r == 0 && k < count; k++)
			r = add_edge(edges, ow_topology_name(topology, i), ow_topology_name(topology, link[k].to),
			             false);
	}
	for (size_t i = 0; r == 0 && i < cells->count; i++) {
		const struct ow_stored_lane *lane = cells->cell[i].lane;
		/* The lane to several peers together is between no two points, nor is a round trip. */
		if (!strchr(lane->to, '+') && strcmp(lane->from, lane->to) != 0)
			r = add_edge(edges, lane->from, lane->to, true);
	}
	return r;
}

static bool is_between(const struct ow_stored_lane *lane, const struct edge *edge)
{
	return (strcmp(lane->from, edge->a) == 0 && strcmp(lane->to, edge->b) == 0) ||
	       (strcmp(lane->from, edge->b) == 0 && strcmp(lane->to, edge->a) == 0);
}

/* The worst of its lanes; NaN is not known. */
static void put_edge(struct ow_json *json, const struct ow_cells *cells, const struct edge *edge)
{
	enum ow_cell_state state = edge->is_measured ? OW_CELL_GOOD : OW_CELL_UNKNOWN;
	const char *segment = NULL;
	double loss = NAN, p99 = NAN;
	uint64_t sent = 0;
	ow_json_object(json, NULL);
	ow_json_string(json, "from", edge->a);
	ow_json_string(json, "to", edge->b);
	ow_json_array(json, "lanes");
	for (size_t i = 0; i < cells->count; i++) {
		const struct ow_cell *cell = &cells->cell[i];
		if (!is_between(cell->lane, edge))
			continue;
		ow_json_count(json, NULL, i);
		segment = segment ? segment : cell->lane->segment;
		state = cell->state > state ? cell->state : state;
		loss = fmax(loss, cell->loss);
		p99 = fmax(p99, cell->p99);
		sent += cell->sent;
	}
	ow_json_end(json);
	ow_json_string(json, "segment", segment);
	ow_json_string(json, "state", ow_cell_state_name[state]);
	ow_json_number(json, "loss_ratio", loss);
	ow_json_number(json, "p99", p99);
	ow_json_count(json, "sent", sent);
	ow_json_string(json, "adjacency", edge->is_linked ? "link" : NULL);
	ow_json_end(json);
}

/* A point is as its worst lane, without those of which nothing is known, unless all are such. */
static void put_point(struct ow_json *json, const struct ow_cells *cells, const char *name)
{
	enum ow_cell_state state = OW_CELL_UNKNOWN;
	int64_t last_ns = INT64_MIN;
	for (size_t i = 0; i < cells->count; i++) {
		const struct ow_cell *cell = &cells->cell[i];
		if (strcmp(cell->lane->from, name) != 0 && strcmp(cell->lane->to, name) != 0)
			continue;
		if (cell->state != OW_CELL_UNKNOWN && (state == OW_CELL_UNKNOWN || cell->state > state))
			state = cell->state;
		last_ns = cell->last_ns > last_ns ? cell->last_ns : last_ns;
	}
	ow_json_object(json, NULL);
	ow_json_string(json, "point", name);
	ow_json_null(json, "x");
	ow_json_null(json, "y");
	ow_json_string(json, "state", ow_cell_state_name[state]);
	ow_json_integer_if(json, "last_ns", last_ns != INT64_MIN, last_ns);
	ow_json_end(json);
}

/* Links of the network file that nobody measures, and lanes without a link. */
static void put_disagreements(struct ow_json *json, const struct edges *edges, bool has_file)
{
	char text[2 * OW_TOPOLOGY_NAME_MAX + 100];
	ow_json_array(json, "disagreements");
	for (size_t i = 0; has_file && i < edges->count; i++) {
		const struct edge *edge = &edges->edge[i];
		if (edge->is_measured == edge->is_linked)
			continue;
		ow_json_object(json, NULL);
		ow_json_string(json, "kind", edge->is_linked ? "not_measured" : "no_link");
		ow_json_string(json, "from", edge->a);
		ow_json_string(json, "to", edge->b);
		snprintf(text, sizeof text,
		         edge->is_linked ? "nobody measures between %s and %s"
		                         : "%s and %s are no neighbours in the network file",
		         edge->a, edge->b);
		ow_json_string(json, "text", text);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_network(struct ow_call *call, const struct ow_cells *cells, const struct points *points,
                        const struct edges *edges)
{
	struct ow_json *json = &call->json;
	const char *file = call->api->options.network;
	ow_json_object(json, NULL);
	ow_json_string(json, "source", file ? "network file" : "lanes");
	ow_json_integer(json, "since_ns", call->filter.since_ns);
	ow_json_integer(json, "until_ns", call->filter.until_ns);
	ow_json_array(json, "points");
	for (size_t i = 0; i < points->count; i++) {
		if (!strchr(points->name[i], '+'))
			put_point(json, cells, points->name[i]);
	}
	ow_json_end(json);
	ow_json_array(json, "edges");
	for (size_t i = 0; i < edges->count; i++)
		put_edge(json, cells, &edges->edge[i]);
	ow_json_end(json);
	ow_cells_put(json, cells);
	put_disagreements(json, edges, file != NULL);
	ow_json_end(json);
}

/* The selected time: `window_ns` up to `at_ns`; without it up to the newest result. */
static int select_window(struct ow_call *call, struct ow_error *err)
{
	int64_t window = WINDOW_NS, at = INT64_MIN, first;
	int r = ow_api_select(call, err);
	if (r == 0)
		r = ow_query_number(call->query, "window_ns", 1, INT64_MAX / 4, &window, err);
	if (r == 0)
		r = ow_query_number(call->query, "at_ns", 0, INT64_MAX / 4, &at, err);
	if (r == 0 && at == INT64_MIN) {
		r = ow_stored_span(call->stored, &first, &at, err);
		at = ow_time_later(at, 1);
	}
	if (r < 0)
		return r;
	/* Whole minutes need no results of single intervals. */
	if (window >= WHOLE_NS)
		window = at - ow_floor_div(at - window, MINUTE_NS) * MINUTE_NS;
	call->filter.since_ns = at - window;
	call->filter.until_ns = at;
	return ow_stored_choose(call->stored, &call->filter, err);
}

int ow_api_network(struct ow_call *call, struct ow_error *err)
{
	struct ow_topology *topology = NULL;
	struct ow_cells cells = {0};
	struct points points = {0};
	struct edges edges = {0};
	const char *file = call->api->options.network;
	int r = select_window(call, err);
	if (r == 0 && file)
		r = ow_topology_read(file, DEFAULT_COST, &topology, err);
	if (r == 0)
		r = ow_cells_make(call, &cells, err);
	if (r == 0 && (collect_points(&cells, topology, &points) < 0 || collect_edges(&cells, topology, &edges) < 0))
		r = no_memory(err);
	if (r == 0)
		put_network(call, &cells, &points, &edges);
	free(points.name);
	free(edges.edge);
	ow_cells_done(&cells);
	ow_topology_free(topology);
	return r;
}

/* -- path --------------------------------------------------------------------------------------------------------- */

struct path {
	const struct ow_cell **hop;
	size_t hops;
	const struct ow_cell *direct; /* from end to end; NULL: nobody measures it */
};

/* The fewest lanes from a point to another one, without the one that goes all the way. False: there is no way. */
static bool find_hops(const struct ow_cells *cells, const struct points *points, size_t from, size_t to,
                      const struct ow_cell **came, size_t *queue, struct path *path)
{
	size_t head = 0, tail = 0;
	queue[tail++] = from;
	while (head < tail && !came[to]) {
		size_t at = queue[head++];
		for (size_t i = 0; i < cells->count; i++) {
			const struct ow_cell *cell = &cells->cell[i];
			size_t next = find_point(points, cell->lane->to);
			if (strcmp(cell->lane->from, points->name[at]) != 0 || next == from || came[next] ||
			    (at == from && next == to))
				continue;
			came[next] = cell;
			queue[tail++] = next;
		}
	}
	for (size_t at = to; came[at]; at = find_point(points, came[at]->lane->from))
		path->hops++;
	size_t n = path->hops;
	for (size_t at = to; came[at]; at = find_point(points, came[at]->lane->from))
		path->hop[--n] = came[at];
	return path->hops > 0;
}

static int find_path(const struct ow_cells *cells, const struct points *points, size_t from, size_t to,
                     struct path *path)
{
	const struct ow_cell **came = calloc(points->count + 1, sizeof(*came));
	size_t *queue = calloc(points->count + 1, sizeof *queue);
	path->hop = calloc(points->count + 1, sizeof(*path->hop));
	int r = came && queue && path->hop ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < cells->count && !path->direct; i++) {
		const struct ow_stored_lane *lane = cells->cell[i].lane;
		if (strcmp(lane->from, points->name[from]) == 0 && strcmp(lane->to, points->name[to]) == 0)
			path->direct = &cells->cell[i];
	}
	if (r == 0 && !find_hops(cells, points, from, to, came, queue, path) && path->direct)
		path->hop[path->hops++] = path->direct;
	free(came);
	free(queue);
	return r;
}

/*
 * Of the whole path. Means add up. Losses are those of one hop after the other. No more than 1 % of packets is above the sum
 * of quantiles at 1 - 1 % / hops; at least 1 % is above the p99 of a hop with the least delays of the others.
 */
static void put_composed(struct ow_json *json, const struct path *path)
{
	double mean = 0, arrive = 1, least = 0, high = 0, low = NAN;
	for (size_t i = 0; i < path->hops; i++) {
		const struct ow_cell *hop = path->hop[i];
		mean += hop->mean;
		arrive *= 1 - hop->loss;
		least += hop->min;
		struct ow_value v = hop->sum ? ow_stored_sum_quantile(hop->sum, 1 - 0.01 / (double)path->hops)
		                             : (struct ow_value){.status = OW_VALUE_NONE};
		high += v.status == OW_VALUE_NONE ? NAN : v.high;
	}
	for (size_t i = 0; i < path->hops; i++)
		low = fmax(low, path->hop[i]->p99_low + (isfinite(least) ? least - path->hop[i]->min : 0));
	ow_json_object(json, "composed");
	ow_json_number(json, "mean", mean);
	ow_json_number(json, "loss_ratio", 1 - arrive);
	ow_json_number(json, "p99_low", low);
	ow_json_number(json, "p99_high", high);
	ow_json_string(json, "why",
	               isfinite(mean) && isfinite(arrive)
	                       ? "the hops one after the other: means add up, losses follow each other, quantiles are "
	                         "bounded whatever the hops have to do with each other"
	                       : "a hop is not measured, so the sum is not known");
	ow_json_end(json);
}

struct found {
	struct ow_json *json;
	const struct path *path;
	bool is_put;
};

/* The first incident that goes on and is about a hop. */
static void put_verdict(void *arg, const struct ow_verdict *v)
{
	struct found *found = arg;
	for (size_t i = 0; !found->is_put && v->from && v->to && i < found->path->hops; i++) {
		const struct ow_stored_lane *lane = found->path->hop[i]->lane;
		if (strcmp(lane->from, v->from) == 0 && strcmp(lane->to, v->to) == 0) {
			ow_api_verdict(found->json, "verdict", v, lane->segment);
			found->is_put = true;
		}
	}
}

static void put_path(struct ow_call *call, const char *from, const char *to, const struct path *path)
{
	struct ow_json *json = &call->json;
	char why[2 * OW_RESULT_NAME + 60];
	double mean = 0;
	for (size_t i = 0; i < path->hops; i++)
		mean += path->hop[i]->mean;
	ow_json_object(json, NULL);
	ow_json_array(json, "points");
	if (path->hops)
		ow_json_string(json, NULL, from);
	for (size_t i = 0; i < path->hops; i++)
		ow_json_string(json, NULL, path->hop[i]->lane->to);
	ow_json_end(json);
	ow_json_array(json, "hops");
	for (size_t i = 0; i < path->hops; i++) {
		ow_json_object(json, NULL);
		ow_cell_put(json, path->hop[i]);
		ow_json_number(json, "share", mean > 0 ? path->hop[i]->mean / mean : NAN);
		ow_json_end(json);
	}
	ow_json_end(json);
	if (path->direct) {
		ow_json_object(json, "end_to_end");
		ow_cell_put(json, path->direct);
		ow_json_end(json);
	} else {
		ow_json_null(json, "end_to_end");
	}
	if (path->hops)
		put_composed(json, path);
	else
		ow_json_null(json, "composed");
	snprintf(why, sizeof why, "no lanes of this class lead from %.64s to %.64s", from, to);
	ow_json_string(json, "why", path->hops ? NULL : why);
	struct found found = {json, path, false};
	int64_t judged_from, judged_until;
	struct ow_error problem;
	ow_verdicts_list(call->api->verdicts, call->filter.since_ns, call->filter.until_ns, put_verdict, &found,
	                 &judged_from, &judged_until, &problem);
	if (!found.is_put)
		ow_json_null(json, "verdict");
	ow_json_end(json);
}

static int check_point(const struct ow_call *call, const char *name, struct ow_error *err)
{
	size_t lanes, i = 0;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	while (i < lanes && strcmp(lane[i].from, name) != 0 && strcmp(lane[i].to, name) != 0)
		i++;
	return i < lanes ? 0 : ow_error_set(err, ENOENT, "no point '%.64s' has results", name);
}

/* from and to are the ends of the path, not of a lane. Only lanes of one class: `all`, unless it is given. */
static int select_path(struct ow_call *call, const char **ret_from, const char **ret_to, struct ow_error *err)
{
	struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	*ret_from = ow_query_get(call->query, "from");
	*ret_to = ow_query_get(call->query, "to");
	if (!*ret_from || !*ret_to || strcmp(*ret_from, *ret_to) == 0)
		return ow_error_set(err, EINVAL, "a path needs two points: from and to");
	filter.class_name = ow_query_get(call->query, "class");
	int r = ow_query_time(call->query, "since", call->now_ns, &filter.since_ns, err);
	if (r == 0)
		r = ow_query_time(call->query, "until", call->now_ns, &filter.until_ns, err);
	if (r < 0)
		return r;
	call->filter = filter;
	if (!filter.class_name)
		call->filter.class_name = "all";
	r = ow_stored_choose(call->stored, &call->filter, err);
	if (r == -ENOENT && !filter.class_name) {
		call->filter.class_name = NULL;
		r = ow_stored_choose(call->stored, &call->filter, err);
	}
	if (r == 0)
		r = check_point(call, *ret_from, err);
	return r < 0 ? r : check_point(call, *ret_to, err);
}

int ow_api_path(struct ow_call *call, struct ow_error *err)
{
	struct ow_cells cells = {0};
	struct points points = {0};
	struct path path = {0};
	const char *from, *to;
	int r = select_path(call, &from, &to, err);
	if (r == 0)
		r = ow_cells_make(call, &cells, err);
	if (r == 0 && collect_points(&cells, NULL, &points) < 0)
		r = no_memory(err);
	size_t a = r == 0 ? find_point(&points, from) : 0, b = r == 0 ? find_point(&points, to) : 0;
	/* A point that has no lane of this class has no way either. */
	bool is_known = a < points.count && b < points.count;
	if (r == 0 && is_known && find_path(&cells, &points, a, b, &path) < 0)
		r = no_memory(err);
	if (r == 0)
		put_path(call, from, to, &path);
	free(path.hop);
	free(points.name);
	ow_cells_done(&cells);
	return r;
}
