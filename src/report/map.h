/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/point_map.h"
#include "report/style.h"
#include <stdio.h>

/* Shows a map of the network (discovery/map.h): as text, JSON, DOT (Graphviz) and SVG. */
struct ow_map_view {
	const struct ow_map *map;
	const struct ow_point_map *points;
	const struct ow_disagreement *disagreement; /* with a topology, */
	size_t disagreements;
	bool compared; /* if there is one */
	bool all;      /* text: all pairs, not only neighbours */
};

void ow_report_map_text(FILE *out, const struct ow_style *style, const struct ow_map_view *view);
void ow_report_map_json(FILE *out, const struct ow_map_view *view);
void ow_report_map_dot(FILE *out, const struct ow_map_view *view);
/* The same map gives the same picture; a point's first place follows from its name. -ENOMEM. */
int ow_report_map_svg(FILE *out, const struct ow_map_view *view);

/* The delay of a pair without the offsets of its clocks: what it can be, ns. INFINITY: not bounded. */
void ow_map_delay_bounds(const struct ow_map_pair *pair, double *ret_least, double *ret_most);
