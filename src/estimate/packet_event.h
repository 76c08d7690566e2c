/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

#define OW_FATES (OW_FATE_OUTSIDE + 1)

/* As in CSV, JSON and comments: "matched", "lost", ...; "a_to_b", "b_to_a". */
extern const char *const ow_fate_name[OW_FATES];
extern const char *const ow_direction_name[OW_DIRECTIONS];

/* The delay of a packet; false if it has none, or identical packets make it unknown. */
bool ow_event_delay(const struct ow_packet_event *event, int64_t *ret_ns);
