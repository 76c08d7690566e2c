/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_batches.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STORE  32 /* batches with read-ahead threads: enough to balance, few enough to stay in the cache (15 KB each) */
#define ALONE  3  /* without threads: the consumer keeps the two that it took last */
#define YIELDS 50 /* yields before sleeping until a batch in progress is ready: about the time it takes */

struct ow_record_batches {
	struct ow_record_reader *input;
	struct ow_time_base base;
	struct ow_readahead *readahead; /* NULL if there is none */
	unsigned store;                 /* number of batches in use */
	pthread_mutex_t making; /* held by the thread that makes a batch: it owns the reader, `ended` and `error` */
	bool ended;             /* a batch with count <= 0 ends the stream */
	struct ow_error error;  /* of the last batch */
	atomic_uint made, taken;
	struct ow_batch batch[STORE];
};

struct ow_readahead {
	struct ow_record_batches *batches[OW_READAHEAD_INPUTS];
	unsigned inputs;
	pthread_t thread[OW_READAHEAD_INPUTS];
	unsigned threads;
	/* Threads without work sleep: */
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	atomic_uint asleep;
	atomic_bool leave;
};

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

static bool has_time(const struct ow_record_batches *batches)
{
	return batches->input->facts.packets > batches->input->facts.untimed;
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

static void make(struct ow_record_batches *batches, struct ow_batch *batch)
{
	bool more = true;
	batch->agains = 0;
	while (more) {
		batch->count = ow_record_reader_read(batches->input, batch->record, &batches->error);
		more = batch->count > 0;
		if (more && batches->input->dedup)
			set_aside(batch, &batches->base);
		more &= batch->count == 0;
	}
	batch->position = ow_reader_position(batches->input->reader);
	batch->first_ns =
		has_time(batches) ? ow_time_base_common(&batches->base, batches->input->facts.first_ns) : INT64_MAX;
	put_in_order(batch, &batches->base);
}

static unsigned in_store(struct ow_record_batches *batches)
{
	return atomic_load(&batches->made) - atomic_load(&batches->taken);
}

/* Makes the next batch, if there is room for it. Called with `making` held. */
static bool make_next(struct ow_record_batches *batches)
{
	unsigned made = atomic_load(&batches->made);
	if (batches->ended || in_store(batches) > batches->store - ALONE)
		return false;
	struct ow_batch *batch = &batches->batch[made % batches->store];
	make(batches, batch);
	batches->ended = batch->count <= 0;
	atomic_store(&batches->made, made + 1);
	return true;
}

int ow_record_batches_start(struct ow_record_reader *input, const struct ow_time_base *base,
                            struct ow_record_batches **ret_batches)
{
	struct ow_record_batches *batches = malloc(sizeof *batches);
	if (!batches)
		return -ENOMEM;
	memset(batches, 0, offsetof(struct ow_record_batches, batch));
	batches->input = input;
	batches->base = *base;
	batches->store = ALONE;
	pthread_mutex_init(&batches->making, NULL);
	*ret_batches = batches;
	return 0;
}

enum job { JOB_DONE, JOB_TAKEN, JOB_NONE };

static enum job work_for(struct ow_record_batches *batches)
{
	if (pthread_mutex_trylock(&batches->making) != 0)
		return JOB_TAKEN;
	bool made = make_next(batches);
	pthread_mutex_unlock(&batches->making);
	return made ? JOB_DONE : JOB_NONE;
}

/* Works for the input with the fewest ready batches that has room and is not worked for. */
static enum job work(struct ow_readahead *readahead)
{
	enum job result = JOB_NONE;
	uint32_t tried = 0;
	for (unsigned n = 0; n < readahead->inputs; n++) {
		unsigned next = readahead->inputs;
		for (unsigned i = 0; i < readahead->inputs; i++) {
			if (!(tried >> i & 1) && (next == readahead->inputs ||
			                          in_store(readahead->batches[i]) < in_store(readahead->batches[next])))
				next = i;
		}
		tried |= UINT32_C(1) << next;
		enum job job = work_for(readahead->batches[next]);
		if (job == JOB_DONE)
			return job;
		result = job == JOB_TAKEN ? job : result;
	}
	return result;
}

/* Makes the wanted batch. While another thread is making it, makes one for another input. */
static void want(struct ow_record_batches *batches)
{
	int r = pthread_mutex_trylock(&batches->making);
	for (unsigned i = 0; r != 0 && i < YIELDS && !in_store(batches); i++) {
		if (work(batches->readahead) != JOB_DONE)
			sched_yield();
		r = pthread_mutex_trylock(&batches->making);
	}
	if (r != 0 && in_store(batches))
		return;
	if (r != 0)
		pthread_mutex_lock(&batches->making);
	if (!in_store(batches))
		make_next(batches);
	pthread_mutex_unlock(&batches->making);
}

static const struct ow_batch *take(struct ow_record_batches *batches)
{
	while (!in_store(batches))
		want(batches);
	unsigned taken = atomic_load(&batches->taken);
	const struct ow_batch *batch = &batches->batch[taken % batches->store];
	if (batch->count <= 0)
		return batch; /* the end stays, to be taken again */
	atomic_store(&batches->taken, taken + 1);
	struct ow_readahead *readahead = batches->readahead;
	if (readahead && atomic_load(&readahead->asleep) && in_store(batches) <= batches->store / 2) {
		pthread_mutex_lock(&readahead->lock);
		pthread_cond_broadcast(&readahead->wanted);
		pthread_mutex_unlock(&readahead->lock);
	}
	return batch;
}

int ow_record_batches_next(struct ow_record_batches *batches, const struct ow_batch **ret_batch, struct ow_error *err)
{
	const struct ow_batch *batch = take(batches);
	*ret_batch = batch->count > 0 ? batch : NULL;
	if (batch->count < 0 && err)
		*err = batches->error;
	return batch->count < 0 ? batch->count : 0;
}

int64_t ow_record_batches_last_ns(const struct ow_record_batches *batches)
{
	return has_time(batches) ? ow_time_base_common(&batches->base, batches->input->facts.last_ns) : INT64_MIN;
}

void ow_record_batches_stop(struct ow_record_batches *batches)
{
	if (!batches)
		return;
	pthread_mutex_destroy(&batches->making);
	free(batches);
}

/* -- read-ahead threads ------------------------------------------------------------------------------------------- */

/* Everything is full: sleeps until half of it is used. */
static void sleep_until_wanted(struct ow_readahead *readahead)
{
	pthread_mutex_lock(&readahead->lock);
	atomic_fetch_add(&readahead->asleep, 1);
	/* A consumer that takes a batch now either sees the sleeper, or has taken it before this. */
	if (!atomic_load(&readahead->leave) && work(readahead) == JOB_NONE)
		pthread_cond_wait(&readahead->wanted, &readahead->lock);
	atomic_fetch_sub(&readahead->asleep, 1);
	pthread_mutex_unlock(&readahead->lock);
}

static void *run(void *arg)
{
	struct ow_readahead *readahead = arg;
	while (!atomic_load(&readahead->leave)) {
		enum job job = work(readahead);
		if (job == JOB_NONE)
			sleep_until_wanted(readahead);
		else if (job == JOB_TAKEN)
			sched_yield();
	}
	return NULL;
}

struct ow_readahead *ow_readahead_start(struct ow_record_batches *const *batches, unsigned inputs, unsigned threads)
{
	struct ow_readahead *readahead = threads ? calloc(1, sizeof *readahead) : NULL;
	if (!readahead)
		return NULL;
	pthread_mutex_init(&readahead->lock, NULL);
	pthread_cond_init(&readahead->wanted, NULL);
	readahead->inputs = inputs;
	for (unsigned i = 0; i < inputs; i++) {
		readahead->batches[i] = batches[i];
		batches[i]->readahead = readahead;
		batches[i]->store = STORE;
	}
	while (readahead->threads < threads && readahead->threads < inputs &&
	       pthread_create(&readahead->thread[readahead->threads], NULL, run, readahead) == 0)
		readahead->threads++;
	return readahead;
}

void ow_readahead_leave(struct ow_readahead *readahead)
{
	if (!readahead)
		return;
	atomic_store(&readahead->leave, true);
	pthread_mutex_lock(&readahead->lock);
	pthread_cond_broadcast(&readahead->wanted);
	pthread_mutex_unlock(&readahead->lock);
	for (unsigned i = 0; i < readahead->threads; i++)
		pthread_join(readahead->thread[i], NULL);
	for (unsigned i = 0; i < readahead->inputs; i++)
		readahead->batches[i]->readahead = NULL;
	pthread_cond_destroy(&readahead->wanted);
	pthread_mutex_destroy(&readahead->lock);
	free(readahead);
}
