/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's loop: one thread that sleeps in epoll until a connection, the recorder, the clock tick or the wish to
 * stop wakes it. Events are taken one at a time, so that none can be about a connection that the one before has closed.
 */
#include "point/daemon.h"

#include "base/time.h"
#include "point/daemon_private.h"
#include "flows/flow_thread.h"
#include "config/memory_budget.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How long an interval's end may go unnoticed where nothing else wakes the loop. */
#define TICK_NS (10 * OW_NS_PER_MS)

#define LOG_LINE 600

void ow_daemon_log(struct ow_daemon *daemon, enum ow_event level, const char *format, ...)
{
	char line[LOG_LINE];
	va_list args;
	if (!daemon->options.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	daemon->options.log(daemon->options.log_arg, level, line);
}

/* Whether a line about a peer may be said. */
static bool take_line(struct ow_daemon_peer *peer)
{
	int64_t now = ow_clock_steady_ns(), earned = (now - peer->lines_ns) / OW_LINE_NS;
	if (peer->lines_ns == 0 || earned >= peer->lines) {
		peer->lines = 0;
		peer->lines_ns = now;
	} else {
		peer->lines -= (unsigned)earned;
		peer->lines_ns += earned * OW_LINE_NS;
	}
	return peer->lines < OW_LINES_MAX;
}

void ow_daemon_peer_log(struct ow_daemon_peer *peer, enum ow_event level, const char *format, ...)
{
	char line[LOG_LINE];
	va_list args;
	if (!take_line(peer))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	ow_daemon_log(peer->daemon, level, "%s: %s", peer->name, line);
	if (++peer->lines == OW_LINES_MAX)
		ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: from now on not all that it does is said",
		              peer->name);
}

void ow_daemon_complain(struct ow_daemon_peer *peer, const char *format, ...)
{
	char line[LOG_LINE];
	va_list args;
	int64_t now = ow_clock_steady_ns();
	ow_daemon_refused(peer->daemon, OW_REFUSED_MESSAGE, peer->name);
	if (now - peer->complained_ns >= OW_COMPLAINTS_NS) {
		peer->complained_ns = now;
		peer->complaints = 0;
	}
	if (++peer->complaints == OW_COMPLAINTS_MAX)
		ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: what is refused from now on is only counted",
		              peer->name);
	if (peer->complaints >= OW_COMPLAINTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: %s", peer->name, line);
}

void ow_daemon_tell_peer(struct ow_daemon *daemon, const char *peer, bool connected)
{
	if (daemon->options.sink.peer)
		daemon->options.sink.peer(daemon->options.sink.arg, peer, connected);
}

void ow_daemon_refused(struct ow_daemon *daemon, enum ow_refused what, const char *peer)
{
	if (daemon->options.sink.refused)
		daemon->options.sink.refused(daemon->options.sink.arg, what, peer);
}

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
			.stamper = {.info = &flows->info, .filter = flows->filter, .heading = flows->heading},
			.flows_max = flows->flows_max,
			.on_epoch = on_epoch,
			.on_lost = on_lost,
			.arg = &d->flows[i],
		};
		for (unsigned k = 0; k < flows->class_count; k++)
			options.stamper.class_filter[k] = flows->classes[k].filter;
		r = ow_recorder_add_tap(d->recorder, &options, err);
	}
	return r;
}

/* What to_peer is for. Without, no packet of such an interface would be of any lane. */
static int check_directions(const struct ow_daemon *d, struct ow_error *err)
{
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		const char *name = s->to_peer ? NULL : ow_recorder_undirected(d->recorder, s->interfaces);
		if (name)
			return ow_error_set(err, EINVAL,
			                    "%s:%u: segment '%s': %s does not tell which way packets go: give to_peer",
			                    d->config->path, s->line, s->name, name);
	}
	return 0;
}

static int open_recorder(struct ow_daemon *d, struct ow_error *err)
{
	struct ow_source_options sources[OW_SOURCES_MAX];
	const struct ow_config *c = d->config;
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		sources[i] = (struct ow_source_options){
			.live = {.kind = in->file ? OW_IFACE_FILE : OW_IFACE_AUTO,
		                 .name = in->file ? in->file : in->name,
		                 .filter = in->filter,
		                 .ring_bytes = in->ring_bytes,
		                 .hardware_stamps = in->hardware_stamps,
		                 .speed = in->speed},
			.threads = (unsigned)in->threads,
		};
		d->files = d->files || in->file;
		if (in->file && in->speed > d->speed)
			d->speed = in->speed;
	}
	int r = ow_recorder_open(sources, c->interface_count, &d->recorder, err);
	if (r == 0)
		r = check_directions(d, err);
	if (r == 0)
		r = add_flows(d, err);
	if (r == 0 && d->options.opened)
		r = d->options.opened(d->options.opened_arg, err);
	return r < 0 ? r : ow_recorder_start(d->recorder, err);
}

int ow_daemon_keys_create(const struct ow_config *c, struct ow_daemon_keys **ret_keys, struct ow_error *err)
{
	struct ow_tls_options options = {
		.certificate = c->certificate, .key = c->key, .ca = c->ca, .psk_file = c->psk, .name = c->point};
	struct ow_daemon_keys *keys = calloc(1, sizeof *keys);
	if (!keys)
		return ow_error_set(err, ENOMEM, "not enough memory");
	keys->users = 1;
	/* A point that only records flows talks to nobody. */
	int r = c->segment_count || c->listen ? ow_tls_create(&options, &keys->tls, err) : 0;
	if (r < 0)
		free(keys);
	else
		*ret_keys = keys;
	return r;
}

void ow_daemon_keys_release(struct ow_daemon_keys *keys)
{
	if (!keys || --keys->users > 0)
		return;
	ow_tls_free(keys->tls);
	free(keys);
}

/* The address as it turned out: the port may have been 0. */
static void log_listening(struct ow_daemon *d)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	char host[64], port[16];
	if (getsockname(d->listen_fd, (struct sockaddr *)&address, &size) == 0 &&
	    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		ow_daemon_log(d, OW_EVENT_INFO, strchr(host, ':') ? "listening on [%s]:%s" : "listening on %s:%s", host,
		              port);
}

static int watch_fd(struct ow_daemon *d, int fd, void *tag, struct ow_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
	if (fd < 0 || epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	return ow_error_set(err, errno, "epoll: %s", strerror(errno));
}

static int open_loop(struct ow_daemon *d, struct ow_error *err)
{
	struct itimerspec tick = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->epoll_fd < 0 || d->timer_fd < 0 || timerfd_settime(d->timer_fd, 0, &tick, NULL) < 0)
		return ow_error_set(err, errno, "epoll or timerfd: %s", strerror(errno));
	int r = watch_fd(d, d->timer_fd, &d->timer_fd, err);
	if (r == 0)
		r = watch_fd(d, d->options.stop_fd, &d->options.stop_fd, err);
	if (r == 0 && d->config->listen) {
		r = ow_listen(d->config->listen, &d->listen_fd, err);
		if (r == 0)
			r = watch_fd(d, d->listen_fd, &d->listen_fd, err);
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
	d->clock.error_ns = OW_CLOCK_UNKNOWN;
	int r = ow_clocks_create(OW_CLOCKS_CHRONY_PORT, &d->clocks);
	if (r < 0)
		return ow_error_set(err, -r, "not enough memory");
	r = ow_daemon_keys_create(d->config, &d->keys, err);
	if (r == 0)
		r = ow_daemon_peers_add(d, d->config, err);
	if (r == 0)
		r = open_loop(d, err);
	/* Last, because captures that are replayed begin now. */
	if (r == 0)
		r = open_recorder(d, err);
	if (r == 0)
		r = watch_fd(d, ow_recorder_fd(d->recorder), &d->recorder, err);
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
	d->epoll_fd = d->listen_fd = d->timer_fd = -1;
	d->speed = 1;
	int r = create(d, err);
	if (r < 0) {
		ow_daemon_free(d);
		return r;
	}
	*ret_daemon = d;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void ow_daemon_free(struct ow_daemon *d)
{
	if (!d)
		return;
	ow_daemon_lanes_free(d);
	ow_daemon_links_free(d);
	ow_clocks_free(d->clocks);
	free(d->gap);
	ow_recorder_free(d->recorder);
	ow_daemon_keys_release(d->keys);
	close_fd(d->listen_fd);
	close_fd(d->timer_fd);
	close_fd(d->epoll_fd);
	for (unsigned i = 0; i < d->peer_count; i++)
		ow_daemon_peer_free(d->peers[i]);
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
	d->deadline_ns = now + (int64_t)((double)OW_QUICK_NS / d->speed) + OW_DRAIN_NS;
	ow_daemon_lanes_stop(d, false);
}

static void on_stop_fd(struct ow_daemon *d)
{
	/* What was written to it is of no interest: a signal, or a number. */
	uint8_t said[256];
	if (read(d->options.stop_fd, said, sizeof said) <= 0)
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, d->options.stop_fd, NULL);
	stop(d);
}

/* Every replayed file is at its end and every interval answered. */
static bool is_played(const struct ow_daemon *d)
{
	return d->ended_ns != 0 && ow_daemon_lanes_done(d);
}

static bool is_over(struct ow_daemon *d, int64_t steady_ns)
{
	if (!d->stopping && d->options.run_ns > 0 && steady_ns - d->started_ns >= d->options.run_ns)
		stop(d);
	if (d->at_once || is_played(d))
		return true;
	return d->stopping && (ow_daemon_lanes_done(d) || steady_ns >= d->deadline_ns);
}

/* Tells everybody, and gives them a moment to hear it. */
static void say_goodbye(struct ow_daemon *d)
{
	ow_daemon_lanes_stop(d, true);
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

static int record(struct ow_daemon *d, struct ow_error *err)
{
	struct ow_error why;
	int r = ow_daemon_lanes_record(d, &why);
	if (r == 0 || r == -EINTR)
		return 0;
	ow_daemon_log(d, OW_EVENT_ERROR, "%s", why.text);
	/* A file that is damaged ends where it is. What else cannot be read is a matter for whoever starts us again. */
	return d->files ? 0 : ow_error_set(err, -r, "%s", why.text);
}

static int on_event(struct ow_daemon *d, void *tag, struct ow_error *err)
{
	uint64_t ticks;
	ow_daemon_clock_look(d);
	if (tag == &d->timer_fd) {
		if (read(d->timer_fd, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
			return ow_error_set(err, errno, "timerfd: %s", strerror(errno));
		ow_daemon_clock_tick(d);
		ow_daemon_lanes_tick(d);
		ow_daemon_gaps_tick(d);
		ow_daemon_reload_tick(d);
		ow_daemon_trust_tick(d, ow_clock_steady_ns());
		if (d->options.tick)
			d->options.tick(d->options.tick_arg);
		return record(d, err);
	}
	if (tag == &d->recorder)
		return record(d, err);
	if (tag == &d->options.stop_fd)
		on_stop_fd(d);
	else if (tag == &d->listen_fd)
		ow_daemon_link_accept(d);
	else
		ow_daemon_link_drive(tag);
	return 0;
}

static void flush(struct ow_daemon *d)
{
	if (d->has_results && d->options.sink.flush)
		d->options.sink.flush(d->options.sink.arg);
	d->has_results = false;
}

/* An end without any interface is not a good one. */
static int check_interfaces(const struct ow_daemon *d, struct ow_error *err)
{
	unsigned count = d->config->interface_count;
	if (count == 0 || d->away != (uint32_t)((UINT64_C(1) << count) - 1))
		return 0;
	char causes[4 * OW_OUTAGE_CAUSE] = "";
	size_t used = 0;
	for (unsigned i = 0; i < count && used < sizeof causes; i++)
		used += (size_t)snprintf(causes + used, sizeof causes - used, "%s%s", i ? ", " : "",
		                         d->outage[i].cause);
	return ow_error_set(err, ENODEV, "no interface is left: %s", causes);
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
	ow_daemon_clock_look(d);
	while (r == 0 && !is_over(d, ow_clock_steady_ns())) {
		struct epoll_event event;
		int n = epoll_wait(d->epoll_fd, &event, 1, d->hurry ? 0 : -1);
		if (n < 0 && errno != EINTR)
			r = ow_error_set(err, errno, "epoll: %s", strerror(errno));
		if (n == 1)
			r = on_event(d, event.data.ptr, err);
		ow_daemon_links_tend(d, ow_clock_steady_ns());
		flush(d);
	}
	say_goodbye(d);
	flush(d);
	return r < 0 ? r : check_interfaces(d, err);
}

void ow_daemon_status(const struct ow_daemon *d, struct ow_daemon_status *ret_status)
{
	*ret_status = (struct ow_daemon_status){.peers = d->peer_count, .stopping = d->stopping};
	ret_status->certificate_expiry_s = d->keys->tls ? ow_tls_expiry_s(d->keys->tls) : INT64_MAX;
	for (unsigned i = 0; i < d->peer_count; i++)
		ret_status->connected += d->peers[i]->link && d->peers[i]->link->ready;
	for (unsigned i = 0; i < d->lane_count; i++)
		ret_status->lanes += d->lanes[i]->state == OW_LANE_RUNNING;
}
