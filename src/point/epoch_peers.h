/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/message.h"
#include "point/epoch_writer.h"

/*
 * Two points that record flows of the same packets copy each other's epochs, so that each can tell at once which flows
 * are slow between them. A point asks for the epoch that follows those it has, in its own time: whatever ends in between
 * (a connection, a process, a disk with room), the copy goes on where it was. One thread.
 */
struct ow_epoch_peers;

struct ow_epoch_peers_sink {
	/* False: it cannot be sent now. */
	bool (*send)(void *arg, const char *peer, const struct ow_message *message);
	/* A line for the log. */
	void (*tell)(void *arg, bool warning, const char *line);
	void *arg;
};

/* The recordings of the configuration that have a peer; the writer must be that of the same configuration. -ENOMEM. */
int ow_epoch_peers_create(const struct ow_config *config, struct ow_epoch_writer *writer,
                          const struct ow_epoch_peers_sink *sink, struct ow_epoch_peers **ret_peers);
void ow_epoch_peers_free(struct ow_epoch_peers *peers);
/* WANTED or EPOCH of a peer; now_ns: steady. */
void ow_epoch_peers_message(struct ow_epoch_peers *peers, const char *peer, const struct ow_message *message,
                            int64_t now_ns);
/* Asks and answers what is due. Often. */
void ow_epoch_peers_tick(struct ow_epoch_peers *peers, int64_t now_ns);
