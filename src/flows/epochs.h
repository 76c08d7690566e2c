/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epoch.h"

/*
 * A file of epochs. It begins with the description of all epochs. Then follow the epochs, each in a frame with its
 * length, time range and checksums. Each is on disk before the next one begins, so that a crash loses at most the last,
 * unfinished one. After 16 and 256 epochs follows their sum, so that the sum of a day needs only few frames.
 */

/* -- writing ------------------------------------------------------------------------------------------------------- */

struct ow_epochs_writer;

/*
 * append: an existing file is continued, after an unfinished frame was cut off; otherwise it is replaced. -EINVAL if it
 * has another description or is not a file of epochs (the error names the difference), -EBUSY if another process writes
 * it.
 */
int ow_epochs_create(const char *path, const struct ow_epoch_info *info, bool append,
                     struct ow_epochs_writer **ret_writer, struct ow_error *err);
/* The epoch is on disk when this returns 0. On failure the length of the file is unchanged. */
int ow_epochs_append(struct ow_epochs_writer *writer, const struct ow_epoch *epoch, struct ow_epoch_cost *ret_cost,
                     struct ow_error *err);
void ow_epochs_writer_free(struct ow_epochs_writer *writer);

/*
 * Copies: the file of another point, epoch by epoch. A file of epochs only grows, so the number of the epochs and the
 * check of the last one tell whether a copy is the beginning of it.
 */
struct ow_epochs_place {
	uint64_t epochs;
	uint64_t check; /* of the last one, 0 = there is none */
	uint64_t bytes; /* of the file */
};
struct ow_epochs_place ow_epochs_place(const struct ow_epochs_writer *writer);

/* The encoding of an epoch. */
struct ow_epochs_copy {
	uint8_t *bytes;
	size_t size;
	uint32_t count_bytes; /* of flow counts, at the end */
};
/* Reads the epoch that follows the place; the caller frees its bytes. 0, 1: there is none yet; -ESTALE: the place is in
 * another file; -EBADMSG, -errno. */
int ow_epochs_copy_next(const struct ow_epochs_writer *writer, const struct ow_epochs_place *place,
                        struct ow_epochs_copy *ret_copy, struct ow_error *err);
/* Appends such an epoch, after it was decoded. -EINVAL: it is not one, or has more flows. */
int ow_epochs_copy_append(struct ow_epochs_writer *writer, const struct ow_epochs_copy *copy, size_t flows_max,
                          struct ow_error *err);

/* -- reading ------------------------------------------------------------------------------------------------------- */

struct ow_epochs;

/* An epoch in the index. */
struct ow_epochs_span {
	int64_t begin_ns, end_ns;
	uint64_t packets;
	uint64_t bytes;       /* in the file */
	uint64_t count_bytes; /* of these, for flow counts */
};

int ow_epochs_open(const char *path, struct ow_epochs **ret_epochs, struct ow_error *err);
void ow_epochs_close(struct ow_epochs *epochs);
const char *ow_epochs_path(const struct ow_epochs *epochs);
const struct ow_epoch_info *ow_epochs_info(const struct ow_epochs *epochs);
size_t ow_epochs_count(const struct ow_epochs *epochs);
struct ow_epochs_span ow_epochs_span(const struct ow_epochs *epochs, size_t i);
/* All epochs together: from the earliest begin to the latest end. All members are 0 if there are none. */
struct ow_epochs_span ow_epochs_whole(const struct ow_epochs *epochs);
/* One line that names file and offset if the last epoch is not complete, otherwise NULL. */
const char *ow_epochs_damage(const struct ow_epochs *epochs);
/* Whether the two files can be compared. -EINVAL with an error that names both files and the difference. */
int ow_epochs_comparable(const struct ow_epochs *a, const struct ow_epochs *b, struct ow_error *err);

/*
 * The sum of all epochs that overlap [since_ns, until_ns); INT64_MIN and INT64_MAX for all. begin_ns and end_ns of the
 * sum are the time that it covers, epochs is their number (0: colate is empty). flows_max: as of ow_epoch_init. The caller
 * frees it with ow_epoch_done(). -ENOSPC: there are more flows.
 */
int ow_epochs_sum(const struct ow_epochs *epochs, int64_t since_ns, int64_t until_ns, size_t flows_max,
                  struct ow_epoch *ret_sum, struct ow_error *err);

/* Adds the table of lost packets of one epoch. sum: OW_REPAIR_BANKS * repair_cells of the description, which has some. */
int ow_epochs_repair(const struct ow_epochs *epochs, size_t i, struct ow_repair_cell *sum, struct ow_error *err);
