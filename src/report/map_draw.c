/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of the network as a picture: map.h. The layout lets points repel each other and edges pull (Fruchterman and
 * Reingold 1991), for a fixed number of steps from places that follow from the points' names: no random numbers.
 */
#include "report/map.h"

#include "base/format.h"
#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS     300
#define WIDTH     1000.0
#define MARGIN    80.0
#define RADIUS    9.0
#define MANY      400 /* points; above, fewer steps */
#define FEW_STEPS 60

/* Text for XML, and for quoted texts of DOT. */
static void put_escaped(FILE *out, const char *text, bool xml)
{
	char clean[4 * OW_SAMPLE_NAME];
	ow_format_clean(text, false, clean, sizeof clean);
	for (const char *c = clean; *c; c++) {
		const char *as = NULL;
		if (xml)
			as = *c == '<'   ? "&lt;"
			     : *c == '>' ? "&gt;"
			     : *c == '&' ? "&amp;"
			     : *c == '"' ? "&quot;"
			                 : NULL;
		else
			as = *c == '"' ? "\\\"" : *c == '\\' ? "\\\\" : NULL;
		if (as)
			fputs(as, out);
		else
			fputc(*c, out);
	}
}

/* "98% of packets, loss 0.1%" */
static void edge_label(const struct ow_map_pair *pair, char text[128])
{
	char share[OW_FORMAT], loss[OW_FORMAT];
	int length = 0;
	text[0] = 0;
	if (pair->share.status != OW_VALUE_NONE)
		length = snprintf(text, 128, "%s", ow_format_percent(pair->share.value, share));
	if (pair->loss.status != OW_VALUE_NONE && pair->lost > 0)
		snprintf(text + length, 128 - (size_t)length, "%sloss %s%s", length ? ", " : "",
		         pair->loss_at_most ? "up to " : "",
		         ow_format_percent(pair->loss_at_most ? pair->loss.high : pair->loss.value, loss));
}

void ow_report_map_dot(FILE *out, const struct ow_map_view *view)
{
	const struct ow_point_map *p = view->points;
	fputs("digraph network {\n  node [shape=box, style=rounded];\n", out);
	for (uint32_t i = 0; i < p->points; i++) {
		fputs("  \"", out);
		put_escaped(out, p->point[i], false);
		fputs("\";\n", out);
	}
	for (uint32_t i = 0; i < p->edges; i++) {
		const struct ow_point_edge *edge = &p->edge[i];
		char label[128];
		edge_label(&view->map->pair[edge->pair], label);
		fputs("  \"", out);
		put_escaped(out, p->point[edge->from], false);
		fputs("\" -> \"", out);
		put_escaped(out, p->point[edge->to], false);
		fprintf(out, "\" [label=\"%s\"%s%s];\n", label,
		        edge->adjacency == OW_PROVISIONAL ? ", style=dashed" : "",
		        edge->adjacency == OW_UNKNOWN_ORDER ? ", dir=none" : "");
	}
	fputs("}\n", out);
}

/* -- layout --------------------------------------------------------------------------------------------------------- */

struct place {
	double x, y, dx, dy;
};

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 1;
	for (; *name; name++)
		hash = ow_mix64(hash ^ (uint8_t)*name);
	return hash;
}

static void push(struct place *a, struct place *b, double force, double distance, double x, double y)
{
	a->dx += x / distance * force;
	a->dy += y / distance * force;
	b->dx -= x / distance * force;
	b->dy -= y / distance * force;
}

static void move(const struct ow_point_map *p, struct place *place, double k, double most)
{
	for (uint32_t i = 0; i < p->points; i++)
		place[i].dx = -0.05 * place[i].x, place[i].dy = -0.05 * place[i].y; /* to the middle */
	for (uint32_t i = 0; i < p->points; i++) {
		for (uint32_t j = i + 1; j < p->points; j++) {
			double x = place[i].x - place[j].x, y = place[i].y - place[j].y, d = fmax(hypot(x, y), 0.01);
			push(&place[i], &place[j], k * k / d, d, x, y);
		}
	}
	for (uint32_t i = 0; i < p->edges; i++) {
		struct place *a = &place[p->edge[i].from], *b = &place[p->edge[i].to];
		double x = a->x - b->x, y = a->y - b->y, d = fmax(hypot(x, y), 0.01);
		push(a, b, -d * d / k, d, x, y);
	}
	for (uint32_t i = 0; i < p->points; i++) {
		double d = fmax(hypot(place[i].dx, place[i].dy), 1e-9), step = fmin(d, most);
		place[i].x += place[i].dx / d * step;
		place[i].y += place[i].dy / d * step;
	}
}

/* Returns the height of the picture. */
static double fit(struct place *place, uint32_t count)
{
	double left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
	for (uint32_t i = 0; i < count; i++) {
		left = fmin(left, place[i].x);
		right = fmax(right, place[i].x);
		top = fmin(top, place[i].y);
		bottom = fmax(bottom, place[i].y);
	}
	double scale = (WIDTH - 2 * MARGIN) / fmax(fmax(right - left, bottom - top), 1e-6);
	if (count < 2)
		scale = 1;
	for (uint32_t i = 0; i < count; i++) {
		place[i].x = MARGIN + (place[i].x - left) * scale;
		place[i].y = MARGIN + (place[i].y - top) * scale;
	}
	return count ? 2 * MARGIN + (bottom - top) * scale : 2 * MARGIN;
}

static double lay_out(const struct ow_point_map *p, struct place *place)
{
	double k = 1 / sqrt(fmax(p->points, 1));
	int steps = p->points > MANY ? FEW_STEPS : STEPS;
	for (uint32_t i = 0; i < p->points; i++) {
		uint64_t hash = hash_of(p->point[i]);
		place[i].x = (double)(hash >> 32) / 0x1p32 - 0.5;
		place[i].y = (double)(hash & UINT32_MAX) / 0x1p32 - 0.5;
	}
	for (int i = 0; i < steps; i++)
		move(p, place, k, 0.1 * (1 - (double)i / steps));
	return fit(place, p->points);
}

/* -- SVG ------------------------------------------------------------------------------------------------------------ */

static const char *colour_of(const struct ow_map_pair *pair)
{
	if (pair->loss.status == OW_VALUE_NONE)
		return "#888";
	return pair->loss.low >= 0.01 ? "#c22" : pair->lost > 0 ? "#d80" : "#2a6";
}

/* The two directions between two points lie beside each other. */
static void put_edge(FILE *out, const struct ow_map_view *view, const struct ow_point_edge *edge,
                     const struct place *place)
{
	const struct ow_map_pair *pair = &view->map->pair[edge->pair];
	const struct place *a = &place[edge->from], *b = &place[edge->to];
	double x = b->x - a->x, y = b->y - a->y, d = fmax(hypot(x, y), 1e-6);
	double sx = -y / d * 3, sy = x / d * 3, gap = RADIUS + 4;
	char label[128];
	edge_label(pair, label);
	fprintf(out,
	        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%.1f\"%s%s><title>",
	        a->x + x / d * gap + sx, a->y + y / d * gap + sy, b->x - x / d * gap + sx, b->y - y / d * gap + sy,
	        colour_of(pair), 1 + 3 * (pair->share.status == OW_VALUE_NONE ? 0 : pair->share.value),
	        edge->adjacency == OW_PROVISIONAL ? " stroke-dasharray=\"6 4\"" : "",
	        edge->adjacency == OW_UNKNOWN_ORDER ? "" : " marker-end=\"url(#arrow)\"");
	put_escaped(out, view->points->point[edge->from], true);
	fputs(edge->adjacency == OW_UNKNOWN_ORDER ? " - " : " &gt; ", out);
	put_escaped(out, view->points->point[edge->to], true);
	fprintf(out, " (%s): %s</title></line>\n", ow_adjacency_name[edge->adjacency], label);
}

int ow_report_map_svg(FILE *out, const struct ow_map_view *view)
{
	const struct ow_point_map *p = view->points;
	struct place *place = calloc(p->points + 1, sizeof *place);
	if (!place)
		return -ENOMEM;
	double height = lay_out(p, place);
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
	        "font-size=\"13\">\n"
	        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" "
	        "markerHeight=\"5\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n",
	        WIDTH, height);
	for (uint32_t i = 0; i < p->edges; i++)
		put_edge(out, view, &p->edge[i], place);
	for (uint32_t i = 0; i < p->points; i++) {
		fprintf(out,
		        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\" fill=\"#fff\" stroke=\"#222\" stroke-width=\"2\"/>"
		        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
		        place[i].x, place[i].y, RADIUS, place[i].x, place[i].y - RADIUS - 6);
		put_escaped(out, p->point[i], true);
		fputs("</text>\n", out);
	}
	fputs("</svg>\n", out);
	free(place);
	return 0;
}
