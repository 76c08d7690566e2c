/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the numbers about the order of packets need to know of one. */
struct ow_ordered_packet {
	uint64_t number, part; /* its place: the number of its record, and of several parts of a record which one */
	int64_t time_ns;       /* when its point saw it */
	int64_t delay_ns, less_ns, more_ns;
	uint32_t flow;     /* UINT32_MAX: of more flows than can be kept apart */
	uint32_t packets;  /* that it stands for */
	uint32_t seq, len; /* of its TCP data, with SYN and FIN; len 0 = none */
	bool is_lost;
	bool is_unknown; /* neither lost nor received, as far as is known: it separates the others */
	bool has_delay;  /* delay_ns is known, within less_ns and more_ns */
	bool alike;      /* there are identical packets that it could be */
	bool syn, fin;
};

/*
 * Puts packets into the order of their places, though their fates become known in another order. A packet is given out when
 * the caller says that all earlier ones have been added: memory depends on those that wait.
 */
struct ow_packet_order {
	struct ow_ordered_packet *packet; /* a heap: the first is the earliest */
	size_t packets, room;
	uint64_t number, part; /* of the last one that was given out */
	bool started;
};

void ow_packet_order_done(struct ow_packet_order *order);
/* Returns 0, -ENOMEM, or -ESTALE if a later one was given out already. */
int ow_packet_order_add(struct ow_packet_order *order, const struct ow_ordered_packet *packet);
/* Takes the earliest packet, if its time is before this. */
bool ow_packet_order_take(struct ow_packet_order *order, int64_t before_ns, struct ow_ordered_packet *ret_packet);
