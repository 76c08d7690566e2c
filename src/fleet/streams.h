/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"

/*
 * The streams of a fleet, and the consumers of its collectors. POINT is the name of a point.
 *
 *	OW_RESULTS  ow.r.POINT   results, until a collector has stored them; full: points keep their results
 *	OW_SAMPLES  ow.s.POINT   samples of packets, a quarter of an hour
 *	OW_EVENTS   ow.e.POINT   events of flows, and incidents of the station (ow.e.station), a month
 *	OW_HEALTH   ow.h.POINT   the last state of each point
 *	KV_cfg      $KV.cfg.POINT  what the point should measure; sent on to cfg.POINT
 *
 * Requests to a point go to ow.q.POINT and are in no stream.
 */
#define OW_STREAM_RESULTS "OW_RESULTS"
#define OW_STREAM_SAMPLES "OW_SAMPLES"
#define OW_STREAM_EVENTS  "OW_EVENTS"
#define OW_STREAM_HEALTH  "OW_HEALTH"
#define OW_BUCKET_CONFIG  "cfg"
/* The consumer of OW_RESULTS and of OW_EVENTS that all collectors share. */
#define OW_CONSUMER_COLLECT "pg"

struct ow_streams_options {
	unsigned replicas;  /* 1 or 3 */
	uint64_t max_bytes; /* of OW_RESULTS; the others get a share of it */
};
#define OW_STREAMS_MAX_BYTES (UINT64_C(10) << 30)

/* Creates streams and consumers that do not exist, and adapts those that do. */
int ow_streams_make(struct ow_bus *bus, const struct ow_streams_options *options, struct ow_error *err);
