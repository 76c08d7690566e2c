/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_DETAILS_H
#define ONEWAY_DETAILS_H

#include <oneway/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ow_flow_key; /* match.h */

/*
 * Numbers of one direction that need its packets in order. The stream is all packets of the direction, in the order in
 * which the sending point shows them; a filter selects a smaller one.
 */

/* A distribution of counts. Without samples the other members are not defined. */
struct ow_count_spread {
	uint64_t samples;
	double mean;
	uint64_t min, max;
	double quantile[OW_QUANTILES]; /* as of delays; exact below 2048 */
};

/*
 * Interarrival jitter (RFC 3550, section 6.4.1) of each flow, with the time at which the sending point saw a packet as its
 * timestamp: in the order of arrival, of packets whose delay is certain.
 */
struct ow_jitter {
	uint64_t flows;   /* that have at least two such packets */
	uint64_t samples; /* packets that changed the jitter of their flow; without them nothing below is defined */
	double mean_ns;   /* of the jitter after each of these packets, over all flows */
	double max_ns;    /* the largest jitter that a flow had at any time .. */
	const struct ow_flow_key *flow; /* .. and that flow, as the sending point shows it */
	double final_ns;                /* the jitter of that flow after its last packet */
	uint64_t flow_samples;          /* and its samples */
	uint64_t left_out; /* packets that arrived, but identical ones make their delay or place uncertain */
};

/* The same of one flow, which has samples. */
struct ow_flow_jitter {
	const struct ow_flow_key *flow; /* as the sending point shows it */
	uint64_t samples;
	double final_ns, max_ns; /* after its last packet; the largest one at any time */
};

/* Loss periods: runs of packets that were lost one after the other (RFC 3357). */
struct ow_loss_periods {
	uint64_t lost;                   /* packets in them: all that were lost */
	struct ow_count_spread length;   /* of periods, in packets; samples is their number */
	struct ow_count_spread distance; /* packets from a lost one to the next lost one: 1 = they follow each other */
	/*
	 * Lost packets that may have arrived in place of an identical one: it is certain how many were lost, but not which. The
	 * number of periods, and the length of the longest, are then between these.
	 */
	uint64_t uncertain;
	uint64_t least_periods, most_periods, least_longest, most_longest;
};

/*
 * Reordering (RFC 4737, sections 3 and 4.2.1). The extent of a reordered packet is the number of packets that arrived from
 * the first one on that was sent later, up to it. Identical packets are left out.
 */
struct ow_reordering {
	uint64_t reordered, arrived;   /* of so many packets that arrived */
	struct ow_count_spread extent; /* of those that are reordered */
	uint64_t beyond;               /* their extent is larger than what can be followed: counted with that */
};

/*
 * TCP data (with SYN and FIN) of the stream. A retransmission has bytes that the sending point has shown before:
 *   retransmissions = repairs + needless + undecided.
 */
struct ow_tcp_data {
	uint64_t packets, lost; /* with data, SYN or FIN */
	uint64_t lost_resent;   /* lost, and bytes of them were sent again later */
	uint64_t retransmissions;
	uint64_t repairs;   /* bytes of them were lost between the points before, and had not arrived */
	uint64_t needless;  /* all of their bytes had arrived: lost elsewhere, or sent again too early */
	uint64_t undecided; /* the fate of what they repeat is not known */
	uint64_t retransmissions_lost;
	/* below the highest byte, but the sending point had not shown it: reordered or lost on the way to it */
	uint64_t out_of_order;
	uint64_t keep_alives;
	uint64_t left_out; /* of more flows than can be kept apart */
};

struct ow_details {
	size_t size;               /* of the part that the library filled */
	const char *reason;        /* why there are none of these numbers; NULL: there are */
	uint64_t packets;          /* sent packets whose place is known */
	uint64_t unplaced;         /* those whose place is not known, because their fate was decided too late */
	struct ow_delay ipdv;      /* RFC 5481: delay minus that of the packet that was sent right before it */
	struct ow_delay ipdv_size; /* the same without its sign */
	struct ow_delay pdv;       /* RFC 5481: delay minus the smallest one */
	struct ow_jitter jitter;
	struct ow_loss_periods loss;
	struct ow_reordering reordering;
	struct ow_tcp_data tcp;
	const struct ow_flow_jitter *flow_jitter; /* of jitter.flows flows */
};

#ifdef __cplusplus
}
#endif

#endif
