/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/packet_notes.h"
#include <signal.h>

#define OW_ANNOTATE_POINTS 16 /* of a path, at most */

struct ow_annotation {
	struct ow_record_file *packets; /* packet notes of this capture */
	int64_t window_ns;              /* the waiting time; identical packets within it are counted as copies */
	const volatile sig_atomic_t *interrupted; /* not 0: stop */
	/* Of a path, whose first point this capture is; points is 0 without one. */
	struct ow_record_file *hops; /* hop notes */
	unsigned points;
	const char *name[OW_ANNOTATE_POINTS];
};

/*
 * Copies a capture to a pcapng file with a comment on every packet: its fate, delay, copy number and counterpart in the
 * other capture, and the delay of each hop of a path. docs/wireshark.md describes the comments;
 * contrib/wireshark/oneway.lua reads them.
 */
int ow_annotate(const char *from, const char *to, const struct ow_annotation *annotation, struct ow_error *err);
