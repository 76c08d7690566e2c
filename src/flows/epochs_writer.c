/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a file of epochs: each frame is written as one block behind the last complete one and synced to disk before
 * the next. Sums are computed from the file, so that the writer only needs its index, also after a restart.
 */
#include "flows/epochs.h"

#include "flows/epochs_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct ow_epochs_writer {
	struct ow_epochs *index; /* owns the file */
};

static int write_at(int fd, uint64_t offset, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t put = pwrite(fd, bytes, size, (off_t)offset);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		bytes += put;
		offset += (uint64_t)put;
		size -= (size_t)put;
	}
	return 0;
}

/*
 * Writes header and bytes to the end of the file, and syncs. On failure the file is truncated to its previous length.
 */
static int write_frame(int fd, uint64_t end, struct ow_epochs_frame *frame, const uint8_t *bytes, size_t size)
{
	uint8_t *all = malloc(OW_EPOCHS_HEADER + size);
	if (!all)
		return -ENOMEM;
	frame->offset = end + OW_EPOCHS_HEADER;
	frame->size = size;
	frame->check = ow_epochs_check(bytes, size);
	ow_epochs_frame_put(frame, all);
	memcpy(all + OW_EPOCHS_HEADER, bytes, size);
	int r = write_at(fd, end, all, OW_EPOCHS_HEADER + size);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0)
		(void)!ftruncate(fd, (off_t)end); /* if this fails as well, the checksums detect it */
	free(all);
	return r;
}

static int write_info(const char *path, int fd, const struct ow_epoch_info *info, struct ow_error *err)
{
	struct ow_epochs_frame frame = {.kind = OW_EPOCHS_INFO};
	uint8_t *bytes = NULL;
	size_t size;
	int r = ow_epoch_info_check(info, err);
	if (r < 0)
		return r;
	r = ow_epoch_info_encode(info, &bytes, &size);
	if (r == 0)
		r = ftruncate(fd, 0) < 0 ? -errno : write_frame(fd, 0, &frame, bytes, size);
	free(bytes);
	return r < 0 ? ow_error_set(err, -r, "%.200s: %s", path, strerror(-r)) : 0;
}

/* Appends the frame with these bytes. */
static int append_bytes(struct ow_epochs *index, struct ow_epochs_frame *frame, const uint8_t *bytes, size_t size)
{
	int r = size > OW_EPOCH_BYTES_MAX ? -EFBIG : write_frame(index->fd, index->end, frame, bytes, size);
	return r < 0 ? r : ow_epochs_note(index, frame);
}

static void describe(const struct ow_epoch *epoch, struct ow_epochs_frame *frame)
{
	frame->begin_ns = epoch->begin_ns;
	frame->end_ns = epoch->end_ns;
	frame->packets = ow_colate_packets(epoch->colate);
	frame->epochs = epoch->epochs;
}

static int append_frame(struct ow_epochs *index, struct ow_epochs_frame *frame, const struct ow_epoch *epoch,
                        struct ow_epoch_cost *ret_cost)
{
	uint8_t *bytes = NULL;
	size_t size;
	describe(epoch, frame);
	struct ow_epoch_cost cost = {0};
	int r = ow_epoch_encode(epoch, &bytes, &size, &cost);
	frame->count_bytes = (uint32_t)cost.count_bytes;
	if (ret_cost)
		*ret_cost = cost;
	if (r == 0)
		r = append_bytes(index, frame, bytes, size);
	free(bytes);
	return r;
}

/* The frames of the next sum of this level, or NULL if not all exist yet or the sum exists already. */
static const struct ow_epochs_frame *parts_of_sum(const struct ow_epochs *index, unsigned level)
{
	const struct ow_epochs_frame *below = level ? index->sum[level - 1] : index->epoch;
	size_t count = level ? index->sums[level - 1] : index->epochs, span = 1;
	for (unsigned i = 0; i <= level; i++)
		span *= OW_EPOCHS_GROUP;
	if (!index->epochs || index->epochs % span || count < OW_EPOCHS_GROUP)
		return NULL;
	size_t from = index->epochs - span;
	const struct ow_epochs_frame *part = below + count - OW_EPOCHS_GROUP;
	for (size_t i = 0; i < OW_EPOCHS_GROUP; i++) {
		if (part[i].from != from + i * (span / OW_EPOCHS_GROUP))
			return NULL;
	}
	size_t sums = index->sums[level];
	return sums && index->sum[level][sums - 1].from == from ? NULL : part;
}

/* A sum only saves time: if it cannot be written, the file is valid without it. */
static void write_sum(struct ow_epochs *index, unsigned level)
{
	const struct ow_epochs_frame *part = parts_of_sum(index, level);
	struct ow_epochs_frame frame = {.kind = OW_EPOCHS_SUM, .level = (uint8_t)(level + 1)};
	struct ow_epoch sum;
	if (!part || ow_epoch_init(&index->info, OW_EPOCHS_SUM_FLOWS, &sum, NULL) < 0)
		return;
	int r = 0;
	frame.from = part->from;
	for (size_t i = 0; r == 0 && i < OW_EPOCHS_GROUP; i++)
		r = ow_epochs_frame_add(index, &part[i], &sum, NULL);
	if (r == 0)
		append_frame(index, &frame, &sum, NULL);
	ow_epoch_done(&sum);
}

static void write_sums(struct ow_epochs *index)
{
	for (unsigned level = 0; level < OW_EPOCHS_LEVELS; level++)
		write_sum(index, level);
}

/* Makes an index of the open file, which must begin with this description; an empty file gets it. */
static int prepare(const char *path, int fd, const struct ow_epoch_info *info, bool append,
                   struct ow_epochs **ret_index, struct ow_error *err)
{
	struct stat status;
	struct ow_error what;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return ow_error_set(err, EBUSY, "%.200s: %s", path,
		                    errno == EWOULDBLOCK ? "another process writes it" : strerror(errno));
	if (fstat(fd, &status) < 0)
		return ow_error_set(err, errno, "%.200s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return ow_error_set(err, EINVAL, "%.200s: not a regular file", path);
	bool fresh = !append || !status.st_size;
	int r = fresh ? write_info(path, fd, info, err) : 0;
	if (r == 0)
		r = ow_epochs_index(path, fd, ret_index, err);
	if (r < 0 || fresh)
		return r;
	struct ow_epochs *index = *ret_index;
	r = ow_epoch_info_comparable(&index->info, info, &what);
	if (r == 0 && index->info.counts != info->counts)
		r = ow_error_set(&what, EINVAL, "only one of them has flow counts");
	if (r < 0)
		ow_error_set(err, EINVAL, "%.200s: belongs to another recording: %.200s", path, what.text);
	else if (*index->damage.text && ftruncate(fd, (off_t)index->end) < 0)
		r = ow_error_set(err, errno, "%.200s: %s", path, strerror(errno));
	if (r < 0) {
		index->fd = -1; /* the caller owns the file */
		ow_epochs_close(index);
	}
	return r;
}

int ow_epochs_create(const char *path, const struct ow_epoch_info *info, bool append,
                     struct ow_epochs_writer **ret_writer, struct ow_error *err)
{
	struct ow_epochs_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	int r = fd < 0 ? ow_error_set(err, errno, "%.200s: %s", path, strerror(errno)) : 0;
	if (r == 0)
		r = prepare(path, fd, info, append, &writer->index, err);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		free(writer);
		return r;
	}
	write_sums(writer->index); /* writes a sum that a crash has prevented */
	*ret_writer = writer;
	return 0;
}

int ow_epochs_append(struct ow_epochs_writer *writer, const struct ow_epoch *epoch, struct ow_epoch_cost *ret_cost,
                     struct ow_error *err)
{
	struct ow_epochs *index = writer->index;
	struct ow_epochs_frame frame = {.kind = OW_EPOCHS_EPOCH, .from = index->epochs};
	int r = append_frame(index, &frame, epoch, ret_cost);
	if (r < 0)
		return ow_error_set(err, -r, "%.200s: %s", index->path, strerror(-r));
	write_sums(index);
	return 0;
}

struct ow_epochs_place ow_epochs_place(const struct ow_epochs_writer *writer)
{
	const struct ow_epochs *index = writer->index;
	return (struct ow_epochs_place){index->epochs, index->epochs ? index->epoch[index->epochs - 1].check : 0,
	                                index->end};
}

int ow_epochs_copy_next(const struct ow_epochs_writer *writer, const struct ow_epochs_place *place,
                        struct ow_epochs_copy *ret_copy, struct ow_error *err)
{
	const struct ow_epochs *index = writer->index;
	if (place->epochs > index->epochs || (place->epochs && index->epoch[place->epochs - 1].check != place->check))
		return ow_error_set(err, ESTALE, "%.200s: does not begin with the epochs of the copy", index->path);
	if (place->epochs == index->epochs)
		return 1;
	const struct ow_epochs_frame *next = &index->epoch[place->epochs];
	uint8_t *bytes;
	int r = ow_epochs_frame_read(index, next, &bytes, err);
	if (r == 0)
		*ret_copy = (struct ow_epochs_copy){bytes, next->size, next->count_bytes};
	return r;
}

int ow_epochs_copy_append(struct ow_epochs_writer *writer, const struct ow_epochs_copy *copy, size_t flows_max,
                          struct ow_error *err)
{
	struct ow_epochs *index = writer->index;
	struct ow_epochs_frame frame = {
		.kind = OW_EPOCHS_EPOCH, .from = index->epochs, .count_bytes = copy->count_bytes};
	struct ow_epoch epoch;
	struct ow_error why;
	int r = ow_epoch_init(&index->info, flows_max, &epoch, err);
	if (r < 0)
		return r;
	r = ow_epoch_decode_add(&index->info, copy->bytes, copy->size, &epoch, &why);
	if (r == 0 && (epoch.epochs != 1 || epoch.begin_ns > epoch.end_ns || copy->count_bytes > copy->size))
		r = ow_error_set(&why, EINVAL, "not one epoch");
	if (r == 0)
		describe(&epoch, &frame);
	ow_epoch_done(&epoch);
	if (r < 0)
		return ow_error_set(err, r == -ENOMEM ? ENOMEM : EINVAL, "%.200s: an epoch of the other point: %.200s",
		                    index->path, why.text);
	r = append_bytes(index, &frame, copy->bytes, copy->size);
	if (r < 0)
		return ow_error_set(err, -r, "%.200s: %s", index->path, strerror(-r));
	write_sums(index);
	return 0;
}

void ow_epochs_writer_free(struct ow_epochs_writer *writer)
{
	if (!writer)
		return;
	ow_epochs_close(writer->index);
	free(writer);
}
