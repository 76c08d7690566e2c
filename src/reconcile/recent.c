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

static bool is_young(const struct ow_recent *recent, uint32_t entry, int64_t time_ns, int64_t within_ns)
{
	uint32_t age = (ow_recent_seconds(recent, time_ns) - entry) & 0xff;
	if (age > 0x7f)
		age = 0x100 - age; /* clocks that go backwards */
	return entry && age <= ((uint64_t)within_ns >> 30) + 1;
}

bool ow_recent_young(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns)
{
	const uint32_t *way = recent->set[ow_recent_set(id)];
	for (int i = 0; i < OW_RECENT_WAYS; i++) {
		if (!((way[i] ^ ow_recent_tag(id)) & OW_RECENT_ID) && is_young(recent, way[i], time_ns, within_ns))
			return true;
	}
	return false;
}
