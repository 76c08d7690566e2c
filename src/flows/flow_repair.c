/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the packets that only one of two recordings has: flow_repair.h. */
#include "flows/flow_repair.h"

#include "base/array.h"
#include "base/sort.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct epoch_of {
	int64_t begin_ns, end_ns; /* begin: of the interval, also if the recording began later */
	size_t index;
};

struct side {
	const struct ow_epochs *epochs;
	struct epoch_of *epoch; /* those of the time, by their begin */
	size_t count, next;
	struct ow_repair_cell *table;
};

static int by_begin(const void *a, const void *b)
{
	const struct epoch_of *x = a, *y = b;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* -- flows --------------------------------------------------------------------------------------------------------- */

/* The hashes of all flows that either recording counted, ascending; there may be doubles of none. */
static int all_flows(const struct ow_repair_side side[2], uint64_t **ret_flow, size_t *ret_flows)
{
	size_t room = 0, count = 0, kept = 0;
	for (int i = 0; i < 2; i++)
		room += side[i].sum->counts ? ow_flow_counts_flows(side[i].sum->counts) : 0;
	uint64_t *flow = calloc(room + 1, sizeof *flow);
	if (!flow)
		return -ENOMEM;
	for (int i = 0; i < 2; i++) {
		const struct ow_flow_counts *counts = side[i].sum->counts;
		for (size_t f = 0; counts && f < ow_flow_counts_flows(counts); f++) {
			struct ow_flow_count of;
			ow_flow_counts_get(counts, f, &of);
			flow[count++] = of.flow;
		}
	}
	ow_sort_ids(flow, count);
	for (size_t i = 0; i < count; i++)
		if (!i || flow[i] != flow[i - 1])
			flow[kept++] = flow[i];
	*ret_flow = flow;
	*ret_flows = kept;
	return 0;
}

/* Whether a time without its upper bits tells when a packet passed, in an epoch of this length. */
static bool is_told(const struct ow_colate_params *params, int64_t begin_ns, int64_t end_ns)
{
	double range = (double)(UINT64_C(1) << OW_REPAIR_TIME_BITS) * (double)(UINT64_C(1) << params->repair_shift);
	return (double)end_ns - (double)begin_ns < range * params->unit_ns / 2;
}

/* -- epoch by epoch ------------------------------------------------------------------------------------------------ */

static int64_t interval_of(int64_t time_ns, int64_t length_ns)
{
	int64_t rest = length_ns ? time_ns % length_ns : 0;
	return time_ns - rest - (rest < 0 ? length_ns : 0);
}

static int list_epochs(struct side *side, int64_t since_ns, int64_t until_ns, size_t cells)
{
	size_t all = ow_epochs_count(side->epochs);
	int64_t length_ns = ow_epochs_info(side->epochs)->interval_ns;
	side->epoch = calloc(all + 1, sizeof *side->epoch);
	side->table = calloc(cells, sizeof *side->table);
	if (!side->epoch || !side->table)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		struct ow_epochs_span span = ow_epochs_span(side->epochs, i);
		if (span.end_ns > since_ns && span.begin_ns < until_ns)
			side->epoch[side->count++] =
				(struct epoch_of){interval_of(span.begin_ns, length_ns), span.end_ns, i};
	}
	qsort(side->epoch, side->count, sizeof *side->epoch, by_begin);
	return 0;
}

/* The table of all epochs with this begin, and their packets. */
static int read_tables(struct side *side, int64_t begin_ns, size_t cells, double *ret_packets, struct ow_error *err)
{
	int r = 0;
	*ret_packets = 0;
	memset(side->table, 0, cells * sizeof *side->table);
	for (; r == 0 && side->next < side->count && side->epoch[side->next].begin_ns == begin_ns; side->next++) {
		size_t i = side->epoch[side->next].index;
		*ret_packets += (double)ow_epochs_span(side->epochs, i).packets;
		r = ow_epochs_repair(side->epochs, i, side->table, err);
	}
	return r;
}

static int64_t next_begin(const struct side *side)
{
	return side->next < side->count ? side->epoch[side->next].begin_ns : INT64_MAX;
}

/* A time that only one recording covers is compared with an empty table: nothing can be read, unless it is short. */
static int find_in_epochs(struct side side[2], struct ow_lost_search *search, struct ow_lost_packets *packets,
                          struct ow_error *err)
{
	size_t cells = OW_REPAIR_BANKS * (size_t)search->params->repair_cells;
	for (;;) {
		int64_t begin[] = {next_begin(&side[0]), next_begin(&side[1])};
		int64_t now = begin[0] < begin[1] ? begin[0] : begin[1];
		if (now == INT64_MAX)
			return 0;
		const struct side *of = begin[0] == now ? &side[0] : &side[1];
		const struct epoch_of *epoch = &of->epoch[of->next];
		search->around[0] = search->around[1] =
			(epoch->begin_ns / 2 + epoch->end_ns / 2) / (int64_t)search->params->unit_ns;
		for (int i = 0; i < 2; i++) {
			int r = read_tables(&side[i], now, cells, &search->packets, err);
			if (r < 0)
				return r;
		}
		if (!is_told(search->params, epoch->begin_ns, epoch->end_ns))
			packets->unread++;
		else if (ow_lost_packets_find(search, side[0].table, side[1].table, packets) < 0)
			return ow_error_set(err, ENOMEM, "not enough memory for lost packets");
	}
}

static int by_packet(const void *a, const void *b)
{
	const struct ow_lost_packet *x = a, *y = b;
	if (x->flow != y->flow)
		return x->flow < y->flow ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->sign - y->sign;
}

static bool is_pair(const struct ow_lost_packet *a, const struct ow_lost_packet *b)
{
	return a->flow == b->flow && a->hash == b->hash && a->sign != b->sign;
}

/*
 * A packet that one point recorded at the end of an epoch and the other at the begin of the next was not lost: such pairs
 * go behind the others.
 */
static int drop_pairs(struct ow_lost_packets *packets)
{
	struct ow_lost_packet *p = packets->packet;
	size_t kept = 0, both = 0;
	struct ow_lost_packet *pair = calloc(packets->count, sizeof *pair);
	if (!pair)
		return -ENOMEM;
	qsort(p, packets->count, sizeof *p, by_packet);
	for (size_t i = 0; i < packets->count; i++) {
		if (kept && is_pair(&p[kept - 1], &p[i])) {
			pair[both++] = p[--kept];
			pair[both++] = p[i];
		} else {
			p[kept++] = p[i];
		}
	}
	memcpy(&p[kept], pair, both * sizeof *p);
	free(pair);
	packets->count = kept;
	packets->both = both;
	packets->lost -= both / 2;
	packets->extra -= both / 2;
	return 0;
}

static int epoch_by_epoch(const struct ow_repair_side from[2], int64_t since_ns, int64_t until_ns,
                          struct ow_lost_search *search, struct ow_lost_packets *packets, struct ow_error *err)
{
	size_t cells = OW_REPAIR_BANKS * (size_t)search->params->repair_cells;
	struct side side[2] = {{.epochs = from[0].epochs}, {.epochs = from[1].epochs}};
	int r = 0;
	for (int i = 0; r == 0 && i < 2; i++)
		r = list_epochs(&side[i], since_ns, until_ns, cells);
	if (r < 0)
		ow_error_set(err, ENOMEM, "not enough memory for lost packets");
	else
		r = find_in_epochs(side, search, packets, err);
	if (r == 0 && packets->count && drop_pairs(packets) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory for lost packets");
	for (int i = 0; i < 2; i++) {
		free(side[i].epoch);
		free(side[i].table);
	}
	return r;
}

/* -- all epochs together ------------------------------------------------------------------------------------------- */

/* The clocks of the points may be hours apart. */
static int64_t middle_of(const struct ow_repair_side *side)
{
	return ow_colate_first_ns(side->sum->colate) / 2 + ow_colate_last_ns(side->sum->colate) / 2;
}

/*
 * What the mean delay may be by the clocks as they are: as the user says, by the first packets, by the last ones. Without that,
 * delays of a cell's packets, of clocks that are apart, could add up to more than a time can be.
 */
static void guess_delays(const struct ow_repair_side side[2], int64_t offset_ns, struct ow_lost_search *search)
{
	const struct ow_colate *a = side[0].sum->colate, *b = side[1].sum->colate;
	int64_t unit = search->params->unit_ns;
	search->delay[0] = -offset_ns / unit;
	search->delay[1] = (ow_colate_first_ns(b) - ow_colate_first_ns(a)) / unit;
	search->delay[2] = (ow_colate_last_ns(b) - ow_colate_last_ns(a)) / unit;
}

int ow_flow_repair_find(const struct ow_repair_side side[2], int64_t since_ns, int64_t until_ns, int64_t offset_ns,
                        struct ow_lost_packets *packets, struct ow_error *err)
{
	const struct ow_colate_params *params = ow_colate_params(side[0].sum->colate);
	struct ow_lost_search search = {.params = params, .packets = (double)ow_colate_packets(side[1].sum->colate)};
	uint64_t *flow = NULL;
	if (!params->repair_cells || (!side[0].sum->counts && !side[1].sum->counts))
		return 0;
	int r = all_flows(side, &flow, &search.flows);
	search.flow = flow;
	guess_delays(side, offset_ns, &search);
	bool told = true;
	for (int i = 0; i < 2; i++) {
		search.around[i] = middle_of(&side[i]) / (int64_t)params->unit_ns;
		told = told && is_told(params, side[i].sum->begin_ns, side[i].sum->end_ns);
	}
	if (r == 0 && told)
		r = ow_lost_packets_find(&search, ow_colate_repair(side[0].sum->colate),
		                         ow_colate_repair(side[1].sum->colate), packets);
	if (r < 0)
		ow_error_set(err, ENOMEM, "not enough memory for lost packets");
	if (r == 0 && (packets->unread || !told) && (side[0].sum->epochs > 1 || side[1].sum->epochs > 1)) {
		ow_lost_packets_done(packets);
		r = epoch_by_epoch(side, since_ns, until_ns, &search, packets, err);
	} else if (r == 0 && !told) {
		packets->unread++;
	}
	free(flow);
	return r < 0 ? r : 1;
}
