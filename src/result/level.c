/* SPDX-License-Identifier: Apache-2.0 */
#include "result/level.h"

#include "base/time.h"

#define DAY_NS (24 * 3600 * OW_NS_PER_S)

const struct ow_level_of ow_levels[OW_LEVELS] = {
	[OW_LEVEL_RESULT] = {"result", 0, 7 * DAY_NS},
	[OW_LEVEL_MINUTE] = {"minute", 60 * OW_NS_PER_S, 90 * DAY_NS},
	[OW_LEVEL_HOUR] = {"hour", 3600 * OW_NS_PER_S, 730 * DAY_NS},
	[OW_LEVEL_DAY] = {"day", DAY_NS, 0},
};
