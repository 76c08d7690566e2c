/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory that has a path, for readers that need one. */
struct scratch {
	int fd;
	char path[40];
};

static inline void scratch_open(struct scratch *s)
{
	s->fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (s->fd < 0)
		abort();
	snprintf(s->path, sizeof s->path, "/proc/self/fd/%d", s->fd);
}

static inline void scratch_add(const struct scratch *s, const void *data, size_t size)
{
	if (size && write(s->fd, data, size) != (ssize_t)size)
		abort();
}

static inline void scratch_close(const struct scratch *s)
{
	close(s->fd);
}
