/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds retransmissions of TCP: data that a point has shown before. It keeps the data of the last `keep_ns`, so that memory
 * depends on that time; what a packet repeats from before is not known.
 */
enum ow_tcp_kind {
	OW_TCP_NEW,          /* the next data, or data behind a gap */
	OW_TCP_RESENT,       /* a retransmission */
	OW_TCP_OUT_OF_ORDER, /* below the highest byte, but never shown */
	OW_TCP_KEEP_ALIVE,   /* at most one byte, right below the next one */
	OW_TCP_FORGOTTEN,    /* a retransmission, or out of order: it is too long ago */
};

/* What became of data. */
enum ow_tcp_fate { OW_TCP_ARRIVED, OW_TCP_LOST, OW_TCP_UNKNOWN };

struct ow_tcp_packet {
	uint32_t flow;
	uint32_t seq, len; /* len: with SYN and FIN, above 0 */
	bool syn, fin;
	int64_t time_ns; /* in about the order of time */
	uint64_t number; /* of its record */
	enum ow_tcp_fate fate;
	uint32_t packets;
};

struct ow_tcp_verdict {
	enum ow_tcp_kind kind;
	/* Of a retransmission: */
	uint64_t of;     /* number of the last record before it that has bytes of it */
	bool repairs;    /* some of its bytes were only lost before */
	bool needless;   /* all bytes that were shown before had arrived; if neither, it is not known */
	uint64_t resent; /* lost packets before it of which this is the first repetition */
};

struct ow_tcp_resends;

int ow_tcp_resends_create(int64_t keep_ns, struct ow_tcp_resends **ret_resends);
void ow_tcp_resends_free(struct ow_tcp_resends *resends);
/* Adds a packet, in the order of the capture. 0 or -ENOMEM. */
int ow_tcp_resends_add(struct ow_tcp_resends *resends, const struct ow_tcp_packet *packet,
                       struct ow_tcp_verdict *ret_verdict);
