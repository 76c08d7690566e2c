/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_METRICS_H
#define OW_REPORT_METRICS_H

#include "result/interval_result.h"
#include <stdio.h>

/*
 * What a point measures as metrics for Prometheus (docs/metrics.md has the names): keeps sums of final results, each
 * interval once, and the last final result of each lane. No input or output, no clock, no lock: the caller's.
 */
struct ow_metrics;

/*
 * Lanes and peers beyond these are not kept, and counted: their names come from peers, too. When all places are taken a
 * lane of a peer that has few takes the place of one of the peer that has most, so that no peer can fill them all; or
 * of a lane with the same peer of which nothing was heard for OW_METRICS_OVER_NS.
 */
#define OW_METRICS_LANES   1024
#define OW_METRICS_OVER_NS INT64_C(300000000000)
#define OW_METRICS_PEERS   256

/* point: name of this point. */
int ow_metrics_create(const char *point, struct ow_metrics **ret_metrics);
void ow_metrics_free(struct ow_metrics *metrics);

/* A result, provisional or final. steady_ns: when it came. */
void ow_metrics_add(struct ow_metrics *metrics, const struct ow_interval_result *result, int64_t steady_ns);
/* A peer that there is, or whose connection has come or gone. */
void ow_metrics_peer(struct ow_metrics *metrics, const char *peer, bool connected);
/* A connection that was refused, by why, or a message of a peer. */
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
/* The store by now: intervals that it could not keep, and results that wait for it. */
void ow_metrics_store(struct ow_metrics *metrics, uint64_t lost, uint64_t waiting);

/* When this point's certificate expires, in seconds since 1970; INT64_MAX = it has none. */
void ow_metrics_certificate(struct ow_metrics *metrics, int64_t expiry_s);

/* Whether a result with numbers has come lately (within three intervals and OW_METRICS_GRACE_NS). why: one line. */
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
/* Of the header Accept (NULL = none): OpenMetrics where it is asked for and nothing is liked better. */
enum ow_metrics_format ow_metrics_format(const char *accept);
/* Content-Type by format. */
extern const char *const ow_metrics_type[];
/* process may be NULL. */
void ow_metrics_render(const struct ow_metrics *metrics, const struct ow_metrics_process *process,
                       enum ow_metrics_format format, FILE *out);

#endif
