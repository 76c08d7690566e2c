/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include <stddef.h>
#include <stdint.h>

/*
 * A table beside the counters of a recording of flows (colate.h), by which a query finds the packets that only one
 * point has, and takes them out of the counters they are in (flows/flows_repair.h).
 *
 * A packet adds to one cell in each of three banks. Its cells follow from its key and its flow, so the cells of common
 * packets cancel when two points subtract their tables, but for their times, which differ by their delays. A cell with
 * one packet left tells the packet's key, its flow (24 bits of the hash: the flow is one of those that were counted)
 * and its time, less the delays of the common packets in the cell.
 *
 * Two words a cell, both sums:
 *     packet:     key (48 bits) << 16 | 1, modulo 2^64: the lowest 16 bits count the packets of the cell
 *     time_flow:  time (40 bits) << 24 | flow (24 bits), modulo 2^64. What is left of common packets is delays << 24, so
 *                 the lowest bits are the flow's.
 */
#define OW_REPAIR_BANKS     3
#define OW_REPAIR_CELLS_MAX (1u << 21) /* of a bank */
#define OW_REPAIR_FLOW_BITS 24
#define OW_REPAIR_TIME_BITS (64 - OW_REPAIR_FLOW_BITS)

struct ow_repair_cell {
	uint64_t packet, time_flow;
};

/*
 * The part of a packet's hash (ow_colate_packet_hash) that a table keeps: what selects layers and counters, the sign,
 * and 16 bits of its check. Bits 16 to 31 are missing.
 */
static inline uint64_t ow_repair_key(uint64_t packet_hash)
{
	return packet_hash >> 32 << 16 | (packet_hash & 0xffff);
}

static inline uint64_t ow_repair_hash(uint64_t key)
{
	return key >> 16 << 32 | (key & 0xffff);
}

static inline uint64_t ow_repair_packet(uint64_t key)
{
	return key << 16 | 1;
}

static inline uint32_t ow_repair_flow(uint64_t flow)
{
	return (uint32_t)(flow >> (64 - OW_REPAIR_FLOW_BITS));
}

/* time: in units, of which the upper bits do not matter. */
static inline uint64_t ow_repair_time_flow(uint64_t time, uint64_t flow)
{
	return time << OW_REPAIR_FLOW_BITS | ow_repair_flow(flow);
}

/* The cell in a bank of `cells`, counted from the start of the bank. */
static inline uint64_t ow_repair_places(uint64_t seed, uint64_t key, uint64_t flow)
{
	return ow_mum64(key ^ seed ^ UINT64_C(0xa0761d6478bd642f), flow | 1);
}

static inline uint32_t ow_repair_place(uint64_t places, unsigned bank, uint32_t cells)
{
	return (uint32_t)((places >> 21 * bank & 0x1fffff) * cells >> 21);
}

/* Cells of a bank with which this many packets that only one point has are found in more than 99 % of cases. */
uint32_t ow_repair_cells_for(uint64_t packets);

/*
 * Adds packets: hashes as of ow_colate_packet_hash; times in units, of which `shift` bits are dropped. table has
 * OW_REPAIR_BANKS * cells cells, bank after bank.
 */
void ow_repair_add(struct ow_repair_cell *table, uint32_t cells, uint64_t seed, unsigned shift, const uint64_t *flow,
                   const uint64_t *hash, const uint64_t *time, size_t count);
/* table += other, of as many cells. */
void ow_repair_merge(struct ow_repair_cell *table, const struct ow_repair_cell *other, size_t count);
