/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A connection to the fleet's NATS servers. libnats has threads; here everything is handled in the thread that calls
 * ow_bus_poll: it calls the handlers of messages, of answers and of acknowledgements. One bus is for one thread.
 *
 * The bus connects when it is polled, tries again with growing pauses for ever, and renews its subscriptions. If the
 * servers close the connection for good (a revoked certificate), it connects anew and reads its certificate again.
 *
 * Answers come to an inbox with a random name that nobody else can guess: permissions do not stop another client from
 * having a server answer it there (a forged acknowledgement would lose a message).
 */
struct ow_bus;

struct ow_bus_options {
	const char *urls; /* "tls://a:4222,tls://b:4222", also nats://; commas, spaces or line ends between them */
	const char *ca, *certificate, *key; /* PEM files; all NULL: without TLS */
	const char *server; /* name that the servers' certificates must have; NULL = libnats checks none */
	const char *name;   /* of this client; its inboxes are below _IN.NAME */
	/* What the user should know, one line: connected, connection lost, permission denied. May be NULL. */
	void (*news)(void *arg, const char *line);
	void *arg;
};

/* Reads the options (also the files) only; the connection comes about in ow_bus_poll. */
int ow_bus_create(const struct ow_bus_options *options, struct ow_bus **ret_bus, struct ow_error *err);
/* Sends what is waiting to be sent, up to a second, and closes. Handlers of open requests are not called. */
void ow_bus_free(struct ow_bus *bus);

/*
 * Waits up to wait_ms for something to arrive and handles everything that has. Returns the number of messages handled.
 */
unsigned ow_bus_poll(struct ow_bus *bus, int wait_ms);
bool ow_bus_connected(const struct ow_bus *bus);
/* Polls until there is a connection. -ETIMEDOUT, and the last error of an attempt. */
int ow_bus_wait(struct ow_bus *bus, int wait_ms, struct ow_error *err);
/* Closes the connection and makes a new one: the certificate has changed. */
void ow_bus_reconnect(struct ow_bus *bus);

/* -- messages ----------------------------------------------------------------------------------------------------- */

struct ow_bus_message {
	const char *subject;
	const char *reply; /* "" = none */
	const void *data;
	size_t size;
	/* Of a stored message that was asked for or republished: its place in the stream. Otherwise 0. */
	uint64_t sequence;
	/* When a server stored it, by its clock: of a message of ow_bus_each, or one that was asked for, in whole seconds.
	 * Otherwise 0. */
	int64_t stored_ns;
	/* 0: a message. Otherwise there is no data: 404 not found, 408 time-out, 503 nobody answers. */
	int status;
};
/* The message is valid during the call only. */
typedef void ow_bus_handler(void *arg, const struct ow_bus_message *message);

/* Holds for all connections to come. */
int ow_bus_subscribe(struct ow_bus *bus, const char *subject, ow_bus_handler *handler, void *arg, struct ow_error *err);
/* Without acknowledgement: it may be lost. -ENOTCONN: there is no connection. */
int ow_bus_send(struct ow_bus *bus, const char *subject, const void *data, size_t size, struct ow_error *err);
/* The handler is called once: with the answer, or with a status (408 after OW_BUS_WAIT_MS). */
int ow_bus_request(struct ow_bus *bus, const char *subject, const void *data, size_t size, ow_bus_handler *handler,
                   void *arg, struct ow_error *err);
#define OW_BUS_WAIT_MS 5000

/* -- streams ------------------------------------------------------------------------------------------------------ */

enum ow_bus_outcome {
	OW_BUS_STORED,    /* by the stream */
	OW_BUS_DUPLICATE, /* the stream has this message id already: only if it was sent before, it is the same message */
	OW_BUS_REFUSED,   /* by the stream: full, too large, ... */
	OW_BUS_NO_ANSWER, /* it may be stored or not */
};
/* why: one line unless it is stored. */
typedef void ow_bus_published(void *arg, enum ow_bus_outcome outcome, const char *why);

/* How many messages may be published now. 0 without a connection, while the stream does not take messages (with growing
 * pauses), and while too many are not acknowledged: fewer after failures, never more than OW_BUS_OPEN_MAX. */
unsigned ow_bus_room(const struct ow_bus *bus);
#define OW_BUS_OPEN_MAX 4096
/* Publishes to a stream. `id`: a repetition with the same id is stored once; NULL = no id. */
int ow_bus_publish(struct ow_bus *bus, const char *subject, const char *id, const void *data, size_t size,
                   ow_bus_published *published, void *arg, struct ow_error *err);

/*
 * Takes messages from a durable consumer of a stream, `batch` at a time; the handler gets their contents, and `reply`
 * for ow_bus_acknowledge. Messages that are not acknowledged come again, here or elsewhere. May be called once for each
 * consumer; holds for all connections to come.
 */
int ow_bus_pull(struct ow_bus *bus, const char *stream, const char *consumer, unsigned batch, ow_bus_handler *handler,
                void *arg, struct ow_error *err);
/* Asks for no more, or does so again. */
void ow_bus_pause(struct ow_bus *bus, bool pause);
int ow_bus_acknowledge(struct ow_bus *bus, const char *reply);
/* The message comes again, after this time. */
int ow_bus_postpone(struct ow_bus *bus, const char *reply, int64_t delay_ns);
/* Whether messages of a pull are here, or may still come because they were asked for. */
bool ow_bus_pulling(const struct ow_bus *bus);

/*
 * The following wait for the answer, up to OW_BUS_WAIT_MS, and handle what arrives in the meantime.
 *
 * The last message of a subject of a stream. *ret_data is freed by the caller. -ENOENT: there is none.
 */
int ow_bus_get_last(struct ow_bus *bus, const char *stream, const char *subject, char **ret_data, size_t *ret_size,
                    uint64_t *ret_sequence, struct ow_error *err);
/* Its subject of requests, for ow_bus_request: "$JS.API.DIRECT.GET.STREAM.SUBJECT". */
#define OW_BUS_SUBJECT 256
void ow_bus_get_subject(const char *stream, const char *subject, char ret_subject[OW_BUS_SUBJECT]);
/* A key of a bucket of keys and values; its revision is ret_sequence. */
int ow_bus_get_key(struct ow_bus *bus, const char *bucket, const char *key, char **ret_data, size_t *ret_size,
                   uint64_t *ret_revision, struct ow_error *err);
/* expected: the revision that is replaced, 0 = there is none yet, OW_BUS_ANY = whatever. -ESTALE: it is another one. */
int ow_bus_put_key(struct ow_bus *bus, const char *bucket, const char *key, const void *data, size_t size,
                   uint64_t expected, uint64_t *ret_revision, struct ow_error *err);
#define OW_BUS_ANY UINT64_MAX
/* Calls each for the messages of the stream whose subject fits the filter ("ow.h.>"), or for the last one of each such
 * subject, in their order. `sequence` is set. */
int ow_bus_each(struct ow_bus *bus, const char *stream, const char *filter, bool last, ow_bus_handler *each, void *arg,
                struct ow_error *err);
/* A request of JetStream's interface, with JSON. *ret_answer (freed by the caller) is JSON; an error in it becomes err
 * and -EREMOTEIO. */
int ow_bus_api(struct ow_bus *bus, const char *subject, const char *json, char **ret_answer, struct ow_error *err);
