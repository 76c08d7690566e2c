/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_PLANE_MONITOR_H
#define OW_CLI_PLANE_MONITOR_H

#include "config/config_station.h"
#include <stdio.h>

/* The monitor's words: text for people, lines of JSON for machines. */

/* What a live result says, as the station takes it. */
void ow_plane_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample);

/* A path that broke its target, came back, or cannot be judged any more: a line, and one for each finding. */
void ow_plane_show_verdict(FILE *out, int64_t now_ns, const struct ow_verdict *verdict, const char *hops);
/* The same of every path, as a table, at the end. */
void ow_plane_show_table(FILE *out, const struct ow_verdict *verdict, uint32_t count,
                         const struct ow_monitor_count *counts);
/* One line of JSON for an interval. */
void ow_plane_json(FILE *out, int64_t now_ns, const struct ow_verdict *verdict, uint32_t count, const char *hops);

/* "Why is A to B slow since ...?" */
struct ow_plane_why {
	const char *from, *to, *class_name;
	int64_t since_ns, until_ns;
};
int ow_plane_why(const struct ow_station *station, char *const *paths, int count, const struct ow_plane_why *why,
                 bool json, struct ow_error *err);

#endif
