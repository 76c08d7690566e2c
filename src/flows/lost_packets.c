/* SPDX-License-Identifier: Apache-2.0 */
/* Finds packets that only one point has: lost_packets.h. */
#include "flows/lost_packets.h"

#include "base/array.h"
#include "flows/lost_times.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* So many cells of common packets tell which guess of their delay is best. */
#define READ_CELLS 500
#define FLOW_MASK  ((1u << OW_REPAIR_FLOW_BITS) - 1)

struct peel {
	const struct ow_lost_search *search;
	struct ow_repair_cell *cell; /* A - B, without what was found */
	uint32_t cells;              /* of a bank */
	size_t size;                 /* cells of all banks */
	int64_t delay;               /* units of cells: the times of B are less by it */
	/* Cells to look at, in the order in which they were left with one packet: a time that is read from others has their
	 * errors, so few steps are best. */
	uint32_t *queue;
	size_t head, end;
	struct ow_lost_place *found;
	size_t count, room;
};

static bool is_one(const struct ow_repair_cell *cell)
{
	uint16_t count = (uint16_t)cell->packet;
	return count == 1 || count == UINT16_MAX;
}

static void look_at(struct peel *peel, uint32_t at)
{
	if (is_one(&peel->cell[at]))
		peel->queue[peel->end++] = at;
}

/* The first flow of which these are the upper bits. */
static size_t first_flow(const struct ow_lost_search *search, uint32_t flow)
{
	size_t low = 0, high = search->flows;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ow_repair_flow(search->flow[middle]) < flow)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The flow whose packet of this key belongs into this cell. false: none, or more than one. */
static bool find_flow(const struct peel *peel, uint64_t key, uint32_t bits, uint32_t at, uint64_t *ret_flow)
{
	const struct ow_lost_search *search = peel->search;
	unsigned bank = at / peel->cells, matches = 0;
	for (size_t i = first_flow(search, bits); i < search->flows; i++) {
		uint64_t flow = search->flow[i];
		if (ow_repair_flow(flow) != bits)
			break;
		uint64_t places = ow_repair_places(search->params->seed, key, flow);
		if (bank * peel->cells + ow_repair_place(places, bank, peel->cells) != at)
			continue;
		*ret_flow = flow;
		matches++;
	}
	return matches == 1;
}

static bool read_cell(const struct peel *peel, uint32_t at, struct ow_lost_place *ret)
{
	struct ow_repair_cell cell = peel->cell[at];
	int sign = (uint16_t)cell.packet == 1 ? 1 : -1;
	if (sign < 0) {
		cell.packet = -cell.packet;
		cell.time_flow = -cell.time_flow;
	}
	uint64_t key = cell.packet >> 16, flow;
	if (!find_flow(peel, key, (uint32_t)cell.time_flow & FLOW_MASK, at, &flow))
		return false;
	*ret = (struct ow_lost_place){
		.flow = flow, .key = key, .sign = sign, .time = cell.time_flow >> OW_REPAIR_FLOW_BITS};
	uint64_t places = ow_repair_places(peel->search->params->seed, key, flow);
	for (unsigned bank = 0; bank < OW_REPAIR_BANKS; bank++)
		ret->cell[bank] = bank * peel->cells + ow_repair_place(places, bank, peel->cells);
	return true;
}

static void take_out(struct peel *peel, const struct ow_lost_place *place)
{
	uint64_t packet = ow_repair_packet(place->key);
	uint64_t word = ow_repair_time_flow(place->time, place->flow);
	for (unsigned bank = 0; bank < OW_REPAIR_BANKS; bank++) {
		struct ow_repair_cell *cell = &peel->cell[place->cell[bank]];
		if (place->sign > 0) {
			cell->packet -= packet;
			cell->time_flow -= word;
		} else {
			cell->packet += packet;
			cell->time_flow += word;
		}
		look_at(peel, place->cell[bank]);
	}
}

/* Every packet that is found is in three cells, and no more are found than there are cells: hostile tables end, too. */
static int run(struct peel *peel)
{
	for (size_t i = 0; i < peel->size; i++)
		look_at(peel, (uint32_t)i);
	while (peel->head < peel->end && peel->count < peel->size) {
		struct ow_lost_place place;
		uint32_t at = peel->queue[peel->head++];
		if (!is_one(&peel->cell[at]) || !read_cell(peel, at, &place))
			continue;
		if (OW_GROW(peel->found, peel->room, peel->count + 1) < 0)
			return -ENOMEM;
		peel->found[peel->count++] = place;
		take_out(peel, &place);
	}
	return 0;
}

/* Whether nothing but common packets is left. */
static bool is_read(const struct ow_repair_cell *cell)
{
	return !cell->packet && !(cell->time_flow & FLOW_MASK);
}

/* The packets of B in a cell: about as many as in the others. */
static uint64_t common_of(const struct peel *peel, const struct ow_repair_cell *b)
{
	double known = (uint16_t)b->packet, expected = fmin(peel->search->packets / peel->cells, 0x1p48);
	if (expected < 0x1p15)
		return (uint16_t)b->packet;
	return (uint64_t)(known + 0x1p16 * fmax(round((expected - known) / 0x1p16), 0));
}

/*
 * Which guess of the mean delay leaves least in the cells of common packets. What a cell tells of a time is modular: large delays
 * of many packets would look like others.
 */
static int64_t choose_delay(const struct peel *peel, const struct ow_repair_cell *b)
{
	int64_t best = 0;
	double least = INFINITY;
	for (unsigned k = 0; k < OW_LOST_DELAYS; k++) {
		int64_t delay = peel->search->delay[k] >> peel->search->params->repair_shift;
		double sum = 0;
		for (size_t i = 0, read = 0; i < peel->size && read < READ_CELLS; i++) {
			uint64_t shifted = (uint64_t)delay * common_of(peel, &b[i]) << OW_REPAIR_FLOW_BITS;
			if (!is_read(&peel->cell[i]))
				continue;
			sum += fabs((double)(int64_t)(peel->cell[i].time_flow + shifted));
			read++;
		}
		if (sum < least) {
			least = sum;
			best = delay;
		}
	}
	return best;
}

/* Keeps the cells that tell something about packets that were found. number: of each cell, set. */
static int add_cells(const struct peel *peel, const struct ow_lost_cell *cell, const struct ow_lost_time *time,
                     uint32_t *number, struct ow_lost_packets *packets)
{
	double scale = (double)(UINT64_C(1) << peel->search->params->repair_shift);
	for (size_t j = 0; j < peel->size; j++)
		number[j] = OW_LOST_NO_CELL;
	for (size_t i = 0; i < peel->count * OW_REPAIR_BANKS; i++) {
		uint32_t j = peel->found[i / OW_REPAIR_BANKS].cell[i % OW_REPAIR_BANKS];
		if (number[j] != OW_LOST_NO_CELL || !cell[j].read || !isfinite(cell[j].var) ||
		    packets->cells >= OW_LOST_NO_CELL)
			continue;
		if (OW_GROW(packets->cell, packets->cell_room, packets->cells + 1) < 0)
			return -ENOMEM;
		number[j] = (uint32_t)packets->cells;
		packets->cell[packets->cells++] =
			(struct ow_lost_sum){cell[j].left * scale, cell[j].var * scale * scale};
	}
	/* Of a packet without a time nothing is kept, so its cells have one that is not named. */
	for (size_t i = 0; i < peel->count * OW_REPAIR_BANKS; i++)
		if (!isfinite(time[i / OW_REPAIR_BANKS].var))
			number[peel->found[i / OW_REPAIR_BANKS].cell[i % OW_REPAIR_BANKS]] = OW_LOST_NO_CELL;
	return 0;
}

static int add_packets(const struct peel *peel, const struct ow_lost_time *time, const uint32_t *number,
                       struct ow_lost_packets *packets)
{
	const struct ow_colate_params *params = peel->search->params;
	if (OW_GROW(packets->packet, packets->room, packets->count + peel->count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < peel->count; i++) {
		const struct ow_lost_place *place = &peel->found[i];
		/* Its cells have other packets that are not known: neither is its time. */
		if (!isfinite(time[i].var)) {
			packets->unread++;
			continue;
		}
		int64_t around = peel->search->around[place->sign < 0] >> params->repair_shift;
		uint64_t told =
			place->time + (uint64_t)time[i].correction + (place->sign < 0 ? (uint64_t)peel->delay : 0);
		uint64_t off = (told - (uint64_t)around) << OW_REPAIR_FLOW_BITS;
		int64_t near = around + ((int64_t)off >> OW_REPAIR_FLOW_BITS);
		double scale = (double)(UINT64_C(1) << params->repair_shift);
		struct ow_lost_packet *packet = &packets->packet[packets->count++];
		*packet = (struct ow_lost_packet){
			.flow = place->flow,
			.hash = ow_repair_hash(place->key),
			.sign = place->sign,
			/* In the middle of what the dropped bits can be. */
			.time = (int64_t)(((uint64_t)near << params->repair_shift) +
		                          (UINT64_C(1) << params->repair_shift) / 2),
			.var = time[i].var * scale * scale,
		};
		for (unsigned b = 0; b < OW_REPAIR_BANKS; b++)
			packet->cell[b] = number[place->cell[b]];
		packets->lost += place->sign > 0;
		packets->extra += place->sign < 0;
	}
	return 0;
}

static int settle(const struct peel *peel, const struct ow_repair_cell *b, struct ow_lost_packets *packets)
{
	struct ow_lost_cell *cell = calloc(peel->size, sizeof *cell);
	struct ow_lost_time *time = calloc(peel->count + 1, sizeof *time);
	uint32_t *number = calloc(peel->size, sizeof *number);
	int r = cell && time && number ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < peel->size; i++) {
		cell[i] = (struct ow_lost_cell){
			.left = (double)((int64_t)peel->cell[i].time_flow >> OW_REPAIR_FLOW_BITS),
			.common = (double)common_of(peel, &b[i]),
			.read = is_read(&peel->cell[i]),
		};
		packets->unread += !cell[i].read;
	}
	if (r == 0 && peel->count)
		r = ow_lost_times(cell, peel->size, peel->found, peel->count, time);
	if (r == 0)
		r = add_cells(peel, cell, time, number, packets);
	if (r == 0)
		r = add_packets(peel, time, number, packets);
	free(number);
	free(cell);
	free(time);
	return r;
}

int ow_lost_packets_find(const struct ow_lost_search *search, const struct ow_repair_cell *a,
                         const struct ow_repair_cell *b, struct ow_lost_packets *packets)
{
	struct peel peel = {.search = search, .cells = search->params->repair_cells};
	peel.size = OW_REPAIR_BANKS * (size_t)peel.cells;
	peel.cell = calloc(peel.size, sizeof *peel.cell);
	/* A cell is looked at once at first, and once for each packet that was found. */
	peel.queue = calloc((1 + OW_REPAIR_BANKS) * peel.size + OW_REPAIR_BANKS, sizeof *peel.queue);
	int r = peel.cell && peel.queue ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < peel.size; i++) {
		peel.cell[i].packet = a[i].packet - b[i].packet;
		peel.cell[i].time_flow = a[i].time_flow - b[i].time_flow;
	}
	if (r == 0)
		peel.delay = choose_delay(&peel, b);
	for (size_t i = 0; r == 0 && peel.delay && i < peel.size; i++)
		peel.cell[i].time_flow += (uint64_t)peel.delay * common_of(&peel, &b[i]) << OW_REPAIR_FLOW_BITS;
	if (r == 0)
		r = run(&peel);
	if (r == 0)
		r = settle(&peel, b, packets);
	free(peel.cell);
	free(peel.queue);
	free(peel.found);
	return r;
}

void ow_lost_packets_done(struct ow_lost_packets *packets)
{
	free(packets->packet);
	free(packets->cell);
	*packets = (struct ow_lost_packets){0};
}
