/* SPDX-License-Identifier: Apache-2.0 */
/* Name lookup and connection in a separate thread: dial.h. The last of the two owners frees it. */
#include "exchange/dial.h"

#include "exchange/session.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The resolver has its buffers on the stack, some tens of kilobytes. */
#define STACK_BYTES (512 << 10)

struct ow_dial {
	pthread_mutex_t lock;
	unsigned holders;
	bool done;
	int result, fd; /* fd: -1 = none, or taken */
	struct ow_error err;
	ow_dial_how how;
	char *address;
};

static void release(struct ow_dial *dial)
{
	pthread_mutex_lock(&dial->lock);
	bool last = --dial->holders == 0;
	pthread_mutex_unlock(&dial->lock);
	if (!last)
		return;
	if (dial->fd >= 0)
		close(dial->fd);
	pthread_mutex_destroy(&dial->lock);
	free(dial->address);
	free(dial);
}

static void finish(struct ow_dial *dial)
{
	struct ow_error err = {""};
	int fd = -1, r = dial->how(dial->address, &fd, &err);
	pthread_mutex_lock(&dial->lock);
	dial->result = r;
	dial->fd = r < 0 ? -1 : fd;
	dial->err = err;
	dial->done = true;
	pthread_mutex_unlock(&dial->lock);
}

static void *run(void *arg)
{
	finish(arg);
	release(arg);
	return NULL;
}

static int start_thread(struct ow_dial *dial)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r = pthread_attr_init(&attributes);
	if (r)
		return -r;
	/* These calls cannot fail with these values. */
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	dial->holders = 2;
	r = pthread_create(&thread, &attributes, run, dial);
	if (r)
		dial->holders = 1;
	pthread_attr_destroy(&attributes);
	return -r;
}

int ow_dial_start(const char *address, ow_dial_how how, struct ow_dial **ret_dial, struct ow_error *err)
{
	struct ow_dial *dial = calloc(1, sizeof *dial);
	char *copy = strdup(address);
	if (!dial || !copy) {
		free(dial);
		free(copy);
		return ow_error_set(err, ENOMEM, "%s: not enough memory", address);
	}
	*dial = (struct ow_dial){.holders = 1, .fd = -1, .how = how ? how : ow_connect, .address = copy};
	pthread_mutex_init(&dial->lock, NULL);
	int r = 0;
	if (ow_address_waits(address))
		r = start_thread(dial);
	else
		finish(dial);
	if (r < 0) {
		release(dial);
		return ow_error_set(err, -r, "%s: no thread to look it up: %s", address, strerror(-r));
	}
	*ret_dial = dial;
	return 0;
}

int ow_dial_result(struct ow_dial *dial, int *ret_fd, struct ow_error *err)
{
	pthread_mutex_lock(&dial->lock);
	int r = dial->done ? dial->result : -EINPROGRESS;
	if (r == 0) {
		*ret_fd = dial->fd;
		dial->fd = -1;
	} else if (dial->done && err) {
		*err = dial->err;
	}
	pthread_mutex_unlock(&dial->lock);
	return r;
}

void ow_dial_free(struct ow_dial *dial)
{
	if (dial)
		release(dial);
}
