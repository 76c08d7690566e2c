/* SPDX-License-Identifier: Apache-2.0 */
#include "path/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 16u /* batches */

struct batch {
	unsigned count;
	struct ow_path_event event[OW_PATH_BATCH];
};

struct ow_path_stream {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned first, full; /* batches to be taken */
	bool ended, cancelled;
	struct batch batch[ROOM];
	struct batch filling; /* used by the thread that matches alone */
};

int ow_path_stream_create(struct ow_path_stream **ret_stream)
{
	struct ow_path_stream *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	*ret_stream = s;
	return 0;
}

void ow_path_stream_free(struct ow_path_stream *s)
{
	if (!s)
		return;
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int flush(struct ow_path_stream *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->full == ROOM && !s->cancelled)
		pthread_cond_wait(&s->changed, &s->lock);
	int r = s->cancelled ? -ECANCELED : 0;
	if (r == 0) {
		struct batch *to = &s->batch[(s->first + s->full++) % ROOM];
		to->count = s->filling.count;
		memcpy(to->event, s->filling.event, to->count * sizeof *to->event);
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	s->filling.count = 0;
	return r;
}

int ow_path_stream_put(struct ow_path_stream *s, const struct ow_path_event *event)
{
	s->filling.event[s->filling.count++] = *event;
	return s->filling.count == OW_PATH_BATCH ? flush(s) : 0;
}

void ow_path_stream_end(struct ow_path_stream *s)
{
	if (s->filling.count)
		flush(s);
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

unsigned ow_path_stream_take(struct ow_path_stream *s, struct ow_path_event event[OW_PATH_BATCH])
{
	pthread_mutex_lock(&s->lock);
	while (!s->full && !s->ended)
		pthread_cond_wait(&s->changed, &s->lock);
	unsigned count = 0;
	if (s->full) {
		const struct batch *from = &s->batch[s->first];
		count = from->count;
		memcpy(event, from->event, count * sizeof *event);
		s->first = (s->first + 1) % ROOM;
		s->full--;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return count;
}

void ow_path_stream_cancel(struct ow_path_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->cancelled = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}
