/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_EPOCHS_PRIVATE_H
#define OW_FLOWS_EPOCHS_PRIVATE_H

#include "flows/epochs.h"

/* Internal to files of epochs: their frames and what is known of them. */

#define OW_EPOCHS_VERSION 1
/* So many epochs, or sums of the level below, have a sum of their own; and the levels of sums. */
#define OW_EPOCHS_GROUP  16
#define OW_EPOCHS_LEVELS 2
/* Sums with more flows are left out: the writer's memory is not for them. */
#define OW_EPOCHS_SUM_FLOWS (1u << 20)

enum ow_epochs_kind { OW_EPOCHS_INFO = 1, OW_EPOCHS_EPOCH, OW_EPOCHS_SUM };

struct ow_epochs_frame {
	enum ow_epochs_kind kind;
	uint8_t level;   /* of a sum, from 1 */
	uint64_t offset; /* of the bytes, behind the frame's header */
	uint64_t size;   /* of the bytes */
	int64_t begin_ns, end_ns;
	uint64_t packets;
	uint64_t from;        /* number of the (first) epoch, in the file */
	uint32_t epochs;      /* how many, 1 for an epoch */
	uint32_t count_bytes; /* of flow counts, at the end */
	uint64_t check;       /* of the bytes */
};

#define OW_EPOCHS_HEADER 72
void ow_epochs_frame_put(const struct ow_epochs_frame *frame, uint8_t header[OW_EPOCHS_HEADER]);
uint64_t ow_epochs_check(const uint8_t *bytes, size_t size);

struct ow_epochs {
	char *path;
	int fd;
	struct ow_epoch_info info;
	uint64_t end; /* of the last frame that is whole */
	struct ow_epochs_frame *epoch;
	size_t epochs, room;
	/* Sums of a level, in the order of the file. */
	struct ow_epochs_frame *sum[OW_EPOCHS_LEVELS];
	size_t sums[OW_EPOCHS_LEVELS], sum_room[OW_EPOCHS_LEVELS];
	struct ow_error damage; /* empty = none */
};

/* Notes the frames of an open file, which becomes the index's. -EINVAL unless it is a file of epochs. */
int ow_epochs_index(const char *path, int fd, struct ow_epochs **ret_epochs, struct ow_error *err);
int ow_epochs_note(struct ow_epochs *epochs, const struct ow_epochs_frame *frame);
/* Adds the frame to the sum, once its check was found right. */
int ow_epochs_frame_add(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, struct ow_epoch *sum,
                        struct ow_error *err);

#endif
