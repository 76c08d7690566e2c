/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The time that a result is of: an interval, as it was measured, or a minute, an hour or a day of UTC, to which results are
 * added up. Each has a table in the store.
 */
enum ow_period { OW_PERIOD_INTERVAL, OW_PERIOD_MINUTE, OW_PERIOD_HOUR, OW_PERIOD_DAY, OW_PERIODS };

struct ow_period_of {
	const char *table;
	int64_t length_ns;    /* 0: any */
	int64_t retention_ns; /* how long it is kept by default; 0: for ever */
};
extern const struct ow_period_of ow_periods[OW_PERIODS];
