/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epochs.h"

/* Internal to files of epochs: their frames and the index. */

#define OW_EPOCHS_VERSION 1
/* The number of epochs, or of sums of the level below, that have a sum; and the number of levels. */
#define OW_EPOCHS_GROUP  16
#define OW_EPOCHS_LEVELS 2
/* Sums with more flows are not written, to limit the memory of the writer. */
#define OW_EPOCHS_SUM_FLOWS (1u << 20)

enum ow_epochs_kind { OW_EPOCHS_INFO = 1, OW_EPOCHS_EPOCH, OW_EPOCHS_SUM };

struct ow_epochs_frame {
	enum ow_epochs_kind kind;
	uint8_t level;   /* level of a sum, from 1 */
	uint64_t offset; /* of the bytes, behind the frame's header */
	uint64_t size;   /* number of the bytes */
	int64_t begin_ns, end_ns;
	uint64_t packets;
	uint64_t from;        /* number of the (first) epoch, in the file */
	uint32_t epochs;      /* number of epochs, 1 for an epoch */
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
	uint64_t end; /* end of the last complete frame */
	struct ow_epochs_frame *epoch;
	size_t epochs, room;
	/* Sums of a level, in the order of the file. */
	struct ow_epochs_frame *sum[OW_EPOCHS_LEVELS];
	size_t sums[OW_EPOCHS_LEVELS], sum_room[OW_EPOCHS_LEVELS];
	struct ow_error damage; /* empty = not damaged */
};

/* Reads the frames of an open file into an index, which takes over the file. -EINVAL if it is not a file of epochs. */
int ow_epochs_index(const char *path, int fd, struct ow_epochs **ret_epochs, struct ow_error *err);
int ow_epochs_note(struct ow_epochs *epochs, const struct ow_epochs_frame *frame);
/* Reads the bytes of a frame and checks them; the caller frees them. -EBADMSG: the checksum is wrong. */
int ow_epochs_frame_read(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, uint8_t **ret_bytes,
                         struct ow_error *err);
/* Adds the frame to the sum, after its checksum was verified. */
int ow_epochs_frame_add(const struct ow_epochs *epochs, const struct ow_epochs_frame *frame, struct ow_epoch *sum,
                        struct ow_error *err);
