/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <oneway/error.h>
#include <stdbool.h>

/*
 * Results from files: stores of points (SQLite) and lines of JSON, "-" for standard input. With `follow` the reader
 * waits for new results, as tail -f does; the points may be running.
 */
struct ow_station_input;

typedef int ow_station_sink(void *arg, const struct ow_interval_result *result);

int ow_station_input_open(char *const *paths, int count, bool follow, int64_t since_ns,
                          struct ow_station_input **ret_input, struct ow_error *err);
void ow_station_input_close(struct ow_station_input *input);
/*
 * Passes the available final results to the sink. A nonzero return of the sink ends the call and is returned.
 * ret_ended: everything was read and no more results will come. With follow this happens only if standard input is the
 * only source.
 */
int ow_station_input_poll(struct ow_station_input *input, ow_station_sink *sink, void *arg, bool *ret_ended,
                          struct ow_error *err);
