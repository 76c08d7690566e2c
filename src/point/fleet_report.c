/* SPDX-License-Identifier: Apache-2.0 */
#include "point/fleet_report.h"

#include "base/clock.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include "exchange/session.h"
#include "point/process.h"
#include <oneway/oneway.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS (5 * OW_NS_PER_S)

void ow_fleet_report_config(struct ow_fleet_report *report, const struct ow_config *c)
{
	struct ow_health *h = &report->health;
	snprintf(h->point, sizeof h->point, "%s", c->point);
	snprintf(h->version, sizeof h->version, "%s", ow_version());
	snprintf(h->state, sizeof h->state, "%s", c->fleet.waits ? "waiting" : "measuring");
	if (!h->started_ns)
		h->started_ns = ow_clock_real_ns();
	/* Before the process is confined. */
	if (!report->process && c->fleet.address)
		(void)ow_process_create(&report->process);
	h->config_version = c->fleet.version;
	h->config_refused = c->fleet.refused;
	snprintf(h->config_why, sizeof h->config_why, "%.299s", c->fleet.refused ? c->fleet.why.text : "");
	snprintf(h->config_kept, sizeof h->config_kept, "%s", c->fleet.kept);
	report->next_ns = 0;
}

void ow_fleet_report_refused(struct ow_fleet_report *report, const struct ow_config *config, uint64_t version,
                             const struct ow_error *why)
{
	ow_fleet_report_config(report, config);
	report->health.config_refused = version;
	snprintf(report->health.config_why, sizeof report->health.config_why, "%.299s", why->text);
}

void ow_fleet_report_unusable(const struct ow_config *config, const struct ow_error *why)
{
	struct ow_fleet_report report = {0};
	struct ow_error ignored;
	ow_fleet_report_refused(&report, config, config->fleet.version, why);
	snprintf(report.health.state, sizeof report.health.state, "waiting");
	report.health.time_ns = ow_clock_real_ns();
	(void)ow_health_save(config->fleet.state, &report.health, &ignored);
	ow_fleet_report_done(&report);
}

void ow_fleet_report_result(struct ow_fleet_report *report, const struct ow_interval_result *result)
{
	int64_t end_ns = result->start_ns + result->length_ns;
	if (result->final && end_ns > report->health.last_result_ns)
		report->health.last_result_ns = end_ns;
}

void ow_fleet_report_status(struct ow_fleet_report *report, const struct ow_daemon_status *status)
{
	struct ow_health *h = &report->health;
	h->peers = status->peers;
	h->connected = status->connected;
	h->lanes = status->lanes;
	snprintf(h->peers_why, sizeof h->peers_why, "%s", status->why);
	h->frames = status->frames;
	h->dropped = status->dropped;
	h->clock_known = status->clock_known;
	h->clock_synchronised = status->clock_known && status->clock.synchronised;
	h->clock_error_ns = h->clock_synchronised ? status->clock.error_ns : 0;
	h->certificate_until_s = status->certificate_expiry_s == INT64_MAX ? 0 : status->certificate_expiry_s;
}

/* The desired state in force is one that the point can use. */
static int accept(struct ow_fleet_report *report, const struct ow_config *config, struct ow_error *err)
{
	uint64_t version = config->fleet.version;
	if (version == 0 || version == report->accepted || config->fleet.refused || config->fleet.waits)
		return 0;
	int r = ow_config_accept(config, err);
	if (r == 0)
		report->accepted = version;
	return r;
}

bool ow_fleet_report_tick(struct ow_fleet_report *report, const struct ow_config *config, int64_t now_ns,
                          struct ow_error *err)
{
	struct ow_metrics_process process = {0};
	if (!config->fleet.address || now_ns < report->next_ns)
		return true;
	report->next_ns = now_ns + EVERY_NS;
	if (report->process)
		ow_process_look(report->process, &process);
	report->health.memory_bytes = process.resident_bytes > 0 ? (uint64_t)process.resident_bytes : 0;
	report->health.time_ns = ow_clock_real_ns();
	int r = accept(report, config, err);
	if (r == 0)
		r = ow_health_save(config->fleet.state, &report->health, err);
	bool news = r < 0 && strcmp(err->text, report->trouble.text) != 0;
	if (r < 0)
		report->trouble = *err;
	else
		report->trouble.text[0] = 0;
	return !news;
}

/* A file that was replaced has another number. */
static uint64_t look_of(const char *path)
{
	struct stat status;
	return path && stat(path, &status) == 0 ? (uint64_t)status.st_ino * 31 + (uint64_t)status.st_mtim.tv_nsec +
	                                                  (uint64_t)status.st_mtim.tv_sec
	                                        : 0;
}

/* Whether the desired state was replaced after the configuration was read. */
static bool is_other(const struct ow_config *config)
{
	uint64_t version = ow_desired_version(config->fleet.state, OW_FLEET_DESIRED);
	return version && version != config->fleet.version && version != config->fleet.refused;
}

bool ow_fleet_report_news(struct ow_fleet_report *report, const struct ow_config *config)
{
	if (!config->fleet.address)
		return false;
	char *desired = ow_state_path(config->fleet.state, OW_FLEET_DESIRED),
	     *certificate = ow_state_path(config->fleet.state, OW_FLEET_CERTIFICATE);
	uint64_t files = look_of(desired) * 37 + look_of(certificate), revoked = look_of(config->revoked);
	/* The list of revoked keys may have come after the point's start had read it. */
	bool news = (report->files ? files != report->files : is_other(config)) || revoked != report->revoked;
	report->files = files;
	report->revoked = revoked;
	free(desired);
	free(certificate);
	return news;
}

void ow_fleet_report_done(struct ow_fleet_report *report)
{
	ow_process_free(report->process);
}

/* Whether the certificate that the fleet gave is there, and valid: it may have expired while the point was off. */
static bool has_certificate(const struct ow_config *c)
{
	struct ow_tls *tls = NULL;
	struct ow_error ignored;
	struct ow_tls_options keys = {.certificate = c->certificate, .key = c->key, .ca = c->ca, .name = c->point};
	size_t folder = strlen(c->fleet.state);
	bool own = !c->certificate || strncmp(c->certificate, c->fleet.state, folder) != 0 ||
	           c->certificate[folder] != '/';
	bool valid = own || ow_tls_create(&keys, &tls, &ignored) == 0;
	ow_tls_free(tls);
	return valid;
}

/* Whether the point could start. */
static bool is_ready(const struct ow_config *config)
{
	return !config->fleet.waits && has_certificate(config);
}

int ow_fleet_wait(struct ow_config **ref_config, struct ow_error *err)
{
	struct ow_fleet_report report = {0};
	struct ow_config *next;
	struct ow_error why = {""};
	sigset_t hup;
	(void)mkdir((*ref_config)->fleet.state, 0700);
	sigemptyset(&hup);
	sigaddset(&hup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hup, NULL);
	int r = 0;
	while (r == 0 && !is_ready(*ref_config)) {
		ow_fleet_report_config(&report, *ref_config);
		snprintf(report.health.state, sizeof report.health.state, "waiting");
		if (!ow_fleet_report_tick(&report, *ref_config, ow_clock_steady_ns(), &why))
			fprintf(stderr, "oneway point: %s\n", why.text);
		(void)sigtimedwait(&hup, NULL, &(struct timespec){.tv_sec = 1});
		r = ow_config_load((*ref_config)->path, &next, err);
		if (r == 0) {
			ow_config_free(*ref_config);
			*ref_config = next;
		}
	}
	ow_fleet_report_done(&report);
	return r;
}
