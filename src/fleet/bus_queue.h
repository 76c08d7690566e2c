/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <nats/nats.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What libnats' threads have for the thread of the bus. It lives until the bus and all of libnats' callbacks have
 * released it, because these may run after their connection was destroyed.
 */
struct ow_bus_queue;

struct ow_bus_event {
	struct ow_bus_event *next;
	enum { OW_BUS_EVENT_MESSAGE, OW_BUS_EVENT_CLOSED, OW_BUS_EVENT_NEWS } kind;
	unsigned connection;   /* which one it comes from */
	unsigned subscription; /* of a message */
	natsMsg *message;
	char text[200]; /* of news */
};

struct ow_bus_queue *ow_bus_queue_create(void);
struct ow_bus_queue *ow_bus_queue_hold(struct ow_bus_queue *queue);
void ow_bus_queue_release(struct ow_bus_queue *queue);

/* Takes the message. Without memory, or if more than OW_BUS_QUEUE_BYTES wait, the message is dropped. */
void ow_bus_queue_message(struct ow_bus_queue *queue, unsigned connection, unsigned subscription, natsMsg *message);
void ow_bus_queue_closed(struct ow_bus_queue *queue, unsigned connection);
void ow_bus_queue_news(struct ow_bus_queue *queue, unsigned connection, const char *text, const char *more);
#define OW_BUS_QUEUE_BYTES (256u << 20)

/* Takes all events, waiting up to wait_ms for the first one; NULL if there is none. */
struct ow_bus_event *ow_bus_queue_take(struct ow_bus_queue *queue, int wait_ms);
void ow_bus_event_free(struct ow_bus_event *event);
