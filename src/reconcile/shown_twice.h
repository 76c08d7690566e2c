/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define OW_SHOWN_TWICE_LEAST 8u /* of which one has arrived: fewer are an accident */

/*
 * Packets that the sender's capture shows twice, one right after the other. A host may have sent both; or a mirror port for
 * both directions, or all interfaces of a router, show one packet twice. Then one of two is not lost, but was never sent.
 */
struct ow_shown_twice {
	uint64_t none, once, both; /* of two, so many have arrived */
	uint64_t others, missing;  /* other packets, and those of them that have not arrived */
};

/* Such times of two identical packets look like one that is shown twice. */
static inline bool ow_shown_twice_close(int64_t first_ns, int64_t second_ns)
{
	int64_t lag_ns = second_ns - first_ns;
	return -OW_NS_PER_MS <= lag_ns && lag_ns <= OW_NS_PER_MS;
}

static inline void ow_shown_twice_note(struct ow_shown_twice *twice, uint64_t arrived)
{
	twice->none += arrived == 0;
	twice->once += arrived == 1;
	twice->both += arrived == 2;
}

/* How many of them may have been sent only once: 0 if loss explains that one has not arrived. */
uint64_t ow_shown_twice_doubtful(const struct ow_shown_twice *twice);
