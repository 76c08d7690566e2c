/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a point: results to standard output, SQLite and Prometheus, events to standard error, its state to systemd. */
#include "point/run.h"

#include "base/time.h"
#include "base/word.h"
#include "config/config_fleet.h"
#include "point/exporter.h"
#include "point/epoch_peers.h"
#include "point/fleet_report.h"
#include "sandbox/guard.h"
#include "point/journal.h"
#include "point/service.h"
#include "point/daemon.h"
#include "store/sample_row.h"
#include "store/store_writer.h"
#include "report/interval_render.h"
#include "result/result_json.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Results and events. */

struct output {
	enum ow_config_output kind;
	bool provisional;
	struct ow_render_text text;
	struct ow_store_writer *writer;
	struct ow_epoch_writer *flows;
	struct ow_epoch_peers *flow_peers;
	struct ow_exporter *exporter;
	struct ow_journal *journal;
	struct ow_service service;
	struct ow_daemon *daemon;
	struct ow_config **config;
	int reload_fd;     /* SIGHUP; -1 = it ends the program, as on a terminal */
	int64_t second_ns; /* time of the next work that is done once per second */
	struct ow_fleet_report report;
	bool restart; /* a new configuration needs one */
};

static void log_event(void *arg, enum ow_event level, const char *line)
{
	const struct output *out = arg;
	ow_journal_line(out->journal, level, line, ow_clock_steady_ns());
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	struct output *out = arg;
	if (out->kind == OW_OUTPUT_JSON)
		ow_result_json(stdout, result);
	else if (out->kind == OW_OUTPUT_TEXT && (result->final || result->waiting || out->provisional))
		ow_render_text(&out->text, result);
	if (out->writer)
		ow_store_writer_add(out->writer, result);
	ow_exporter_result(out->exporter, result);
	ow_fleet_report_result(&out->report, result);
}

static void on_flow_event(void *arg, const struct ow_flow_event *event)
{
	const struct output *out = arg;
	if (out->kind == OW_OUTPUT_JSON)
		ow_flow_event_json(stdout, event);
	if (out->writer)
		ow_store_writer_add_event(out->writer, event);
}

static void on_total(void *arg, const struct ow_interval_result *total)
{
	struct output *out = arg;
	if (out->kind == OW_OUTPUT_JSON) {
		ow_result_json_summary(stdout, total);
	} else if (out->kind == OW_OUTPUT_TEXT) {
		putchar('\n');
		ow_render_summary(stdout, total);
		/* The next line begins with a heading. */
		out->text.lines = 0;
	}
}

/* Logs the news of the store: that it fails, that it works again. */
static void log_store(struct output *out)
{
	struct ow_error line;
	while (ow_store_writer_news(out->writer, &line))
		log_event(out, OW_EVENT_WARNING, line.text);
}

static void on_flush(void *arg)
{
	struct output *out = arg;
	struct ow_store_writer_state state;
	fflush(stdout);
	if (!out->writer)
		return;
	ow_store_writer_commit(out->writer);
	log_store(out);
	ow_store_writer_state(out->writer, &state);
	ow_exporter_store(out->exporter, state.lost, state.waiting);
	out->report.health.store_waiting = state.waiting;
	out->report.health.store_lost = state.lost;
	out->report.health.store_failing = state.failing;
}

/* Writes the waiting results, and reports what cannot be written. */
static void end_store(struct output *out)
{
	struct ow_store_writer_state state;
	if (!out->writer)
		return;
	ow_store_writer_commit(out->writer);
	ow_store_writer_stop(out->writer);
	log_store(out);
	ow_store_writer_state(out->writer, &state);
	if (state.waiting || state.lost) {
		struct ow_error line;
		ow_error_set(&line, EIO, "store: %zu %s could not be written, %ju %s lost before", state.waiting,
		             ow_plural(state.waiting, "result", "results"), (uintmax_t)state.lost,
		             ow_plural(state.lost, "interval was", "intervals were"));
		log_event(out, OW_EVENT_ERROR, line.text);
	}
	ow_store_writer_free(out->writer);
}

/* Receives epochs of recorded flows; called in the recording threads. */
static void on_epoch(void *arg, unsigned recording, struct ow_epoch *epoch)
{
	struct output *out = arg;
	ow_epoch_writer_add(out->flows, recording, epoch);
}

static void on_lost(void *arg, unsigned recording, uint64_t packets)
{
	struct output *out = arg;
	ow_epoch_writer_lost(out->flows, recording, packets);
}

static bool send_to(void *arg, const char *peer, const struct ow_message *message)
{
	struct output *out = arg;
	return ow_daemon_send(out->daemon, peer, message);
}

static void tell_copies(void *arg, bool warning, const char *line)
{
	log_event(arg, warning ? OW_EVENT_WARNING : OW_EVENT_INFO, line);
}

/* What a peer says of epochs. */
static void on_message(void *arg, const char *peer, const struct ow_message *message)
{
	struct output *out = arg;
	if (out->flow_peers)
		ow_epoch_peers_message(out->flow_peers, peer, message, ow_clock_steady_ns());
}

static int start_flows(struct output *out, struct ow_error *err)
{
	const struct ow_epoch_peers_sink sink = {send_to, tell_copies, out};
	int r = ow_epoch_writer_create(*out->config, &out->flows, err);
	if (r == 0 && ow_epoch_peers_create(*out->config, out->flows, &sink, &out->flow_peers) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory to record flows");
	return r;
}

static void log_flows(struct output *out)
{
	struct ow_error line;
	struct ow_worst_flows worst;
	while (out->flows && ow_epoch_writer_news(out->flows, &line))
		log_event(out, OW_EVENT_WARNING, line.text);
	while (out->flows && ow_epoch_writer_worst(out->flows, &worst)) {
		log_event(out, OW_EVENT_INFO, worst.line.text);
		if (*worst.warning.text)
			log_event(out, OW_EVENT_WARNING, worst.warning.text);
		if (out->kind == OW_OUTPUT_JSON && worst.json)
			fputs(worst.json, stdout);
		free(worst.json);
	}
}

static void end_flows(struct output *out)
{
	if (!out->flows)
		return;
	ow_epoch_writer_stop(out->flows);
	log_flows(out);
	ow_epoch_peers_free(out->flow_peers);
	ow_epoch_writer_free(out->flows);
}

/* A sample of packets; called in the recording threads. */
static void on_sample(void *arg, int64_t start_ns, const uint8_t *bytes, size_t size)
{
	struct output *out = arg;
	ow_store_writer_add_sample(out->writer, &(struct ow_sample_row){start_ns, bytes, size});
}

static void on_peer(void *arg, const char *peer, bool connected)
{
	struct output *out = arg;
	ow_exporter_peer(out->exporter, peer, connected);
}

static void on_refused(void *arg, enum ow_refused what, const char *peer)
{
	struct output *out = arg;
	ow_exporter_refused(out->exporter, what, peer);
}

/* Running. */

/* Makes signals readable; threads that start later do not get them either. */
static int open_signals(const int *signals, int flags, struct ow_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	for (; *signals; signals++)
		sigaddset(&set, *signals);
	int fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC | flags);
	return fd < 0 ? ow_error_set(err, errno, "signalfd: %s", strerror(errno)) : fd;
}

static int start_exporter(struct output *out, struct ow_error *err)
{
	char line[120];
	int r = ow_exporter_start(out->exporter, err);
	if (r == 0 && out->exporter) {
		snprintf(line, sizeof line, "metrics at http://%s/metrics", ow_exporter_address(out->exporter));
		log_event(out, OW_EVENT_INFO, line);
	}
	return r;
}

static struct ow_store_limits limits_of(const struct ow_config *c)
{
	struct ow_store_limits limits = {.max_bytes = c->store_max};
	memcpy(limits.retention_ns, c->retention_ns, sizeof limits.retention_ns);
	return limits;
}

/* Called when everything is open, and no thread runs yet. */
static int confine(void *arg, struct ow_error *err)
{
	struct output *out = arg;
	const struct ow_config *c = *out->config;
	struct ow_guard guard = {
		.sandbox = c->sandbox, .read = {c->path, c->certificate, c->key, c->ca, c->psk}, .write = {c->store}};
	unsigned writes = 1, reads = 5;
	char state[OW_CONFINE_FOLDER];
	if (c->fleet.address) {
		snprintf(state, sizeof state, "%s/" OW_FLEET_HEALTH, c->fleet.state);
		guard.write[writes++] = state;
	}
	char *copy[OW_CONFIG_FLOWS_MAX] = {0};
	for (unsigned i = 0; i < c->flows_count; i++) {
		guard.write[writes++] = c->flows[i].file;
		guard.read[reads++] = c->flows[i].from;
		copy[i] = c->flows[i].peer ? ow_config_flows_copy(&c->flows[i]) : NULL;
		if (copy[i])
			guard.write[writes++] = copy[i];
	}
	char text[OW_CONFINE_TEXT], line[OW_CONFINE_TEXT + 40];
	bool whole;
	int r = ow_guard_close(&guard, text, &whole, err);
	for (unsigned i = 0; i < c->flows_count; i++)
		free(copy[i]);
	if (r < 0)
		return r;
	snprintf(line, sizeof line, "no privileges from here on; %s", text);
	log_event(out, whole && c->sandbox == OW_SANDBOX_ON ? OW_EVENT_INFO : OW_EVENT_WARNING, line);
	/* Here, because both start threads. */
	struct ow_store_writer_options keep = {.path = c->store, .limits = limits_of(c)};
	if (c->store)
		r = ow_store_writer_create(&keep, &out->writer, err);
	if (r == 0 && c->flows_count)
		r = start_flows(out, err);
	return r < 0 ? r : start_exporter(out, err);
}

/* Tells systemd one line of state, and that the point is alive. */
static void tell_state(struct output *out, int64_t now_ns)
{
	struct ow_daemon_status status;
	char line[120];
	ow_daemon_status(out->daemon, &status);
	snprintf(line, sizeof line, "%u of %u %s connected, %u %s measured", status.connected, status.peers,
	         ow_plural(status.peers, "peer", "peers"), status.lanes, ow_plural(status.lanes, "lane", "lanes"));
	ow_service_status(&out->service, status.stopping ? "stopping" : line);
	ow_exporter_certificate(out->exporter, status.certificate_expiry_s);
	ow_fleet_report_status(&out->report, &status);
	struct ow_error trouble;
	if (!ow_fleet_report_tick(&out->report, *out->config, now_ns, &trouble))
		log_event(out, OW_EVENT_WARNING, trouble.text);
	ow_journal_tick(out->journal, now_ns);
}

/*
 * The desired state of a fleet cannot be used as it is. If that takes a restart, the point ends, to be started again;
 * otherwise it refuses, and says why.
 */
static void follow_fleet(struct output *out, const struct ow_config *next, int code, struct ow_error *why)
{
	bool restart = (code == -EBUSY || next->fleet.waits) && ow_config_check_interfaces(next, why) == 0 &&
	               ow_config_check_filters(next, why) == 0;
	if (restart) {
		log_event(out, OW_EVENT_NOTICE, "the fleet's new configuration needs a restart: ending");
		out->restart = true;
		(void)raise(SIGTERM);
	} else {
		ow_fleet_report_refused(&out->report, *out->config, next->fleet.version, why);
	}
}

static int read_again(struct output *out, struct ow_error *err)
{
	struct ow_config *next;
	int r = ow_config_load((*out->config)->path, &next, err);
	if (r < 0)
		return r;
	r = ow_daemon_reload(out->daemon, next, err);
	if (r < 0 && next->fleet.address)
		follow_fleet(out, next, r, err);
	if (r < 0) {
		ow_config_free(next);
		return r;
	}
	ow_fleet_report_config(&out->report, next);
	ow_config_free(*out->config);
	*out->config = next;
	struct ow_store_limits limits = limits_of(next);
	if (out->writer)
		ow_store_writer_limit(out->writer, &limits);
	return 0;
}

static void reload(struct output *out)
{
	struct ow_error why, line;
	ow_service_reloading(&out->service);
	if (read_again(out, &why) < 0 && !out->restart) {
		ow_error_set(&line, EINVAL, "%.400s; the old configuration stays in use", why.text);
		log_event(out, OW_EVENT_ERROR, line.text);
	}
	ow_service_ready(&out->service);
}

static void on_tick(void *arg)
{
	struct output *out = arg;
	int64_t now_ns = ow_clock_steady_ns();
	struct signalfd_siginfo signal;
	if (out->reload_fd >= 0 && read(out->reload_fd, &signal, sizeof signal) == (ssize_t)sizeof signal)
		reload(out);
	ow_service_beat(&out->service, now_ns);
	if (out->flow_peers)
		ow_epoch_peers_tick(out->flow_peers, now_ns);
	if (now_ns < out->second_ns)
		return;
	out->second_ns = now_ns + OW_NS_PER_S;
	if (ow_fleet_report_news(&out->report, *out->config))
		reload(out);
	log_flows(out);
	tell_state(out, now_ns);
}

static int run_daemon(struct output *out, int64_t run_ns, struct ow_error *err)
{
	struct ow_daemon_options o = {.sink = {.result = on_result,
	                                       .event = on_flow_event,
	                                       .total = on_total,
	                                       .flush = on_flush,
	                                       .peer = on_peer,
	                                       .refused = on_refused,
	                                       .arg = out},
	                              .flows = {on_epoch, on_lost, out, on_message},
	                              .sample = on_sample,
	                              .sample_arg = out,
	                              .log = log_event,
	                              .log_arg = out,
	                              .opened = confine,
	                              .opened_arg = out,
	                              .tick = on_tick,
	                              .tick_arg = out,
	                              .stop_fd = open_signals((int[]){SIGINT, SIGTERM, 0}, 0, err),
	                              .run_ns = run_ns};
	int r = o.stop_fd < 0 ? o.stop_fd : 0;
	/* When a terminal is closed, its programs should end. */
	if (r == 0 && !isatty(STDERR_FILENO))
		r = out->reload_fd = open_signals((int[]){SIGHUP, 0}, SFD_NONBLOCK, err);
	if (r >= 0)
		r = ow_exporter_create(*out->config, &out->exporter, err);
	if (r == 0)
		r = ow_daemon_create(*out->config, &o, &out->daemon, err);
	if (r == 0) {
		ow_service_ready(&out->service);
		r = ow_daemon_run(out->daemon, err);
		ow_service_stopping(&out->service);
		ow_daemon_free(out->daemon);
	}
	ow_exporter_free(out->exporter);
	out->exporter = NULL;
	if (o.stop_fd >= 0)
		close(o.stop_fd);
	if (out->reload_fd >= 0)
		close(out->reload_fd);
	return r;
}

int ow_point_run(const struct ow_point_run *how, struct ow_config **config, struct ow_error *err)
{
	struct output out = {.kind = how->output, .provisional = how->provisional, .config = config, .reload_fd = -1};
	out.text = (struct ow_render_text){.out = stdout,
	                                   .width = how->style.terminal ? (unsigned)how->style.width : 0,
	                                   .colour = how->style.colour};
	int r = ow_journal_create(stderr, (*config)->point, ow_journal_is_stream(STDERR_FILENO), &out.journal);
	if (r < 0)
		return ow_error_set(err, -r, "not enough memory");
	ow_service_open(&out.service);
	ow_fleet_report_config(&out.report, *config);
	r = run_daemon(&out, how->run_ns, err);
	on_flush(&out);
	end_flows(&out);
	end_store(&out);
	ow_service_close(&out.service);
	ow_journal_free(out.journal);
	ow_fleet_report_done(&out.report);
	return r < 0 ? r : out.restart ? OW_POINT_RESTART : 0;
}
