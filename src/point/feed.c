/* SPDX-License-Identifier: Apache-2.0 */
#include "point/feed.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RING 8 /* batches in flight: enough to even out, small enough to stay in the cache (15 KB each) */

struct ow_feed {
	struct ow_tap *tap;
	struct ow_time_base base;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, drained;
	/* Under the lock: batches made and taken, and the stop sign. A batch with count <= 0 ends the stream. */
	unsigned made, taken;
	bool stop;
	struct ow_error error; /* of the last batch */
	struct ow_batch batch[RING];
};

static int64_t common_time(const struct ow_time_base *base, int64_t t)
{
	if (base->drift != 0)
		t += llrint(base->drift * (double)(t - base->drift_from_ns));
	return t + base->shift_ns;
}

static void put_in_order(struct ow_batch *batch, const struct ow_time_base *base)
{
	int64_t least = INT64_MAX - 1, most = INT64_MIN; /* INT64_MAX is the end */
	for (int i = batch->count; i-- > 0;) {
		int64_t t = batch->record[i].time_ns = common_time(base, batch->record[i].time_ns);
		most = t > most ? t : most;
		least = t < least ? t : least;
		batch->order_ns[i] = least;
	}
	batch->last_ns = most;
	batch->order_ns[batch->count > 0 ? batch->count : 0] = INT64_MAX;
}

static bool has_time(const struct ow_feed *feed)
{
	return feed->tap->facts.packets > feed->tap->facts.untimed;
}

static void make(struct ow_feed *feed, struct ow_batch *batch)
{
	batch->count = ow_tap_read(feed->tap, batch->record, &feed->error);
	batch->position = ow_reader_position(feed->tap->reader);
	batch->first_ns = has_time(feed) ? common_time(&feed->base, feed->tap->facts.first_ns) : INT64_MAX;
	put_in_order(batch, &feed->base);
}

static void *work(void *arg)
{
	struct ow_feed *feed = arg;
	for (;;) {
		pthread_mutex_lock(&feed->lock);
		/* The consumer holds on to the batch it took last. */
		while (!feed->stop && feed->made - feed->taken >= RING - 1)
			pthread_cond_wait(&feed->drained, &feed->lock);
		bool stop = feed->stop;
		struct ow_batch *batch = &feed->batch[feed->made % RING];
		pthread_mutex_unlock(&feed->lock);
		if (stop)
			return NULL;
		make(feed, batch);
		pthread_mutex_lock(&feed->lock);
		feed->made++;
		bool end = batch->count <= 0;
		pthread_cond_signal(&feed->filled);
		pthread_mutex_unlock(&feed->lock);
		if (end)
			return NULL;
	}
}

int ow_feed_start(struct ow_tap *tap, const struct ow_time_base *base, bool threaded, struct ow_feed **ret_feed)
{
	struct ow_feed *feed = malloc(sizeof *feed);
	if (!feed)
		return -ENOMEM;
	memset(feed, 0, offsetof(struct ow_feed, batch));
	feed->tap = tap;
	feed->base = *base;
	pthread_mutex_init(&feed->lock, NULL);
	pthread_cond_init(&feed->filled, NULL);
	pthread_cond_init(&feed->drained, NULL);
	/* No thread to be had: then without. */
	feed->threaded = threaded && pthread_create(&feed->thread, NULL, work, feed) == 0;
	*ret_feed = feed;
	return 0;
}

static const struct ow_batch *take(struct ow_feed *feed)
{
	if (!feed->threaded) {
		make(feed, &feed->batch[0]);
		return &feed->batch[0];
	}
	pthread_mutex_lock(&feed->lock);
	while (feed->made == feed->taken)
		pthread_cond_wait(&feed->filled, &feed->lock);
	const struct ow_batch *batch = &feed->batch[feed->taken % RING];
	if (batch->count > 0) /* the end stays to be taken again */
		feed->taken++;
	pthread_cond_signal(&feed->drained);
	pthread_mutex_unlock(&feed->lock);
	return batch;
}

int ow_feed_next(struct ow_feed *feed, const struct ow_batch **ret_batch, struct ow_error *err)
{
	const struct ow_batch *batch = take(feed);
	*ret_batch = batch->count > 0 ? batch : NULL;
	if (batch->count < 0 && err)
		*err = feed->error;
	return batch->count < 0 ? batch->count : 0;
}

int64_t ow_feed_last_ns(const struct ow_feed *feed)
{
	return has_time(feed) ? common_time(&feed->base, feed->tap->facts.last_ns) : INT64_MIN;
}

void ow_feed_stop(struct ow_feed *feed)
{
	if (!feed)
		return;
	if (feed->threaded) {
		pthread_mutex_lock(&feed->lock);
		feed->stop = true;
		pthread_cond_signal(&feed->drained);
		pthread_mutex_unlock(&feed->lock);
		pthread_join(feed->thread, NULL);
	}
	pthread_cond_destroy(&feed->filled);
	pthread_cond_destroy(&feed->drained);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}
