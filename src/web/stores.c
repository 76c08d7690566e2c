/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a store, which threads take and give back. */
#include "web/stores.h"

#include "base/clock.h"
#include "base/time.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct reader {
	struct ow_stored *stored;
	bool is_taken;
	dev_t device; /* of its file; 0 and 0: a server */
	ino_t inode;
};

struct ow_stores {
	const char *path;
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct reader reader[OW_STORES];
};

static void identify(const char *path, struct reader *reader)
{
	struct stat info;
	bool is_file = stat(path, &info) == 0;
	reader->device = is_file ? info.st_dev : 0;
	reader->inode = is_file ? info.st_ino : 0;
}

/* Opens it, or opens it again if its file was replaced. The reader is taken. */
static int renew(const struct ow_stores *stores, struct reader *reader, struct ow_error *err)
{
	struct reader now = {0};
	identify(stores->path, &now);
	if (reader->stored && (now.inode != reader->inode || now.device != reader->device)) {
		ow_stored_close(reader->stored);
		reader->stored = NULL;
	}
	reader->device = now.device;
	reader->inode = now.inode;
	return reader->stored ? 0 : ow_stored_open(stores->path, &reader->stored, err);
}

int ow_stores_create(const char *path, struct ow_stores **ret_stores, struct ow_error *err)
{
	struct ow_stores *stores = calloc(1, sizeof *stores);
	if (!stores)
		return ow_error_set(err, ENOMEM, "not enough memory");
	stores->path = path;
	pthread_condattr_t steady;
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_mutex_init(&stores->lock, NULL);
	pthread_cond_init(&stores->given, &steady);
	pthread_condattr_destroy(&steady);
	int r = renew(stores, &stores->reader[0], err);
	if (r < 0)
		ow_stores_free(stores);
	else
		*ret_stores = stores;
	return r;
}

void ow_stores_free(struct ow_stores *stores)
{
	if (!stores)
		return;
	for (int i = 0; i < OW_STORES; i++)
		ow_stored_close(stores->reader[i].stored);
	pthread_cond_destroy(&stores->given);
	pthread_mutex_destroy(&stores->lock);
	free(stores);
}

/* An open one if there is one. */
static struct reader *find_free(struct ow_stores *stores)
{
	struct reader *found = NULL;
	for (int i = 0; i < OW_STORES; i++) {
		struct reader *reader = &stores->reader[i];
		if (!reader->is_taken && (!found || (reader->stored && !found->stored)))
			found = reader;
	}
	return found;
}

int ow_stores_take(struct ow_stores *stores, int64_t wait_ns, struct ow_stored **ret_stored, struct ow_error *err)
{
	int64_t until_ns = ow_clock_steady_ns() + wait_ns;
	struct timespec until = {until_ns / OW_NS_PER_S, until_ns % OW_NS_PER_S};
	struct reader *reader;
	int late = 0;
	pthread_mutex_lock(&stores->lock);
	while (!(reader = find_free(stores)) && !late)
		late = pthread_cond_timedwait(&stores->given, &stores->lock, &until);
	if (reader)
		reader->is_taken = true;
	pthread_mutex_unlock(&stores->lock);
	if (!reader)
		return ow_error_set(err, EBUSY, "too many requests are being answered; try again");
	int r = renew(stores, reader, err);
	if (r == 0) {
		*ret_stored = reader->stored;
		return 0;
	}
	pthread_mutex_lock(&stores->lock);
	reader->is_taken = false;
	pthread_cond_signal(&stores->given);
	pthread_mutex_unlock(&stores->lock);
	return r;
}

void ow_stores_give(struct ow_stores *stores, struct ow_stored *stored, bool failed)
{
	if (!stored)
		return;
	pthread_mutex_lock(&stores->lock);
	struct reader *reader = stores->reader;
	while (reader->stored != stored)
		reader++;
	if (failed)
		reader->stored = NULL;
	reader->is_taken = false;
	pthread_cond_signal(&stores->given);
	pthread_mutex_unlock(&stores->lock);
	if (failed)
		ow_stored_close(stored);
}
