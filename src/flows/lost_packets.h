/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/colate.h"

/*
 * Finds the packets that only one of two points has recorded, from their tables of repair (synopsis/repair.h): which
 * flow each is of, and when it passed.
 *
 * What two cells differ in by one packet is that packet; taking it out of its other cells leaves others with one. Its
 * time is known less the delays of the common packets in the cell. Three cells of each packet, and cells without one,
 * tell the times and the mean delay together, by least squares; the error of a time is that of the delays of about as
 * many packets as a cell has.
 */
struct ow_lost_packet {
	uint64_t flow;                  /* hash */
	uint64_t hash;                  /* of the packet, without bits 16 to 31 */
	int sign;                       /* 1: only the first point has it, -1: only the second */
	int64_t time;                   /* in units, as recorded */
	double var;                     /* of its error, units^2 */
	uint32_t cell[OW_REPAIR_BANKS]; /* its cells, of ow_lost_packets; OW_LOST_NO_CELL = tells nothing */
};
#define OW_LOST_NO_CELL UINT32_MAX

/*
 * A cell with packets that were found: with e_l the true time less `time`,
 *     off = sum_l sign_l e_l + noise of variance var
 */
struct ow_lost_sum {
	double off, var; /* units, units^2 */
};

struct ow_lost_packets {
	struct ow_lost_packet *packet;
	size_t count, room;
	/* Packets after the first `count`, which both points have, but in different epochs: only their cells matter. */
	size_t both;
	struct ow_lost_sum *cell;
	size_t cells, cell_room;
	uint64_t lost, extra; /* of these, by sign */
	uint64_t unread;      /* cells that could not be read: other packets differ as well */
};

#define OW_LOST_DELAYS 3
/* flow: hashes of all flows that either point counted, ascending. */
struct ow_lost_search {
	const struct ow_colate_params *params;
	const uint64_t *flow;
	size_t flows;
	/* A time of the recording of each point, in units: its times are within 2^39 << shift of it. */
	int64_t around[2];
	int64_t delay[OW_LOST_DELAYS]; /* guesses of the mean delay, in units: one of them should be near */
	double packets;                /* of the second point, as far as is known: a cell counts them modulo 2^16 */
};

/* Adds what it finds to *packets. 0, or -ENOMEM. */
int ow_lost_packets_find(const struct ow_lost_search *search, const struct ow_repair_cell *a,
                         const struct ow_repair_cell *b, struct ow_lost_packets *packets);
void ow_lost_packets_done(struct ow_lost_packets *packets);
