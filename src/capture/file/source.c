/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the bytes of a file: from memory (mapped), with pread(2) directly into the caller's buffer (no shared file
 * position), or unpacked. Damaged packed data is not an error here: the data before the damage is returned, then the
 * stream ends, and ow_source_damage() reports it.
 */
#include "capture/file/source.h"

#include "base/temporary_file.h"
#include "capture/file/mapping.h"
#include "capture/file/capture_format.h"
#include "capture/file/unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACKED_BYTES \
	(64U << 10) /* packed input at a time; the cost is small against unpacking (0.5 ns a byte and more) */
#define SPOOL_BYTES    (256U << 10) /* copied at a time from a pipe; a pipe holds 64 KB by default */
#define READ_MAX_BYTES (1U << 30)   /* read(2) accepts at most 2 GB less a page */

struct ow_source {
	char *name;
	int fd;
	uint64_t base;   /* offset in fd where the stream starts: standard input may be a file that was partly read */
	uint64_t offset; /* of the next byte to read, relative to base */
	uint64_t size;
	enum ow_packing packing;
	struct ow_mapping *mapping; /* size bytes from base on; NULL if not mapped */
	uint64_t passed;            /* mapped bytes that the caller needs no more */
	bool cut;                   /* the file was truncated meanwhile */
	/* The rest is used for packed files only. */
	const struct ow_unpack_method *method;
	void *unpacker;
	bool done;
	uint8_t *packed;        /* PACKED_BYTES */
	struct ow_unpack_io io; /* its input lies in packed */
	char damage[160];
};

static int shrunk(const struct ow_source *s, struct ow_error *err)
{
	return ow_error_set(err, EIO, "%s: was truncated, or could not be read, while it was being read", s->name);
}

static int read_at(struct ow_source *s, void *buffer, size_t size, size_t *ret_got, struct ow_error *err)
{
	size_t got = 0;

	while (got < size) {
		size_t want = size - got < READ_MAX_BYTES ? size - got : READ_MAX_BYTES;
		ssize_t r = pread(s->fd, (uint8_t *)buffer + got, want, (off_t)(s->base + s->offset));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return ow_error_set(err, errno, "%s: cannot read: %s", s->name, strerror(errno));
		if (r == 0 && s->offset < s->size)
			return shrunk(s, err);
		if (r == 0)
			break;
		got += (size_t)r;
		s->offset += (uint64_t)r;
	}
	*ret_got = got;
	return 0;
}

static int write_all(int fd, const uint8_t *p, size_t size)
{
	while (size) {
		ssize_t w = write(fd, p, size);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		size -= (size_t)w;
	}
	return 0;
}

/* Whether the first bytes show that it is not a capture file, packed or not. Then there is no need to read the rest,
 * which may be endless. */
static bool is_foreign(const uint8_t *head, size_t size)
{
	return size >= OW_PACKING_MAGIC_MAX && ow_packing_of(head, size) == OW_PACKING_NONE &&
	       ow_file_kind(head, size) == OW_FILE_KIND_NONE && !ow_file_may_be_erf(head, size);
}

/* The same of what was copied so far; it may have come in small parts. */
static bool copy_is_foreign(int fd, uint8_t *buffer)
{
	ssize_t got = pread(fd, buffer, SPOOL_BYTES, 0);
	return got > 0 && is_foreign(buffer, (size_t)got);
}

/* Replaces fd, which cannot seek, by a temporary file with all its data, if the data begin like a capture file. */
static int spool(struct ow_source *s, struct ow_error *err)
{
	const char *dir = getenv("TMPDIR");
	uint8_t *buffer = malloc(SPOOL_BYTES);
	int fd, r = 0;

	if (!buffer)
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->name);
	dir = dir && *dir ? dir : "/tmp";
	fd = ow_temporary_file(dir);
	if (fd < 0) {
		free(buffer);
		return ow_error_set(err, -fd, "%s: cannot make a temporary file in %s: %s", s->name, dir,
		                    strerror(-fd));
	}
	for (;;) {
		ssize_t got = read(s->fd, buffer, SPOOL_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r = ow_error_set(err, errno, "%s: cannot read: %s", s->name, strerror(errno));
		if (got <= 0)
			break;
		r = write_all(fd, buffer, (size_t)got);
		if (r < 0) {
			ow_error_set(err, -r, "%s: cannot spool to %s: %s", s->name, dir, strerror(-r));
			break;
		}
		s->size += (uint64_t)got;
		if (s->size - (uint64_t)got < OW_ERF_LOOK_BYTES && copy_is_foreign(fd, buffer))
			break;
	}
	free(buffer);
	close(s->fd);
	s->fd = fd;
	return r;
}

static int open_file(struct ow_source *s, const char *path, struct ow_error *err)
{
	struct stat st;
	off_t here;

	s->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
	                          : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return ow_error_set(err, errno, "%s: cannot open: %s", s->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return ow_error_set(err, EISDIR, "%s: is a directory, not a capture file", s->name);
	if (!S_ISREG(st.st_mode))
		return spool(s, err);
	here = lseek(s->fd, 0, SEEK_CUR);
	s->base = here > 0 ? (uint64_t)here : 0;
	s->size = (uint64_t)st.st_size > s->base ? (uint64_t)st.st_size - s->base : 0;
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* only advice: the result does not matter */
	return 0;
}

static int start_unpacking(struct ow_source *s, struct ow_error *err)
{
	uint8_t magic[OW_PACKING_MAGIC_MAX];
	size_t got;
	int r = read_at(s, magic, sizeof magic, &got, err);

	if (r < 0)
		return r;
	s->offset = 0;
	s->packing = ow_packing_of(magic, got);
	if (s->packing == OW_PACKING_NONE)
		return 0;
	s->method = ow_unpack_method(s->packing);
	if (!s->method)
		return ow_error_set(err, ENOTSUP,
		                    "%s: compressed with %s, which this program cannot unpack: unpack it first",
		                    s->name, ow_packing_name(s->packing));
	s->packed = malloc(PACKED_BYTES);
	s->unpacker = s->method->open();
	if (!s->packed || !s->unpacker)
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->name);
	return 0;
}

int ow_source_open(const char *path, struct ow_source **ret_source, struct ow_error *err)
{
	struct ow_source *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	s->fd = -1;
	s->name = strdup(strcmp(path, "-") ? path : "standard input");
	r = s->name ? open_file(s, path, err) : ow_error_set(err, ENOMEM, "%s: out of memory", path);
	if (r == 0)
		r = start_unpacking(s, err);
	if (r < 0) {
		ow_source_close(s);
		return r;
	}
	*ret_source = s;
	return 0;
}

void ow_source_close(struct ow_source *s)
{
	if (!s)
		return;
	if (s->unpacker)
		s->method->close(s->unpacker);
	ow_mapping_close(s->mapping);
	if (s->fd >= 0)
		close(s->fd);
	free(s->packed);
	free(s->name);
	free(s);
}

static void note_damage(struct ow_source *s, const char *what)
{
	snprintf(s->damage, sizeof s->damage, "%s data %s at offset %llu", ow_packing_name(s->packing), what,
	         (unsigned long long)ow_source_position(s));
	s->done = true;
}

/* Reads more packed input behind what is left; 0 at the end of the file. */
static int more_packed(struct ow_source *s, struct ow_error *err)
{
	size_t got = 0;
	int r;

	if (s->io.in_bytes)
		memmove(s->packed, s->io.in, s->io.in_bytes);
	r = read_at(s, s->packed + s->io.in_bytes, PACKED_BYTES - s->io.in_bytes, &got, err);
	if (r < 0)
		return r;
	s->io.in = s->packed;
	s->io.in_bytes += got;
	return got > 0;
}

/* After a member may follow: another member, nothing, or zeros as tape blocks leave them. Other data is damage. */
static int next_member(struct ow_source *s, struct ow_error *err)
{
	for (;;) {
		while (s->io.in_bytes && *s->io.in == 0) {
			s->io.in++;
			s->io.in_bytes--;
		}
		if (s->io.in_bytes >= OW_PACKING_MAGIC_MAX)
			break;
		int r = more_packed(s, err);
		if (r < 0)
			return r;
		if (r == 0)
			break;
	}
	if (s->io.in_bytes == 0)
		s->done = true;
	else if (ow_packing_of(s->io.in, s->io.in_bytes) != s->packing)
		note_damage(s, "followed by other data");
	else if (s->method->restart(s->unpacker) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->name);
	return 0;
}

static int unpack_some(struct ow_source *s, struct ow_error *err)
{
	size_t in = s->io.in_bytes, out = s->io.out_bytes;
	int r = s->method->step(s->unpacker, &s->io);

	if (r == OW_UNPACK_END)
		return next_member(s, err);
	if (r == OW_UNPACK_DAMAGED) {
		note_damage(s, "damaged");
	} else if (r == OW_UNPACK_TOO_LARGE) {
		note_damage(s, "that needs more than 128 MiB of memory");
	} else if (r < 0) {
		return ow_error_set(err, -r, "%s: out of memory", s->name);
	} else if (in == s->io.in_bytes && out == s->io.out_bytes) {
		r = more_packed(s, err);
		if (r < 0)
			return r;
		if (r == 0)
			note_damage(s, "cut off");
	}
	return 0;
}

int ow_source_read(struct ow_source *s, void *buffer, size_t size, size_t *ret_got, struct ow_error *err)
{
	if (!s->unpacker)
		return read_at(s, buffer, size, ret_got, err);
	s->io.out = buffer;
	s->io.out_bytes = size;
	while (s->io.out_bytes && !s->done) {
		int r = unpack_some(s, err);
		if (r < 0)
			return r;
	}
	*ret_got = size - s->io.out_bytes;
	return 0;
}

bool ow_source_map(struct ow_source *s, const uint8_t **ret_bytes, size_t *ret_size)
{
	if (!s->mapping && !s->unpacker)
		s->mapping = ow_mapping_open(s->fd, s->base, s->size);
	if (!s->mapping || s->offset > s->size)
		return false;
	*ret_bytes = ow_mapping_bytes(s->mapping) + s->offset;
	*ret_size = (size_t)(s->size - s->offset);
	s->passed = s->offset;
	s->offset = s->size;
	return true;
}

int ow_source_pass(struct ow_source *s, const uint8_t *place, struct ow_error *err)
{
	uint64_t passed = (uint64_t)(place - ow_mapping_bytes(s->mapping));
	struct stat st;
	/*
	 * A truncated file reads as zeros to the end of its last page without SIGBUS, so compare the size at the end.
	 */
	s->cut |= passed == s->size && (fstat(s->fd, &st) < 0 || (uint64_t)st.st_size < s->base + s->size);
	if (s->cut || ow_mapping_broken(s->mapping))
		return shrunk(s, err);
	s->passed = passed;
	ow_mapping_pass(s->mapping, place);
	return 0;
}

int ow_source_rewind(struct ow_source *s, struct ow_error *err)
{
	s->offset = 0;
	if (s->mapping)
		ow_mapping_rewind(s->mapping);
	s->damage[0] = 0;
	s->done = false;
	s->io.in_bytes = 0;
	if (s->unpacker && s->method->restart(s->unpacker) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->name);
	return 0;
}

const char *ow_source_name(const struct ow_source *s)
{
	return s->name;
}

bool ow_source_compressed(const struct ow_source *s)
{
	return s->unpacker != NULL;
}

size_t ow_source_memory(const struct ow_source *s)
{
	return s->unpacker && s->method->memory ? s->method->memory(s->unpacker) : 0;
}

uint64_t ow_source_size(const struct ow_source *s)
{
	return s->size;
}

uint64_t ow_source_position(const struct ow_source *s)
{
	if (s->mapping && s->offset == s->size)
		return s->passed;
	return s->offset - s->io.in_bytes;
}

const char *ow_source_damage(const struct ow_source *s)
{
	return s->damage[0] ? s->damage : NULL;
}
