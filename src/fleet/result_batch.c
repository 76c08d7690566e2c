/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/result_batch.h"

#include "base/array.h"
#include "base/coder.h"
#include "exchange/message_lane.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
/* Bytes of the fields of one result, and of what precedes them. The longest texts and the histogram fit four times. */
#define ROW_MAX  4096
#define HEAD_MAX 64
/* In the byte of the period. */
#define ACTIVE 128

struct ow_result_batch_lane {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
};

void ow_result_batch_done(struct ow_result_batch *batch)
{
	free(batch->lane);
	ow_buffer_done(&batch->lane_bytes);
	ow_buffer_done(&batch->row_bytes);
	ow_buffer_done(&batch->whole);
	*batch = (struct ow_result_batch){0};
}

static void code_lane(struct ow_coder *c, struct ow_result_batch_lane *lane)
{
	ow_coder_text(c, "segment", lane->segment, sizeof lane->segment, false);
	ow_coder_text(c, "class", lane->class_name, sizeof lane->class_name, false);
	ow_coder_text(c, "from", lane->from, sizeof lane->from, false);
	ow_coder_text(c, "to", lane->to, sizeof lane->to, false);
}

/* What a row has besides its fields. */
struct head {
	uint32_t lane, size;
	int64_t since_ns; /* start less that of the row before */
	int64_t length_ns;
	int64_t number; /* interval less start / length */
	uint8_t kind;   /* period and ACTIVE */
};

static void code_head(struct ow_coder *c, struct head *head)
{
	ow_coder_varint32(c, "lane", &head->lane, 0, OW_RESULT_BATCH_LANES - 1);
	ow_coder_signed(c, "start", &head->since_ns, INT64_MIN, INT64_MAX);
	ow_coder_signed(c, "length", &head->length_ns, 1, OW_RESULT_BATCH_LENGTH);
	ow_coder_signed(c, "interval", &head->number, INT64_MIN, INT64_MAX);
	ow_coder_u8(c, "period", &head->kind, 0, ACTIVE | (OW_PERIODS - 1));
	if (!c->failed && (head->kind & ~ACTIVE) >= OW_PERIODS)
		ow_coder_fail(c, "period", "is not known");
	ow_coder_varint32(c, "size", &head->size, 0, ROW_MAX);
}

/* -- writing ------------------------------------------------------------------------------------------------------ */

static struct ow_coder writer_of(const struct ow_buffer *buffer, struct ow_error *err)
{
	return (struct ow_coder){.does = OW_CODER_WRITES,
	                         .to = buffer->data + buffer->end,
	                         .size = buffer->capacity - buffer->end,
	                         .message = "batch",
	                         .err = err};
}

static int add_lane(struct ow_result_batch *batch, const struct ow_interval_result *r, struct ow_error *err)
{
	if (batch->lanes == OW_RESULT_BATCH_LANES)
		return ow_error_set(err, ENOSPC, "a batch has no room for another lane");
	if (OW_GROW(batch->lane, batch->room, batch->lanes + 1) < 0 ||
	    ow_buffer_reserve(&batch->lane_bytes, sizeof *batch->lane + HEAD_MAX) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_result_batch_lane *lane = &batch->lane[batch->lanes];
	memcpy(lane->segment, r->segment, sizeof lane->segment);
	memcpy(lane->class_name, r->class_name, sizeof lane->class_name);
	memcpy(lane->from, r->from, sizeof lane->from);
	memcpy(lane->to, r->to, sizeof lane->to);
	struct ow_coder c = writer_of(&batch->lane_bytes, err);
	code_lane(&c, lane);
	if (c.failed)
		return c.failed;
	batch->lane_bytes.end += c.at;
	return (int)batch->lanes++;
}

/* The place of the result's lane, or a negative errno. */
static int lane_of(struct ow_result_batch *batch, const struct ow_interval_result *r, struct ow_error *err)
{
	for (size_t i = 0; i < batch->lanes; i++) {
		const struct ow_result_batch_lane *lane = &batch->lane[i];
		if (strcmp(lane->segment, r->segment) == 0 && strcmp(lane->class_name, r->class_name) == 0 &&
		    strcmp(lane->from, r->from) == 0 && strcmp(lane->to, r->to) == 0)
			return (int)i;
	}
	return add_lane(batch, r, err);
}

static int code_fields(const struct ow_interval_result *result, uint8_t bytes[ROW_MAX], size_t *ret_size,
                       struct ow_error *err)
{
	struct ow_message_result told = {.result = *result};
	struct ow_coder c = {.does = OW_CODER_WRITES, .to = bytes, .size = ROW_MAX, .message = "batch", .err = err};
	ow_message_choose(&told, NULL);
	ow_code_result(&c, &told);
	*ret_size = c.at;
	return c.failed;
}

static bool is_full(const struct ow_result_batch *batch)
{
	return batch->rows == OW_RESULT_BATCH_ROWS || ow_buffer_size(&batch->lane_bytes) +
	                                                              ow_buffer_size(&batch->row_bytes) + ROW_MAX +
	                                                              sizeof *batch->lane + 2 * HEAD_MAX >
	                                                      OW_RESULT_BATCH_BYTES;
}

int ow_result_batch_add(struct ow_result_batch *batch, enum ow_period period, const struct ow_interval_result *result,
                        struct ow_error *err)
{
	uint8_t fields[ROW_MAX];
	size_t size = 0;
	if (is_full(batch))
		return ow_error_set(err, ENOSPC, "a batch has no room for another result");
	if (result->length_ns <= 0)
		return ow_error_set(err, EINVAL, "a result of an interval without length");
	int r = code_fields(result, fields, &size, err);
	int lane = r == 0 ? lane_of(batch, result, err) : r;
	if (lane < 0)
		return lane;
	if (ow_buffer_reserve(&batch->row_bytes, size + HEAD_MAX) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct head head = {
		.lane = (uint32_t)lane,
		.size = (uint32_t)size,
		.since_ns = (int64_t)((uint64_t)result->start_ns - (uint64_t)batch->start_ns),
		.length_ns = result->length_ns,
		.number = (int64_t)((uint64_t)result->interval - (uint64_t)(result->start_ns / result->length_ns)),
		.kind = (uint8_t)(period | (result->active ? ACTIVE : 0))};
	struct ow_coder c = writer_of(&batch->row_bytes, err);
	code_head(&c, &head);
	if (c.failed)
		return c.failed;
	memcpy(batch->row_bytes.data + batch->row_bytes.end + c.at, fields, size);
	batch->row_bytes.end += c.at + size;
	batch->start_ns = result->start_ns;
	batch->rows++;
	return 0;
}

static void clear(struct ow_buffer *buffer)
{
	buffer->start = buffer->end = 0;
}

static void put(struct ow_buffer *to, const struct ow_buffer *from)
{
	if (from->end)
		memcpy(to->data + to->end, from->data, from->end);
	to->end += from->end;
}

int ow_result_batch_encode(struct ow_result_batch *batch, const uint8_t **ret_bytes, size_t *ret_size,
                           struct ow_error *err)
{
	uint8_t version = VERSION;
	uint32_t lanes = (uint32_t)batch->lanes;
	clear(&batch->whole);
	if (ow_buffer_reserve(&batch->whole, batch->lane_bytes.end + batch->row_bytes.end + HEAD_MAX) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_coder c = writer_of(&batch->whole, err);
	ow_coder_u8(&c, "version", &version, VERSION, VERSION);
	ow_coder_varint32(&c, "lanes", &lanes, 0, OW_RESULT_BATCH_LANES);
	batch->whole.end = c.at;
	put(&batch->whole, &batch->lane_bytes);
	c = writer_of(&batch->whole, err);
	ow_coder_varint32(&c, "rows", &batch->rows, 0, OW_RESULT_BATCH_ROWS);
	batch->whole.end += c.at;
	put(&batch->whole, &batch->row_bytes);
	*ret_bytes = batch->whole.data;
	*ret_size = batch->whole.end;
	clear(&batch->lane_bytes);
	clear(&batch->row_bytes);
	batch->lanes = 0;
	batch->rows = 0;
	batch->start_ns = 0;
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

/* The fields of a row, in a frame of their own: what a newer version adds is skipped. */
static void read_fields(struct ow_coder *c, const struct head *head, struct ow_message_result *told)
{
	const uint8_t *fields = NULL;
	ow_coder_bytes(c, "row", &fields, head->size);
	if (c->failed)
		return;
	struct ow_coder row = {
		.does = OW_CODER_READS, .from = fields, .size = head->size, .message = "batch", .err = c->err};
	ow_code_result(&row, told);
	if (!row.failed && (told->changes || told->idle))
		ow_coder_fail(&row, "row", "is not a whole result");
	c->failed = row.failed;
}

static void read_row(struct ow_coder *c, const struct ow_result_batch_lane *lane, uint32_t lanes, int64_t *start_ns,
                     enum ow_period *ret_period, struct ow_message_result *told)
{
	struct head head = {0};
	struct ow_interval_result *r = &told->result;
	code_head(c, &head);
	if (!c->failed && head.lane >= lanes)
		ow_coder_fail(c, "lane", "is not in the batch");
	if (!c->failed && __builtin_add_overflow(*start_ns, head.since_ns, start_ns))
		ow_coder_fail(c, "start", "is out of range");
	*told = (struct ow_message_result){0};
	read_fields(c, &head, told);
	if (c->failed)
		return;
	memcpy(r->segment, lane[head.lane].segment, sizeof r->segment);
	memcpy(r->class_name, lane[head.lane].class_name, sizeof r->class_name);
	memcpy(r->from, lane[head.lane].from, sizeof r->from);
	memcpy(r->to, lane[head.lane].to, sizeof r->to);
	r->start_ns = *start_ns;
	r->length_ns = head.length_ns;
	r->interval = (int64_t)((uint64_t)head.number + (uint64_t)(*start_ns / head.length_ns));
	r->active = head.kind & ACTIVE;
	*ret_period = head.kind & ~ACTIVE;
}

static int read_rows(struct ow_coder *c, const struct ow_result_batch_lane *lane, uint32_t lanes,
                     ow_result_batch_each *each, void *arg)
{
	uint32_t rows = 0;
	int64_t start_ns = 0;
	struct ow_message_result told;
	enum ow_period period = OW_PERIOD_INTERVAL;
	ow_coder_varint32(c, "rows", &rows, 0, OW_RESULT_BATCH_ROWS);
	for (uint32_t i = 0; i < rows && !c->failed; i++) {
		read_row(c, lane, lanes, &start_ns, &period, &told);
		int r = c->failed ? 0 : each(arg, period, &told.result);
		if (r != 0)
			return r;
	}
	if (!c->failed && c->at != c->size)
		ow_coder_fail(c, "end", "is not the end");
	return c->failed;
}

int ow_result_batch_decode(const uint8_t *bytes, size_t size, ow_result_batch_each *each, void *arg,
                           struct ow_error *err)
{
	struct ow_coder c = {.does = OW_CODER_READS, .from = bytes, .size = size, .message = "batch", .err = err};
	uint8_t version = 0;
	uint32_t lanes = 0;
	if (size > OW_RESULT_BATCH_BYTES)
		return ow_error_set(err, EPROTO, "a batch of %zu bytes", size);
	ow_coder_u8(&c, "version", &version, VERSION, VERSION);
	ow_coder_varint32(&c, "lanes", &lanes, 0, OW_RESULT_BATCH_LANES);
	if (c.failed)
		return c.failed;
	/* A lane has 12 bytes or more: a short message cannot ask for much memory. */
	if (lanes > (size - c.at) / 12)
		return ow_error_set(err, EPROTO, "message batch: lanes is beyond the end");
	struct ow_result_batch_lane *lane = calloc(lanes ? lanes : 1, sizeof *lane);
	if (!lane)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < lanes; i++)
		code_lane(&c, &lane[i]);
	int r = c.failed ? c.failed : read_rows(&c, lane, lanes, each, arg);
	free(lane);
	return r;
}
