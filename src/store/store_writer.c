/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that writes results (base/retry_writer.h). A failure costs only time until the queue is full. Final
 * results replace provisional ones, so a dropped provisional one is not missing.
 */
#include "store/store_writer.h"

#include "base/clock.h"
#include "base/retry_writer.h"
#include "base/time.h"
#include "store/sample_row.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Results in one transaction. */
#define BATCH 500
/* Results are committed after this time if ow_store_writer_commit is not called. */
#define COMMIT_NS OW_NS_PER_S
/* The pause after a failure; twice as long after each further one. */
#define RETRY_NS     OW_NS_PER_S
#define RETRY_MAX_NS (60 * OW_NS_PER_S)
/* How often the limits are checked; between two portions of deletions, others may write. */
#define TRIM_NS      (10 * OW_NS_PER_S)
#define TRIM_MORE_NS (20 * OW_NS_PER_MS)
/* How often to check that the file still exists. */
#define LOOK_NS OW_NS_PER_S
/* How long to wait for a lock; the next attempt comes soon. */
#define BUSY_MS 250
/* A clock that jumps ahead would delete everything: a jump beyond this is trusted after a day. */
#define JUMP_NS    (3600 * OW_NS_PER_S)
#define BELIEVE_NS (24 * 3600 * OW_NS_PER_S)

/* What waits to be written. */
struct item {
	enum { RESULT, EVENT, SAMPLE } kind;
	union {
		struct ow_interval_result result;
		struct ow_flow_event event;
		struct { /* owns the bytes */
			int64_t start_ns;
			uint8_t *bytes;
			size_t size;
		} sample;
	};
};

static void item_done(const struct item *item)
{
	if (item->kind == SAMPLE)
		free(item->sample.bytes); /* NOLINT(clang-analyzer-unix.Malloc): what is done leaves the queue */
}

struct ow_store_writer {
	char *path;
	size_t most;
	struct ow_retry_writer *writer;

	pthread_mutex_t lock;
	/* Protected by the lock: */
	struct ow_store_limits limits;
	uint64_t lost;
	int64_t lost_ns, lost_last_ns; /* results were lost in this time; equal = none */

	/* Used only by the thread: */
	struct ow_store *store; /* NULL: to be opened */
	dev_t device;           /* of the file when it was opened */
	ino_t inode;
	bool told_lost;
	uint64_t lost_noted;
	int64_t created_ns; /* real */
	int64_t look_at_ns;
	/* the trusted clock, the time when it was read, and since when the clock is not trusted */
	int64_t real_ns, steady_ns, jump_ns;
};

/* -- news --------------------------------------------------------------------------------------------------------- */

bool ow_store_writer_news(struct ow_store_writer *k, struct ow_error *ret_line)
{
	return ow_retry_writer_news(k->writer, ret_line);
}

static uint64_t lost_so_far(struct ow_store_writer *k)
{
	pthread_mutex_lock(&k->lock);
	uint64_t lost = k->lost;
	pthread_mutex_unlock(&k->lock);
	return lost;
}

void ow_store_writer_state(struct ow_store_writer *k, struct ow_store_writer_state *ret_state)
{
	struct ow_retry_writer_state state;
	ow_retry_writer_state(k->writer, &state);
	*ret_state = (struct ow_store_writer_state){
		.failing = state.failing, .stored = state.written, .lost = lost_so_far(k), .waiting = state.waiting};
}

/* The result will be missing in the store, and its row will have the cause. Events are not counted: they are in the
 * log. */
static void lose(struct ow_store_writer *k, const struct item *item)
{
	const struct ow_interval_result *result = &item->result;
	if (item->kind != RESULT || !result->final)
		return;
	int64_t from_ns = result->start_ns, until_ns = result->start_ns + result->length_ns;
	pthread_mutex_lock(&k->lock);
	bool none = k->lost_ns == k->lost_last_ns;
	k->lost++;
	k->lost_ns = none || from_ns < k->lost_ns ? from_ns : k->lost_ns;
	k->lost_last_ns = none || until_ns > k->lost_last_ns ? until_ns : k->lost_last_ns;
	pthread_mutex_unlock(&k->lock);
}

static void failed(void *owner, int code, const struct ow_error *why, bool first)
{
	struct ow_store_writer *k = owner;
	struct ow_error line;
	if (first) {
		ow_error_set(&line, EIO, "%.300s; results wait in memory, the measurement continues", why->text);
		ow_retry_writer_tell(k->writer, &line);
	}
	if (!k->told_lost && lost_so_far(k) > k->lost_noted) {
		ow_error_set(&line, EIO, "%.300s; %zu results wait, older ones are lost from now on", k->path, k->most);
		ow_retry_writer_tell(k->writer, &line);
		k->told_lost = true;
	}
	/* After a lock or a full disk the same file is tried again; after any other error it is opened again. */
	if (code != -EBUSY && code != -ENOSPC) {
		ow_store_close(k->store);
		k->store = NULL;
	}
}

static void worked(void *owner, int64_t failed_ns)
{
	struct ow_store_writer *k = owner;
	struct ow_error line;
	char since[OW_DURATION_TEXT];
	uint64_t lost = lost_so_far(k), more = lost - k->lost_noted;
	if (k->store && more && ow_store_count(k->store, "not_stored", more, NULL) == 0)
		k->lost_noted = lost;
	if (!failed_ns)
		return;
	ow_duration_text((double)failed_ns, since);
	ow_error_set(&line, EIO, "%.300s: written again after %s, %llu intervals lost", k->path, since,
	             (unsigned long long)more);
	ow_retry_writer_tell(k->writer, &line);
	k->told_lost = false;
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

/* Results written to a removed or replaced file would be lost. */
static void look_after_file(struct ow_store_writer *k, int64_t now)
{
	struct stat info;
	struct ow_error line;
	if (!k->store || now < k->look_at_ns)
		return;
	k->look_at_ns = now + LOOK_NS;
	if (stat(k->path, &info) == 0 ? info.st_dev == k->device && info.st_ino == k->inode : errno != ENOENT)
		return;
	ow_error_set(&line, EIO, "%.300s: was removed or replaced; opened again", k->path);
	ow_retry_writer_tell(k->writer, &line);
	ow_store_close(k->store);
	k->store = NULL;
}

static int add_item(struct ow_store *store, const struct item *item, struct ow_error *err)
{
	if (item->kind == EVENT)
		return ow_store_add_event(store, &item->event, err);
	if (item->kind == RESULT)
		return ow_store_add(store, &item->result, err);
	struct ow_sample_row row = {item->sample.start_ns, item->sample.bytes, item->sample.size};
	return ow_store_add_sample(store, &row, err);
}

/* Adds results and commits them. *ret_bad: the result that the store refuses, if the code is -EBADMSG. */
static int commit_batch(struct ow_store_writer *k, const struct item *items, size_t count, size_t *ret_bad,
                        struct ow_error *err)
{
	int r = 0;
	pthread_mutex_lock(&k->lock);
	ow_store_missed(k->store, k->lost_ns, k->lost_last_ns);
	pthread_mutex_unlock(&k->lock);
	for (size_t i = 0; r == 0 && i < count; i++) {
		*ret_bad = i;
		r = add_item(k->store, &items[i], err);
	}
	return r < 0 ? r : ow_store_commit(k->store, err);
}

/* Writes the batch. A result that can never be written must not block the others. */
static int write_batch(void *owner, void *batch, size_t count, struct ow_error *err)
{
	struct ow_store_writer *k = owner;
	const struct item *items = batch;
	size_t bad = 0;
	bool relieved = false;
	look_after_file(k, ow_retry_writer_now_ns());
	int r = k->store ? 0 : open_store(k, err);
	while (r == 0 && count) {
		r = commit_batch(k, items, count, &bad, err);
		if (r == 0) {
			for (size_t i = 0; i < count; i++)
				item_done(&items[i]);
			count = ow_retry_writer_remove(k->writer, 0, count, true);
		} else if (r == -EBADMSG) {
			lose(k, &items[bad]);
			item_done(&items[bad]);
			count = ow_retry_writer_remove(k->writer, bad, 1, false);
			r = 0;
		} else if (r == -ENOSPC && !relieved && ow_store_relieve(k->store) == 0) {
			/* On a small disk the log alone may use all the space. */
			relieved = true;
			r = 0;
		}
	}
	return r;
}

/*
 * The time for deleting: it runs no faster than a steady clock, because a clock that jumps ahead would delete
 * everything.
 */
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

/* Deletes results beyond the limits. */
static int64_t trim(void *owner, int64_t now, bool failing)
{
	struct ow_store_writer *k = owner;
	struct ow_error err;
	pthread_mutex_lock(&k->lock);
	struct ow_store_limits limits = k->limits;
	pthread_mutex_unlock(&k->lock);
	look_after_file(k, now);
	if (!k->store || failing)
		return now + TRIM_NS;
	int r = ow_store_trim(k->store, &limits, trusted_now(k, now), &err);
	if (r < 0 && r != -EBUSY)
		ow_retry_writer_fail(k->writer, r, &err);
	return now + (r > 0 ? TRIM_MORE_NS : TRIM_NS);
}

/* -- the caller's side -------------------------------------------------------------------------------------------- */

/* Errors that an administrator has to correct. */
static bool is_permanent(int code)
{
	return code == -EINVAL || code == -ENOTSUP || code == -ENOENT || code == -ENOTDIR || code == -EISDIR ||
	       code == -EACCES || code == -EPERM;
}

int ow_store_writer_create(const struct ow_store_writer_options *options, struct ow_store_writer **ret_writer,
                           struct ow_error *err)
{
	struct ow_store_writer *k = calloc(1, sizeof *k);
	if (!k)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->path);
	pthread_mutex_init(&k->lock, NULL);
	k->most = options->waiting_max ? options->waiting_max : OW_STORE_WRITER_WAITING;
	k->limits = options->limits;
	k->created_ns = k->real_ns = ow_clock_real_ns();
	k->steady_ns = ow_retry_writer_now_ns();
	k->path = strdup(options->path);
	const struct ow_retry_writer_options o = {.item_size = sizeof(struct item),
	                                          .waiting_max = k->most,
	                                          .batch_max = BATCH,
	                                          .delay_ns = COMMIT_NS,
	                                          .retry_ns = RETRY_NS,
	                                          .retry_max_ns = RETRY_MAX_NS,
	                                          .owner = k,
	                                          .write = write_batch,
	                                          .failed = failed,
	                                          .worked = worked,
	                                          .maintain = trim};
	struct ow_error why;
	int r = k->path && ow_retry_writer_create(&o, &k->writer) == 0
	                ? 0
	                : ow_error_set(err, ENOMEM, "%s: out of memory", options->path);
	if (r == 0 && (r = open_store(k, &why)) < 0) {
		if (err && is_permanent(r))
			*err = why;
		else if (!is_permanent(r))
			ow_retry_writer_fail(k->writer, r, &why);
		r = is_permanent(r) ? r : 0;
	}
	if (r == 0 && (r = ow_retry_writer_start(k->writer)) < 0)
		ow_error_set(err, -r, "%s: %s", options->path, strerror(-r));
	if (r < 0)
		ow_store_writer_free(k);
	else
		*ret_writer = k;
	return r;
}

void ow_store_writer_stop(struct ow_store_writer *k)
{
	ow_retry_writer_stop(k->writer);
}

void ow_store_writer_free(struct ow_store_writer *k)
{
	struct item item;
	struct ow_error ignored;
	if (!k)
		return;
	if (k->writer) {
		ow_retry_writer_stop(k->writer);
		while (ow_retry_writer_take(k->writer, &item))
			item_done(&item);
	}
	ow_retry_writer_free(k->writer);
	/* If that fails, the next process does it. */
	if (k->store)
		(void)ow_store_finish(k->store, ow_clock_real_ns(), &ignored);
	ow_store_close(k->store);
	pthread_mutex_destroy(&k->lock);
	free(k->path);
	free(k);
}

static void add(struct ow_store_writer *k, const struct item *item)
{
	struct item oldest;
	while (ow_retry_writer_add(k->writer, item) < 0) {
		/* The oldest one is dropped. */
		bool any = ow_retry_writer_take(k->writer, &oldest);
		lose(k, any ? &oldest : item);
		item_done(any ? &oldest : item);
		if (!any)
			return;
	}
}

void ow_store_writer_add(struct ow_store_writer *k, const struct ow_interval_result *result)
{
	add(k, &(struct item){.result = *result});
}

void ow_store_writer_add_event(struct ow_store_writer *k, const struct ow_flow_event *event)
{
	add(k, &(struct item){.kind = EVENT, .event = *event});
}

void ow_store_writer_add_sample(struct ow_store_writer *k, const struct ow_sample_row *sample)
{
	struct item item = {.kind = SAMPLE};
	item.sample.start_ns = sample->start_ns;
	item.sample.size = sample->size;
	item.sample.bytes = malloc(sample->size + 1);
	if (!item.sample.bytes)
		return;
	memcpy(item.sample.bytes, sample->bytes, sample->size);
	add(k, &item);
}

void ow_store_writer_commit(struct ow_store_writer *k)
{
	ow_retry_writer_hurry(k->writer);
}

void ow_store_writer_limit(struct ow_store_writer *k, const struct ow_store_limits *limits)
{
	pthread_mutex_lock(&k->lock);
	k->limits = *limits;
	pthread_mutex_unlock(&k->lock);
}
