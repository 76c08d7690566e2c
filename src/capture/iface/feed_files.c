/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that grow, one after the other: a file, or the files of a folder or pattern. The next one is that with the
 * earliest first packet among those that were not read. When it is there, the writer has left the current one; so that is
 * read to its end once more, and then left.
 *
 * A file is known by its number (inode), so that it may be renamed. Numbers are used again for new files: a file that was
 * read and has another size now is new if it begins with another packet.
 *
 * A file that was truncated may be longer than before when it is looked at again. So each read is compared: the bytes
 * before it have to be those that were read.
 */
#include "capture/iface/feed.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "capture/file/capture_decoder.h"
#include "capture/file/file_set.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often the files are listed while there is nothing to read. */
#define LOOK_NS (200 * OW_NS_PER_MS)
/* Bytes that have the first packet: any that was captured on a link, with the descriptions before it. */
#define HEAD_BYTES (512u << 10)
/*
 * Bytes before the place of reading that are compared. More than the longest IP packet, so that they have the time of a
 * packet, which is another one after the file was truncated.
 */
#define TAIL_BYTES (65u << 10)

static const char usual[] = "had not grown";

struct known {
	dev_t device;
	ino_t number;
	char *path;
	int64_t first_ns; /* time of its first packet; 0 = it has none yet */
	off_t size;       /* when it was left */
	bool read;        /* it was read, or is no capture */
};

struct files_feed {
	struct ow_feed feed;
	char *argument;
	struct known *known; /* sorted by device and number */
	size_t count, room;
	int fd;     /* of the current file; -1 = none */
	char *path; /* its name when it was opened */
	off_t offset;
	uint8_t *tail; /* the bytes before offset, at most TAIL_BYTES; behind them is room for as many to compare */
	size_t tail_size;
	bool leaving; /* there is a next one */
	const char *why;
	bool begun; /* some file was read */
	int64_t looked_ns;
};

/* -- files --------------------------------------------------------------------------------------------------------- */

/* The place of a file among those that are known, or where it belongs. */
static size_t place_of(const struct files_feed *f, const struct stat *st, bool *ret_found)
{
	size_t from = 0, to = f->count;
	while (from < to) {
		size_t middle = (from + to) / 2;
		const struct known *k = &f->known[middle];
		if (k->device < st->st_dev || (k->device == st->st_dev && k->number < st->st_ino))
			from = middle + 1;
		else
			to = middle;
	}
	*ret_found = from < f->count && f->known[from].device == st->st_dev && f->known[from].number == st->st_ino;
	return from;
}

/* The time of the first packet; 0 if there is none yet; a negative errno if it is no capture. */
static int64_t first_packet_of(int fd, const char *path, struct ow_error *err)
{
	struct ow_capture_decoder *decoder = NULL;
	struct ow_frame frame = {0};
	int r = ow_capture_decoder_create(path, &decoder);
	for (size_t all = 0; r == 0 && all < HEAD_BYTES;) {
		size_t room;
		uint8_t *to = ow_capture_decoder_room(decoder, &room);
		ssize_t got = pread(fd, to, room, (off_t)all);
		/* Without room, the bytes that came before are not unpacked yet. */
		if (room && got <= 0)
			break;
		all += (size_t)got;
		ow_capture_decoder_fill(decoder, (size_t)got);
		r = ow_capture_decoder_read(decoder, &frame, 1, err);
	}
	ow_capture_decoder_free(decoder);
	return r == 1 ? frame.time_ns : r;
}

static int64_t first_packet(const char *path, struct ow_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0
		                       : ow_error_set(err, errno, "%s: cannot open: %s%s", path, strerror(errno),
		                                      errno == EACCES && geteuid() == 0
		                                              ? " (root gives up its right to read files of others)"
		                                              : "");
	int64_t first_ns = first_packet_of(fd, path, err);
	close(fd);
	return first_ns;
}

static bool is_current(const struct files_feed *f, const struct stat *st)
{
	struct stat current;
	return f->fd >= 0 && fstat(f->fd, &current) == 0 && current.st_dev == st->st_dev &&
	       current.st_ino == st->st_ino;
}

/* Adds a file, or updates what is known of it. */
static int note_file(struct files_feed *f, const struct ow_file_set_file *file, struct ow_error *err)
{
	struct stat st;
	bool found;
	/* Reading itself shows that the current file was truncated. */
	if (stat(file->path, &st) < 0 || is_current(f, &st))
		return 0;
	size_t place = place_of(f, &st, &found);
	struct known *k = f->known + place;
	if (found && (k->read ? k->size == st.st_size : k->first_ns != 0))
		return 0;
	int64_t first_ns = first_packet(file->path, err);
	if (first_ns < 0 && !file->of_folder)
		return (int)first_ns;
	if (found && k->read && (first_ns <= 0 || k->first_ns == first_ns)) {
		k->size = st.st_size;
		return 0;
	}
	char *path = strdup(file->path);
	if (!path || (!found && OW_GROW(f->known, f->room, f->count + 1) < 0)) {
		free(path);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	k = f->known + place;
	if (found)
		free(k->path);
	else
		memmove(k + 1, k, (f->count++ - place) * sizeof *k);
	*k = (struct known){st.st_dev, st.st_ino, path, first_ns > 0 ? first_ns : 0, st.st_size, first_ns < 0};
	return 0;
}

/* Lists the files. */
static int look(struct files_feed *f, struct ow_error *err)
{
	struct ow_file_set set;
	struct ow_error why = {""};
	f->looked_ns = ow_clock_steady_ns();
	/* A file that is being replaced is missing for a moment; a folder may be empty. */
	int r = ow_file_set_find_part(f->argument, &set, &why);
	if (r < 0 && r != -ENOENT)
		*err = why;
	r = r == -ENOENT ? 0 : r;
	for (size_t i = 0; r == 0 && i < set.count; i++)
		r = note_file(f, &set.file[i], err);
	ow_file_set_done(&set);
	return r;
}

/* The file to read next, or NULL. */
static struct known *next_file(const struct files_feed *f)
{
	struct known *next = NULL;
	for (size_t i = 0; i < f->count; i++) {
		struct known *k = &f->known[i];
		if (!k->read && k->first_ns && (!next || k->first_ns < next->first_ns))
			next = k;
	}
	return next;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* Reading continues at the beginning of a file. */
static void rewind_file(struct files_feed *f)
{
	f->offset = 0;
	f->tail_size = 0;
}

/* Bytes were read. */
static void advance(struct files_feed *f, const uint8_t *bytes, size_t size)
{
	size_t of_them = size < TAIL_BYTES ? size : TAIL_BYTES;
	size_t keep = f->tail_size < TAIL_BYTES - of_them ? f->tail_size : TAIL_BYTES - of_them;
	memmove(f->tail, f->tail + f->tail_size - keep, keep);
	memcpy(f->tail + keep, bytes + size - of_them, of_them);
	f->tail_size = keep + of_them;
	f->offset += (off_t)size;
}

/* Whether the current file still has what was read of it. */
static bool is_as_read(const struct files_feed *f)
{
	uint8_t *now = f->tail + TAIL_BYTES;
	for (size_t at = 0; at < f->tail_size;) {
		ssize_t got = pread(f->fd, now + at, f->tail_size - at, f->offset - (off_t)(f->tail_size - at));
		if (got < 0 && errno == EINTR)
			continue;
		/* An error is that of the next read. */
		if (got <= 0)
			return got < 0;
		at += (size_t)got;
	}
	return memcmp(f->tail, now, f->tail_size) == 0;
}

static int was_truncated(struct files_feed *f)
{
	rewind_file(f);
	f->why = "was truncated";
	return OW_FEED_CUT;
}

/* The current file is left. From now on it is known by its size and first packet, which is another one if it was truncated. */
static void note_left(struct files_feed *f)
{
	struct ow_error why;
	struct stat st;
	bool found;
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return;
	size_t place = place_of(f, &st, &found);
	if (!found)
		return;
	int64_t first_ns = first_packet_of(f->fd, f->known[place].path, &why);
	f->known[place].size = st.st_size;
	if (first_ns > 0)
		f->known[place].first_ns = first_ns;
}

static void close_file(struct files_feed *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	f->fd = -1;
	f->path = NULL;
	f->leaving = false;
}

/* Opens the next file. Returns OW_FEED_NEXT, or OW_FEED_CUT if it is gone. */
static int open_next(struct files_feed *f, struct known *next)
{
	bool first = !f->begun;
	note_left(f);
	close_file(f);
	f->path = strdup(next->path);
	f->fd = open(next->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	rewind_file(f);
	next->read = f->begun = true;
	if (f->fd >= 0)
		return first ? 0 : OW_FEED_NEXT;
	f->why = "lost a file before it was read";
	return OW_FEED_CUT;
}

/* There is nothing to read: finds out what goes on with the files. */
static int at_end(struct files_feed *f, struct ow_error *err)
{
	f->why = usual;
	if (f->fd >= 0 && !is_as_read(f))
		return was_truncated(f);
	struct known *next = f->leaving || f->fd < 0 ? next_file(f) : NULL;
	if (next)
		return open_next(f, next);
	if (ow_clock_steady_ns() - f->looked_ns < LOOK_NS)
		return 0;
	int r = look(f, err);
	f->leaving = f->fd >= 0 && next_file(f) != NULL;
	return r;
}

static int files_read(struct ow_feed *feed, uint8_t *buffer, size_t size, struct ow_error *err)
{
	struct files_feed *f = (struct files_feed *)feed;
	for (;;) {
		ssize_t got = f->fd < 0 ? 0 : pread(f->fd, buffer, size, f->offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ow_error_set(err, errno, "cannot read %.200s: %s", f->path ? f->path : f->argument,
			                    strerror(errno));
		/* After the read, so that it sees what happened during it. */
		if (got > 0 && !is_as_read(f))
			return was_truncated(f);
		if (got > 0) {
			advance(f, buffer, (size_t)got);
			return (int)got;
		}
		bool left = f->leaving, was_open = f->fd >= 0;
		int r = at_end(f, err);
		/* Once more, if the current one is left now, or the first one was opened. */
		if (r != 0 || (f->leaving == left && (f->fd >= 0) == was_open))
			return r;
	}
}

static int files_fd(const struct ow_feed *feed)
{
	(void)feed;
	return -1;
}

static const char *files_why(const struct ow_feed *feed)
{
	return ((const struct files_feed *)feed)->why;
}

static void files_free(struct ow_feed *feed)
{
	struct files_feed *f = (struct files_feed *)feed;
	close_file(f);
	for (size_t i = 0; i < f->count; i++)
		free(f->known[i].path);
	free(f->known);
	free(f->tail);
	free(f->argument);
	free(f);
}

int ow_feed_open_files(const char *argument, struct ow_feed **ret_feed, struct ow_error *err)
{
	static const struct ow_feed_ops ops = {files_read, files_fd, files_why, files_free};
	struct files_feed *f = calloc(1, sizeof *f);
	if (!f)
		return ow_error_set(err, ENOMEM, "%s: out of memory", argument);
	*f = (struct files_feed){.feed = {.ops = &ops, .waits = true},
	                         .fd = -1,
	                         .why = usual,
	                         .argument = strdup(argument),
	                         .tail = malloc((size_t)2 * TAIL_BYTES)};
	struct stat st;
	int r = f->argument && f->tail ? 0 : ow_error_set(err, ENOMEM, "%s: out of memory", argument);
	if (r == 0 && ow_file_set_is_file(argument) && stat(argument, &st) < 0)
		r = ow_error_set(err, errno, "%s: cannot open: %s", argument, strerror(errno));
	if (r < 0) {
		files_free(&f->feed);
		return r;
	}
	*ret_feed = &f->feed;
	return 0;
}
