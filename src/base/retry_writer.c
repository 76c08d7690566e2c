/* SPDX-License-Identifier: Apache-2.0 */
#include "base/retry_writer.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/time.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NEWS 8
/* The thread wakes up this often when there is nothing to do. */
#define IDLE_NS (3600 * OW_NS_PER_S)

struct ow_retry_writer {
	struct ow_retry_writer_options o;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock: */
	char *queue; /* a ring */
	size_t head, count, room;
	bool stop, hurry;
	struct ow_retry_writer_state state; /* waiting: in the batch */
	struct ow_error news[NEWS];
	unsigned news_count;

	/* Used by the thread only: */
	char *batch;
	size_t batched;
	bool failing;
	int64_t failing_since_ns, retry_ns, retry_at_ns, write_at_ns, maintain_at_ns;
};

int64_t ow_retry_writer_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * OW_NS_PER_S + now.tv_nsec;
}

/* -- news and state ------------------------------------------------------------------------------------------------ */

void ow_retry_writer_tell(struct ow_retry_writer *w, const struct ow_error *line)
{
	pthread_mutex_lock(&w->lock);
	if (w->news_count < NEWS)
		w->news[w->news_count++] = *line;
	pthread_mutex_unlock(&w->lock);
}

bool ow_retry_writer_news(struct ow_retry_writer *w, struct ow_error *ret_line)
{
	pthread_mutex_lock(&w->lock);
	bool any = w->news_count > 0;
	if (any) {
		*ret_line = w->news[0];
		memmove(w->news, w->news + 1, --w->news_count * sizeof *w->news);
	}
	pthread_mutex_unlock(&w->lock);
	return any;
}

void ow_retry_writer_state(struct ow_retry_writer *w, struct ow_retry_writer_state *ret_state)
{
	pthread_mutex_lock(&w->lock);
	*ret_state = w->state;
	ret_state->waiting += w->count;
	pthread_mutex_unlock(&w->lock);
}

/* -- queue and batch ----------------------------------------------------------------------------------------------- */

static char *place(const struct ow_retry_writer *w, size_t number)
{
	assert(w->room);
	return w->queue + (w->head + number) % w->room * w->o.item_size;
}

static int grow(struct ow_retry_writer *w)
{
	if (w->room >= w->o.waiting_max)
		return -ENOSPC;
	size_t room = w->room ? 2 * w->room : 64;
	room = room < w->o.waiting_max ? room : w->o.waiting_max;
	char *queue = reallocarray(NULL, room, w->o.item_size);
	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < w->count; i++)
		memcpy(queue + i * w->o.item_size, place(w, i), w->o.item_size);
	free(w->queue);
	w->queue = queue;
	w->room = room;
	w->head = 0;
	return 0;
}

int ow_retry_writer_add(struct ow_retry_writer *w, const void *item)
{
	pthread_mutex_lock(&w->lock);
	int r = w->count < w->room ? 0 : grow(w);
	if (r == 0) {
		memcpy(place(w, w->count++), item, w->o.item_size);
		if (w->count == 1 || w->count == w->o.batch_max)
			pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

static void take_oldest(struct ow_retry_writer *w, void *ret_item)
{
	memcpy(ret_item, place(w, 0), w->o.item_size);
	w->head = (w->head + 1) % w->room;
	w->count--;
}

bool ow_retry_writer_take(struct ow_retry_writer *w, void *ret_item)
{
	if (!w->running && w->batched) {
		memcpy(ret_item, w->batch, w->o.item_size);
		ow_retry_writer_remove(w, 0, 1, false);
		return true;
	}
	pthread_mutex_lock(&w->lock);
	bool any = w->count > 0;
	if (any)
		take_oldest(w, ret_item);
	pthread_mutex_unlock(&w->lock);
	return any;
}

void ow_retry_writer_hurry(struct ow_retry_writer *w)
{
	pthread_mutex_lock(&w->lock);
	if (w->count) {
		w->hurry = true;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

/* Moves what waits into the batch, as far as it has room. Returns whether there is something to write. */
static bool fill_batch(struct ow_retry_writer *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->count && w->batched < w->o.batch_max)
		take_oldest(w, w->batch + w->batched++ * w->o.item_size);
	/* An empty queue starts at its beginning again, so that an idle point uses little memory. */
	if (!w->count) {
		w->head = 0;
		w->hurry = false;
	}
	w->state.waiting = w->batched;
	pthread_mutex_unlock(&w->lock);
	return w->batched > 0;
}

size_t ow_retry_writer_remove(struct ow_retry_writer *w, size_t first, size_t count, bool written)
{
	w->batched -= count;
	memmove(w->batch + first * w->o.item_size, w->batch + (first + count) * w->o.item_size,
	        (w->batched - first) * w->o.item_size);
	pthread_mutex_lock(&w->lock);
	w->state.waiting = w->batched;
	if (written) {
		w->state.written += count;
		w->state.failing = false;
	}
	pthread_mutex_unlock(&w->lock);
	return w->batched;
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */

void ow_retry_writer_fail(struct ow_retry_writer *w, int code, const struct ow_error *why)
{
	int64_t now = ow_retry_writer_now_ns();
	bool first = !w->failing;
	if (first) {
		w->failing_since_ns = now;
		w->retry_ns = w->o.retry_ns;
	}
	w->failing = true;
	pthread_mutex_lock(&w->lock);
	w->state.failing = true;
	pthread_mutex_unlock(&w->lock);
	w->o.failed(w->o.owner, code, why, first);
	w->retry_at_ns = now + w->retry_ns;
	w->retry_ns = 2 * w->retry_ns > w->o.retry_max_ns ? w->o.retry_max_ns : 2 * w->retry_ns;
}

/* Sleeps until there is something to do. Returns whether the thread has to end. */
static bool wait_for_work(struct ow_retry_writer *w)
{
	pthread_mutex_lock(&w->lock);
	for (;;) {
		int64_t now = ow_retry_writer_now_ns(), until = w->maintain_at_ns;
		bool waiting = w->count || w->batched;
		/* After a failure the thread waits until the retry time, even if more items arrive. */
		bool ready = (w->hurry || w->count >= w->o.batch_max || now >= w->write_at_ns) && now >= w->retry_at_ns;
		if (w->stop || (waiting && ready) || now >= until)
			break;
		int64_t next = now < w->retry_at_ns ? w->retry_at_ns : w->write_at_ns;
		if (waiting && next < until)
			until = next;
		int64_t at_ns = ow_clock_steady_ns() + (until - now);
		struct timespec at = {at_ns / OW_NS_PER_S, at_ns % OW_NS_PER_S};
		pthread_cond_clockwait(&w->wake, &w->lock, CLOCK_MONOTONIC, &at);
	}
	bool stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop;
}

static void work(struct ow_retry_writer *w, bool last)
{
	struct ow_error err = {""};
	int64_t now = ow_retry_writer_now_ns();
	bool due = now >= w->retry_at_ns || last;
	while (due && fill_batch(w)) {
		int r = w->o.write(w->o.owner, w->batch, w->batched, &err);
		if (r < 0) {
			ow_retry_writer_fail(w, r, &err);
			return;
		}
		w->o.worked(w->o.owner, w->failing ? now - w->failing_since_ns : 0);
		w->failing = false;
		w->retry_at_ns = 0;
	}
	w->write_at_ns = now + w->o.delay_ns;
	if (!last && now >= w->maintain_at_ns)
		w->maintain_at_ns = w->o.maintain ? w->o.maintain(w->o.owner, now, w->failing) : now + IDLE_NS;
}

static void *run(void *arg)
{
	struct ow_retry_writer *w = arg;
	while (!wait_for_work(w))
		work(w, false);
	work(w, true);
	return NULL;
}

int ow_retry_writer_start(struct ow_retry_writer *w)
{
	int r = ow_thread_start(&w->thread, run, w);
	w->running = r == 0;
	return r;
}

int ow_retry_writer_create(const struct ow_retry_writer_options *options, struct ow_retry_writer **ret_writer)
{
	struct ow_retry_writer *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	w->o = *options;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->batch = reallocarray(NULL, options->batch_max, options->item_size);
	if (!w->batch) {
		ow_retry_writer_free(w);
		return -ENOMEM;
	}
	*ret_writer = w;
	return 0;
}

void ow_retry_writer_stop(struct ow_retry_writer *w)
{
	if (!w->running)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->running = false;
}

void ow_retry_writer_free(struct ow_retry_writer *w)
{
	if (!w)
		return;
	ow_retry_writer_stop(w);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w->queue);
	free(w->batch);
	free(w);
}
