/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, char *bytes, size_t room, size_t *ret_size)
{
	size_t size = 0;
	while (size < room) {
		ssize_t n = read(fd, bytes + size, room - size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		size += n > 0 ? (size_t)n : 0;
	}
	*ret_size = size;
	return 0;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, bytes + done, size - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* A file, and nothing that waits for another program. */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || S_ISREG(status.st_mode))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

FILE *ow_state_open(const char *path)
{
	int fd = open_file(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

int ow_state_read(const char *path, size_t most, char **ret_bytes, size_t *ret_size, struct ow_error *err)
{
	int fd = open_file(path);
	if (fd < 0)
		return ow_error_set(err, errno, "%s: %s", path, errno == EINVAL ? "not a file" : strerror(errno));
	/* One byte more than allowed shows that the file is too large. */
	char *bytes = malloc(most + 2);
	size_t size = 0;
	int r = bytes ? read_all(fd, bytes, most + 1, &size) : -ENOMEM;
	close(fd);
	if (r == 0 && size > most)
		r = -EFBIG;
	if (r < 0) {
		free(bytes);
		return r == -EFBIG ? ow_error_set(err, EFBIG, "%s: is larger than %zu bytes", path, most)
		                   : ow_error_set(err, -r, "%s: %s", path, strerror(-r));
	}
	bytes[size] = 0;
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* The name of a file is on the disk when its folder is. */
static int sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = fd >= 0 && fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	free(folder);
	return r;
}

int ow_state_write(const char *path, const void *bytes, size_t size, struct ow_error *err)
{
	char *next;
	if (asprintf(&next, "%s.new", path) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	/* Whatever has this name, a pipe or a link, is not opened. */
	(void)unlink(next);
	int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : write_all(fd, bytes, size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	if (r == 0 && rename(next, path) < 0)
		r = -errno;
	if (r == 0)
		r = sync_folder(path);
	else if (fd >= 0)
		unlink(next);
	free(next);
	return r < 0 ? ow_error_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}
