/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a file of epochs.
 *
 *    0  'O' 'W' 'F' version (1)
 *    4  kind (1): 1 description, 2 epoch, 3 sum of epochs; level of the sum (1); reserved (2, zero)
 *    8  bytes that follow the header (8)
 *   16  begin (8), end (8): the span in ns
 *   32  packets (8)
 *   40  number of the (first) epoch in the file (8), epochs (4), bytes of flow counts at the end (4)
 *   56  check of the bytes that follow (8): XXH3
 *   64  check of the header before it (8): XXH3
 *
 * The description comes first. Only headers are read for the index; the bytes of a frame are checked when they are
 * used, and those of the last one at once, because a crash may have left a header without them.
 */
#include "base/bytes.h"
#include "flows/epochs_private.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define CHECKED (OW_EPOCHS_HEADER - 8)

static const uint8_t magic[3] = {'O', 'W', 'F'};

uint64_t ow_epochs_check(const uint8_t *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

void ow_epochs_frame_put(const struct ow_epochs_frame *frame, uint8_t header[OW_EPOCHS_HEADER])
{
	memset(header, 0, OW_EPOCHS_HEADER);
	memcpy(header, magic, sizeof magic);
	header[3] = OW_EPOCHS_VERSION;
	header[4] = (uint8_t)frame->kind;
	header[5] = frame->level;
	ow_store_le64(header + 8, frame->size);
	ow_store_le64(header + 16, (uint64_t)frame->begin_ns);
	ow_store_le64(header + 24, (uint64_t)frame->end_ns);
	ow_store_le64(header + 32, frame->packets);
	ow_store_le64(header + 40, frame->from);
	ow_store_le32(header + 48, frame->epochs);
	ow_store_le32(header + 52, frame->count_bytes);
	ow_store_le64(header + 56, frame->check);
	ow_store_le64(header + CHECKED, ow_epochs_check(header, CHECKED));
}

/* False if this is not a complete header of this format. */
static bool get_frame(const uint8_t header[OW_EPOCHS_HEADER], struct ow_epochs_frame *ret_frame)
{
	if (memcmp(header, magic, sizeof magic) != 0 || header[3] != OW_EPOCHS_VERSION ||
	    ow_load_le64(header + CHECKED) != ow_epochs_check(header, CHECKED))
		return false;
	*ret_frame = (struct ow_epochs_frame){
		.kind = header[4],
		.level = header[5],
		.size = ow_load_le64(header + 8),
		.begin_ns = (int64_t)ow_load_le64(header + 16),
		.end_ns = (int64_t)ow_load_le64(header + 24),
		.packets = ow_load_le64(header + 32),
		.from = ow_load_le64(header + 40),
		.epochs = ow_load_le32(header + 48),
		.count_bytes = ow_load_le32(header + 52),
		.check = ow_load_le64(header + 56),
	};
	return true;
}

/* Reads all bytes, or returns -EIO or -errno. */
static int read_at(int fd, uint64_t offset, uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t got = pread(fd, bytes, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		bytes += got;
		offset += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

static int read_bytes(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, uint8_t **ret_bytes)
{
	uint8_t *bytes = malloc(frame->size ? frame->size : 1);
	if (!bytes)
		return -ENOMEM;
	int r = read_at(epochs->fd, frame->offset, bytes, frame->size);
	if (r == 0 && ow_epochs_check(bytes, frame->size) != frame->check)
		r = -EBADMSG;
	if (r < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return r;
}

static int damaged(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, int r, struct ow_error *err)
{
	return ow_error_set(err, -r, "%.200s: epoch at offset %llu: %s", epochs->path,
	                    (unsigned long long)(frame->offset - OW_EPOCHS_HEADER),
	                    r == -EBADMSG ? "damaged (its checksum is wrong)" : strerror(-r));
}

static int decoded(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, int r,
                   const struct ow_error *what, struct ow_error *err)
{
	if (r == 0)
		return 0;
	return ow_error_set(err, -r, "%.200s: at offset %llu: %.200s", epochs->path,
	                    (unsigned long long)(frame->offset - OW_EPOCHS_HEADER), what->text);
}

int ow_epochs_frame_read(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, uint8_t **ret_bytes,
                         struct ow_error *err)
{
	int r = read_bytes(epochs, frame, ret_bytes);
	return r < 0 ? damaged(epochs, frame, r, err) : 0;
}

int ow_epochs_frame_add(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, struct ow_epoch *sum,
                        struct ow_error *err)
{
	uint8_t *bytes = NULL;
	struct ow_error what;
	int r = ow_epochs_frame_read(epochs, frame, &bytes, err);
	if (r < 0)
		return r;
	r = ow_epoch_decode_add(&epochs->info, bytes, frame->size, sum, &what);
	free(bytes);
	return decoded(epochs, frame, r, &what, err);
}

int ow_epochs_repair(const struct ow_epochs *epochs, size_t i, struct ow_repair_cell *sum, struct ow_error *err)
{
	const struct ow_epochs_frame *frame = &epochs->epoch[i];
	uint8_t *bytes = NULL;
	struct ow_error what;
	int r = ow_epochs_frame_read(epochs, frame, &bytes, err);
	if (r < 0)
		return r;
	r = ow_epoch_decode_repair(&epochs->info, bytes, frame->size, sum, &what);
	free(bytes);
	return decoded(epochs, frame, r, &what, err);
}

static bool make_room(struct ow_epochs_frame **frames, size_t count, size_t *room)
{
	return OW_GROW(*frames, *room, count + 1) == 0;
}

/* Whether the numbers of the frame are consistent with the index. */
static bool fits(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame)
{
	if (frame->begin_ns > frame->end_ns || frame->size > OW_EPOCH_BYTES_MAX || frame->count_bytes > frame->size)
		return false;
	if (frame->begin_ns < -OW_EPOCH_TIME_MAX || frame->end_ns > OW_EPOCH_TIME_MAX)
		return false;
	if (frame->kind == OW_EPOCHS_EPOCH)
		return frame->from == epochs->epochs && frame->epochs == 1;
	if (frame->kind != OW_EPOCHS_SUM || frame->level < 1 || frame->level > OW_EPOCHS_LEVELS)
		return false;
	const struct ow_epochs_frame *sum = epochs->sum[frame->level - 1];
	size_t sums = epochs->sums[frame->level - 1];
	return frame->epochs > 1 && frame->epochs <= epochs->epochs && frame->from <= epochs->epochs - frame->epochs &&
	       (!sums || frame->from > sum[sums - 1].from);
}

int ow_epochs_note(struct ow_epochs *epochs, const struct ow_epochs_frame *frame)
{
	if (frame->kind == OW_EPOCHS_EPOCH) {
		if (!make_room(&epochs->epoch, epochs->epochs, &epochs->room))
			return -ENOMEM;
		epochs->epoch[epochs->epochs++] = *frame;
	} else {
		unsigned level = frame->level - 1u;
		if (!make_room(&epochs->sum[level], epochs->sums[level], &epochs->sum_room[level]))
			return -ENOMEM;
		epochs->sum[level][epochs->sums[level]++] = *frame;
	}
	epochs->end = frame->offset + frame->size;
	return 0;
}

/*
 * The next frame at `end`, if it is complete and its numbers are consistent. Otherwise false; `damage` is set unless
 * this is the end of the file.
 */
static bool next_frame(struct ow_epochs *epochs, uint64_t file_size, struct ow_epochs_frame *ret_frame)
{
	uint8_t header[OW_EPOCHS_HEADER];
	uint64_t left = file_size - epochs->end;
	if (!left)
		return false;
	bool whole = left >= OW_EPOCHS_HEADER && read_at(epochs->fd, epochs->end, header, sizeof header) == 0 &&
	             get_frame(header, ret_frame) && ret_frame->size <= left - OW_EPOCHS_HEADER;
	if (whole) {
		ret_frame->offset = epochs->end + OW_EPOCHS_HEADER;
		bool last = ret_frame->size == left - OW_EPOCHS_HEADER;
		uint8_t *bytes = NULL;
		whole = fits(epochs, ret_frame) && (!last || read_bytes(epochs, ret_frame, &bytes) == 0);
		free(bytes);
	}
	if (!whole)
		ow_error_set(&epochs->damage, EBADMSG,
		             "%.200s: cut or damaged at offset %llu, %llu bytes from there on are not used",
		             epochs->path, (unsigned long long)epochs->end, (unsigned long long)left);
	return whole;
}

static int read_info(struct ow_epochs *epochs, uint64_t file_size, struct ow_error *err)
{
	uint8_t header[OW_EPOCHS_HEADER], *bytes = NULL;
	struct ow_epochs_frame frame;
	struct ow_error what;
	int r = file_size < sizeof header ? -EBADMSG : read_at(epochs->fd, 0, header, sizeof header);
	if (r < 0 && r != -EBADMSG)
		return ow_error_set(err, -r, "%.200s: %s", epochs->path, strerror(-r));
	if (r < 0 || memcmp(header, magic, sizeof magic) != 0)
		return ow_error_set(err, EINVAL, "%.200s: not a file of epochs ('oneway flows record' writes them)",
		                    epochs->path);
	if (header[3] != OW_EPOCHS_VERSION)
		return ow_error_set(err, EINVAL, "%.200s: version %u of the format, this oneway reads %d", epochs->path,
		                    header[3], OW_EPOCHS_VERSION);
	if (!get_frame(header, &frame) || frame.kind != OW_EPOCHS_INFO || frame.size > OW_EPOCH_INFO_BYTES_MAX ||
	    frame.size > file_size - sizeof header)
		return ow_error_set(err, EINVAL, "%.200s: damaged at offset 0", epochs->path);
	frame.offset = sizeof header;
	r = read_bytes(epochs, &frame, &bytes);
	if (r < 0)
		return damaged(epochs, &frame, r, err);
	r = ow_epoch_info_decode(bytes, frame.size, &epochs->info, &what);
	free(bytes);
	if (r < 0)
		return ow_error_set(err, EINVAL, "%.200s: %.200s", epochs->path, what.text);
	epochs->end = frame.offset + frame.size;
	return 0;
}

void ow_epochs_close(struct ow_epochs *epochs)
{
	if (!epochs)
		return;
	if (epochs->fd >= 0)
		close(epochs->fd);
	for (unsigned level = 0; level < OW_EPOCHS_LEVELS; level++)
		free(epochs->sum[level]);
	free(epochs->epoch);
	free(epochs->path);
	free(epochs);
}

int ow_epochs_index(const char *path, int fd, struct ow_epochs **ret_epochs, struct ow_error *err)
{
	struct stat status = {0};
	struct ow_epochs *epochs = calloc(1, sizeof *epochs);
	struct ow_epochs_frame frame;
	if (!epochs)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", path);
	epochs->fd = -1; /* the caller owns the file until everything succeeded */
	epochs->path = strdup(path);
	int r = epochs->path ? 0 : ow_error_set(err, ENOMEM, "%.200s: not enough memory", path);
	if (r == 0 && fstat(fd, &status) < 0)
		r = ow_error_set(err, errno, "%.200s: %s", path, strerror(errno));
	else if (r == 0 && !S_ISREG(status.st_mode))
		r = ow_error_set(err, EINVAL, "%.200s: not a regular file", path);
	if (r < 0)
		goto failed;
	epochs->fd = fd;
	r = read_info(epochs, (uint64_t)status.st_size, err);
	while (r == 0 && next_frame(epochs, (uint64_t)status.st_size, &frame)) {
		r = ow_epochs_note(epochs, &frame);
		if (r < 0)
			ow_error_set(err, -r, "%.200s: not enough memory for its index", path);
	}
	if (r == 0) {
		*ret_epochs = epochs;
		return 0;
	}
failed:
	epochs->fd = -1;
	ow_epochs_close(epochs);
	return r;
}
