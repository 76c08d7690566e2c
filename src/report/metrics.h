/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <stdio.h>

/*
 * Results of a point as metrics for Prometheus (docs/metrics.md has the names): sums of final results, each interval
 * once, and the last final result of each lane. There is no input or output, no clock and no lock: the caller has them.
 */
struct ow_metrics;

/*
 * Lanes and peers beyond these limits are only counted, because peers choose names as well. If all slots are in use, a
 * lane of a peer with few lanes replaces one of the peer with most, so that no peer can use them all; or it replaces a
 * lane with the same peer that had no result for OW_METRICS_OVER_NS.
 */
#define OW_METRICS_LANES   1024
#define OW_METRICS_OVER_NS INT64_C(300000000000)
#define OW_METRICS_PEERS   256

/* point: name of this point. */
int ow_metrics_create(const char *point, struct ow_metrics **ret_metrics);
void ow_metrics_free(struct ow_metrics *metrics);

/* A result, provisional or final. steady_ns: when it came. */
void ow_metrics_add(struct ow_metrics *metrics, const struct ow_interval_result *result, int64_t steady_ns);
/* Adds a peer, or sets whether it is connected. */
void ow_metrics_peer(struct ow_metrics *metrics, const char *peer, bool connected);
/* Counts a refused connection by reason, or a refused message of a peer. */
enum ow_metrics_refused {
	OW_METRICS_IDENTITY,
	OW_METRICS_PROTOCOL,
	OW_METRICS_TIMEOUT,
	OW_METRICS_CLOSED,
	OW_METRICS_BUSY,
	OW_METRICS_REFUSED
};
void ow_metrics_refused(struct ow_metrics *metrics, enum ow_metrics_refused why);
void ow_metrics_message(struct ow_metrics *metrics, const char *peer);
/* The state of the store: intervals that could not be stored, and waiting results. */
void ow_metrics_store(struct ow_metrics *metrics, uint64_t lost, uint64_t waiting);

/* When this point's certificate expires, in seconds since 1970; INT64_MAX = it has none. */
void ow_metrics_certificate(struct ow_metrics *metrics, int64_t expiry_s);

/* Whether there was a result with numbers recently (within three intervals and OW_METRICS_GRACE_NS). why: one line. */
#define OW_METRICS_GRACE_NS INT64_C(10000000000)
#define OW_METRICS_WHY      100
bool ow_metrics_healthy(const struct ow_metrics *metrics, int64_t steady_ns, char why[OW_METRICS_WHY]);

/* Facts about the process; below 0 = not known. */
struct ow_metrics_process {
	double cpu_seconds, start_seconds; /* start: since 1970 */
	int64_t resident_bytes, virtual_bytes;
	int64_t open_fds, max_fds;
	int64_t allocated_bytes; /* by malloc, in use */
};

enum ow_metrics_format {
	OW_METRICS_TEXT, /* version 0.0.4 */
	OW_METRICS_OPEN, /* OpenMetrics 1.0.0 */
};
/* Chooses by the header Accept (NULL = none): OpenMetrics if the client accepts it and prefers nothing else. */
enum ow_metrics_format ow_metrics_format(const char *accept);
/* Content-Type by format. */
extern const char *const ow_metrics_type[];
/* process may be NULL. */
void ow_metrics_render(const struct ow_metrics *metrics, const struct ow_metrics_process *process,
                       enum ow_metrics_format format, FILE *out);
