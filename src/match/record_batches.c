/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_batches.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STORE  16 /* batches with read-ahead threads: enough to balance, few enough to stay in the cache (15 KB each) */
#define ALONE  3  /* without threads: the consumer keeps the two that it took last */
#define YIELDS 50 /* yields before sleeping until a batch in progress is ready: about the time it takes */

struct ow_record_batches {
	struct ow_record_reader *tap;
	struct ow_time_base base;
	struct ow_readahead *crew; /* NULL if there is none */
	unsigned store;            /* number of batches in use */
	pthread_mutex_t making;    /* held by the thread that makes a batch: it owns the reader, `ended` and `error` */
	bool ended;                /* a batch with count <= 0 ends the stream */
	struct ow_error error;     /* of the last batch */
	atomic_uint made, taken;
	struct ow_batch batch[STORE];
};

struct ow_readahead {
	struct ow_record_batches *feed[OW_SIDES];
	pthread_t thread[OW_READAHEAD_MAX];
	unsigned threads;
	/* Threads without work sleep: */
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	atomic_uint asleep;
	atomic_bool leave;
};

int64_t ow_time_base_common(const struct ow_time_base *base, int64_t t)
{
	if (base->drift != 0)
		t += llrint(base->drift * (double)(t - base->drift_from_ns));
	return t + base->shift_ns;
}

static void put_in_order(struct ow_batch *batch, const struct ow_time_base *base)
{
	int64_t least = INT64_MAX - 1, most = INT64_MIN; /* INT64_MAX is the end */
	for (int i = batch->count; i-- > 0;) {
		int64_t t = batch->record[i].time_ns = ow_time_base_common(base, batch->record[i].time_ns);
		most = t > most ? t : most;
		least = t < least ? t : least;
		batch->order_ns[i] = least;
	}
	batch->last_ns = most;
	batch->order_ns[batch->count > 0 ? batch->count : 0] = INT64_MAX;
}

static bool has_time(const struct ow_record_batches *feed)
{
	return feed->tap->facts.packets > feed->tap->facts.untimed;
}

/* Moves the copies out of the records. */
static void set_aside(struct ow_batch *batch, const struct ow_time_base *base)
{
	int kept = 0;
	for (int i = 0; i < batch->count; i++) {
		if (!batch->record[i].again) {
			batch->record[kept++] = batch->record[i];
			continue;
		}
		if (batch->agains == OW_RECORD_READER_BATCH)
			continue;
		struct ow_record *again = &batch->again[batch->agains++];
		*again = batch->record[i];
		again->time_ns = ow_time_base_common(base, again->time_ns);
	}
	batch->count = kept;
}

static void make(struct ow_record_batches *feed, struct ow_batch *batch)
{
	bool more = true;
	batch->agains = 0;
	while (more) {
		batch->count = ow_record_reader_read(feed->tap, batch->record, &feed->error);
		more = batch->count > 0;
		if (more && feed->tap->dedup)
			set_aside(batch, &feed->base);
		more &= batch->count == 0;
	}
	batch->position = ow_reader_position(feed->tap->reader);
	batch->first_ns = has_time(feed) ? ow_time_base_common(&feed->base, feed->tap->facts.first_ns) : INT64_MAX;
	put_in_order(batch, &feed->base);
}

static unsigned in_store(struct ow_record_batches *feed)
{
	return atomic_load(&feed->made) - atomic_load(&feed->taken);
}

/* Makes the next batch, if there is room for it. Called with `making` held. */
static bool make_next(struct ow_record_batches *feed)
{
	unsigned made = atomic_load(&feed->made);
	if (feed->ended || in_store(feed) > feed->store - ALONE)
		return false;
	struct ow_batch *batch = &feed->batch[made % feed->store];
	make(feed, batch);
	feed->ended = batch->count <= 0;
	atomic_store(&feed->made, made + 1);
	return true;
}

int ow_record_batches_start(struct ow_record_reader *tap, const struct ow_time_base *base,
                            struct ow_record_batches **ret_feed)
{
	struct ow_record_batches *feed = malloc(sizeof *feed);
	if (!feed)
		return -ENOMEM;
	memset(feed, 0, offsetof(struct ow_record_batches, batch));
	feed->tap = tap;
	feed->base = *base;
	feed->store = ALONE;
	pthread_mutex_init(&feed->making, NULL);
	*ret_feed = feed;
	return 0;
}

/* Makes the wanted batch, unless another thread is about to finish it. */
static void want(struct ow_record_batches *feed)
{
	int r = pthread_mutex_trylock(&feed->making);
	for (unsigned i = 0; r != 0 && i < YIELDS && !in_store(feed); i++) {
		sched_yield();
		r = pthread_mutex_trylock(&feed->making);
	}
	if (r != 0 && in_store(feed))
		return;
	if (r != 0)
		pthread_mutex_lock(&feed->making);
	if (!in_store(feed))
		make_next(feed);
	pthread_mutex_unlock(&feed->making);
}

static const struct ow_batch *take(struct ow_record_batches *feed)
{
	while (!in_store(feed))
		want(feed);
	unsigned taken = atomic_load(&feed->taken);
	const struct ow_batch *batch = &feed->batch[taken % feed->store];
	if (batch->count <= 0)
		return batch; /* the end stays, to be taken again */
	atomic_store(&feed->taken, taken + 1);
	struct ow_readahead *crew = feed->crew;
	if (crew && atomic_load(&crew->asleep) && in_store(feed) <= feed->store / 2) {
		pthread_mutex_lock(&crew->lock);
		pthread_cond_broadcast(&crew->wanted);
		pthread_mutex_unlock(&crew->lock);
	}
	return batch;
}

int ow_record_batches_next(struct ow_record_batches *feed, const struct ow_batch **ret_batch, struct ow_error *err)
{
	const struct ow_batch *batch = take(feed);
	*ret_batch = batch->count > 0 ? batch : NULL;
	if (batch->count < 0 && err)
		*err = feed->error;
	return batch->count < 0 ? batch->count : 0;
}

int64_t ow_record_batches_last_ns(const struct ow_record_batches *feed)
{
	return has_time(feed) ? ow_time_base_common(&feed->base, feed->tap->facts.last_ns) : INT64_MIN;
}

void ow_record_batches_stop(struct ow_record_batches *feed)
{
	if (!feed)
		return;
	pthread_mutex_destroy(&feed->making);
	free(feed);
}

/* -- the crew ----------------------------------------------------------------------------------------------------- */

enum job { JOB_DONE, JOB_TAKEN, JOB_NONE };

static enum job work_for(struct ow_record_batches *feed)
{
	if (pthread_mutex_trylock(&feed->making) != 0)
		return JOB_TAKEN;
	bool made = make_next(feed);
	pthread_mutex_unlock(&feed->making);
	return made ? JOB_DONE : JOB_NONE;
}

/* Works for the side with the fewest ready batches, or for the other one. */
static enum job work(struct ow_readahead *crew)
{
	unsigned side = in_store(crew->feed[OW_SIDE_B]) < in_store(crew->feed[OW_SIDE_A]);
	enum job first = work_for(crew->feed[side]);
	if (first == JOB_DONE)
		return first;
	enum job second = work_for(crew->feed[!side]);
	return second == JOB_NONE ? first : second;
}

/* Everything is full: sleeps until half of it is used. */
static void sleep_until_wanted(struct ow_readahead *crew)
{
	pthread_mutex_lock(&crew->lock);
	atomic_fetch_add(&crew->asleep, 1);
	/* A consumer that takes a batch now either sees the sleeper, or has taken it before this. */
	if (!atomic_load(&crew->leave) && work(crew) == JOB_NONE)
		pthread_cond_wait(&crew->wanted, &crew->lock);
	atomic_fetch_sub(&crew->asleep, 1);
	pthread_mutex_unlock(&crew->lock);
}

static void *run(void *arg)
{
	struct ow_readahead *crew = arg;
	while (!atomic_load(&crew->leave)) {
		enum job job = work(crew);
		if (job == JOB_NONE)
			sleep_until_wanted(crew);
		else if (job == JOB_TAKEN)
			sched_yield();
	}
	return NULL;
}

struct ow_readahead *ow_readahead_start(struct ow_record_batches *const feed[OW_SIDES], unsigned threads)
{
	struct ow_readahead *crew = threads ? calloc(1, sizeof *crew) : NULL;
	if (!crew)
		return NULL;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->wanted, NULL);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		crew->feed[side] = feed[side];
		feed[side]->crew = crew;
		feed[side]->store = STORE;
	}
	while (crew->threads < threads && crew->threads < OW_READAHEAD_MAX &&
	       pthread_create(&crew->thread[crew->threads], NULL, run, crew) == 0)
		crew->threads++;
	return crew;
}

void ow_readahead_leave(struct ow_readahead *crew)
{
	if (!crew)
		return;
	atomic_store(&crew->leave, true);
	pthread_mutex_lock(&crew->lock);
	pthread_cond_broadcast(&crew->wanted);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < crew->threads; i++)
		pthread_join(crew->thread[i], NULL);
	for (unsigned side = 0; side < OW_SIDES; side++)
		crew->feed[side]->crew = NULL;
	pthread_cond_destroy(&crew->wanted);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}
