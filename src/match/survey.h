/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_SURVEY_H
#define OW_MATCH_SURVEY_H

#include "capture/file/reader.h"
#include "packet/identity.h"
#include "reconcile/sample_overlap.h"

/*
 * Compares samples of both captures under every identity at once, to find which identity matches, and how much the
 * clocks differ.
 */

/* Identities in the order in which they are preferred. */
enum ow_variant {
	OW_VARIANT_IP,
	OW_VARIANT_IP_INNER,
	OW_VARIANT_NAT,
	OW_VARIANT_NAT_INNER,
	OW_VARIANT_FRAME,
	/* Without the IPv4 identification: the last resort, because it may confuse different packets. */
	OW_VARIANT_IP_ANY_ID,
	OW_VARIANT_IP_INNER_ANY_ID,
	OW_VARIANT_NAT_ANY_ID,
	OW_VARIANT_NAT_INNER_ANY_ID,
	/* Without TCP's numbers and options, which firewalls rewrite: also a last resort. */
	OW_VARIANT_IP_ANY_TCP,
	OW_VARIANT_IP_INNER_ANY_TCP,
	OW_VARIANT_NAT_ANY_TCP,
	OW_VARIANT_NAT_INNER_ANY_TCP,
	/* Without either. */
	OW_VARIANT_IP_ANY_BOTH,
	OW_VARIANT_IP_INNER_ANY_BOTH,
	OW_VARIANT_NAT_ANY_BOTH,
	OW_VARIANT_NAT_INNER_ANY_BOTH,
	OW_VARIANTS
};

enum ow_level ow_variant_level(enum ow_variant variant);
bool ow_variant_inner(enum ow_variant variant);
bool ow_variant_any_ip_id(enum ow_variant variant);
bool ow_variant_any_tcp(enum ow_variant variant);
/* Either of these: a last resort. */
bool ow_variant_loose(enum ow_variant variant);
/* The same inside tunnels. */
enum ow_variant ow_variant_entered(enum ow_variant variant);

/* The start of a capture. */
struct ow_outlook {
	int64_t first_ns;            /* time of the first frame; 0 if the file is empty */
	bool empty, untimed;         /* no frames; only frames with a time of 0 */
	uint32_t limit[OW_VARIANTS]; /* bytes that the id can take of every packet, by variant */
	uint64_t ip, frames;         /* of the frames looked at */
	uint32_t longest_udp;        /* bytes of the longest UDP packet in one piece */
	uint32_t longest_tcp;
	uint64_t fragments; /* of IPv4 */
	uint64_t cut_short; /* IP packets with too few bytes to identify them */
};

/* Reads the first frames of a capture (which the caller rewinds). */
int ow_outlook_take(struct ow_reader *reader, struct ow_outlook *ret_outlook, struct ow_error *err);

struct ow_survey {
	struct ow_identity_sample sample[OW_VARIANTS];
	int64_t first_ns, last_ns; /* of what was read */
};

/* The identities that a survey takes: the preferred one, the usual ones, those of the last resort. */
enum ow_selection { OW_SELECT_FIRST, OW_SELECT_USUAL, OW_SELECT_LOOSE };

bool ow_variant_among(enum ow_variant variant, enum ow_selection which);

int ow_survey_init(struct ow_survey *survey, enum ow_selection which);
void ow_survey_done(struct ow_survey *survey);

/*
 * Samples the capture from its start: frames from from_ns on, at most max_frames of them (UINT64_MAX = all).
 * which: as for ow_survey_init. Under these identities; there are no other samples.
 * seed: of the identities, the same for both captures. limit: as in struct ow_outlook, the lesser of both captures.
 */
int ow_survey_read(struct ow_survey *survey, struct ow_reader *reader, const uint32_t limit[OW_VARIANTS],
                   enum ow_selection which, int64_t from_ns, uint64_t max_frames, uint64_t seed, struct ow_error *err);

#endif
