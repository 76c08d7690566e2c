/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_H
#define OW_POINT_DAEMON_H

#include "config/config.h"

/*
 * A measurement point at work: captures, holds sessions with its peers, agrees with them on lanes, exchanges pages and
 * hands on results, until it is told to stop. One thread, besides those of the recorder; nothing is called from another
 * one.
 */

/* What was refused: why a connection was, or a message of a peer. */
enum ow_refused {
	OW_REFUSED_IDENTITY, /* not who it should be, or not who may be here */
	OW_REFUSED_PROTOCOL, /* not what a point sends */
	OW_REFUSED_TIMEOUT,  /* too slow, or silent */
	OW_REFUSED_CLOSED,   /* it went away before it had said who it is */
	OW_REFUSED_BUSY,     /* too many at a time */
	OW_REFUSED_MESSAGE,  /* of a peer: out of range, or not for it to say */
	OW_REFUSALS,
};

/* Where results go. */
struct ow_result_sink {
	/* Each result: first provisional, then final, of every lane of this point. */
	void (*result)(void *arg, const struct ow_interval_result *result);
	/* The sum of a lane when it ends: at the end of the run, or when a peer has restarted. */
	void (*total)(void *arg, const struct ow_interval_result *total);
	/* After the last of several results at a time: a good moment to flush. */
	void (*flush)(void *arg);
	void *arg;
	/* The connection with a peer is there (both HELLOs are through), or no longer. May be NULL. */
	void (*peer)(void *arg, const char *peer, bool connected);
	/* To be counted. peer: whose message it was, else NULL. May be NULL. */
	void (*refused)(void *arg, enum ow_refused what, const char *peer);
};

/* How much an event matters: as syslog(3) counts. */
enum ow_event { OW_EVENT_ERROR = 3, OW_EVENT_WARNING, OW_EVENT_NOTICE, OW_EVENT_INFO };

/* Where epochs of recorded flows go: called by the threads that record. */
struct ow_flows_sink {
	/* recording: which of the configuration. Takes the epoch by leaving NULL for its colate and counts. */
	void (*epoch)(void *arg, unsigned recording, struct ow_epoch *epoch);
	/* Packets that were not recorded, for want of memory. */
	void (*lost)(void *arg, unsigned recording, uint64_t packets);
	void *arg;
};

struct ow_daemon_options {
	struct ow_result_sink sink;
	struct ow_flows_sink flows;
	/* One line an event: connected, agreed, refused, lost ... */
	void (*log)(void *arg, enum ow_event level, const char *line);
	void *log_arg;
	/* While it runs, every 10 ms or so. May be NULL. */
	void (*tick)(void *arg);
	void *tick_arg;
	/* Sockets and keys are open, threads not started yet: the moment to give up privileges. NULL = nothing to do.
	 * A negative errno ends it, with a line. */
	int (*opened)(void *arg, struct ow_error *err);
	void *opened_arg;
	int stop_fd;    /* readable = come to an end; again = at once. -1 = none */
	int64_t run_ns; /* come to an end after this time; 0 = never */
};

struct ow_daemon;

/* Opens sources, keys and the listening socket. config stays the caller's and must outlive the daemon. */
int ow_daemon_create(const struct ow_config *config, const struct ow_daemon_options *options,
                     struct ow_daemon **ret_daemon, struct ow_error *err);
void ow_daemon_free(struct ow_daemon *daemon);

/* Until it has been stopped, or all its sources are files that have ended. Interfaces that go away are waited for. 0,
 * or a negative errno: a source failed, the kernel refuses, or no interface was there at the end. */
int ow_daemon_run(struct ow_daemon *daemon, struct ow_error *err);

/*
 * Takes up another configuration while it runs (not from within a sink): lanes of segments that are the same go on,
 * those of others end with their interval, and what is new is agreed on. Keys are read again, and connections whose
 * peers they do not accept end. On failure everything stays as it was, and err says why. The one before is not used any
 * more.
 */
int ow_daemon_reload(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err);

struct ow_daemon_status {
	unsigned peers, connected, lanes; /* lanes: those that are measured */
	bool stopping;
	int64_t certificate_expiry_s; /* since 1970; INT64_MAX = there is none */
};
void ow_daemon_status(const struct ow_daemon *daemon, struct ow_daemon_status *ret_status);

#endif
