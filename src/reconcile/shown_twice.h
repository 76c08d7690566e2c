/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define OW_SHOWN_TWICE_LEAST 8u /* of which one has arrived: fewer are an accident */

/*
 * Packets that the sender's capture shows twice. A host may have sent both; or a mirror port for both directions, or all
 * interfaces of a router, show one packet twice. Then one of two is not lost, but was never sent. Those that are further apart
 * than a mirror port is may have been sent again because the first one was lost: they count only where most packets are shown so.
 */
struct ow_shown_twice {
	uint64_t close[3], all[3]; /* of two, none, one, both have arrived */
	uint64_t again;            /* shown in the interval before, and not arrived again */
	uint64_t others, missing;  /* other packets, and those of them that have not arrived */
};

/* Two identical packets, sent at these times, of which so many have arrived. */
void ow_shown_twice_note(struct ow_shown_twice *twice, int64_t first_ns, int64_t second_ns, uint64_t arrived);
/* How many of them may have been sent only once: 0 if loss explains that one has not arrived. */
uint64_t ow_shown_twice_doubtful(const struct ow_shown_twice *twice);
