/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon.h"

/*
 * /metrics and /healthz of a point: the metrics (report/metrics.h) behind a lock, served by point/http.h. All functions
 * accept NULL: then nothing is exported.
 */
struct ow_exporter;

/* Listens. *ret_exporter = NULL if the configuration has no `metrics`. */
int ow_exporter_create(const struct ow_config *config, struct ow_exporter **ret_exporter, struct ow_error *err);
/* Serves in its own thread; to be called after the process has dropped its privileges. */
int ow_exporter_start(struct ow_exporter *exporter, struct ow_error *err);
void ow_exporter_free(struct ow_exporter *exporter);
/* "127.0.0.1:9620" */
const char *ow_exporter_address(const struct ow_exporter *exporter);

void ow_exporter_result(struct ow_exporter *exporter, const struct ow_interval_result *result);
void ow_exporter_peer(struct ow_exporter *exporter, const char *peer, bool connected);
void ow_exporter_refused(struct ow_exporter *exporter, enum ow_refused what, const char *peer);
void ow_exporter_certificate(struct ow_exporter *exporter, int64_t expiry_s);
void ow_exporter_store(struct ow_exporter *exporter, uint64_t lost, uint64_t waiting);
