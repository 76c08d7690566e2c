/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/metrics.h"

/* The data that metrics.c keeps and metrics_render.c writes. Sums saturate, because a counter never decreases. */

/* Four names and their keys; each byte of a name may need an escape. */
#define OW_METRICS_LABELS (8 * OW_RESULT_NAME + 64)

struct ow_metrics_peer {
	char name[OW_RESULT_NAME];
	char label[2 * OW_RESULT_NAME];
	bool connected;
	uint64_t connections, messages_refused;
	unsigned lanes;
	uint64_t left_out; /* results of lanes that are not kept */
};

struct ow_metrics_lane {
	struct ow_metrics_peer *peer;
	char labels[OW_METRICS_LABELS];                        /* segment="...",class="...",from="...",to="..." */
	char from[2 * OW_RESULT_NAME], to[2 * OW_RESULT_NAME]; /* escaped */
	uint64_t compared;
	uint64_t intervals[3];  /* by enum ow_result_status */
	uint64_t ring_drops[2]; /* from, to */
	bool has_buckets;
	uint64_t bucket[OW_BUCKETS + 1];
	double delay_sum_ns;
	int64_t measured_end_ns; /* of the last final interval with numbers; INT64_MIN = none yet */
	int64_t ready_ns;        /* of the last provisional result; INT64_MIN = none yet */
	int64_t fresh_ns;        /* steady time of the last result with numbers; INT64_MIN = never */
	int64_t heard_ns;        /* steady time of the last result, with or without numbers */
	bool has_last;
	struct ow_interval_result last; /* the last final result; it also identifies the lane */
	uint64_t count[];               /* of each field; OW_RESULT_NOT_COUNTED: never counted */
};

struct ow_metrics {
	char point[2 * OW_RESULT_NAME]; /* escaped */
	char name[OW_RESULT_NAME];      /* the same without escapes */
	struct ow_metrics_lane *lane[OW_METRICS_LANES];
	unsigned lanes;
	struct ow_metrics_peer *peer[OW_METRICS_PEERS];
	unsigned peers;
	struct ow_metrics_peer others; /* for all peers that are not kept */
	uint64_t dropped;              /* lanes that were replaced by others */
	uint64_t store_lost, store_waiting;
	int64_t certificate_expiry_s;         /* INT64_MAX = none */
	uint64_t refused[OW_METRICS_REFUSED]; /* connections */
};
