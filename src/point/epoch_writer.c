/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes epochs: flow_keeper.h. */
#include "point/epoch_writer.h"

#include "flows/epochs.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAITING_MAX 64 /* epochs */
#define RETRY_S     1

struct waiting {
	struct waiting *next;
	unsigned recording;
	struct ow_epoch epoch;
};

struct recording {
	struct ow_epochs_writer *writer;
	bool failing;                       /* the thread's own */
	uint64_t lost_epochs, lost_packets; /* not told yet */
	struct ow_error news;               /* empty = none */
};

struct ow_epoch_writer {
	unsigned recordings;
	char *files[OW_CONFIG_FLOWS_MAX]; /* copies: the configuration may be read again */
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	bool stop;
	struct waiting *first, **end;
	unsigned count;
	struct recording recording[OW_CONFIG_FLOWS_MAX];
};

static void waiting_free(struct waiting *waiting)
{
	ow_epoch_done(&waiting->epoch);
	free(waiting);
}

/* Says that a file fails once, and once that it works again. */
static void note_result(struct ow_epoch_writer *keeper, unsigned number, int r, const struct ow_error *err)
{
	struct recording *recording = &keeper->recording[number];
	if ((r < 0) == recording->failing)
		return;
	recording->failing = r < 0;
	pthread_mutex_lock(&keeper->lock);
	if (r < 0)
		recording->news = *err;
	else
		ow_error_set(&recording->news, EIO, "%.200s: is written again", keeper->files[number]);
	pthread_mutex_unlock(&keeper->lock);
}

static int write_first(struct ow_epoch_writer *keeper, struct waiting *waiting)
{
	struct ow_error err = {""};
	int r = ow_epochs_append(keeper->recording[waiting->recording].writer, &waiting->epoch, NULL, &err);
	note_result(keeper, waiting->recording, r, &err);
	return r;
}

/* Waits for something to write; after a failure for a while. NULL = the end. */
static struct waiting *wait_for_one(struct ow_epoch_writer *keeper, bool failed)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RETRY_S;
	while (!keeper->stop && (failed || !keeper->first)) {
		if (!failed)
			pthread_cond_wait(&keeper->changed, &keeper->lock);
		else if (pthread_cond_timedwait(&keeper->changed, &keeper->lock, &until) == ETIMEDOUT)
			break;
	}
	/* At the end, what has failed just now is not tried again. */
	return keeper->stop && failed ? NULL : keeper->first;
}

static void *work(void *arg)
{
	struct ow_epoch_writer *keeper = arg;
	bool failed = false;
	pthread_mutex_lock(&keeper->lock);
	for (struct waiting *waiting; (waiting = wait_for_one(keeper, failed));) {
		pthread_mutex_unlock(&keeper->lock);
		failed = write_first(keeper, waiting) < 0;
		pthread_mutex_lock(&keeper->lock);
		if (failed)
			continue;
		keeper->first = waiting->next;
		if (!keeper->first)
			keeper->end = &keeper->first;
		keeper->count--;
		waiting_free(waiting);
	}
	pthread_mutex_unlock(&keeper->lock);
	return NULL;
}

static int open_recording(struct ow_epoch_writer *keeper, const struct ow_config_flows *flows, struct ow_error *err)
{
	unsigned i = keeper->recordings;
	keeper->files[i] = strdup(flows->file);
	if (!keeper->files[i])
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	keeper->recordings++;
	return ow_epochs_create(flows->file, &flows->info, true, &keeper->recording[i].writer, err);
}

int ow_epoch_writer_create(const struct ow_config *config, struct ow_epoch_writer **ret_keeper, struct ow_error *err)
{
	struct ow_epoch_writer *keeper = calloc(1, sizeof *keeper);
	if (!keeper)
		return ow_error_set(err, ENOMEM, "not enough memory to record flows");
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_cond_init(&keeper->changed, NULL);
	keeper->end = &keeper->first;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < config->flows_count; i++)
		r = open_recording(keeper, &config->flows[i], err);
	if (r == 0) {
		r = pthread_create(&keeper->thread, NULL, work, keeper);
		keeper->runs = r == 0;
		if (r)
			r = ow_error_set(err, r, "cannot start a thread: %s", strerror(r));
	}
	if (r < 0)
		ow_epoch_writer_free(keeper);
	else
		*ret_keeper = keeper;
	return r;
}

void ow_epoch_writer_add(struct ow_epoch_writer *keeper, unsigned recording, struct ow_epoch *epoch)
{
	struct waiting *waiting = calloc(1, sizeof *waiting);
	pthread_mutex_lock(&keeper->lock);
	if (waiting && keeper->count < WAITING_MAX) {
		waiting->recording = recording;
		waiting->epoch = *epoch;
		epoch->colate = NULL;
		epoch->counts = NULL;
		*keeper->end = waiting;
		keeper->end = &waiting->next;
		keeper->count++;
		waiting = NULL;
		pthread_cond_signal(&keeper->changed);
	} else {
		keeper->recording[recording].lost_epochs++;
	}
	pthread_mutex_unlock(&keeper->lock);
	free(waiting);
}

void ow_epoch_writer_lost(struct ow_epoch_writer *keeper, unsigned recording, uint64_t packets)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->recording[recording].lost_packets += packets;
	pthread_mutex_unlock(&keeper->lock);
}

bool ow_epoch_writer_news(struct ow_epoch_writer *keeper, struct ow_error *ret_line)
{
	bool news = false;
	pthread_mutex_lock(&keeper->lock);
	for (unsigned i = 0; i < keeper->recordings && !news; i++) {
		struct recording *recording = &keeper->recording[i];
		news = true;
		if (*recording->news.text) {
			*ret_line = recording->news;
			*recording->news.text = 0;
		} else if (recording->lost_epochs || recording->lost_packets) {
			ow_error_set(
				ret_line, ENOSPC,
				"%.200s: %llu epochs were lost because they could not be written, and %llu packets "
				"for want of memory",
				keeper->files[i], (unsigned long long)recording->lost_epochs,
				(unsigned long long)recording->lost_packets);
			recording->lost_epochs = recording->lost_packets = 0;
		} else {
			news = false;
		}
	}
	pthread_mutex_unlock(&keeper->lock);
	return news;
}

void ow_epoch_writer_stop(struct ow_epoch_writer *keeper)
{
	if (!keeper->runs)
		return;
	pthread_mutex_lock(&keeper->lock);
	keeper->stop = true;
	pthread_cond_signal(&keeper->changed);
	pthread_mutex_unlock(&keeper->lock);
	pthread_join(keeper->thread, NULL);
	keeper->runs = false;
	for (const struct waiting *waiting = keeper->first; waiting; waiting = waiting->next)
		keeper->recording[waiting->recording].lost_epochs++;
}

void ow_epoch_writer_free(struct ow_epoch_writer *keeper)
{
	if (!keeper)
		return;
	ow_epoch_writer_stop(keeper);
	for (struct waiting *waiting = keeper->first, *next; waiting; waiting = next) {
		next = waiting->next;
		waiting_free(waiting);
	}
	for (unsigned i = 0; i < keeper->recordings; i++) {
		ow_epochs_writer_free(keeper->recording[i].writer);
		free(keeper->files[i]);
	}
	pthread_cond_destroy(&keeper->changed);
	pthread_mutex_destroy(&keeper->lock);
	free(keeper);
}
