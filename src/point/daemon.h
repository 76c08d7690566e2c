/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "exchange/message.h"

/*
 * A running measurement point: captures, has sessions with its peers, agrees with them on lanes, exchanges the packets
 * of intervals and passes on results, until it is stopped. It runs in one thread, besides those of the recorder, and
 * calls nothing from another one.
 */

/* Reasons why a connection or a message of a peer was refused. */
enum ow_refused {
	OW_REFUSED_IDENTITY, /* not the expected peer, or not an allowed one */
	OW_REFUSED_PROTOCOL, /* not the protocol of points */
	OW_REFUSED_TIMEOUT,  /* too slow, or silent */
	OW_REFUSED_CLOSED,   /* closed before it was authenticated */
	OW_REFUSED_BUSY,     /* too many at a time */
	OW_REFUSED_MESSAGE,  /* a message of a peer that is out of range, or that it may not send */
	OW_REFUSALS,
};

/* Where results go. */
struct ow_result_sink {
	/* Called for each result: first provisional, then final, of every lane of this point. */
	void (*result)(void *arg, const struct ow_interval_result *result);
	/* What happened to flows of a lane that this point sends. It is in the log as well. May be NULL. */
	void (*event)(void *arg, const struct ow_flow_event *event);
	/* The sum of a lane when it ends: at the end of the run, or when a peer has restarted. */
	void (*total)(void *arg, const struct ow_interval_result *total);
	/* Called after the last of several results: a good time to flush. */
	void (*flush)(void *arg);
	void *arg;
	/* The connection with a peer was established (both HELLOs have arrived), or has ended. May be NULL. */
	void (*peer)(void *arg, const char *peer, bool connected);
	/* Counts a refusal. peer: the sender of the message, otherwise NULL. May be NULL. */
	void (*refused)(void *arg, enum ow_refused what, const char *peer);
};

/* The level of an event, as in syslog(3). */
enum ow_event { OW_EVENT_ERROR = 3, OW_EVENT_WARNING, OW_EVENT_NOTICE, OW_EVENT_INFO };

/* Receives the epochs of recorded flows. Called in the recording threads. */
struct ow_flows_sink {
	/* recording: its index in the configuration. Takes the epoch by setting its colate and counts to NULL. */
	void (*epoch)(void *arg, unsigned recording, struct ow_epoch *epoch);
	/* Packets that were not recorded because there was not enough memory. */
	void (*lost)(void *arg, unsigned recording, uint64_t packets);
	void *arg;
	/* WANTED or EPOCH of a peer; in the daemon's thread. May be NULL. */
	void (*message)(void *arg, const char *peer, const struct ow_message *message);
};

struct ow_daemon_options {
	struct ow_result_sink sink;
	struct ow_flows_sink flows;
	/* Messages with samples of packets, if the configuration has discovery; called in the recording threads. */
	void (*sample)(void *arg, int64_t start_ns, const uint8_t *bytes, size_t size);
	void *sample_arg;
	/* One line for each event: connected, agreed, refused, lost ... */
	void (*log)(void *arg, enum ow_event level, const char *line);
	void *log_arg;
	/* Called about every 10 ms while it runs. May be NULL. */
	void (*tick)(void *arg);
	void *tick_arg;
	/*
	 * Called when sockets and keys are open and no thread has started: the time to drop privileges. May be NULL. A
	 * negative errno, with an error message, ends the daemon.
	 */
	int (*opened)(void *arg, struct ow_error *err);
	void *opened_arg;
	int stop_fd;    /* readable = finish; readable again = end at once. -1 = none */
	int64_t run_ns; /* finish after this time; 0 = never */
};

struct ow_daemon;

/* Opens sources, keys and the listening socket. The caller keeps config, which must outlive the daemon. */
int ow_daemon_create(const struct ow_config *config, const struct ow_daemon_options *options,
                     struct ow_daemon **ret_daemon, struct ow_error *err);
void ow_daemon_free(struct ow_daemon *daemon);

/*
 * Runs until it was stopped, or until all its sources are files that have ended. It waits for interfaces that go away.
 * Returns 0, or a negative errno: a source failed, a system call failed, or no interface was there at the end.
 */
int ow_daemon_run(struct ow_daemon *daemon, struct ow_error *err);

/*
 * Uses another configuration while it runs (not to be called from a sink): lanes of unchanged segments continue, those
 * of others end with their interval, and the points agree on new ones. Keys are read again, and connections whose peers
 * they do not accept end. On failure nothing changes, and err has the reason. After success the previous configuration
 * is no longer used.
 */
int ow_daemon_reload(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err);

/* Sends to a peer. False: there is no connection now, or much waits to be read at its other end. */
bool ow_daemon_send(struct ow_daemon *daemon, const char *peer, const struct ow_message *message);

struct ow_daemon_status {
	unsigned peers, connected, lanes; /* lanes: number of lanes that are measured */
	char why[160]; /* why the first peer that is not connected is not; "" = all are, or not known */
	bool stopping;
	int64_t certificate_expiry_s; /* since 1970; INT64_MAX = no certificate */
	uint64_t frames, dropped;     /* of all interfaces, since the start */
	bool clock_known;
	struct ow_clock_state clock;
};
void ow_daemon_status(const struct ow_daemon *daemon, struct ow_daemon_status *ret_status);
