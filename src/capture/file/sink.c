/* SPDX-License-Identifier: Apache-2.0 */
/* Writes output with large write(2) calls. The gzip header has no name and no time, so the same content gives the same
 * bytes. */
#include "capture/file/sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FLUSH_BYTES  ((size_t)256 << 10) /* bytes per write; fit into the second-level cache */
#define PACKED_BYTES (64U << 10)         /* packed output at a time */

struct ow_sink {
	char *path;
	int fd;
	bool regular;
	bool deflating; /* z is initialised */
	int failed;     /* the first failure; later calls return it again */
	size_t used;
	uint8_t *buffer; /* OW_SINK_ROOM_BYTES */
	z_stream z;
	uint8_t packed[PACKED_BYTES];
};

static int fail(struct ow_sink *s, int code, struct ow_error *err)
{
	s->failed = code;
	return ow_error_set(err, code, "%s: cannot write: %s", s->path, strerror(code));
}

static int write_out(struct ow_sink *s, const uint8_t *p, size_t size, struct ow_error *err)
{
	while (size) {
		ssize_t w = write(s->fd, p, size);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return fail(s, errno, err);
		p += w;
		size -= (size_t)w;
	}
	return 0;
}

static int pack_out(struct ow_sink *s, int flush, struct ow_error *err)
{
	s->z.next_in = s->buffer;
	s->z.avail_in = (uInt)s->used;
	do {
		s->z.next_out = s->packed;
		s->z.avail_out = PACKED_BYTES;
		deflate(&s->z, flush); /* cannot fail: the state is valid and there is room */
		int r = write_out(s, s->packed, PACKED_BYTES - s->z.avail_out, err);
		if (r < 0)
			return r;
	} while (s->z.avail_out == 0);
	return 0;
}

static int flush_out(struct ow_sink *s, bool last, struct ow_error *err)
{
	int r;

	if (s->failed)
		return fail(s, s->failed, err);
	r = s->deflating ? pack_out(s, last ? Z_FINISH : Z_NO_FLUSH, err) : write_out(s, s->buffer, s->used, err);
	s->used = 0;
	return r;
}

static void destroy(struct ow_sink *s)
{
	if (s->deflating)
		deflateEnd(&s->z);
	if (s->fd >= 0)
		close(s->fd);
	free(s->buffer);
	free(s->path);
	free(s);
}

static int start(struct ow_sink *s, bool gzip, struct ow_error *err)
{
	struct stat st;

	s->fd = strcmp(s->path, "-") ? open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666)
	                             : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return ow_error_set(err, errno, "%s: cannot open for writing: %s", s->path, strerror(errno));
	s->regular = S_ISREG(st.st_mode) && strcmp(s->path, "-") != 0;
	if (!gzip)
		return 0;
	if (deflateInit2(&s->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->path);
	s->deflating = true;
	return 0;
}

int ow_sink_open(const char *path, bool gzip, struct ow_sink **ret_sink, struct ow_error *err)
{
	struct ow_sink *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	s->fd = -1;
	s->path = strdup(path);
	s->buffer = aligned_alloc(4096, OW_SINK_ROOM_BYTES);
	r = s->path && s->buffer ? start(s, gzip, err) : ow_error_set(err, ENOMEM, "%s: out of memory", path);
	if (r < 0) {
		destroy(s);
		return r;
	}
	*ret_sink = s;
	return 0;
}

int ow_sink_room(struct ow_sink *s, size_t size, uint8_t **ret_room, struct ow_error *err)
{
	int r = 0;

	assert(size <= OW_SINK_ROOM_BYTES);
	if (s->used >= FLUSH_BYTES || size > OW_SINK_ROOM_BYTES - s->used)
		r = flush_out(s, false, err);
	if (r == 0)
		*ret_room = s->buffer + s->used;
	return r;
}

void ow_sink_add(struct ow_sink *s, size_t size)
{
	assert(size <= OW_SINK_ROOM_BYTES - s->used);
	s->used += size;
}

int ow_sink_close(struct ow_sink *s, struct ow_error *err)
{
	int r = flush_out(s, true, err);

	/* some file systems report a full disk only here */
	if (close(s->fd) < 0 && r == 0)
		r = fail(s, errno, err);
	s->fd = -1;
	if (r < 0 && s->regular)
		unlink(s->path);
	destroy(s);
	return r;
}

void ow_sink_abort(struct ow_sink *s)
{
	if (!s)
		return;
	if (s->regular)
		unlink(s->path);
	destroy(s);
}
