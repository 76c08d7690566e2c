/* SPDX-License-Identifier: Apache-2.0 */
#include "result/period.h"

#include "base/time.h"

#define DAY_NS (24 * 3600 * OW_NS_PER_S)

const struct ow_period_of ow_periods[OW_PERIODS] = {
	[OW_PERIOD_INTERVAL] = {"result", 0, 7 * DAY_NS},
	[OW_PERIOD_MINUTE] = {"minute", 60 * OW_NS_PER_S, 90 * DAY_NS},
	[OW_PERIOD_HOUR] = {"hour", 3600 * OW_NS_PER_S, 730 * DAY_NS},
	[OW_PERIOD_DAY] = {"day", DAY_NS, 0},
};
