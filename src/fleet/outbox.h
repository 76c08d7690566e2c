/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"

/*
 * Messages on their way into a stream. Each is sent until the stream has acknowledged it. A message has a place in what
 * it was made from; the outbox tells up to which place everything has arrived, so that after a restart the rest is made
 * again. Message ids are random: nobody can guess one, and have a message taken for a repetition of his own. If the
 * stream says "duplicate" to the first attempt all the same, the message gets another id and is sent again.
 */
struct ow_outbox;

struct ow_outbox_options {
	struct ow_bus *bus;
	const char *subject;
	size_t bytes_max; /* of messages that wait or are on their way; 0 = OW_OUTBOX_BYTES */
	/* All messages up to this place have arrived. */
	void (*arrived)(void *arg, int64_t place);
	void *arg;
};
#define OW_OUTBOX_BYTES    (8u << 20)
#define OW_OUTBOX_MESSAGES 1024

int ow_outbox_create(const struct ow_outbox_options *options, struct ow_outbox **ret_outbox, struct ow_error *err);
/* The bus must be gone before: it would report to messages that are no more. */
void ow_outbox_free(struct ow_outbox *outbox);

/* Whether another message may be added. */
bool ow_outbox_has_room(const struct ow_outbox *outbox);
/* Messages that have not arrived. */
size_t ow_outbox_waiting(const struct ow_outbox *outbox);
/* Copies the bytes. Places rise. subject: NULL = that of the outbox. */
int ow_outbox_add_to(struct ow_outbox *outbox, const char *subject, const void *bytes, size_t size, int64_t place,
                     struct ow_error *err);
int ow_outbox_add(struct ow_outbox *outbox, const void *bytes, size_t size, int64_t place, struct ow_error *err);
/* Sends what the bus has room for. To be called often. */
void ow_outbox_send(struct ow_outbox *outbox);

struct ow_outbox_counts {
	uint64_t sent, arrived, repeated, distrusted; /* messages; repeated: sent again; distrusted: see above */
	uint64_t bytes;                               /* of messages that were sent, each time */
	char why[200];                                /* why the last message did not arrive; "" = it did */
};
const struct ow_outbox_counts *ow_outbox_counts(const struct ow_outbox *outbox);
