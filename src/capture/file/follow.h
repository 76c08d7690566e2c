/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parses pcapng in parallel with libpcap, for what libpcap does not report: the time resolutions, the interface of each
 * packet, the number of dropped packets, and why a file cannot be read. It parses only the first bytes of blocks,
 * the options of packets, and the descriptions and statistics of interfaces; libpcap parses the packets.
 *
 * It also makes all interfaces look alike in the copy that libpcap reads. libpcap rejects files whose interfaces differ
 * in link type or snaplen (dumpcap and mergecap write such files), and because of a bug in 1.10 even two interfaces of
 * LINKTYPE_RAW. If no snaplen is set, libpcap stops at a simple packet block that the snaplen has cut; such blocks have
 * no times.
 *
 *     block:      type 4 | length 4 | body ... | length 4          (byte order after the section's magic)
 *     section:    0a0d0d0a | length | byte-order magic 4 | ...
 *     interface:  1 | length | linktype 2 | reserved 2 | snaplen 4 | options: code 2, length 2, value padded to 4
 *     statistics: 5 | length | interface 4 | time 8 | options
 *     packets:    6 | length | interface 4 | time 8 | caplen 4 | len 4 | packet, padded to 4 | options
 *                 2 | length | interface 2 | drops 2 | ...     3 | length | ... (interface 0)
 */
#define OW_FOLLOW_KEEP_BYTES     65536U /* of an interface block; later options are ignored */
#define OW_FOLLOW_INTERFACES_MAX 65536U /* in a section; a file with more is not parsed here */

struct ow_follow_interface {
	uint16_t linktype;
	uint64_t dropped;        /* packets so far, by its statistics or its packets, whichever says more */
	uint64_t dropped_before; /* the same by its packets: each says how many were dropped before it */
};

struct ow_follow {
	uint64_t offset;       /* in the stream, of the next byte */
	uint64_t block_offset; /* start of the current block; between blocks, of the last one */
	uint64_t pos;          /* in the current block; 0 between blocks */
	uint64_t length;       /* of the current block; known when pos has reached 12 */
	bool lost;             /* an invalid block was found */
	bool big_endian;
	uint64_t sections;
	uint64_t interfaces;      /* in all sections so far */
	uint16_t linktype;        /* of the first interface */
	uint32_t snaplen;         /* of the first interface */
	int64_t resolution_ns;    /* the coarsest; 1 if all are nanoseconds or finer */
	uint64_t dropped;         /* packets, according to statistics and packets */
	uint16_t packet_linktype; /* of the interface of the last packet block */
	/* Two properties of valid files that libpcap reads wrongly or not at all. */
	bool mixed_order;                      /* sections of different byte order */
	bool too_fine;                         /* a binary resolution that overflows libpcap's arithmetic */
	struct ow_follow_interface *interface; /* of this section */
	size_t n_interface, interface_room;
	uint8_t kept[OW_FOLLOW_KEEP_BYTES]; /* the first bytes of the current block */
};

/* The memory must start as zeros. Reset also frees what the struct owns. */
void ow_follow_reset(struct ow_follow *follow);
/*
 * Processes the next bytes of the stream, at most to the end of a block, and returns how many; after an invalid block
 * it accepts all bytes. It modifies interface descriptions in place.
 */
size_t ow_follow_feed(struct ow_follow *follow, uint8_t *bytes, size_t size);
