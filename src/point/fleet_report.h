/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "fleet/health.h"
#include "point/daemon.h"

struct ow_process;

/*
 * What a point tells its fleet: how it is, and which desired state it has accepted or refused. Nothing happens in a
 * point that belongs to no fleet.
 */
struct ow_fleet_report {
	struct ow_health health;
	struct ow_process *process;
	int64_t next_ns;         /* steady time of the next report */
	uint64_t accepted;       /* version */
	uint64_t files, revoked; /* what the files of the fleet look like */
	struct ow_error trouble; /* the last failure to write, said once */
};

/* The configuration that is in force from now on. */
void ow_fleet_report_config(struct ow_fleet_report *report, const struct ow_config *config);
/* A desired state that a running point cannot use. */
void ow_fleet_report_refused(struct ow_fleet_report *report, const struct ow_config *config, uint64_t version,
                             const struct ow_error *why);
/* The point does not measure, because it cannot use what is in force. */
void ow_fleet_report_unusable(const struct ow_config *config, const struct ow_error *why);
void ow_fleet_report_result(struct ow_fleet_report *report, const struct ow_interval_result *result);
void ow_fleet_report_status(struct ow_fleet_report *report, const struct ow_daemon_status *status);
/* Writes the report if it is time. Returns false, with a line, if that fails for another reason than before. */
bool ow_fleet_report_tick(struct ow_fleet_report *report, const struct ow_config *config, int64_t now_ns,
                          struct ow_error *err);
void ow_fleet_report_done(struct ow_fleet_report *report);

/* Whether the fleet's files have changed since the last call: the certificate, the desired state, or the revoked
 * keys of others. */
bool ow_fleet_report_news(struct ow_fleet_report *report, const struct ow_config *config);

/*
 * Waits until the fleet has given the point a certificate and something to measure; *config is then another one.
 */
int ow_fleet_wait(struct ow_config **config, struct ow_error *err);
