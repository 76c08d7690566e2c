/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <oneway/error.h>
#include <stdbool.h>

/*
 * Results from stores (files of SQLite, postgresql://...), lines of JSON ("-" is standard input), and the stream of a
 * fleet (nats://..., tls://...). With `follow` the reader waits for new results, as tail -f does; the points may be
 * running. A database that is away is asked again.
 */
struct ow_station_input;

/* What the stream of a fleet asks for: PEM files; all NULL: no TLS. */
struct ow_station_access {
	const char *ca, *certificate, *key;
};

typedef int ow_station_sink(void *arg, const struct ow_interval_result *result);

int ow_station_input_open(char *const *paths, int count, bool follow, int64_t since_ns,
                          const struct ow_station_access *access, struct ow_station_input **ret_input,
                          struct ow_error *err);
void ow_station_input_close(struct ow_station_input *input);
/*
 * Passes the available final results to the sink. A nonzero return of the sink ends the call and is returned.
 * ret_ended: everything was read and no more results will come. With follow this happens only if standard input is the
 * only source.
 */
int ow_station_input_poll(struct ow_station_input *input, ow_station_sink *sink, void *arg, bool *ret_ended,
                          struct ow_error *err);

/* False: results of the past are still to be read; poll again at once. */
bool ow_station_input_is_current(const struct ow_station_input *input);
/* Whether there is a stream that takes events of the station. */
bool ow_station_input_publishes(const struct ow_station_input *input);
/* An event for all streams. Fails only if there is no memory or too much waits. */
int ow_station_input_publish(struct ow_station_input *input, const char *json, size_t length);
/* The next line for the log: a source that fails, or works again. False: there is none. */
bool ow_station_input_news(struct ow_station_input *input, struct ow_error *ret_line);
