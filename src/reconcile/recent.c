/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/recent.h"

#include <stdlib.h>
#include <string.h>

struct ow_recent *ow_recent_create(void)
{
	struct ow_recent *r = aligned_alloc(64, (sizeof *r + 63) / 64 * 64);
	if (r)
		memset(r, 0, sizeof *r);
	return r;
}

void ow_recent_free(struct ow_recent *recent)
{
	free(recent);
}

bool ow_recent_young(uint64_t entry, int64_t time_ns, int64_t within_ns)
{
	if (!entry)
		return false;
	uint64_t age = (ow_recent_seconds(time_ns) - entry) & 0xffff;
	if (age > 0x7fff)
		age = 0x10000 - age; /* clocks that go backwards */
	return age <= ((uint64_t)within_ns >> 30) + 1;
}
