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

struct waiting {
	unsigned recording;
	struct ow_epoch epoch;
};

struct recording {
	char *file; /* a copy, because the configuration may be read again */
	struct ow_epochs_writer *writer;
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

static int write_epoch(void *owner, void *items, size_t count, struct ow_error *err)
{
	struct ow_epoch_writer *writer = owner;
	struct waiting *first = items;
	struct recording *recording = &writer->recording[first->recording];
	writer->file = recording->file;
	int r = ow_epochs_append(recording->writer, &first->epoch, NULL, err);
	if (r < 0)
		return r;
	ow_epoch_done(&first->epoch);
	ow_retry_writer_remove(writer->writer, 0, count, true);
	return 0;
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

static int open_recording(struct ow_epoch_writer *writer, const struct ow_config_flows *flows, struct ow_error *err)
{
	struct recording *recording = &writer->recording[writer->recordings];
	recording->file = strdup(flows->file);
	if (!recording->file)
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	writer->recordings++;
	return ow_epochs_create(flows->file, &flows->info, true, &recording->writer, err);
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
	                                          .write = write_epoch,
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
	const struct waiting waiting = {recording, *epoch};
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

void ow_epoch_writer_stop(struct ow_epoch_writer *writer)
{
	struct waiting waiting;
	if (!writer->writer)
		return;
	ow_retry_writer_stop(writer->writer);
	while (ow_retry_writer_take(writer->writer, &waiting)) {
		lose(writer, waiting.recording, 1, 0);
		ow_epoch_done(&waiting.epoch);
	}
}

void ow_epoch_writer_free(struct ow_epoch_writer *writer)
{
	if (!writer)
		return;
	ow_epoch_writer_stop(writer);
	ow_retry_writer_free(writer->writer);
	for (unsigned i = 0; i < writer->recordings; i++) {
		ow_epochs_writer_free(writer->recording[i].writer);
		free(writer->recording[i].file);
	}
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}
