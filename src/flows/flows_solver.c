/* SPDX-License-Identifier: Apache-2.0 */
/* The system of all banks in units of its unknowns: flows_solver.h. */
#include "flows/flows_solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A row has variance 1. An unexplained part below this is rounding, not noise. */
#define ROUNDING 1e-12
/*
 * The error of a lost packet's time has this many times the variance that its cells tell, before these are used: then only
 * they count.
 */
#define LOST_PRIOR 100.0
/* Likewise for phi, over the variance that it has by its parts. */
#define LINK_PRIOR 100.0

/* One entry before it is scaled: load * deviation of the column. */
static void put(struct ow_flow_solver *s, size_t *at, size_t row, double b)
{
	s->row[*at] = (uint32_t)row;
	s->b[(*at)++] = b;
}

static void put_counters_of(const struct ow_flow_system *system, size_t f, double deviation, struct ow_flow_solver *s,
                            size_t *at)
{
	const struct ow_flow_entry *e = ow_flow_entries(system, f);
	for (uint32_t j = 0; j < system->slots; j++)
		if (e[j].load > 0)
			put(s, at, e[j].row, e[j].load * deviation);
}

static uint32_t link_of(const struct ow_flow_system *system, size_t f)
{
	return system->lost ? system->link[f] : OW_FLOW_NONE;
}

static size_t link_row(const struct ow_flow_system *system, uint32_t link)
{
	return system->rows + system->lost->cells + link;
}

static void put_flows(const struct ow_flow_system *system, const struct ow_flow_prior *prior, struct ow_flow_solver *s,
                      size_t *at)
{
	for (size_t f = 0; f < system->flows; f++) {
		double deviation = sqrt(prior->var[f]);
		uint32_t link = link_of(system, f);
		s->start[f] = *at;
		if (link == OW_FLOW_NONE)
			put_counters_of(system, f, deviation, s, at);
		else
			put(s, at, link_row(system, link), system->packets[f] * deviation);
	}
}

/* The counters of a packet of no flow. */
static void put_counters(const struct ow_flow_system *system, const struct ow_lost_packet *packet, double b,
                         struct ow_flow_solver *s, size_t *at)
{
	const struct ow_flows *data = system->data;
	for (uint32_t l = 0; l < data->params.layers; l++) {
		const struct ow_colate_layer *layer = &data->layer[l].layer;
		for (uint32_t j = 0; ow_flow_is_bank(layer) && j < layer->spread; j++) {
			uint32_t c = ow_colate_counter(layer, data->params.seed, packet->flow, j);
			if (data->layer[l].clean[c] && system->used[c])
				put(s, at, c, -b);
		}
	}
}

static double deviation_of(const struct ow_flow_system *system, const struct ow_lost_packet *packet)
{
	return sqrt(LOST_PRIOR * packet->var) * system->data->params.unit_ns;
}

/* A counter has sum n theta - sum sign e, a cell sum sign e. */
static void put_lost(const struct ow_flow_system *system, struct ow_flow_solver *s, size_t *at)
{
	const struct ow_lost_packets *lost = system->lost;
	for (size_t i = 0; i < lost->count + lost->both; i++) {
		const struct ow_lost_packet *packet = &lost->packet[i];
		double b = packet->sign * deviation_of(system, packet);
		s->start[system->flows + i] = *at;
		if (i < lost->count && system->lost_flow[i] != OW_FLOW_NONE)
			put(s, at, link_row(system, system->link[system->lost_flow[i]]), -b);
		else if (i < lost->count)
			put_counters(system, packet, b, s, at);
		for (unsigned k = 0; k < OW_REPAIR_BANKS; k++)
			if (packet->cell[k] != OW_LOST_NO_CELL)
				put(s, at, system->rows + packet->cell[k], b);
	}
}

/* The columns phi, of which nothing is known but by their rows. s->x: memory for the variances of p phi. */
static void put_links(const struct ow_flow_system *system, const struct ow_flow_prior *prior, struct ow_flow_solver *s,
                      size_t *at)
{
	const struct ow_lost_packets *lost = system->lost;
	size_t first = system->flows + lost->count + lost->both;
	for (size_t i = 0; i < lost->count; i++) {
		double deviation = deviation_of(system, &lost->packet[i]);
		if (system->lost_flow[i] != OW_FLOW_NONE)
			s->x[first + system->link[system->lost_flow[i]]] += deviation * deviation;
	}
	for (size_t f = 0; f < system->flows; f++) {
		uint32_t link = system->link[f];
		double p = system->packets[f];
		if (link == OW_FLOW_NONE)
			continue;
		double *sum = &s->x[first + link];
		double deviation = sqrt(LINK_PRIOR * (*sum / (p * p) + prior->var[f]));
		*sum = 0;
		s->start[first + link] = *at;
		put(s, at, link_row(system, link), -p * deviation);
		put_counters_of(system, f, deviation, s, at);
	}
}

/* The rows of cells: what they are off, and its variance without the columns. */
static void fill_cells(const struct ow_flow_system *system, struct ow_flow_solver *s)
{
	double unit = system->data->params.unit_ns;
	for (size_t i = 0; i < system->lost->cells; i++) {
		s->r[system->rows + i] = system->lost->cell[i].off * unit;
		s->noise[system->rows + i] = system->lost->cell[i].var * unit * unit;
	}
}

/* The rows of counters, likewise. */
static void fill_counters(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                          struct ow_flow_solver *s)
{
	ow_flow_residuals(system, prior, s->r, s->noise);
	for (size_t c = 0; c < system->rows; c++) {
		bool used = system->used[c] && s->noise[c] > 0;
		double more = system->lost ? -system->taken[c] : system->shared[c];
		s->noise[c] = used ? s->noise[c] + more : 0;
	}
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		for (uint32_t j = 0; j < system->slots; j++)
			s->noise[e[j].row] -= e[j].load * e[j].load * prior->var[f];
	}
}

/* Divides rows by their deviations. */
static void scale_rows(struct ow_flow_solver *s)
{
	double *scale = s->y;
	for (size_t c = 0; c < s->rows; c++)
		scale[c] = fmax(s->noise[c], 0);
	for (size_t i = 0; i < s->start[s->columns]; i++)
		scale[s->row[i]] += s->b[i] * s->b[i];
	for (size_t c = 0; c < s->rows; c++) {
		double variance = scale[c];
		scale[c] = variance > 0 ? 1 / sqrt(variance) : 0;
		s->r[c] *= scale[c];
		s->noise[c] = s->noise[c] > ROUNDING * variance ? s->noise[c] / variance : 0;
	}
	for (size_t i = 0; i < s->start[s->columns]; i++)
		s->b[i] *= scale[s->row[i]];
	for (size_t c = 0; c < s->rows; c++)
		s->y[c] = 0;
}

/* Sorts flows by powers of two of p, the largest first, so that flows that dominate a counter are processed early. */
static void sort_flows(const struct ow_flow_system *system, uint32_t *order)
{
	enum { KINDS = 64 };
	size_t first[KINDS + 1] = {0};
	const struct ow_flow_load *flow = system->data->flow;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t f = 0; f < system->flows; f++) {
			int e = flow[f].packets >= 1 ? ilogb(flow[f].packets) : 0;
			size_t *at = &first[KINDS - 1 - (e < KINDS ? e : KINDS - 1)];
			if (pass)
				order[at[0]++] = (uint32_t)f;
			else
				at[1]++;
		}
		for (int k = 0; !pass && k < KINDS; k++)
			first[k + 1] += first[k];
	}
}

/* The times of lost packets first: their cells know them. Then flows, each after its phi. */
static void sort_columns(const struct ow_flow_system *system, struct ow_flow_solver *s)
{
	size_t links = s->columns - system->links, lost = links - system->flows, at = lost;
	uint32_t *sorted = s->order + s->columns - system->flows;
	for (size_t i = 0; i < lost; i++)
		s->order[i] = (uint32_t)(system->flows + i);
	sort_flows(system, sorted);
	for (size_t i = 0; i < system->flows; i++) {
		uint32_t f = sorted[i], link = link_of(system, f);
		if (link != OW_FLOW_NONE)
			s->order[at++] = (uint32_t)(links + link);
		s->order[at++] = f;
	}
}

static int allocate(struct ow_flow_solver *s, size_t entries)
{
	/* One more of each, so that an empty system is possible. */
	size_t rows = s->rows + 1, columns = s->columns + 1;
	s->start = calloc(columns, sizeof *s->start);
	s->row = calloc(entries + 1, sizeof *s->row);
	s->b = calloc(entries + 1, sizeof *s->b);
	s->noise = calloc(rows, sizeof *s->noise);
	s->r = calloc(rows, sizeof *s->r);
	s->y = calloc(rows, sizeof *s->y);
	s->x = calloc(columns, sizeof *s->x);
	s->var = calloc(columns, sizeof *s->var);
	s->order = calloc(columns, sizeof *s->order);
	return s->start && s->row && s->b && s->noise && s->r && s->y && s->x && s->var && s->order ? 0 : -ENOMEM;
}

void ow_flow_solver_done(struct ow_flow_solver *s)
{
	free(s->start);
	free(s->row);
	free(s->b);
	free(s->noise);
	free(s->r);
	free(s->y);
	free(s->x);
	free(s->var);
	free(s->order);
}

int ow_flow_solver_init(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                        struct ow_flow_solver *ret_solver)
{
	struct ow_flow_solver s = {.rows = system->rows, .columns = system->flows};
	size_t entries = system->flows * system->slots, at = 0;
	if (system->lost) {
		size_t lost = system->lost->count + system->lost->both;
		s.rows += system->lost->cells + system->links;
		s.columns += lost + system->links;
		entries += lost * (system->slots + OW_REPAIR_BANKS) + system->links * (system->slots + 1);
	}
	if (allocate(&s, entries) < 0) {
		ow_flow_solver_done(&s);
		return -ENOMEM;
	}
	put_flows(system, prior, &s, &at);
	s.start[system->flows] = at;
	fill_counters(system, prior, &s);
	if (system->lost) {
		put_lost(system, &s, &at);
		put_links(system, prior, &s, &at);
		fill_cells(system, &s);
	}
	s.start[s.columns] = at;
	scale_rows(&s);
	sort_columns(system, &s);
	*ret_solver = s;
	return 0;
}
