/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "station/input.h"

/*
 * The stream of a fleet: results as points publish them (ow.r.POINT), and incidents that the station adds (ow.e.station).
 * What is published while there is no connection does not come again; the database has it. Incidents wait for the
 * connection, and are published until the stream has them.
 */
struct ow_station_stream;

int ow_station_stream_open(const char *url, const struct ow_station_access *access,
                           struct ow_station_stream **ret_stream, struct ow_error *err);
/* Tries for a second to publish what waits. */
void ow_station_stream_close(struct ow_station_stream *stream);
/* Passes on the final results that have come: intervals and minutes. */
int ow_station_stream_poll(struct ow_station_stream *stream, ow_station_sink *sink, void *arg, struct ow_error *err);
/* Copies the event. -E2BIG: too many wait. */
int ow_station_stream_publish(struct ow_station_stream *stream, const char *json, size_t length);
/* The next line for the log. False: there is none. */
bool ow_station_stream_news(struct ow_station_stream *stream, struct ow_error *ret_line);
