/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of the daemon: lines of the log, results, refusals. */
#include "point/daemon_events.h"

#include "point/daemon_private.h"

#include <stdarg.h>
#include <stdio.h>

#define LOG_LINE 600
/*
 * Largest number of lines about a peer's messages in this time: the peer chooses the words, so the log cannot recognise
 * repetitions.
 */
#define COMPLAINTS_MAX 16
#define COMPLAINTS_NS  INT64_C(60000000000)
/* Other lines about a peer: this many (it may have as many lanes), and one more in each such time. */
#define LINES_MAX 1024
#define LINE_NS   INT64_C(1000000000)

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

/* Whether a line about a peer may be logged. */
static bool take_line(struct ow_daemon_peer *peer)
{
	int64_t now = ow_clock_steady_ns(), earned = (now - peer->lines_ns) / LINE_NS;
	if (peer->lines_ns == 0 || earned >= peer->lines) {
		peer->lines = 0;
		peer->lines_ns = now;
	} else {
		peer->lines -= (unsigned)earned;
		peer->lines_ns += earned * LINE_NS;
	}
	return peer->lines < LINES_MAX;
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
	if (++peer->lines == LINES_MAX)
		ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: from now on some of its events are not logged",
		              peer->name);
}

void ow_daemon_complain(struct ow_daemon_peer *peer, const char *format, ...)
{
	char line[LOG_LINE];
	va_list args;
	int64_t now = ow_clock_steady_ns();
	ow_daemon_refused(peer->daemon, OW_REFUSED_MESSAGE, peer->name);
	if (now - peer->complained_ns >= COMPLAINTS_NS) {
		peer->complained_ns = now;
		peer->complaints = 0;
	}
	if (++peer->complaints == COMPLAINTS_MAX)
		ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: further refusals are only counted", peer->name);
	if (peer->complaints >= COMPLAINTS_MAX)
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

void ow_daemon_flush(struct ow_daemon *d)
{
	if (d->has_results && d->options.sink.flush)
		d->options.sink.flush(d->options.sink.arg);
	d->has_results = false;
}

void ow_daemon_result(struct ow_daemon *d, const struct ow_interval_result *result)
{
	d->options.sink.result(d->options.sink.arg, result);
	d->has_results = true;
}

void ow_daemon_flow_event(struct ow_daemon *d, const struct ow_flow_event *event)
{
	if (!d->options.sink.event)
		return;
	d->options.sink.event(d->options.sink.arg, event);
	d->has_results = true;
}

void ow_daemon_total(struct ow_daemon *d, const struct ow_interval_result *total)
{
	d->options.sink.total(d->options.sink.arg, total);
	d->has_results = true;
}
