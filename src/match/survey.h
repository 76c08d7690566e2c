/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/reader.h"
#include "reconcile/identity_choice.h"

/*
 * Compares samples of both captures under every identity at once, to find which identity matches, and how much the
 * clocks differ.
 */

/* The start of a capture. */
struct ow_outlook {
	int64_t first_ns;            /* time of the first frame; 0 if the file is empty */
	bool empty, untimed;         /* no frames; only frames with a time of 0 */
	uint32_t limit[OW_VARIANTS]; /* bytes that the id can take of every packet, by variant */
	uint64_t ip, ipv6, frames;   /* of the frames looked at */
	uint32_t longest_udp;        /* bytes of the longest UDP packet in one piece */
	uint32_t longest_tcp;
	uint64_t fragments; /* of IPv4 */
	uint64_t cut_short; /* IP packets with too few bytes to identify them */
	int64_t tick_ns;    /* all timestamps are multiples of this from the first on; 0 = they do not show it */
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
