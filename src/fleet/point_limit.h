/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"

/* How many rows a point may send: a burst, and so many a second after that. */
struct ow_point_limit {
	double burst, rate;
	struct ow_point_limit_entry *entry; /* by name */
	size_t count, room;
};

void ow_point_limit_init(struct ow_point_limit *limit, double burst, double rate);
void ow_point_limit_done(struct ow_point_limit *limit);
/* Whether the point may send so many rows now; if so, they are counted. A burst that is not used up allows any number. */
bool ow_point_limit_allow(struct ow_point_limit *limit, const char *point, size_t rows, int64_t now_ns);
/* Points that are remembered; further ones have no limit. */
#define OW_POINT_LIMIT_POINTS 200000
