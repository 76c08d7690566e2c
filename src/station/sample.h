/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/watch.h"
#include "result/interval_result.h"

/* The shortest and the longest interval that the station uses, and the times at which they may start (1970 to 2200). */
#define OW_STATION_LENGTH_MIN_NS INT64_C(1000000)
#define OW_STATION_LENGTH_MAX_NS (INT64_C(3600) * 1000000000)
#define OW_STATION_START_MAX_NS  (INT64_C(7258118400) * 1000000000)

/* Whether the times of a result are such as the station can use. */
bool ow_station_times_valid(const struct ow_interval_result *result);
/* What the station takes of a result. The cause points into the result. */
void ow_station_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample);
