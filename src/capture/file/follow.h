/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_FOLLOW_H
#define OW_CAPTURE_FILE_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks over libpcap's shoulder while it reads pcapng, for what libpcap keeps to itself: the time resolutions, the
 * interface of each packet, how many were dropped, and why a file cannot be read. It sees only the first bytes of
 * blocks and the interfaces' descriptions and statistics; packets are libpcap's to parse.
 *
 * It also makes all interfaces alike in passing, in the copy that libpcap reads: libpcap refuses files whose interfaces
 * differ in link type or snaplen (dumpcap and mergecap write such), and by a slip of 1.10 even two interfaces of
 * LINKTYPE_RAW. Without a snaplen, libpcap ends at a simple packet block that was cut by it; those have no times.
 *
 *     block:      type 4 | length 4 | body ... | length 4          (byte order after the section's magic)
 *     section:    0a0d0d0a | length | byte-order magic 4 | ...
 *     interface:  1 | length | linktype 2 | reserved 2 | snaplen 4 | options: code 2, length 2, value padded to 4
 *     statistics: 5 | length | interface 4 | time 8 | options
 *     packets:    6 | length | interface 4 | ...     2 | length | interface 2 | ...     3 | length | ... (interface 0)
 */
#define OW_FOLLOW_KEEP_BYTES     65536U /* of an interface block; options behind that are not seen */
#define OW_FOLLOW_INTERFACES_MAX 65536U /* in a section; a file with more is not followed */

struct ow_follow {
	uint64_t offset;       /* in the stream, of the next byte */
	uint64_t block_offset; /* where the current block begins; between blocks, the last one */
	uint64_t pos;          /* in the current block; 0 between blocks */
	uint64_t length;       /* of the current block, known once pos has reached 12 */
	bool lost;             /* a block that makes no sense */
	bool big_endian;
	uint64_t sections;
	uint64_t interfaces;      /* in all sections so far */
	uint16_t linktype;        /* of the first interface */
	uint32_t snaplen;         /* of the first interface */
	int64_t resolution_ns;    /* the coarsest; 1 for finer than nanoseconds */
	uint64_t dropped;         /* packets, as the statistics of the interfaces say */
	uint16_t packet_linktype; /* of the interface of the last packet block */
	/* Two things that libpcap cannot read (right) though the file is sound. */
	bool mixed_order;    /* sections of different byte order */
	bool too_fine;       /* a binary resolution at which libpcap's arithmetic overflows */
	uint16_t *linktypes; /* of the interfaces of this section */
	size_t n_linktypes;
	uint8_t kept[OW_FOLLOW_KEEP_BYTES]; /* the beginning of the current block */
};

/* The memory starts as zeros. Reset also frees what the follower holds. */
void ow_follow_reset(struct ow_follow *follow);
/*
 * The next bytes of the stream, of which it takes those to the end of a block at most and returns how many; it takes
 * all once it is lost. Interface descriptions are changed.
 */
size_t ow_follow_feed(struct ow_follow *follow, uint8_t *bytes, size_t size);

#endif
