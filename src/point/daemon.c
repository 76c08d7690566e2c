/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: it opens everything that a point needs, and passes the scheduler's events to its modules. */
#include "point/daemon.h"

#include "base/time.h"
#include "config/memory_budget.h"
#include "flows/flow_thread.h"
#include "point/daemon_clock.h"
#include "point/daemon_connections.h"
#include "point/daemon_events.h"
#include "point/daemon_identity.h"
#include "point/daemon_private.h"
#include "point/daemon_record.h"
#include "point/daemon_reload.h"
#include "point/daemon_trust.h"
#include "point/sample_collector.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The longest time until the end of an interval is noticed if nothing else wakes the loop. */
#define TICK_NS (10 * OW_NS_PER_MS)
/* Time for the last answers at the end of the run, beyond the last interval. */
#define DRAIN_NS INT64_C(3000000000)

/* Making it. */

static void on_epoch(void *arg, struct ow_epoch *epoch)
{
	const struct ow_daemon_flows *flows = arg;
	flows->sink->epoch(flows->sink->arg, flows->recording, epoch);
}

static void on_lost(void *arg, uint64_t packets)
{
	const struct ow_daemon_flows *flows = arg;
	flows->sink->lost(flows->sink->arg, flows->recording, packets);
}

static int add_flows(struct ow_daemon *d, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < d->config->flows_count; i++) {
		const struct ow_config_flows *flows = &d->config->flows[i];
		d->flows[i] = (struct ow_daemon_flows){&d->options.flows, i};
		struct ow_flow_thread_options options = {
			.sources = flows->interfaces,
			.decoder = {.info = &flows->info, .filter = flows->filter, .heading = flows->heading},
			.flows_max = flows->flows_max,
			.on_epoch = on_epoch,
			.on_lost = on_lost,
			.arg = &d->flows[i],
		};
		for (unsigned k = 0; k < flows->class_count; k++)
			options.decoder.class_filter[k] = flows->classes[k].filter;
		r = ow_recorder_add_tap(d->recorder, &options, err);
	}
	return r;
}

static int add_sampler(struct ow_daemon *d, struct ow_error *err)
{
	struct ow_sampler_options options;
	if (!d->config->discovery.key || !d->options.sample)
		return 0;
	int r = ow_sample_collector_create(d->config, d->options.sample, d->options.sample_arg, &d->samples, err);
	if (r < 0)
		return r;
	ow_sample_collector_options(d->samples, &options);
	return ow_recorder_add_sampler(d->recorder, &options, err);
}

/* Without to_peer, no packet of such an interface would belong to a lane. */
static int check_directions(const struct ow_daemon *d, struct ow_error *err)
{
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		const char *name = s->to_peer ? NULL : ow_recorder_undirected(d->recorder, s->interfaces);
		if (name)
			return ow_error_set(
				err, EINVAL,
				"%s:%u: segment '%s': %s does not show the direction of packets: give to_peer",
				d->config->path, s->line, s->name, name);
	}
	return 0;
}

/* Whether flows of this interface are recorded: their packets are identified with their payload. */
static bool is_recorded(const struct ow_config *config, unsigned interface)
{
	for (unsigned i = 0; i < config->flows_count; i++) {
		if (config->flows[i].interfaces >> interface & 1)
			return true;
	}
	return false;
}

static int open_recorder(struct ow_daemon *d, struct ow_error *err)
{
	struct ow_source_options sources[OW_SOURCES_MAX];
	const struct ow_config *c = d->config;
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		sources[i] = (struct ow_source_options){
			.live = {.kind = in->file ? OW_IFACE_FILE : in->capture,
		                 .name = in->file ? in->file : in->name,
		                 .filter = in->filter,
		                 .cut_tcp = !is_recorded(c, i),
		                 .ring_bytes = in->ring_bytes,
		                 .hardware_stamps = in->hardware_stamps,
		                 .speed = in->speed},
			.threads = (unsigned)in->threads,
		};
		d->clock.files = d->clock.files || in->file;
		if (in->file && in->speed > d->clock.speed)
			d->clock.speed = in->speed;
	}
	int r = ow_recorder_open(sources, c->interface_count, &d->recorder, err);
	d->clock.recorder = d->recorder;
	ow_lane_logs_init(&d->logs, d->recorder, c->interface_count);
	for (unsigned i = 0; r == 0 && i < c->interface_count; i++) {
		if (*ow_recorder_note(d->recorder, i))
			ow_daemon_log(d, OW_EVENT_WARNING, "not recorded in the kernel: %s",
			              ow_recorder_note(d->recorder, i));
	}
	if (r == 0) {
		ow_daemon_log_mixes(d);
		r = check_directions(d, err);
	}
	if (r == 0)
		r = add_flows(d, err);
	if (r == 0)
		r = add_sampler(d, err);
	if (r == 0 && d->options.opened)
		r = d->options.opened(d->options.opened_arg, err);
	return r < 0 ? r : ow_recorder_start(d->recorder, err);
}

/* The actual address: the port may have been 0. */
static void log_listening(struct ow_daemon *d)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	char host[64], port[16];
	if (getsockname(d->listen.fd, (struct sockaddr *)&address, &size) == 0 &&
	    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		ow_daemon_log(d, OW_EVENT_INFO, strchr(host, ':') ? "listening on [%s]:%s" : "listening on %s:%s", host,
		              port);
}

static int watch(struct ow_daemon *d, struct ow_watch *watch, int fd, int (*ready)(void *arg, struct ow_error *err),
                 struct ow_error *err)
{
	*watch = (struct ow_watch){ready, d, fd, POLLIN};
	return ow_scheduler_add(&d->scheduler, watch, err);
}

static int on_tick(void *arg, struct ow_error *err);
static int on_recorded(void *arg, struct ow_error *err);
static int on_stop(void *arg, struct ow_error *err);

static int open_loop(struct ow_daemon *d, struct ow_error *err)
{
	int fd, r = ow_scheduler_open(&d->scheduler, TICK_NS, on_tick, d, err);
	if (r == 0)
		r = watch(d, &d->stop, d->options.stop_fd, on_stop, err);
	if (r == 0 && d->config->listen) {
		r = ow_listen(d->config->listen, &fd, err);
		if (r == 0)
			r = watch(d, &d->listen, fd, ow_daemon_accept, err);
		if (r == 0)
			log_listening(d);
	}
	return r;
}

static int create(struct ow_daemon *d, struct ow_error *err)
{
	uint64_t seed;
	if (getrandom(&d->epoch, sizeof d->epoch, 0) != (ssize_t)sizeof d->epoch ||
	    getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	ow_random_seed(&d->jitter, seed);
	d->memory_left = d->config->memory;
	d->clock.state.error_ns = OW_CLOCK_UNKNOWN;
	d->clock.identity = ow_clock_identity();
	int r = ow_clocks_create(OW_CLOCKS_CHRONY_PORT, &d->clock.clocks);
	if (r < 0)
		return ow_error_set(err, -r, "not enough memory");
	r = ow_daemon_keys_create(d->config, &d->keys, err);
	if (r == 0)
		r = ow_daemon_peers_add(d, d->config, err);
	if (r == 0)
		r = open_loop(d, err);
	/* This is last, because replayed captures begin now. */
	if (r == 0)
		r = open_recorder(d, err);
	if (r == 0)
		r = watch(d, &d->recorded, ow_recorder_fd(d->recorder), on_recorded, err);
	return r;
}

int ow_daemon_create(const struct ow_config *config, const struct ow_daemon_options *options,
                     struct ow_daemon **ret_daemon, struct ow_error *err)
{
	struct ow_daemon *d = calloc(1, sizeof *d);
	if (!d)
		return ow_error_set(err, ENOMEM, "not enough memory");
	d->config = config;
	d->options = *options;
	d->scheduler.epoll_fd = d->scheduler.timer.fd = d->listen.fd = -1;
	d->clock.speed = 1;
	int r = create(d, err);
	if (r < 0) {
		ow_daemon_free(d);
		return r;
	}
	*ret_daemon = d;
	return 0;
}

void ow_daemon_free(struct ow_daemon *d)
{
	if (!d)
		return;
	ow_daemon_lanes_free(d);
	ow_daemon_links_free(d);
	ow_clocks_free(d->clock.clocks);
	free(d->gaps.gap);
	ow_daemon_identities_free(d);
	ow_lane_logs_done(&d->logs);
	ow_recorder_free(d->recorder);
	ow_sample_collector_free(d->samples);
	ow_daemon_keys_release(d->keys);
	if (d->listen.fd >= 0)
		close(d->listen.fd);
	ow_scheduler_close(&d->scheduler);
	for (unsigned i = 0; i < d->peer_count; i++)
		ow_daemon_peer_free(d->peers[i]);
	ow_daemon_groups_free(d);
	free(d);
}

/* The end. */

static void stop(struct ow_daemon *d)
{
	int64_t now = ow_clock_steady_ns();
	if (d->stopping) {
		d->at_once = true;
		return;
	}
	d->stopping = true;
	d->deadline_ns = now + (int64_t)((double)OW_QUICK_NS / d->clock.speed) + DRAIN_NS;
	ow_daemon_lanes_stop(d, false);
}

static int on_stop(void *arg, struct ow_error *err)
{
	struct ow_daemon *d = arg;
	/* What was written does not matter: a signal, or a number. */
	uint8_t said[256];
	(void)err;
	if (read(d->stop.fd, said, sizeof said) <= 0)
		ow_scheduler_remove(&d->scheduler, &d->stop);
	stop(d);
	return 0;
}

/* Every replayed file is at its end and every interval answered. */
static bool is_played(const struct ow_daemon *d)
{
	return d->clock.ended_ns != 0 && ow_daemon_lanes_done(d);
}

static bool is_over(struct ow_daemon *d, int64_t steady_ns)
{
	if (!d->stopping && d->options.run_ns > 0 && steady_ns - d->started_ns >= d->options.run_ns)
		stop(d);
	if (d->at_once || is_played(d))
		return true;
	return d->stopping && (ow_daemon_lanes_done(d) || steady_ns >= d->deadline_ns);
}

/* Sends BYE to all peers, and waits shortly until it is sent. */
static void say_goodbye(struct ow_daemon *d)
{
	ow_daemon_lanes_stop(d, true);
	ow_daemon_groups_end(d);
	for (unsigned i = 0; i < d->peer_count; i++) {
		if (d->peers[i]->link && d->peers[i]->link->ready && !d->peers[i]->link->closing)
			ow_daemon_link_bye(d->peers[i]->link, "the point is stopped");
	}
	d->stopping = true;
	int64_t end = ow_clock_steady_ns() + (d->at_once ? 0 : OW_NS_PER_S);
	for (int64_t now = ow_clock_steady_ns();; now = ow_clock_steady_ns()) {
		unsigned open = 0;
		ow_daemon_links_tend(d, now);
		for (unsigned i = 0; i < d->peer_count; i++)
			open += d->peers[i]->link != NULL;
		if (open == 0 || now >= end)
			return;
		struct timespec moment = {.tv_nsec = 5 * OW_NS_PER_MS};
		nanosleep(&moment, NULL);
	}
}

/* The loop. */

/* Whether the clock was set since the last check. */
static bool look_at_clock(struct ow_daemon *d)
{
	int64_t step_ns = ow_point_clock_look(&d->clock);
	if (step_ns != 0)
		ow_daemon_clock_stepped(d, step_ns);
	return step_ns != 0;
}

static int on_recorded(void *arg, struct ow_error *err)
{
	struct ow_daemon *d = arg;
	struct ow_error why;
	struct ow_chunk *chunks = NULL;
	int64_t passed_ns = d->passed_ns;
	int r = ow_recorder_take(d->recorder, &chunks, &passed_ns, &why);
	/* The packets are of lanes that have ended, and so is the time. */
	if (look_at_clock(d))
		passed_ns = INT64_MIN;
	ow_daemon_lanes_take(d, chunks, passed_ns);
	if (r == 0 || r == -EINTR)
		return 0;
	ow_daemon_log(d, OW_EVENT_ERROR, "%s", why.text);
	/* A damaged file ends where it is damaged. Other read errors end the point, and its supervisor restarts it. */
	return d->clock.files ? 0 : ow_error_set(err, -r, "%s", why.text);
}

static int on_tick(void *arg, struct ow_error *err)
{
	struct ow_daemon *d = arg;
	ow_daemon_clock_tick(d);
	ow_daemon_lanes_tick(d);
	ow_daemon_identity_tick(d);
	ow_daemon_gaps_tick(d);
	ow_daemon_groups_tick(d);
	ow_daemon_reload_tick(d);
	ow_daemon_trust_tick(d, ow_clock_steady_ns());
	if (d->options.tick)
		d->options.tick(d->options.tick_arg);
	return on_recorded(d, err);
}

static void log_memory(struct ow_daemon *d)
{
	unsigned lanes;
	uint64_t needed = ow_agree_needed(d->config, &lanes);
	if (lanes)
		ow_daemon_log(d, OW_EVENT_INFO, "memory: %u lanes share %.4g MiB and need at least %.4g MiB", lanes,
		              (double)d->config->memory / (1 << 20), (double)needed / (1 << 20));
}

int ow_daemon_run(struct ow_daemon *d, struct ow_error *err)
{
	int r = 0;
	log_memory(d);
	d->started_ns = ow_clock_steady_ns();
	ow_daemon_clock_tick(d);
	look_at_clock(d);
	while (r == 0 && !is_over(d, ow_clock_steady_ns())) {
		struct ow_watch *ready;
		r = ow_scheduler_wait(&d->scheduler, d->hurry, &ready, err);
		if (ready) {
			look_at_clock(d);
			r = r < 0 ? r : ready->ready(ready->arg, err);
		}
		ow_daemon_links_tend(d, ow_clock_steady_ns());
		ow_daemon_flush(d);
	}
	say_goodbye(d);
	ow_daemon_flush(d);
	/* If no interface is there at the end, the run has failed. */
	return r < 0 || d->clock.files ? r : ow_lane_logs_check(&d->logs, err);
}

/* More than this does not wait for a peer: results come first. */
#define SEND_QUEUE ((size_t)1 << 20)

bool ow_daemon_send(struct ow_daemon *daemon, const char *name, const struct ow_message *message)
{
	const struct ow_daemon_peer *peer = ow_daemon_peer_find(daemon, name);
	struct ow_daemon_link *link = peer ? peer->link : NULL;
	if (!link || !link->ready || link->closing || link->broken || ow_session_queued(link->session) > SEND_QUEUE)
		return false;
	ow_daemon_link_send(link, message);
	return true;
}

void ow_daemon_status(const struct ow_daemon *d, struct ow_daemon_status *ret_status)
{
	*ret_status = (struct ow_daemon_status){.peers = d->peer_count, .stopping = d->stopping};
	ret_status->certificate_expiry_s = d->keys->tls ? ow_tls_expiry_s(d->keys->tls) : INT64_MAX;
	for (unsigned i = 0; i < d->peer_count; i++) {
		const struct ow_daemon_peer *peer = d->peers[i];
		bool connected = peer->link && peer->link->ready;
		ret_status->connected += connected;
		if (!connected && peer->last_failure[0] && !ret_status->why[0])
			snprintf(ret_status->why, sizeof ret_status->why, "%.64s: %.90s", peer->name,
			         peer->last_failure);
	}
	for (unsigned i = 0; i < d->lane_count; i++)
		ret_status->lanes += d->lanes[i]->state == OW_LANE_RUNNING;
	for (unsigned i = 0; i < d->config->interface_count; i++) {
		struct ow_recorder_counts counts;
		ow_recorder_counts(d->recorder, i, &counts);
		ret_status->frames += counts.frames;
		ret_status->dropped += counts.dropped;
	}
	ret_status->clock_known = d->clock.known;
	ret_status->clock = d->clock.state;
}
