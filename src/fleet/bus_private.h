/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"
#include "fleet/bus_queue.h"

/* Private to the files bus*.c. */

#define OW_BUS_CLIENT_NAME 80

/* Messages to one stream: "ow.r.". A stream stores them in order. */
struct ow_bus_flow {
	char subject[16];    /* how their subjects begin */
	int64_t answered_ns; /* when the newest message that was answered was sent */
	int64_t heard_ns;    /* of an answer, or when a message was given up */
	int64_t wait_ns;     /* silence after which the oldest message is given up */
};

/* A request whose answer has not come. */
struct ow_bus_open {
	uint64_t id; /* 0 = none */
	int64_t sent_ns;
	struct ow_bus_flow *flow; /* of a published message */
	ow_bus_handler *handler;
	ow_bus_published *published; /* of a published message; then there is no handler */
	void *arg;
};

struct ow_bus_subscription {
	unsigned id;
	char *subject;
	ow_bus_handler *handler;
	void *arg;
	natsSubscription *nats; /* NULL = not subscribed */
};

struct ow_bus_pull {
	char subject[OW_BUS_SUBJECT], inbox[OW_BUS_SUBJECT], request[120];
	unsigned batch, wanted; /* messages that are asked for and have not come */
	int64_t asked_ns;       /* when; 0 = nothing is asked for */
	ow_bus_handler *handler;
	void *arg;
};

struct ow_bus {
	struct ow_bus_options options;       /* with texts of its own */
	char inbox[OW_BUS_CLIENT_NAME + 48]; /* "_IN.NAME.RANDOM" */
	struct ow_bus_queue *queue;
	natsConnection *connection;
	unsigned number; /* of the connection: events of an earlier one are of no interest */
	bool connected;
	int64_t connect_ns; /* when to try next */
	int64_t connect_pause_ns;
	struct ow_error last; /* why the last attempt failed */

	struct ow_bus_subscription *subscription; /* the first one is that of the inbox */
	size_t subscriptions, subscriptions_room;
	unsigned last_subscription; /* its id */

	struct ow_bus_open open[OW_BUS_OPEN_MAX]; /* by id */
	uint64_t next_id, oldest_id;
	unsigned open_count;
	int64_t publish_ns; /* not before, because the stream did not take messages */
	int64_t publish_pause_ns;
	int64_t failed_ns; /* when the last failure was noticed */
	int64_t looked_ns; /* for requests that have waited long enough */
	bool probe; /* one message may be sent, however many are on their way: its answer tells what became of these */
	struct ow_bus_flow flow[8];
	unsigned flows;
	double window; /* messages that may be on their way; grows with each that is stored, and is halved at a failure */

	struct ow_bus_pull pull[4];
	unsigned pulls;
	bool paused;
};

/* ow_bus_request with a header; NULL = none. */
int ow_bus_request_with(struct ow_bus *bus, const char *subject, const char *header, const char *value,
                        const void *data, size_t size, ow_bus_handler *handler, void *arg, struct ow_error *err);
/* Ends the last subscription. */
void ow_bus_unsubscribe(struct ow_bus *bus);
/* An answer to a request of the bus that is its argument; ignores others. */
ow_bus_handler ow_bus_answer;
/* A message of the pull that is its argument, which the server limits to this time. */
ow_bus_handler ow_bus_pulled;
#define OW_BUS_PULL_EXPIRES_NS INT64_C(3000000000)
/* Handles requests that have waited long enough, and asks pulls for more. */
void ow_bus_requests_tick(struct ow_bus *bus, int64_t now_ns);
/* There is a connection again: what was silent has a new chance. */
void ow_bus_flows_reset(struct ow_bus *bus, int64_t now_ns);
void ow_bus_pulls_tick(struct ow_bus *bus, int64_t now_ns);
/* Forgets what was asked through a connection that is gone. */
void ow_bus_pulls_reset(struct ow_bus *bus);
/* "cannot publish: Timeout" as an error. */
int ow_bus_fail(natsStatus status, const char *what, struct ow_error *err);
/* "tls://user:password@host" becomes "tls://host". */
void ow_bus_hide_password(char *urls);
/* Doubles a pause up to a limit, and gives the time when it is over, up to a quarter earlier. */
int64_t ow_bus_pause_until(int64_t *pause_ns, int64_t least_ns, int64_t most_ns, int64_t now_ns);
