/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_EPOCHS_H
#define OW_FLOWS_EPOCHS_H

#include "flows/epoch.h"

/*
 * A file of epochs. It begins with the description that all share; then come epochs, each framed with its length, span
 * and checksums and on disk before the next one is begun, so that whatever happens only the last, unfinished one is
 * lost. After 16 and 256 epochs follows their sum, so that the sum of a day is put together from few of them.
 */

/* -- writing ------------------------------------------------------------------------------------------------------- */

struct ow_epochs_writer;

/*
 * append: a file that is there is continued, after what a crash left unfinished has been cut off; else it is replaced.
 * -EINVAL when it is of another description or no file of epochs (the line names the difference), -EBUSY when another
 * process writes it.
 */
int ow_epochs_create(const char *path, const struct ow_epoch_info *info, bool append,
                     struct ow_epochs_writer **ret_writer, struct ow_error *err);
/* The epoch is on disk when this returns 0. On failure the file ends where it did before. */
int ow_epochs_append(struct ow_epochs_writer *writer, const struct ow_epoch *epoch, struct ow_epoch_cost *ret_cost,
                     struct ow_error *err);
void ow_epochs_writer_free(struct ow_epochs_writer *writer);

/* -- reading ------------------------------------------------------------------------------------------------------- */

struct ow_epochs;

/* What the index says of an epoch. */
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
/* All of them together: from the earliest begin to the latest end. All 0 without any. */
struct ow_epochs_span ow_epochs_whole(const struct ow_epochs *epochs);
/* One line that names file and offset if its last epoch is not complete, else NULL. */
const char *ow_epochs_damage(const struct ow_epochs *epochs);
/* May the two files be compared? -EINVAL with a line that names both and what differs. */
int ow_epochs_comparable(const struct ow_epochs *a, const struct ow_epochs *b, struct ow_error *err);

/*
 * The sum of all epochs that reach into [since_ns, until_ns); INT64_MIN and INT64_MAX for all. begin_ns and end_ns of
 * the sum say what it really covers, epochs how many they are (0: none; colate is there and empty). with_counts: also
 * the flow counts, if the file has them. The caller ends it with ow_epoch_done().
 */
int ow_epochs_sum(const struct ow_epochs *epochs, int64_t since_ns, int64_t until_ns, bool with_counts,
                  struct ow_epoch *ret_sum, struct ow_error *err);

#endif
