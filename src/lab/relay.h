/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lab/impair.h"
#include "lab/wiretruth.h"
#include <oneway/error.h>
#include <stdatomic.h>

/*
 * The lab's wire: forwards frames between two interfaces, and does to each IP packet what an imperfect network does:
 * delay, loss, reordering, duplication, limited bandwidth, address translation. First it cuts superframes into the
 * packets of a real wire. It records the fate and the times of every packet.
 *
 * A packet comes in at its kernel timestamp on the interface, and goes out when it is handed to the other interface.
 * These times agree with captures at the two hosts to about a microsecond. Frames that are not IP packets pass at once
 * and do not count.
 */
struct ow_relay_options {
	const char *interface[OW_SIDES]; /* towards A, towards B */
	struct ow_impair_options impair; /* of each direction, unless */
	/* From B to A; NULL = as from A to B. */
	const struct ow_impair_options *back;
	bool nat; /* B sees outside_address instead of A's, and other ports */
	uint8_t inside_address[4], outside_address[4];
	int64_t interval_ns;
	/*
	 * A bit for each direction (1 << OW_A_TO_B): while it is set, arriving packets are lost, as if a cable were
	 * unplugged. Shared with the thread that sets it; NULL = never.
	 */
	const atomic_uint *cut;
	/* A socket of packets (SOCK_SEQPACKET): reports go out; any message, or its end, ends the relay. */
	int control;
};

/* Ports of A as B sees them, with nat. */
#define OW_RELAY_PORT_SHIFT 20011
/* Packets on their way, both directions; 2 s at 100,000 a second. Packets beyond this are lost, and counted as lost. */
#define OW_RELAY_PENDING_MAX 262144
/* How long the relay waits at its end for packets on their way; the rest is lost. */
#define OW_RELAY_DRAIN_S 5

/* One message of the control socket. */
struct ow_relay_report {
	bool total; /* the last two messages: the run, each direction */
	enum ow_direction direction;
	struct ow_wiretruth_report truth;
	uint64_t missed;  /* frames of the run for which the relay's socket had no room: lost, but not counted */
	uint64_t refused; /* packets that the kernel refused to send; they count as lost */
	uint64_t other;   /* frames of the run that were not IP packets */
};

/* Runs until told to end. */
int ow_relay_run(const struct ow_relay_options *options, struct ow_error *err);
