/* SPDX-License-Identifier: Apache-2.0 */
/* The table of repair: repair.h. */
#include "synopsis/repair.h"

#include <math.h>

/*
 * Three banks decode up to 1.222 cells a packet in the limit (a 2-core of a random hypergraph appears). Small tables
 * need more: the deviation of the number that they decode is of the order of its root.
 */
#define CELLS_A_PACKET 1.25
#define CELLS_ROOT     4.0
#define CELLS_MORE     8.0
#define BLOCK          128 /* packets that are added at a time */

static double cells_for(double packets)
{
	return ceil((CELLS_A_PACKET * packets + CELLS_ROOT * sqrt(packets) + CELLS_MORE) / OW_REPAIR_BANKS);
}

uint32_t ow_repair_cells_for(uint64_t packets)
{
	double cells = packets ? cells_for((double)packets) : 0;
	return cells < OW_REPAIR_CELLS_MAX ? (uint32_t)cells : OW_REPAIR_CELLS_MAX;
}

/* Both words of a cell, which one instruction adds. */
typedef uint64_t words __attribute__((vector_size(16), may_alias, aligned(8)));

/* Positions first, then additions, so that those of many packets overlap. */
static void add_some(struct ow_repair_cell *table, uint32_t cells, uint64_t seed, unsigned shift, const uint64_t *flow,
                     const uint64_t *hash, const uint64_t *time, size_t count)
{
	uint32_t at[OW_REPAIR_BANKS][BLOCK];
	words more[BLOCK];
	for (size_t i = 0; i < count; i++) {
		uint64_t key = ow_repair_key(hash[i]), places = ow_repair_places(seed, key, flow[i]);
		for (unsigned bank = 0; bank < OW_REPAIR_BANKS; bank++)
			at[bank][i] = ow_repair_place(places, bank, cells) + bank * cells;
		more[i] = (words){ow_repair_packet(key), ow_repair_time_flow(time[i] >> shift, flow[i])};
	}
	for (size_t i = 0; i < count; i++)
		for (unsigned bank = 0; bank < OW_REPAIR_BANKS; bank++)
			*(words *)&table[at[bank][i]] += more[i];
}

void ow_repair_add(struct ow_repair_cell *table, uint32_t cells, uint64_t seed, unsigned shift, const uint64_t *flow,
                   const uint64_t *hash, const uint64_t *time, size_t count)
{
	for (size_t i = 0; i < count; i += BLOCK)
		add_some(table, cells, seed, shift, flow + i, hash + i, time + i,
		         count - i < BLOCK ? count - i : BLOCK);
}

void ow_repair_merge(struct ow_repair_cell *table, const struct ow_repair_cell *other, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		table[i].packet += other[i].packet;
		table[i].time_flow += other[i].time_flow;
	}
}
