/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/bus_queue.h"

#include "base/time.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct ow_bus_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	unsigned holders;
	size_t bytes;
	struct ow_bus_event *first, **end;
};

struct ow_bus_queue *ow_bus_queue_create(void)
{
	struct ow_bus_queue *queue = calloc(1, sizeof *queue);
	pthread_condattr_t steady;
	if (!queue)
		return NULL;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&queue->filled, &steady);
	pthread_condattr_destroy(&steady);
	queue->holders = 1;
	queue->end = &queue->first;
	return queue;
}

struct ow_bus_queue *ow_bus_queue_hold(struct ow_bus_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->holders++;
	pthread_mutex_unlock(&queue->lock);
	return queue;
}

void ow_bus_event_free(struct ow_bus_event *event)
{
	natsMsg_Destroy(event->message);
	free(event);
}

void ow_bus_queue_release(struct ow_bus_queue *queue)
{
	if (!queue)
		return;
	pthread_mutex_lock(&queue->lock);
	bool last = --queue->holders == 0;
	pthread_mutex_unlock(&queue->lock);
	if (!last)
		return;
	for (struct ow_bus_event *event = queue->first, *next; event; event = next) {
		next = event->next;
		ow_bus_event_free(event);
	}
	pthread_cond_destroy(&queue->filled);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static size_t size_of(const struct ow_bus_event *event)
{
	return sizeof *event + (event->message ? (size_t)natsMsg_GetDataLength(event->message) : 0);
}

/* Takes the event. false: there is no room for it. */
static bool add(struct ow_bus_queue *queue, struct ow_bus_event *event)
{
	pthread_mutex_lock(&queue->lock);
	bool room = queue->bytes + size_of(event) <= OW_BUS_QUEUE_BYTES;
	if (room) {
		*queue->end = event;
		queue->end = &event->next;
		queue->bytes += size_of(event);
	}
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&queue->lock);
	return room;
}

void ow_bus_queue_message(struct ow_bus_queue *queue, unsigned connection, unsigned subscription, natsMsg *message)
{
	struct ow_bus_event *event = calloc(1, sizeof *event);
	if (!event) {
		natsMsg_Destroy(message);
		return;
	}
	*event = (struct ow_bus_event){.kind = OW_BUS_EVENT_MESSAGE,
	                               .connection = connection,
	                               .subscription = subscription,
	                               .message = message};
	if (!add(queue, event))
		ow_bus_event_free(event);
}

static void tell(struct ow_bus_queue *queue, int kind, unsigned connection, const char *text, const char *more)
{
	struct ow_bus_event *event = calloc(1, sizeof *event);
	if (!event)
		return;
	event->kind = kind;
	event->connection = connection;
	snprintf(event->text, sizeof event->text, "%s%s", text, more);
	if (!add(queue, event))
		ow_bus_event_free(event);
}

void ow_bus_queue_closed(struct ow_bus_queue *queue, unsigned connection)
{
	tell(queue, OW_BUS_EVENT_CLOSED, connection, "", "");
}

void ow_bus_queue_news(struct ow_bus_queue *queue, unsigned connection, const char *text, const char *more)
{
	tell(queue, OW_BUS_EVENT_NEWS, connection, text, more);
}

struct ow_bus_event *ow_bus_queue_take(struct ow_bus_queue *queue, int wait_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + wait_ms % 1000 * OW_NS_PER_MS;
	until.tv_sec += wait_ms / 1000 + ns / OW_NS_PER_S;
	until.tv_nsec = ns % OW_NS_PER_S;
	pthread_mutex_lock(&queue->lock);
	while (!queue->first && wait_ms > 0 && pthread_cond_timedwait(&queue->filled, &queue->lock, &until) == 0)
		;
	struct ow_bus_event *first = queue->first;
	queue->first = NULL;
	queue->end = &queue->first;
	queue->bytes = 0;
	pthread_mutex_unlock(&queue->lock);
	return first;
}
