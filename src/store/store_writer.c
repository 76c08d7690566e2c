/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that writes results. Results go from the caller into a queue, from there into the thread's batch, and out
 * of the batch when they are committed: a failure costs nothing but time until the queue is full. Final results replace
 * provisional ones, so a provisional one that had to make room is not missed.
 */
#include "store/store_writer.h"

#include "base/clock.h"
#include "base/time.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Results in one transaction. */
#define BATCH 500
/* What nobody asks to commit is committed after this time. */
#define COMMIT_NS OW_NS_PER_S
/* After a failure; twice as long after each further one. */
#define RETRY_NS     OW_NS_PER_S
#define RETRY_MAX_NS (60 * OW_NS_PER_S)
/* How often limits are looked at; between two portions of what is to be deleted, others may write. */
#define TRIM_NS      (10 * OW_NS_PER_S)
#define TRIM_MORE_NS (20 * OW_NS_PER_MS)
/* How often it is looked whether the file is still there. */
#define LOOK_NS OW_NS_PER_S
/* A lock of others; the next try comes soon. */
#define BUSY_MS 250
/* Clocks that jump ahead would delete everything: a jump beyond this is believed after a day. */
#define JUMP_NS    (3600 * OW_NS_PER_S)
#define BELIEVE_NS (24 * 3600 * OW_NS_PER_S)
#define NEWS       4

struct ow_store_writer {
	char *path;
	size_t most;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock: */
	struct ow_interval_result *queue; /* a ring */
	size_t head, count, room;
	struct ow_store_limits limits;
	bool stop, commit;
	struct ow_store_writer_state state;
	int64_t lost_ns, lost_last_ns; /* in this time results were lost; equal = none */
	struct ow_error news[NEWS];
	unsigned news_count;

	/* The thread's own: */
	struct ow_store *store; /* NULL: to be opened */
	struct ow_interval_result *batch;
	size_t batched;
	dev_t device; /* of the file as it was opened */
	ino_t inode;
	bool was_failing, told_lost;
	uint64_t lost_noted;
	int64_t created_ns; /* real */
	int64_t failing_since_ns, retry_ns, retry_at_ns, trim_at_ns, look_at_ns, commit_at_ns;
	int64_t real_ns, steady_ns, jump_ns; /* a clock that was believed, when that was, and since when it is not */
};

/* Runs also while the host sleeps. */
static int64_t steady(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * OW_NS_PER_S + now.tv_nsec;
}

/* -- news --------------------------------------------------------------------------------------------------------- */

static void tell(struct ow_store_writer *k, const struct ow_error *line)
{
	pthread_mutex_lock(&k->lock);
	if (k->news_count < NEWS)
		k->news[k->news_count++] = *line;
	pthread_mutex_unlock(&k->lock);
}

bool ow_store_writer_news(struct ow_store_writer *k, struct ow_error *ret_line)
{
	pthread_mutex_lock(&k->lock);
	bool any = k->news_count > 0;
	if (any) {
		*ret_line = k->news[0];
		memmove(k->news, k->news + 1, --k->news_count * sizeof *k->news);
	}
	pthread_mutex_unlock(&k->lock);
	return any;
}

void ow_store_writer_state(struct ow_store_writer *k, struct ow_store_writer_state *ret_state)
{
	pthread_mutex_lock(&k->lock);
	*ret_state = k->state;
	ret_state->waiting += k->count;
	pthread_mutex_unlock(&k->lock);
}

static void publish(struct ow_store_writer *k, size_t stored, bool failing)
{
	pthread_mutex_lock(&k->lock);
	k->state.stored += stored;
	k->state.failing = failing;
	k->state.waiting = k->batched;
	pthread_mutex_unlock(&k->lock);
}

/* The place in the ring after this one. */
static size_t next_place(const struct ow_store_writer *k, size_t place)
{
	return place + 1 < k->room ? place + 1 : 0;
}

/* It will be missing in the store, which says why. Under the lock. */
static void lose(struct ow_store_writer *k, const struct ow_interval_result *result)
{
	int64_t from_ns = result->start_ns, until_ns = result->start_ns + result->length_ns;
	if (!result->final)
		return;
	bool none = k->lost_ns == k->lost_last_ns;
	k->state.lost++;
	k->lost_ns = none || from_ns < k->lost_ns ? from_ns : k->lost_ns;
	k->lost_last_ns = none || until_ns > k->lost_last_ns ? until_ns : k->lost_last_ns;
}

static uint64_t lost_so_far(struct ow_store_writer *k)
{
	struct ow_store_writer_state state;
	ow_store_writer_state(k, &state);
	return state.lost;
}

static void failed(struct ow_store_writer *k, int code, const struct ow_error *why, int64_t now)
{
	struct ow_error line;
	if (!k->was_failing) {
		k->failing_since_ns = now;
		k->retry_ns = RETRY_NS;
		ow_error_set(&line, EIO, "%.300s; results wait in memory, the measurement goes on", why->text);
		tell(k, &line);
	}
	k->was_failing = true;
	publish(k, 0, true);
	if (!k->told_lost && lost_so_far(k) > k->lost_noted) {
		ow_error_set(&line, EIO, "%.300s; %zu results wait, older ones are lost from now on", k->path, k->most);
		tell(k, &line);
		k->told_lost = true;
	}
	k->retry_at_ns = now + k->retry_ns;
	k->retry_ns = 2 * k->retry_ns > RETRY_MAX_NS ? RETRY_MAX_NS : 2 * k->retry_ns;
	/* A lock and a full disk pass; after anything else the file is opened anew. */
	if (code != -EBUSY && code != -ENOSPC) {
		ow_store_close(k->store);
		k->store = NULL;
	}
}

static void worked(struct ow_store_writer *k, int64_t now)
{
	struct ow_error line;
	char since[OW_DURATION_TEXT];
	uint64_t lost = lost_so_far(k), more = lost - k->lost_noted;
	if (k->store && more && ow_store_count(k->store, "not_stored", more, NULL) == 0)
		k->lost_noted = lost;
	if (!k->was_failing)
		return;
	ow_duration_text((double)(now - k->failing_since_ns), since);
	ow_error_set(&line, EIO, "%.300s: written again after %s, %llu intervals lost", k->path, since,
	             (unsigned long long)more);
	tell(k, &line);
	k->was_failing = k->told_lost = false;
	k->retry_at_ns = 0;
}

/* -- the file ----------------------------------------------------------------------------------------------------- */

static int open_store(struct ow_store_writer *k, struct ow_error *err)
{
	struct stat info;
	int r = ow_store_open(k->path, &k->store, err);
	if (r < 0)
		return r;
	ow_store_busy(k->store, BUSY_MS);
	ow_store_since(k->store, k->created_ns);
	k->inode = 0;
	if (stat(k->path, &info) == 0) {
		k->device = info.st_dev;
		k->inode = info.st_ino;
	}
	return 0;
}

/* A file that was removed or replaced would take results along into nowhere. */
static void look_after_file(struct ow_store_writer *k, int64_t now)
{
	struct stat info;
	struct ow_error line;
	if (!k->store || now < k->look_at_ns)
		return;
	k->look_at_ns = now + LOOK_NS;
	if (stat(k->path, &info) == 0 ? info.st_dev == k->device && info.st_ino == k->inode : errno != ENOENT)
		return;
	ow_error_set(&line, EIO, "%.300s: was removed or replaced; opened anew", k->path);
	tell(k, &line);
	ow_store_close(k->store);
	k->store = NULL;
}

/* Adds the batch and commits it. *ret_bad: the result that the store refuses, if the code is -EBADMSG. */
static int write_batch(struct ow_store_writer *k, size_t *ret_bad, struct ow_error *err)
{
	int r = 0;
	pthread_mutex_lock(&k->lock);
	ow_store_missed(k->store, k->lost_ns, k->lost_last_ns);
	pthread_mutex_unlock(&k->lock);
	for (size_t i = 0; r == 0 && i < k->batched; i++) {
		*ret_bad = i;
		r = ow_store_add(k->store, &k->batch[i], err);
	}
	return r < 0 ? r : ow_store_commit(k->store, err);
}

/* Writes the batch. A result that can never be written must not keep the others back. */
static int put_batch(struct ow_store_writer *k, struct ow_error *err)
{
	size_t bad = 0;
	bool relieved = false;
	int r = k->store ? 0 : open_store(k, err);
	while (r == 0 && k->batched) {
		r = write_batch(k, &bad, err);
		if (r == 0) {
			size_t stored = k->batched;
			k->batched = 0;
			publish(k, stored, false);
		} else if (r == -EBADMSG) {
			pthread_mutex_lock(&k->lock);
			lose(k, &k->batch[bad]);
			pthread_mutex_unlock(&k->lock);
			memmove(&k->batch[bad], &k->batch[bad + 1], (--k->batched - bad) * sizeof *k->batch);
			publish(k, 0, k->was_failing);
			r = 0;
		} else if (r == -ENOSPC && !relieved && ow_store_relieve(k->store) == 0) {
			/* On a small disk the log alone may take all of it. */
			relieved = true;
			r = 0;
		}
	}
	return r;
}

/* The time for deleting: it runs no faster than a steady clock, or a clock that jumps ahead would delete everything. */
static int64_t trusted_now(struct ow_store_writer *k, int64_t now)
{
	int64_t real = ow_clock_real_ns(), expected = k->real_ns + (now - k->steady_ns);
	if (real <= expected + JUMP_NS)
		k->jump_ns = 0;
	else if (!k->jump_ns)
		k->jump_ns = now;
	if (k->jump_ns && now - k->jump_ns < BELIEVE_NS)
		return expected;
	k->real_ns = real;
	k->steady_ns = now;
	k->jump_ns = 0;
	return real;
}

static void trim(struct ow_store_writer *k, int64_t now)
{
	struct ow_error err;
	pthread_mutex_lock(&k->lock);
	struct ow_store_limits limits = k->limits;
	pthread_mutex_unlock(&k->lock);
	if (now < k->trim_at_ns)
		return;
	k->trim_at_ns = now + TRIM_NS;
	if (!k->store || k->was_failing)
		return;
	int r = ow_store_trim(k->store, &limits, trusted_now(k, now), &err);
	if (r > 0)
		k->trim_at_ns = now + TRIM_MORE_NS;
	if (r < 0 && r != -EBUSY)
		failed(k, r, &err, now);
}

/* -- the thread --------------------------------------------------------------------------------------------------- */

/* Moves what waits into the batch, as far as it has room. Returns whether there is something to write. */
static bool fill_batch(struct ow_store_writer *k)
{
	pthread_mutex_lock(&k->lock);
	while (k->count && k->batched < BATCH) {
		k->batch[k->batched++] = k->queue[k->head];
		k->head = next_place(k, k->head);
		k->count--;
	}
	/* An empty queue begins anew, so that a quiet point touches little memory. */
	if (!k->count) {
		k->head = 0;
		k->commit = false;
	}
	k->state.waiting = k->batched;
	pthread_mutex_unlock(&k->lock);
	return k->batched > 0;
}

/* Sleeps until there is something to do. Returns whether the end has come. */
static bool wait_for_work(struct ow_store_writer *k)
{
	pthread_mutex_lock(&k->lock);
	for (;;) {
		int64_t now = steady(), until = k->trim_at_ns;
		bool waiting = k->count || k->batched;
		/* After a failure the next try has its time, whatever comes meanwhile. */
		bool ready = (k->commit || k->count >= BATCH || now >= k->commit_at_ns) && now >= k->retry_at_ns;
		if (k->stop || (waiting && ready) || now >= until)
			break;
		int64_t next = now < k->retry_at_ns ? k->retry_at_ns : k->commit_at_ns;
		if (waiting && next < until)
			until = next;
		int64_t at_ns = ow_clock_steady_ns() + (until - now);
		struct timespec at = {at_ns / OW_NS_PER_S, at_ns % OW_NS_PER_S};
		pthread_cond_clockwait(&k->wake, &k->lock, CLOCK_MONOTONIC, &at);
	}
	bool stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return stop;
}

static void work(struct ow_store_writer *k, bool last)
{
	struct ow_error err;
	int64_t now = steady();
	bool due = now >= k->retry_at_ns || last;
	look_after_file(k, now);
	while (due && fill_batch(k)) {
		int r = put_batch(k, &err);
		if (r < 0) {
			failed(k, r, &err, now);
			return;
		}
		worked(k, now);
	}
	k->commit_at_ns = now + COMMIT_NS;
	if (!last)
		trim(k, now);
}

static void *run(void *arg)
{
	struct ow_store_writer *k = arg;
	while (!wait_for_work(k))
		work(k, false);
	work(k, true);
	return NULL;
}

/* -- the caller's side -------------------------------------------------------------------------------------------- */

static int start(struct ow_store_writer *k)
{
	sigset_t all, old;
	sigfillset(&all);
	/* Signals are for the caller's thread. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = pthread_create(&k->thread, NULL, run, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	k->running = r == 0;
	return -r;
}

/* What a person has to put right before it can work. */
static bool is_permanent(int code)
{
	return code == -EINVAL || code == -ENOTSUP || code == -ENOENT || code == -ENOTDIR || code == -EISDIR ||
	       code == -EACCES || code == -EPERM;
}

int ow_store_writer_create(const struct ow_store_writer_options *options, struct ow_store_writer **ret_keeper,
                           struct ow_error *err)
{
	struct ow_store_writer *k = calloc(1, sizeof *k);
	if (!k)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->path);
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->wake, NULL);
	k->most = options->waiting_max ? options->waiting_max : OW_STORE_WRITER_WAITING;
	k->limits = options->limits;
	k->created_ns = k->real_ns = ow_clock_real_ns();
	k->steady_ns = steady();
	k->path = strdup(options->path);
	k->batch = reallocarray(NULL, BATCH, sizeof *k->batch);
	struct ow_error why;
	int r = k->path && k->batch ? 0 : ow_error_set(err, ENOMEM, "%s: out of memory", options->path);
	if (r == 0 && (r = open_store(k, &why)) < 0) {
		if (err && is_permanent(r))
			*err = why;
		else if (!is_permanent(r))
			failed(k, r, &why, k->steady_ns);
		r = is_permanent(r) ? r : 0;
	}
	if (r == 0 && (r = start(k)) < 0)
		ow_error_set(err, -r, "%s: %s", options->path, strerror(-r));
	if (r < 0)
		ow_store_writer_free(k);
	else
		*ret_keeper = k;
	return r;
}

void ow_store_writer_stop(struct ow_store_writer *k)
{
	if (!k->running)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	k->running = false;
}

void ow_store_writer_free(struct ow_store_writer *k)
{
	if (!k)
		return;
	ow_store_writer_stop(k);
	ow_store_close(k->store);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k->queue);
	free(k->batch);
	free(k->path);
	free(k);
}

/* Room for one more, also by giving up the oldest. */
static bool make_room(struct ow_store_writer *k)
{
	if (k->count < k->room)
		return true;
	if (k->room < k->most) {
		size_t room = k->room ? 2 * k->room : 64;
		room = room < k->most ? room : k->most;
		struct ow_interval_result *queue = reallocarray(NULL, room, sizeof *queue);
		if (queue) {
			for (size_t i = 0, from = k->head; i < k->count; i++, from = next_place(k, from))
				queue[i] = k->queue[from];
			free(k->queue);
			k->queue = queue;
			k->room = room;
			k->head = 0;
			return true;
		}
	}
	if (!k->count)
		return false;
	lose(k, &k->queue[k->head]);
	k->head = next_place(k, k->head);
	k->count--;
	return true;
}

void ow_store_writer_add(struct ow_store_writer *k, const struct ow_interval_result *result)
{
	pthread_mutex_lock(&k->lock);
	if (make_room(k))
		k->queue[(k->head + k->count++) % k->room] = *result;
	else
		lose(k, result);
	if (k->count == 1 || k->count == BATCH)
		pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

void ow_store_writer_commit(struct ow_store_writer *k)
{
	pthread_mutex_lock(&k->lock);
	if (k->count) {
		k->commit = true;
		pthread_cond_signal(&k->wake);
	}
	pthread_mutex_unlock(&k->lock);
}

void ow_store_writer_limit(struct ow_store_writer *k, const struct ow_store_limits *limits)
{
	pthread_mutex_lock(&k->lock);
	k->limits = *limits;
	pthread_mutex_unlock(&k->lock);
}
