/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of an interval, field by field; docs/protocol.md describes them. */
#include "exchange/message_lane.h"
#include "estimate/low_bits.h"
#include "exchange/message_scope.h"

#include <errno.h>
#include <stdlib.h>

static void code_packets(struct ow_coder *c, const char *field, uint64_t *packets)
{
	ow_coder_varint(c, field, packets, 0, OW_MESSAGE_PACKETS_MAX);
}

/* The error plus 1; 0 = not known. */
void ow_code_clock(struct ow_coder *c, struct ow_clock_state *clock)
{
	uint64_t error = clock->error_ns == INT64_MAX ? 0 : (uint64_t)clock->error_ns + 1;
	ow_coder_bool(c, "clock", &clock->synchronised);
	ow_coder_varint(c, "clock error", &error, 0, INT64_MAX);
	clock->error_ns = error ? (int64_t)(error - 1) : INT64_MAX;
}

void ow_code_synopsis(struct ow_coder *c, struct ow_message_synopsis *m)
{
	OW_CODER_ENUM(c, "part", m->part, 0, OW_MESSAGE_TABLE + 1);
	ow_coder_varint32(c, "idle intervals", &m->idle, 0, OW_MESSAGE_IDLE_MAX - 1);
	ow_coder_u8(c, "shift", &m->sample_shift, 0, OW_MESSAGE_SHIFT_MAX);
	ow_coder_bool(c, "scope", &m->scope.there);
	ow_coder_varint32(c, "size of the synopsis", &m->synopsis_size, 0, OW_MESSAGE_SYNOPSIS_MAX);
	code_packets(c, "packets", &m->packets);
	code_packets(c, "total of packets", &m->total_packets);
	ow_coder_varint(c, "total of bytes", &m->total_bytes, 0, OW_MESSAGE_BYTES_MAX);
	code_packets(c, "ring drops", &m->ring_drops);
	code_packets(c, "unreadable frames", &m->unreadable);
	code_packets(c, "unshared packets", &m->unshared);
	ow_coder_signed(c, "shift of the start", &m->shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	ow_coder_signed(c, "shift of the end", &m->end_shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	ow_coder_signed(c, "oldest interval", &m->oldest, 0, OW_MESSAGE_INTERVAL_MAX);
	ow_coder_signed(c, "settled intervals", &m->settled, 0, OW_MESSAGE_INTERVAL_MAX);
	ow_coder_signed(c, "time", &m->lag_ns, INT64_MIN, INT64_MAX);
	ow_coder_signed(c, "duration", &m->work_ns, 0, INT64_MAX);
	ow_code_clock(c, &m->clock);
	if (m->packets > m->total_packets)
		ow_coder_fail(c, "packets", "are more than their total");
	ow_coder_bytes(c, "synopsis", &m->synopsis, m->synopsis_size);
	if (m->scope.there)
		ow_code_scope_answer(c, &m->scope);
	if (m->idle && !ow_synopsis_is_idle(m))
		ow_coder_fail(c, "idle intervals", "come before one that is not");
}

void ow_code_ask(struct ow_coder *c, struct ow_message_ask *m)
{
	OW_CODER_ENUM(c, "part", m->part, OW_MESSAGE_AGAIN, OW_MESSAGE_PARTS);
	bool second = m->part == OW_MESSAGE_SECOND, again = m->part == OW_MESSAGE_AGAIN;
	bool none = again || m->part >= OW_MESSAGE_FLOWS;
	bool table = m->part == OW_MESSAGE_TABLE;
	ow_coder_u8(c, "shift", &m->sample_shift, 0, again ? OW_MESSAGE_SHIFT_MAX : 0);
	ow_coder_u8(c, "order", &m->order, second, second ? 255 : 0);
	ow_coder_u8(c, "banks", &m->banks, table, table ? 8 : 0);
	ow_coder_varint32(c, "cells", &m->cells, !none, none ? 0 : OW_MESSAGE_CELLS_MAX);
}

/* Which bits of times are sent. */
static void code_bits(struct ow_coder *c, bool sample, uint8_t *low, uint8_t *bits)
{
	ow_coder_u8(c, "low bit", low, 0, sample ? OW_LOW_BITS_MAX - 1 : 0);
	ow_coder_u8(c, "bits", bits, sample, sample ? OW_LOW_BITS_MAX : 0);
	if (!c->failed && *low + *bits > OW_LOW_BITS_MAX)
		ow_coder_fail(c, "bits", "are too many");
}

/* The bytes of a sum. */
static void code_width(struct ow_coder *c, enum ow_message_sums sums, uint32_t buckets, uint8_t *width)
{
	if (sums == OW_MESSAGE_SUMS && buckets)
		ow_coder_u8(c, "width of sums", width, 1, 8);
}

void ow_code_names(struct ow_coder *c, struct ow_message_names *m)
{
	OW_CODER_ENUM(c, "sums", m->sums, 0, OW_MESSAGE_SUMS_KINDS);
	ow_coder_bool(c, "width", &m->wide);
	code_bits(c, m->sums == OW_MESSAGE_SUMS, &m->low, &m->bits);
	ow_coder_varint32(c, "buckets", &m->buckets, m->sums == OW_MESSAGE_CLEAN,
	                  m->sums == OW_MESSAGE_NO_SUMS ? 0 : OW_MESSAGE_BUCKETS_MAX);
	ow_coder_varint32(c, "sample", &m->sample, m->sums == OW_MESSAGE_CLEAN,
	                  m->sums == OW_MESSAGE_NO_SUMS ? 0
	                  : m->buckets                  ? OW_MESSAGE_SAMPLE_MAX
	                                                : OW_MESSAGE_TIMES_MAX);
	code_width(c, m->sums, m->buckets, &m->width);
	if (m->sums == OW_MESSAGE_CLEAN)
		ow_coder_double(c, "differences", &m->differences);
	if (!(m->differences >= 0 && m->differences <= (double)OW_MESSAGE_PACKETS_MAX))
		ow_coder_fail(c, "differences", "are out of range");
	ow_coder_varint32(c, "size of wanted names", &m->wanted_size, 0, 8 * OW_MESSAGE_NAMED_MAX);
	ow_coder_varint32(c, "size of other names", &m->others_size, 0, 8 * OW_MESSAGE_NAMED_MAX);
	if (m->wide && (m->wanted_size % 8 || m->others_size % 8))
		ow_coder_fail(c, "size of ids", "is not a multiple of 8");
	ow_coder_bytes(c, "wanted names", &m->wanted, m->wanted_size);
	ow_coder_bytes(c, "other names", &m->others, m->others_size);
}

/*
 * Allocates memory for what is to be read. Each element takes at least `least` bytes of the frame, so a false number
 * cannot allocate much.
 */
static void *room(struct ow_coder *c, const char *field, size_t count, size_t least, size_t element)
{
	if (c->failed || !count)
		return NULL;
	if (count > (c->size - c->at) / least) {
		ow_coder_fail(c, field, "are beyond the end");
		return NULL;
	}
	void *array = calloc(count, element);
	if (!array)
		c->failed = ow_error_set(c->err, ENOMEM, "out of memory");
	return array;
}

static void code_time_list(struct ow_coder *c, const char *field, const int64_t **time_ns, uint32_t count)
{
	int64_t *dest = NULL;
	if (c->does == OW_CODER_READS) {
		*time_ns = dest = room(c, field, count, 1, sizeof *dest);
		if (!dest)
			return;
	}
	for (uint32_t i = 0; i < count && !c->failed; i++) {
		int64_t value = dest ? 0 : (*time_ns)[i];
		ow_coder_signed(c, field, &value, INT64_MIN, INT64_MAX);
		if (dest)
			dest[i] = value;
	}
}

static void code_copies(struct ow_coder *c, struct ow_message_times *m)
{
	struct ow_message_copy *dest = NULL;
	if (c->does == OW_CODER_READS) {
		m->copy = dest = room(c, "copies", m->copies, 12, sizeof *dest);
		if (!dest)
			return;
	}
	uint64_t least = 0;
	for (uint32_t i = 0; i < m->copies && !c->failed; i++) {
		struct ow_message_copy copy = m->copy[i];
		/* In rising order, each once. */
		uint64_t index = copy.index;
		ow_coder_uint(c, "copy", 4, &index, least, m->times ? m->times - 1 : 0);
		ow_coder_uint(c, "base of a copy", 8, &copy.base, 0, UINT64_MAX);
		least = index + 1;
		if (dest)
			dest[i] = (struct ow_message_copy){(uint32_t)index, copy.base};
	}
}

static void code_buckets(struct ow_coder *c, struct ow_message_times *m)
{
	struct ow_message_bucket *dest = NULL;
	bool clean = m->sums == OW_MESSAGE_CLEAN;
	if (c->does == OW_CODER_READS) {
		m->bucket = dest = room(c, "buckets", m->buckets, clean ? 20 : m->width, sizeof *dest);
		if (!dest)
			return;
	}
	for (uint32_t i = 0; i < m->buckets && !c->failed; i++) {
		struct ow_message_bucket bucket = m->bucket[i];
		ow_coder_uint(c, "sum of a bucket", clean ? 8 : m->width, &bucket.time, 0, UINT64_MAX);
		if (clean) {
			ow_coder_uint(c, "digest of a bucket", 8, &bucket.digest, 0, UINT64_MAX);
			ow_coder_u32(c, "packets of a bucket", &bucket.packets, 0, UINT32_MAX);
		}
		if (dest)
			dest[i] = bucket;
	}
	if (!clean && m->buckets)
		ow_coder_uint(c, "check of the sums", 8, &m->sums_check, 0, UINT64_MAX);
}

static void code_sample(struct ow_coder *c, struct ow_message_times *m)
{
	ow_coder_bytes(c, "sample", &m->sample, ow_low_bits_size(m->samples, m->bits));
	ow_coder_uint(c, "check of the sample", 8, &m->sample_check, 0, UINT64_MAX);
	ow_coder_uint(c, "check of the order", 8, &m->order_check, 0, UINT64_MAX);
}

void ow_code_times(struct ow_coder *c, struct ow_message_times *m)
{
	OW_CODER_ENUM(c, "sums", m->sums, 0, OW_MESSAGE_SUMS_KINDS);
	ow_coder_u8(c, "shift", &m->sample_shift, 0, OW_MESSAGE_SHIFT_MAX);
	code_bits(c, m->sums == OW_MESSAGE_SUMS, &m->low, &m->bits);
	ow_coder_varint32(c, "unknown names", &m->unknown, 0, 2 * OW_MESSAGE_NAMED_MAX);
	code_packets(c, "packets kept", &m->kept);
	ow_coder_uint(c, "digest", 8, &m->digest, 0, UINT64_MAX);
	bool sums = m->sums == OW_MESSAGE_SUMS && !m->unknown, clean = m->sums == OW_MESSAGE_CLEAN && !m->unknown;
	ow_coder_varint32(c, "times", &m->times, 0, m->unknown ? 0 : OW_MESSAGE_NAMED_MAX);
	ow_coder_varint32(c, "copies", &m->copies, 0, m->times);
	ow_coder_varint32(c, "buckets", &m->buckets, 0, sums || clean ? OW_MESSAGE_BUCKETS_MAX : 0);
	code_width(c, m->sums, m->buckets, &m->width);
	ow_coder_varint32(c, "sample", &m->samples, 0, sums ? OW_MESSAGE_TIMES_MAX : 0);
	ow_coder_varint32(c, "size of the synopsis", &m->synopsis_size, 0, clean ? OW_MESSAGE_SYNOPSIS_MAX : 0);
	ow_coder_varint32(c, "size of shared flows", &m->shared_size, 0, (m->times + 7) / 8);
	if (!c->failed && m->shared_size && m->shared_size != (m->times + 7) / 8)
		ow_coder_fail(c, "size of shared flows", "is not that of a bit for each time");
	if (c->failed)
		return;
	code_time_list(c, "times", &m->time_ns, m->times);
	if (sums && !m->buckets)
		code_time_list(c, "places", &m->place, m->times);
	code_copies(c, m);
	code_buckets(c, m);
	if (sums)
		code_sample(c, m);
	ow_coder_bytes(c, "synopsis", &m->synopsis, m->synopsis_size);
	ow_coder_bytes(c, "shared flows", &m->shared, m->shared_size);
}
