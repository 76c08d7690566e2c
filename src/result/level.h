/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Results as they were made, and added up to minutes, hours and days of UTC. Each level has a table in the store. */
enum ow_level { OW_LEVEL_RESULT, OW_LEVEL_MINUTE, OW_LEVEL_HOUR, OW_LEVEL_DAY, OW_LEVELS };

struct ow_level_of {
	const char *table;
	int64_t length_ns;    /* 0: any */
	int64_t retention_ns; /* how long it is kept by default; 0: for ever */
};
extern const struct ow_level_of ow_levels[OW_LEVELS];
