/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buffer.h"
#include "result/interval_result.h"
#include "result/period.h"
#include <oneway/error.h>

/*
 * Results of one point as the bytes of one message on the bus. Integers are varints (base/coder.h), texts have their
 * length in front:
 *
 *	version (1 byte)
 *	number of lanes; segment, class, from, to of each
 *	number of rows; of each:
 *		lane, by its place above
 *		start_ns less that of the row before, length_ns, interval less start_ns / length_ns
 *		1 byte: the period (result/period.h), and 128 if it is active
 *		number of bytes that follow, and the fields as in message RESULT (docs/protocol.md)
 *
 * Fields go by their places in the message (result/fields.h): a reader of an older version skips those that it does not
 * know. Bytes may be anybody's.
 */
#define OW_RESULT_BATCH_BYTES  (512u << 10) /* of a message; the servers accept 1 MiB */
#define OW_RESULT_BATCH_ROWS   2000
#define OW_RESULT_BATCH_LANES  1000
#define OW_RESULT_BATCH_LENGTH INT64_C(86400000000000) /* of an interval: a day */

/* Results that become a message. All zero is empty. */
struct ow_result_batch {
	struct ow_result_batch_lane *lane;
	size_t lanes, room;
	uint32_t rows;
	int64_t start_ns; /* of the last row */
	struct ow_buffer lane_bytes, row_bytes, whole;
};

void ow_result_batch_done(struct ow_result_batch *batch);
/* -ENOSPC: the batch is full; encode it, and then add the result to the next one. */
int ow_result_batch_add(struct ow_result_batch *batch, enum ow_period period, const struct ow_interval_result *result,
                        struct ow_error *err);
/* The message; valid until the next call. The batch is empty afterwards. */
int ow_result_batch_encode(struct ow_result_batch *batch, const uint8_t **ret_bytes, size_t *ret_size,
                           struct ow_error *err);

/* Called for each result. A value other than 0 ends the reading, and is returned. */
typedef int ow_result_batch_each(void *arg, enum ow_period period, const struct ow_interval_result *result);
/* -EPROTO: not a batch; rows before the wrong one have been passed on. */
int ow_result_batch_decode(const uint8_t *bytes, size_t size, ow_result_batch_each *each, void *arg,
                           struct ow_error *err);
