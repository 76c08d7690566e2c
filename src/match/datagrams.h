/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/identity.h"

/*
 * Superframes of UDP segmentation offload (GSO, GRO; QUIC hosts use it): one UDP packet of up to 64 KB where the wire
 * has datagrams of one size, the last of which may be shorter. The superframe does not contain that size. So one pass
 * notes the datagrams of each capture; the next one tries the usual sizes and uses the one whose segments the other
 * capture has.
 */

#define OW_CUTS_MAX 128u /* datagrams of a superframe: Linux sends at most this many */

struct ow_datagrams; /* of one capture */

/* NULL when out of memory (9 MB). */
struct ow_datagrams *ow_datagrams_create(void);
void ow_datagrams_free(struct ow_datagrams *datagrams);
void ow_datagrams_reset(struct ow_datagrams *datagrams);
/* Notes a datagram with this id and this many bytes of payload. */
void ow_datagrams_note(struct ow_datagrams *datagrams, uint64_t id, uint32_t len);

/* Cuts the superframes of one capture by what the other one showed. */
#define OW_CUTTER_SIZES 16u
struct ow_cutter {
	const struct ow_datagrams *there; /* of the other capture; NULL = nothing is cut */
	uint32_t size[OW_CUTTER_SIZES];   /* those with the most bytes, in this order */
	unsigned sizes;
	unsigned first; /* the one that was right the last time */
	uint32_t limit; /* payload of the longest datagram of the wire: a longer one must be a superframe */
};

void ow_cutter_init(struct ow_cutter *cutter, const struct ow_datagrams *here, const struct ow_datagrams *there);

struct ow_cut {
	unsigned count; /* number of segments; 1 = the datagram is not cut */
	uint32_t len;   /* bytes of payload of all, */
	uint32_t size;  /* and of each; the last may have fewer */
	uint64_t id[OW_CUTS_MAX];
};

void ow_cutter_cut(struct ow_cutter *cutter, const struct ow_identity *identity, const struct ow_datagram *datagram,
                   struct ow_cut *ret_cut);
