/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "synopsis/repair.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Adds up the times of packets in counters that all flows share (COLATE, sections 3 and 1.4; formulas 3.8 for our
 * alternative). There is no table of flows: a hash of the flow selects its counters.
 *
 * A recording has layers. Each takes the packets of its share of the hash space and adds the time of each packet to one
 * of the flow's m counters (COLATE), or to one counter in each of k banks (banks). Times are Unix nanoseconds in units
 * of unit_ns. Counters are modulo 2^bits, so that no time base has to be agreed and overflow is harmless: the
 * difference of the same counter at two points is the sum of the delays, if both added the same packets and the sum
 * fits. The check of a counter, the sum of a hash of the packets' ids modulo 2^check_bits, shows whether they did.
 * Counters and checks of several epochs, queues or ports can be added.
 */

/* A packet in a recording. Both hashes are keyed and uniformly distributed. */
struct ow_flow_sighting {
	uint64_t flow;
	uint64_t id;
	int64_t time_ns;
};

enum ow_colate_form {
	OW_COLATE_RANDOM = 1, /* one of the flow's m counters at random: COLATE as printed */
	OW_COLATE_HASHED,     /* one of the flow's m counters by the packet's id, as Theorem 4 requires */
	OW_COLATE_BANKS,      /* the flow's counter in each of m banks of counters / m */
};

#define OW_COLATE_LAYERS_MAX   16
#define OW_COLATE_SPREAD_MAX   64
#define OW_COLATE_COUNTERS_MAX (1u << 26)
#define OW_COLATE_SHARE        65536u /* shares of packets are in units of 1 / this */

struct ow_colate_layer {
	enum ow_colate_form form;
	bool is_signed;       /* a hash of the packet is the sign of its time; for the standard deviation */
	uint32_t counters;    /* n, of all banks together; a multiple of spread for banks */
	uint32_t spread;      /* m counters a flow, or m banks */
	uint8_t bits;         /* b, 8 .. 64 */
	uint8_t check_bits;   /* 0 (none) .. 32 */
	uint8_t count_bits;   /* 0 (none) .. 32: packets of each counter (if signed: sum of the signs), modulo 2^this */
	uint32_t first, last; /* the share of packets: first <= hash(id) < last, of OW_COLATE_SHARE */
};

struct ow_colate_params {
	struct ow_colate_layer layer[OW_COLATE_LAYERS_MAX];
	uint32_t layers;
	uint32_t unit_ns; /* >= 1 */
	uint64_t seed;    /* the same at all points that are compared */
	/* Cells of a bank of the table by which a query finds lost packets (repair.h), 0 = none; it drops so many bits of
	 * times. */
	uint32_t repair_cells;
	uint8_t repair_shift;
};
#define OW_COLATE_REPAIR_SHIFT_MAX 24

/* 0, or -EINVAL with an error that names the parameter. */
int ow_colate_check(const struct ow_colate_params *params, struct ow_error *err);
/* Checks that two recordings can be compared. -EINVAL with an error that names what differs. */
int ow_colate_comparable(const struct ow_colate_params *a, const struct ow_colate_params *b, struct ow_error *err);

/* -- the counters of a packet: used by recording and by querying --------------------------------------------------- */

/* The key of the j-th hash. Layers of different shares have different keys, so flows that share a counter in one layer
 * do not in the next. */
static inline uint64_t ow_colate_key(const struct ow_colate_layer *layer, uint64_t seed, uint32_t j)
{
	return ow_mix64(seed + j + 1 + ((uint64_t)layer->first << 32));
}

/* The counter of a flow in a layer: 0 <= j < spread. Banks are contiguous. */
static inline uint32_t ow_colate_counter(const struct ow_colate_layer *layer, uint64_t seed, uint64_t flow, uint32_t j)
{
	uint64_t hash = ow_mix64(flow ^ ow_colate_key(layer, seed, j));
	uint32_t size = layer->form == OW_COLATE_BANKS ? layer->counters / layer->spread : layer->counters;
	uint32_t at = (uint32_t)((hash >> 32) * size >> 32);
	return layer->form == OW_COLATE_BANKS ? j * size + at : at;
}

/* A time in units, modulo 2^64, rounded down, also before 1970. So points differ only by the delay. */
static inline uint64_t ow_colate_in_units(int64_t time_ns, uint32_t unit_ns)
{
	int64_t quotient = time_ns / (int64_t)unit_ns;
	return (uint64_t)(quotient - (time_ns % (int64_t)unit_ns < 0));
}

/* The hash of a packet. It gives its place in the hash space of shares, its j, its sign and its part of the check. */
static inline uint64_t ow_colate_packet_hash(uint64_t seed, uint64_t id)
{
	return ow_mum64(id ^ seed, UINT64_C(0x9e3779b97f4a7c15)) ^ id;
}

/* These parts of the hash do not overlap where it matters (j is made of the upper bits of its part; the table of repair
 * has no bits 16 to 31). */
static inline uint32_t ow_colate_place(uint64_t packet_hash) /* 0 .. OW_COLATE_SHARE - 1 */
{
	return (uint32_t)(packet_hash >> 48);
}

static inline uint32_t ow_colate_pick(uint64_t packet_hash, uint32_t spread) /* j of OW_COLATE_HASHED */
{
	return (uint32_t)((packet_hash >> 32 & 0xffff) * spread >> 16);
}

static inline bool ow_colate_is_minus(uint64_t packet_hash) /* the sign of a packet in signed layers */
{
	return packet_hash >> 32 & 1;
}

static inline uint32_t ow_colate_check_word(uint64_t packet_hash) /* added to the check, modulo 2^check_bits */
{
	return (uint32_t)packet_hash;
}

/* -- recording ------------------------------------------------------------------------------------------------------
 */

struct ow_colate;
int ow_colate_create(const struct ow_colate_params *params, struct ow_colate **ret_colate, struct ow_error *err);
void ow_colate_free(struct ow_colate *colate);
void ow_colate_reset(struct ow_colate *colate);
/* Adds a batch without allocation, lock or system call. */
void ow_colate_add(struct ow_colate *colate, const struct ow_flow_sighting *sightings, size_t count);
/* this += other; -EINVAL unless comparable. */
int ow_colate_merge(struct ow_colate *colate, const struct ow_colate *other, struct ow_error *err);
const struct ow_colate_params *ow_colate_params(const struct ow_colate *colate);
/* Packets added in all, and to each layer (the packet counters of section 1.4). */
uint64_t ow_colate_packets(const struct ow_colate *colate);
uint64_t ow_colate_layer_packets(const struct ow_colate *colate, uint32_t layer);
/* Sum of all times since the first one of this epoch, in units; compared with the threshold T. Saturates. */
uint64_t ow_colate_time_sum(const struct ow_colate *colate);
/* First and last time added; undefined without packets. */
int64_t ow_colate_first_ns(const struct ow_colate *colate);
int64_t ow_colate_last_ns(const struct ow_colate *colate);
/* Counters of a layer modulo 2^bits, and their checks (NULL if it has none): `counters` each. */
const uint64_t *ow_colate_counters(const struct ow_colate *colate, uint32_t layer);
const uint32_t *ow_colate_checks(const struct ow_colate *colate, uint32_t layer);
/* Packets of each counter modulo 2^count_bits (NULL if it has none). */
const uint32_t *ow_colate_counts(const struct ow_colate *colate, uint32_t layer);
/* The table of repair, OW_REPAIR_BANKS * repair_cells; NULL if there is none. */
const struct ow_repair_cell *ow_colate_repair(const struct ow_colate *colate);
/* The same, for codecs, which add to it. */
struct ow_repair_cell *ow_colate_repair_of(struct ow_colate *colate);
/* The totals of a stored recording, for codecs; they are added to the present ones. */
struct ow_colate_facts {
	uint64_t packets, layer_packets[OW_COLATE_LAYERS_MAX];
	int64_t first_ns, last_ns; /* undefined without packets */
	uint64_t time_sum;         /* in units since first_ns */
};
void ow_colate_facts(const struct ow_colate *colate, struct ow_colate_facts *ret_facts);
void ow_colate_add_facts(struct ow_colate *colate, const struct ow_colate_facts *facts);
/* Adds to the counters `from` .. from + count - 1 of a layer, to their checks and counts (NULL if it has none). */
void ow_colate_add_raw(struct ow_colate *colate, uint32_t layer, uint32_t from, const uint64_t *counters,
                       const uint32_t *checks, const uint32_t *counts, size_t count);
