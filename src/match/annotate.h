/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/packet_notes.h"

/*
 * Copies a capture to a pcapng file with a comment on every packet: its fate, delay, copy number and counterpart in the
 * other capture. docs/wireshark.md describes the comments; contrib/wireshark/oneway.lua reads them. notes: of this
 * capture. window_ns: the waiting time; identical packets within it are counted as copies.
 */
int ow_annotate(const char *from, const char *to, struct ow_packet_notes *notes, int64_t window_ns,
                struct ow_error *err);
