/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a pipe. It is read only after poll(2), so that it need not be set to non-blocking: it may be shared. */
#include "capture/iface/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pipe_feed {
	struct ow_feed feed;
	int fd;
};

static int pipe_read(struct ow_feed *feed, uint8_t *buffer, size_t size, struct ow_error *err)
{
	const struct pipe_feed *p = (const struct pipe_feed *)feed;
	struct pollfd ready = {.fd = p->fd, .events = POLLIN};
	/* A named pipe without a writer is not at its end: no event. */
	if (poll(&ready, 1, 0) <= 0)
		return 0;
	ssize_t got = read(p->fd, buffer, size);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got < 0)
		return ow_error_set(err, errno, "cannot read: %s", strerror(errno));
	return got ? (int)got : OW_FEED_ENDED;
}

static int pipe_fd(const struct ow_feed *feed)
{
	return ((const struct pipe_feed *)feed)->fd;
}

static const char *pipe_why(const struct ow_feed *feed)
{
	(void)feed;
	return "was late or silent";
}

static void pipe_free(struct ow_feed *feed)
{
	struct pipe_feed *p = (struct pipe_feed *)feed;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

int ow_feed_open_pipe(const char *path, struct ow_feed **ret_feed, struct ow_error *err)
{
	static const struct ow_feed_ops ops = {pipe_read, pipe_fd, pipe_why, pipe_free};
	struct pipe_feed *p = calloc(1, sizeof *p);
	if (!p)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	p->feed.ops = &ops;
	p->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
	                          : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int r = p->fd < 0 ? ow_error_set(err, errno, "%s: cannot open: %s", path, strerror(errno)) : 0;
	if (r == 0 && isatty(p->fd))
		r = ow_error_set(err, EINVAL, "%s: is a terminal, not a capture", path);
	if (r < 0) {
		pipe_free(&p->feed);
		return r;
	}
	*ret_feed = &p->feed;
	return 0;
}
