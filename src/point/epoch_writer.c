/* SPDX-License-Identifier: Apache-2.0 */
#include "point/epoch_writer.h"

#include "base/retry_writer.h"
#include "base/time.h"
#include "flows/epochs.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 64 /* epochs that wait, besides the one that is being written */
#define RETRY_NS    OW_NS_PER_S
/* Both points record the same packets in the same way: a copy that grows beyond twice the own file and this is none. */
#define COPY_BYTES (UINT64_C(256) << 20)
/* An interval has the epochs of several threads, each with up to `flows_max` flows. A peer could send far more. */
#define WORST_FLOWS 4

enum job { WRITE, APPEND, READ };

struct waiting {
	enum job job;
	unsigned recording;
	struct ow_epoch epoch;        /* WRITE */
	struct ow_epochs_copy copy;   /* APPEND */
	struct ow_epochs_place place; /* READ */
};

/* The copy of the peer's recording, and what the peer wants of this one. */
struct copying {
	char *file; /* NULL = there is none */
	struct ow_epochs_writer *writer;
	/* Protected by the lock. */
	struct ow_epochs_place place;
	uint64_t own_bytes;
	bool busy, stopped, large;
	bool reading, was_read;
	int code;
	struct ow_epochs_copy read;
};

struct recording {
	char *file, *from; /* copies, because the configuration may be read again; from: NULL = none */
	size_t flows_max;
	/* Used only by the thread: the span of the newest epoch; begin INT64_MIN = none. */
	int64_t begin_ns, end_ns;
	struct ow_worst_flows worst; /* protected by the lock; not fetched yet */
	bool has_worst;
	struct ow_epochs_writer *writer;
	struct copying copying;
	uint64_t lost_epochs, lost_packets; /* protected by the lock; not reported yet */
};

struct ow_epoch_writer {
	unsigned recordings;
	struct recording recording[OW_CONFIG_FLOWS_MAX];
	const char *file; /* used only by the thread: the file of the last write */
	struct ow_retry_writer *writer;
	pthread_mutex_t lock;
};

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/*
 * The epochs of an interval are complete when the first of the next is written: threads that record the same end them
 * together.
 */
static void look_back(struct ow_epoch_writer *writer, struct recording *recording, int64_t begin_ns, int64_t end_ns)
{
	struct ow_worst_flows worst;
	if (!recording->from || begin_ns < recording->end_ns)
		return;
	if (recording->begin_ns != INT64_MIN) {
		ow_worst_flows_find(recording->from, recording->file, recording->begin_ns, recording->end_ns,
		                    WORST_FLOWS * recording->flows_max, &worst);
		pthread_mutex_lock(&writer->lock);
		free(recording->worst.json);
		recording->worst = worst;
		recording->has_worst = true;
		pthread_mutex_unlock(&writer->lock);
	}
	recording->begin_ns = begin_ns;
	recording->end_ns = end_ns;
}

static int write_own(struct ow_epoch_writer *writer, struct recording *recording, struct waiting *item,
                     struct ow_error *err)
{
	writer->file = recording->file;
	int r = ow_epochs_append(recording->writer, &item->epoch, NULL, err);
	if (r < 0)
		return r;
	int64_t begin_ns = item->epoch.begin_ns, end_ns = item->epoch.end_ns;
	ow_epoch_done(&item->epoch);
	look_back(writer, recording, begin_ns, end_ns);
	pthread_mutex_lock(&writer->lock);
	recording->copying.own_bytes = ow_epochs_place(recording->writer).bytes;
	pthread_mutex_unlock(&writer->lock);
	return 0;
}

static int append_copy(struct ow_epoch_writer *writer, struct recording *recording, struct waiting *item,
                       struct ow_error *err)
{
	struct copying *copying = &recording->copying;
	struct ow_error line;
	writer->file = copying->file;
	int r = ow_epochs_copy_append(copying->writer, &item->copy, recording->flows_max, err);
	if (r < 0 && r != -EINVAL)
		return r;
	free(item->copy.bytes);
	if (r < 0) {
		ow_error_set(&line, EINVAL, "%.400s: it is not copied any more", err->text);
		ow_retry_writer_tell(writer->writer, &line);
	}
	pthread_mutex_lock(&writer->lock);
	copying->busy = false;
	copying->stopped |= r < 0;
	copying->place = ow_epochs_place(copying->writer);
	pthread_mutex_unlock(&writer->lock);
	return 0;
}

static void read_own(struct ow_epoch_writer *writer, struct recording *recording, const struct waiting *item)
{
	struct copying *copying = &recording->copying;
	struct ow_epochs_copy copy = {0};
	struct ow_error why;
	int code = ow_epochs_copy_next(recording->writer, &item->place, &copy, &why);
	if (code < 0 && code != -ESTALE)
		ow_retry_writer_tell(writer->writer, &why);
	pthread_mutex_lock(&writer->lock);
	copying->was_read = true;
	copying->code = code;
	copying->read = copy;
	pthread_mutex_unlock(&writer->lock);
}

static int work(void *owner, void *items, size_t count, struct ow_error *err)
{
	struct ow_epoch_writer *writer = owner;
	struct waiting *first = items;
	struct recording *recording = &writer->recording[first->recording];
	int r = 0;
	if (first->job == READ)
		read_own(writer, recording, first);
	else
		r = first->job == WRITE ? write_own(writer, recording, first, err)
		                        : append_copy(writer, recording, first, err);
	if (r == 0)
		ow_retry_writer_remove(writer->writer, 0, count, first->job != READ);
	return r;
}

static void failed(void *owner, int code, const struct ow_error *why, bool first)
{
	struct ow_epoch_writer *writer = owner;
	(void)code;
	if (first)
		ow_retry_writer_tell(writer->writer, why);
}

static void worked(void *owner, int64_t failed_ns)
{
	struct ow_epoch_writer *writer = owner;
	struct ow_error line;
	if (!failed_ns)
		return;
	ow_error_set(&line, EIO, "%.200s: is written again", writer->file);
	ow_retry_writer_tell(writer->writer, &line);
}

/* -- the caller's side --------------------------------------------------------------------------------------------- */

static int open_copy(const struct ow_config_flows *flows, struct recording *recording, struct ow_error *err)
{
	struct copying *copying = &recording->copying;
	copying->file = ow_config_flows_copy(flows);
	if (!copying->file)
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	int r = ow_epochs_create(copying->file, &flows->info, true, &copying->writer, err);
	if (r < 0)
		return r;
	copying->place = ow_epochs_place(copying->writer);
	copying->own_bytes = ow_epochs_place(recording->writer).bytes;
	return 0;
}

static int open_recording(struct ow_epoch_writer *writer, const struct ow_config_flows *flows, struct ow_error *err)
{
	struct recording *recording = &writer->recording[writer->recordings];
	recording->file = strdup(flows->file);
	recording->from = flows->from ? strdup(flows->from) : NULL;
	recording->flows_max = flows->flows_max;
	recording->begin_ns = recording->end_ns = INT64_MIN;
	if (!recording->file || (flows->from && !recording->from))
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	writer->recordings++;
	int r = ow_epochs_create(flows->file, &flows->info, true, &recording->writer, err);
	return r < 0 || !flows->peer ? r : open_copy(flows, recording, err);
}

int ow_epoch_writer_create(const struct ow_config *config, struct ow_epoch_writer **ret_writer, struct ow_error *err)
{
	struct ow_epoch_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	pthread_mutex_init(&writer->lock, NULL);
	const struct ow_retry_writer_options o = {.item_size = sizeof(struct waiting),
	                                          .waiting_max = WAITING_MAX,
	                                          .batch_max = 1,
	                                          .retry_ns = RETRY_NS,
	                                          .retry_max_ns = RETRY_NS,
	                                          .owner = writer,
	                                          .write = work,
	                                          .failed = failed,
	                                          .worked = worked};
	int r = ow_retry_writer_create(&o, &writer->writer);
	if (r < 0)
		ow_error_set(err, ENOMEM, "not enough memory to record flows");
	for (unsigned i = 0; r == 0 && i < config->flows_count; i++)
		r = open_recording(writer, &config->flows[i], err);
	if (r == 0 && (r = ow_retry_writer_start(writer->writer)) < 0)
		ow_error_set(err, -r, "cannot start a thread: %s", strerror(-r));
	if (r < 0)
		ow_epoch_writer_free(writer);
	else
		*ret_writer = writer;
	return r;
}

static void lose(struct ow_epoch_writer *writer, unsigned recording, uint64_t epochs, uint64_t packets)
{
	pthread_mutex_lock(&writer->lock);
	writer->recording[recording].lost_epochs += epochs;
	writer->recording[recording].lost_packets += packets;
	pthread_mutex_unlock(&writer->lock);
}

void ow_epoch_writer_add(struct ow_epoch_writer *writer, unsigned recording, struct ow_epoch *epoch)
{
	const struct waiting waiting = {.job = WRITE, .recording = recording, .epoch = *epoch};
	if (ow_retry_writer_add(writer->writer, &waiting) < 0) {
		lose(writer, recording, 1, 0);
		return;
	}
	epoch->colate = NULL;
	epoch->counts = NULL;
}

void ow_epoch_writer_lost(struct ow_epoch_writer *writer, unsigned recording, uint64_t packets)
{
	lose(writer, recording, 0, packets);
}

/* -- copies -------------------------------------------------------------------------------------------------------- */

bool ow_epoch_writer_place(struct ow_epoch_writer *writer, unsigned recording, struct ow_epochs_place *ret_place)
{
	struct copying *copying = &writer->recording[recording].copying;
	struct ow_error line;
	pthread_mutex_lock(&writer->lock);
	bool large = copying->place.bytes > 2 * copying->own_bytes + COPY_BYTES, news = large && !copying->large;
	copying->large = large;
	*ret_place = copying->place;
	bool ready = !copying->busy && !copying->stopped && !large;
	pthread_mutex_unlock(&writer->lock);
	if (news) {
		ow_error_set(&line, EFBIG,
		             "%.300s: far larger than the recording here: it is not copied until that has grown",
		             copying->file);
		ow_retry_writer_tell(writer->writer, &line);
	}
	return ready;
}

int ow_epoch_writer_append(struct ow_epoch_writer *writer, unsigned recording, const struct ow_epochs_copy *copy)
{
	struct copying *copying = &writer->recording[recording].copying;
	struct waiting waiting = {.job = APPEND, .recording = recording, .copy = *copy};
	waiting.copy.bytes = malloc(copy->size);
	if (!waiting.copy.bytes)
		return -ENOMEM;
	memcpy(waiting.copy.bytes, copy->bytes, copy->size);
	pthread_mutex_lock(&writer->lock);
	copying->busy = true;
	pthread_mutex_unlock(&writer->lock);
	int r = ow_retry_writer_add(writer->writer, &waiting);
	if (r == 0)
		return 0;
	free(waiting.copy.bytes);
	pthread_mutex_lock(&writer->lock);
	copying->busy = false;
	pthread_mutex_unlock(&writer->lock);
	return r;
}

int ow_epoch_writer_read(struct ow_epoch_writer *writer, unsigned recording, const struct ow_epochs_place *place)
{
	struct copying *copying = &writer->recording[recording].copying;
	const struct waiting waiting = {.job = READ, .recording = recording, .place = *place};
	if (copying->reading)
		return -EBUSY;
	int r = ow_retry_writer_add(writer->writer, &waiting);
	copying->reading = r == 0;
	return r;
}

bool ow_epoch_writer_was_read(struct ow_epoch_writer *writer, unsigned recording, int *ret_code,
                              struct ow_epochs_copy *ret_copy)
{
	struct copying *copying = &writer->recording[recording].copying;
	pthread_mutex_lock(&writer->lock);
	bool was_read = copying->was_read;
	if (was_read) {
		*ret_code = copying->code;
		*ret_copy = copying->read;
		copying->read = (struct ow_epochs_copy){0};
		copying->was_read = false;
		copying->reading = false;
	}
	pthread_mutex_unlock(&writer->lock);
	return was_read;
}

bool ow_epoch_writer_news(struct ow_epoch_writer *writer, struct ow_error *ret_line)
{
	bool news = ow_retry_writer_news(writer->writer, ret_line);
	pthread_mutex_lock(&writer->lock);
	for (unsigned i = 0; i < writer->recordings && !news; i++) {
		struct recording *recording = &writer->recording[i];
		news = recording->lost_epochs || recording->lost_packets;
		if (news)
			ow_error_set(
				ret_line, ENOSPC,
				"%.200s: %llu epochs were lost because they could not be written, and %llu packets "
				"because there was not enough memory",
				recording->file, (unsigned long long)recording->lost_epochs,
				(unsigned long long)recording->lost_packets);
		recording->lost_epochs = recording->lost_packets = 0;
	}
	pthread_mutex_unlock(&writer->lock);
	return news;
}

bool ow_epoch_writer_worst(struct ow_epoch_writer *writer, struct ow_worst_flows *ret_worst)
{
	bool found = false;
	pthread_mutex_lock(&writer->lock);
	for (unsigned i = 0; i < writer->recordings && !found; i++) {
		struct recording *recording = &writer->recording[i];
		found = recording->has_worst;
		if (!found)
			continue;
		*ret_worst = recording->worst;
		recording->worst.json = NULL;
		recording->has_worst = false;
	}
	pthread_mutex_unlock(&writer->lock);
	return found;
}

void ow_epoch_writer_stop(struct ow_epoch_writer *writer)
{
	struct waiting waiting;
	if (!writer->writer)
		return;
	ow_retry_writer_stop(writer->writer);
	while (ow_retry_writer_take(writer->writer, &waiting)) {
		if (waiting.job == WRITE) {
			lose(writer, waiting.recording, 1, 0);
			ow_epoch_done(&waiting.epoch);
		}
		free(waiting.copy.bytes);
	}
}

void ow_epoch_writer_free(struct ow_epoch_writer *writer)
{
	if (!writer)
		return;
	ow_epoch_writer_stop(writer);
	ow_retry_writer_free(writer->writer);
	for (unsigned i = 0; i < writer->recordings; i++) {
		struct copying *copying = &writer->recording[i].copying;
		ow_epochs_writer_free(writer->recording[i].writer);
		free(writer->recording[i].worst.json);
		free(writer->recording[i].from);
		ow_epochs_writer_free(copying->writer);
		free(writer->recording[i].file);
		free(copying->file);
		free(copying->read.bytes);
	}
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}
