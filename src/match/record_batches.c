/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_batches.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STORE   32 /* batches with read-ahead threads: enough to balance, few enough to stay in the cache (6 KB each) */
#define KEPT    2  /* batches that the consumer has: the two that it took last */
#define YIELDS  50 /* yields before sleeping until a batch in progress is ready: about the time it takes */
#define TELL_AT 4  /* batches that the consumer takes before it says so */
#define LINE    64 /* bytes of a cache line */

/*
 * A batch on its way from one core to another, which costs time for every cache line: what differs from record to record,
 * where that is little. Ids and flows, time and number since the first record, length. Else the batch is handed over whole.
 */
struct packed {
	uint64_t id[OW_RECORD_READER_BATCH];
	uint32_t after_ns[OW_RECORD_READER_BATCH], flow[OW_RECORD_READER_BATCH];
	uint16_t after[OW_RECORD_READER_BATCH], bytes[OW_RECORD_READER_BATCH];
	int64_t first_ns;
	uint64_t first;
};

/* The place of a batch in the store. */
struct place {
	_Alignas(LINE) struct packed packed;
	bool is_packed;
	int count;
	uint64_t position;
	int64_t first_ns;
	struct ow_batch whole; /* if it is not packed, or the end */
};

/* A batch that the consumer has. */
struct kept {
	struct ow_batch batch;
	bool is_usual; /* but for what a packed batch has, its records are usual ones */
};

struct ow_record_batches {
	struct ow_record_reader *input;
	struct ow_time_base base;
	struct ow_readahead *readahead; /* NULL if there is none */
	struct place *place;            /* [STORE], with read-ahead threads */
	pthread_mutex_t making; /* held by the thread that makes a batch: it owns the reader, `ended` and `error` */
	bool ended;             /* a batch with count <= 0 ends the stream */
	struct ow_error error;  /* of the last batch */
	/* Written by the threads that make, and by the consumer: each in a cache line of its own. */
	_Alignas(LINE) atomic_uint made;
	_Alignas(LINE) atomic_uint told; /* taken, as far as the consumer has said so */
	/* Of the consumer: */
	_Alignas(LINE) unsigned taken;
	unsigned known; /* made, when it looked last */
	struct kept kept[KEPT];
	struct ow_batch room; /* for those that it makes meanwhile */
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

/* -- making ------------------------------------------------------------------------------------------------------- */

static void put_in_order(struct ow_batch *batch)
{
	int64_t least = INT64_MAX - 1, most = INT64_MIN; /* INT64_MAX is the end */
	for (int i = batch->count; i-- > 0;) {
		int64_t t = batch->record[i].time_ns;
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

/* Called with `making` held, or by the consumer alone. All but the order of the records. */
static void make(struct ow_record_batches *batches, struct ow_batch *batch)
{
	const struct ow_time_base *base = &batches->base;
	bool more = true;
	batch->agains = 0;
	while (more) {
		batch->count = ow_record_reader_read(batches->input, batch->record, &batches->error);
		more = batch->count > 0;
		if (more && batches->input->dedup)
			set_aside(batch, base);
		more &= batch->count == 0;
	}
	for (int i = 0; i < batch->count && (base->shift_ns != 0 || base->drift != 0); i++)
		batch->record[i].time_ns = ow_time_base_common(base, batch->record[i].time_ns);
	batch->position = ow_reader_position(batches->input->reader);
	batch->first_ns = has_time(batches) ? ow_time_base_common(base, batches->input->facts.first_ns) : INT64_MAX;
	batches->ended = batch->count <= 0;
}

/* -- from one core to another ------------------------------------------------------------------------------------- */

/* Of the fields that a packed batch does not have, those that a record ends with. */
#define TAIL offsetof(struct ow_record, lag_ns)
_Static_assert(TAIL + sizeof(uint64_t) == sizeof(struct ow_record), "they are compared as a word");
static const struct ow_record usual_record = {.lag_ns = UINT32_MAX};

static inline uint64_t tail_of(const struct ow_record *record)
{
	uint64_t tail;
	memcpy(&tail, (const uint8_t *)record + TAIL, sizeof tail);
	return tail;
}

/* For records that are packed: the bits that no field has are compared, too. */
static void clear(struct ow_batch *room)
{
	memset(room->record, 0, sizeof room->record);
}

/* False: the records differ in more. */
static bool pack(const struct ow_batch *batch, struct packed *packed)
{
	const struct ow_record *first = batch->record;
	const uint64_t tail = tail_of(&usual_record);
	uint64_t more = (uint64_t)batch->agains;
	packed->first_ns = first->time_ns;
	packed->first = first->number;
	for (int i = 0; i < batch->count; i++) {
		const struct ow_record *r = &batch->record[i];
		uint64_t after_ns = (uint64_t)r->time_ns - (uint64_t)first->time_ns, after = r->number - first->number;
		more |= after_ns >> 32 | after >> 16 | r->bytes >> 16 | r->seq | r->len | (tail_of(r) ^ tail);
		packed->id[i] = r->id;
		packed->after_ns[i] = (uint32_t)after_ns;
		packed->flow[i] = r->flow;
		packed->after[i] = (uint16_t)after;
		packed->bytes[i] = (uint16_t)r->bytes;
	}
	return more == 0;
}

/* The other fields are those of the usual record. */
static void unpack(const struct packed *packed, int count, struct ow_record *record)
{
	for (int i = 0; i < count; i++) {
		record[i].id = packed->id[i];
		record[i].time_ns = packed->first_ns + packed->after_ns[i];
		record[i].number = packed->first + packed->after[i];
		record[i].flow = packed->flow[i];
		record[i].bytes = packed->bytes[i];
	}
}

/* All that `make` has made. */
static void copy(const struct ow_batch *from, struct ow_batch *to)
{
	to->count = from->count;
	to->position = from->position;
	to->first_ns = from->first_ns;
	to->agains = from->agains;
	if (from->count > 0)
		memcpy(to->record, from->record, (size_t)from->count * sizeof *to->record);
	memcpy(to->again, from->again, (size_t)from->agains * sizeof *to->again);
}

static void put(const struct ow_batch *batch, struct place *place)
{
	place->count = batch->count;
	place->position = batch->position;
	place->first_ns = batch->first_ns;
	place->is_packed = batch->count > 0 && pack(batch, &place->packed);
	if (!place->is_packed)
		copy(batch, &place->whole);
}

static void get(const struct place *place, struct kept *kept)
{
	struct ow_batch *batch = &kept->batch;
	if (!place->is_packed) {
		kept->is_usual = false;
		copy(&place->whole, batch);
		return;
	}
	for (int i = 0; i < OW_RECORD_READER_BATCH && !kept->is_usual; i++)
		batch->record[i] = usual_record;
	kept->is_usual = true;
	batch->count = place->count;
	batch->position = place->position;
	batch->first_ns = place->first_ns;
	batch->agains = 0;
	unpack(&place->packed, place->count, batch->record);
}

/* Another core has these lines: they come while this one works. */
static void load_to_read(const struct place *place)
{
	for (size_t at = 0; at < sizeof place->packed; at += LINE)
		__builtin_prefetch((const uint8_t *)place + at);
}

static void load_to_write(struct place *place)
{
	for (size_t at = 0; at < sizeof place->packed; at += LINE)
		__builtin_prefetch((uint8_t *)place + at, 1);
}

/* At least: the consumer may have taken some more. */
static unsigned in_store(struct ow_record_batches *batches)
{
	return atomic_load(&batches->made) - atomic_load(&batches->told);
}

/* Makes the next batch, if there is room for it. room: to make it in. Called with `making` held. */
static bool make_next(struct ow_record_batches *batches, struct ow_batch *room)
{
	unsigned made = atomic_load_explicit(&batches->made, memory_order_relaxed);
	if (batches->ended || in_store(batches) >= STORE)
		return false;
	load_to_write(&batches->place[made % STORE]);
	make(batches, room);
	put(room, &batches->place[made % STORE]);
	atomic_store_explicit(&batches->made, made + 1, memory_order_release);
	return true;
}

int ow_record_batches_start(struct ow_record_reader *input, const struct ow_time_base *base,
                            struct ow_record_batches **ret_batches)
{
	struct ow_record_batches *batches = aligned_alloc(LINE, sizeof *batches);
	if (!batches)
		return -ENOMEM;
	memset(batches, 0, offsetof(struct ow_record_batches, kept));
	for (unsigned i = 0; i < KEPT; i++)
		batches->kept[i].is_usual = false;
	clear(&batches->room);
	batches->input = input;
	batches->base = *base;
	pthread_mutex_init(&batches->making, NULL);
	*ret_batches = batches;
	return 0;
}

enum job { JOB_DONE, JOB_TAKEN, JOB_NONE };

static enum job work_for(struct ow_record_batches *batches, struct ow_batch *room)
{
	if (pthread_mutex_trylock(&batches->making) != 0)
		return JOB_TAKEN;
	bool made = make_next(batches, room);
	pthread_mutex_unlock(&batches->making);
	return made ? JOB_DONE : JOB_NONE;
}

/* Works for the input with the fewest ready batches that has room and is not worked for. */
static enum job work(struct ow_readahead *readahead, struct ow_batch *room)
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
		enum job job = work_for(readahead->batches[next], room);
		if (job == JOB_DONE)
			return job;
		result = job == JOB_TAKEN ? job : result;
	}
	return result;
}

/* Says how many batches the consumer has taken, and wakes threads when there is enough room again. */
static void tell(struct ow_record_batches *batches)
{
	struct ow_readahead *readahead = batches->readahead;
	atomic_store(&batches->told, batches->taken);
	if (!readahead || !atomic_load(&readahead->asleep) || in_store(batches) > STORE / 2)
		return;
	pthread_mutex_lock(&readahead->lock);
	pthread_cond_broadcast(&readahead->wanted);
	pthread_mutex_unlock(&readahead->lock);
}

/* Whether `making` is held now. Else another thread has made a batch. Makes some for another input meanwhile. */
static bool wait_for(struct ow_record_batches *batches)
{
	int r = pthread_mutex_trylock(&batches->making);
	for (unsigned i = 0; r != 0 && i < YIELDS && !in_store(batches); i++) {
		if (work(batches->readahead, &batches->room) != JOB_DONE)
			sched_yield();
		r = pthread_mutex_trylock(&batches->making);
	}
	if (r != 0 && !in_store(batches))
		r = pthread_mutex_lock(&batches->making);
	return r == 0;
}

/* The store is empty: whoever is making a batch puts it there, or the consumer makes its own. */
static void want(struct ow_record_batches *batches, struct kept *kept)
{
	struct ow_batch *batch = &kept->batch;
	tell(batches);
	if (!wait_for(batches))
		return;
	unsigned made = atomic_load_explicit(&batches->made, memory_order_relaxed);
	if (made == batches->taken) {
		kept->is_usual = false;
		make(batches, batch);
		if (batches->ended)
			put(batch, &batches->place[made % STORE]); /* to be taken again */
		else
			batches->taken++;
		batches->known = made + 1;
		atomic_store_explicit(&batches->made, made + 1, memory_order_release);
		atomic_store(&batches->told, batches->taken);
	}
	pthread_mutex_unlock(&batches->making);
}

/* From the store, or made now. */
static void take_stored(struct ow_record_batches *batches, struct kept *kept)
{
	unsigned taken = batches->taken;
	if (batches->known == taken)
		batches->known = atomic_load_explicit(&batches->made, memory_order_acquire);
	if (batches->known == taken)
		want(batches, kept);
	if (batches->taken != taken)
		return;
	batches->known = atomic_load_explicit(&batches->made, memory_order_acquire);
	get(&batches->place[taken % STORE], kept);
	if (batches->known - taken > 1)
		load_to_read(&batches->place[(taken + 1) % STORE]);
	batches->taken += kept->batch.count > 0; /* the end stays, to be taken again */
	if (batches->taken % TELL_AT == 0)
		tell(batches);
}

static const struct ow_batch *take(struct ow_record_batches *batches)
{
	struct kept *kept = &batches->kept[batches->taken % KEPT];
	struct ow_batch *batch = &kept->batch;
	if (batches->place) {
		take_stored(batches, kept);
	} else if (!batches->ended) {
		make(batches, batch);
		batches->taken += batch->count > 0;
	}
	put_in_order(batch);
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
	free(batches->place);
	free(batches);
}

/* -- read-ahead threads ------------------------------------------------------------------------------------------- */

/* Everything is full: sleeps until half of it is used. */
static void sleep_until_wanted(struct ow_readahead *readahead, struct ow_batch *room)
{
	pthread_mutex_lock(&readahead->lock);
	atomic_fetch_add(&readahead->asleep, 1);
	/* A consumer that takes a batch now either sees the sleeper, or has taken it before this. */
	if (!atomic_load(&readahead->leave) && work(readahead, room) == JOB_NONE)
		pthread_cond_wait(&readahead->wanted, &readahead->lock);
	atomic_fetch_sub(&readahead->asleep, 1);
	pthread_mutex_unlock(&readahead->lock);
}

static void *run(void *arg)
{
	struct ow_readahead *readahead = arg;
	struct ow_batch room;
	clear(&room);
	while (!atomic_load(&readahead->leave)) {
		enum job job = work(readahead, &room);
		if (job == JOB_NONE)
			sleep_until_wanted(readahead, &room);
		else if (job == JOB_TAKEN)
			sched_yield();
	}
	return NULL;
}

struct ow_readahead *ow_readahead_start(struct ow_record_batches *const *batches, unsigned inputs, unsigned threads)
{
	struct ow_readahead *readahead = threads ? calloc(1, sizeof *readahead) : NULL;
	bool room = readahead;
	for (unsigned i = 0; i < inputs && room; i++)
		room = (batches[i]->place = aligned_alloc(LINE, STORE * sizeof(struct place)));
	if (!room) {
		for (unsigned i = 0; i < inputs; i++) {
			free(batches[i]->place);
			batches[i]->place = NULL;
		}
		free(readahead);
		return NULL;
	}
	pthread_mutex_init(&readahead->lock, NULL);
	pthread_cond_init(&readahead->wanted, NULL);
	readahead->inputs = inputs;
	for (unsigned i = 0; i < inputs; i++) {
		readahead->batches[i] = batches[i];
		batches[i]->readahead = readahead;
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
