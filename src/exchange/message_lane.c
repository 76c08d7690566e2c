/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of an interval, field by field; docs/protocol.md describes them. */
#include "exchange/message_lane.h"
#include "estimate/low_bits.h"
#include "exchange/message_scope.h"
#include "result/fields.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Clocks that gain more than this are not clocks. */
#define DRIFT_PPB_MAX 1000000000
/* Durations, including those of a clock that jumps. */
#define DURATION_NS_MAX INT64_MAX

static void code_packets(struct ow_coder *c, const char *field, uint64_t *packets)
{
	ow_coder_uint(c, field, 8, packets, 0, OW_MESSAGE_PACKETS_MAX);
}

void ow_code_clock(struct ow_coder *c, struct ow_clock_state *clock)
{
	ow_coder_bool(c, "clock", &clock->synchronised);
	ow_coder_int(c, "clock error", &clock->error_ns, 0, INT64_MAX);
}

void ow_code_synopsis(struct ow_coder *c, struct ow_message_synopsis *m)
{
	OW_CODER_ENUM(c, "part", m->part, 0, OW_MESSAGE_PARTS);
	ow_coder_u8(c, "shift", &m->sample_shift, 0, OW_MESSAGE_SHIFT_MAX);
	ow_coder_bool(c, "scope", &m->scope.there);
	ow_coder_zeros(c, 1);
	ow_coder_u32(c, "size of the synopsis", &m->synopsis_size, 0, OW_MESSAGE_SYNOPSIS_MAX);
	code_packets(c, "packets", &m->packets);
	code_packets(c, "total of packets", &m->total_packets);
	ow_coder_uint(c, "total of bytes", 8, &m->total_bytes, 0, OW_MESSAGE_BYTES_MAX);
	code_packets(c, "ring drops", &m->ring_drops);
	code_packets(c, "unreadable frames", &m->unreadable);
	code_packets(c, "unshared packets", &m->unshared);
	ow_coder_int(c, "shift of the start", &m->shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	ow_coder_int(c, "shift of the end", &m->end_shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	ow_coder_int(c, "oldest interval", &m->oldest, 0, OW_MESSAGE_INTERVAL_MAX);
	ow_coder_int(c, "settled intervals", &m->settled, 0, OW_MESSAGE_INTERVAL_MAX);
	ow_coder_int(c, "time", &m->sent_ns, 0, INT64_MAX);
	ow_coder_int(c, "duration", &m->work_ns, 0, DURATION_NS_MAX);
	ow_code_clock(c, &m->clock);
	if (m->packets > m->total_packets)
		ow_coder_fail(c, "packets", "are more than their total");
	ow_coder_bytes(c, "synopsis", &m->synopsis, m->synopsis_size);
	if (m->scope.there)
		ow_code_scope_answer(c, &m->scope);
}

void ow_code_ask(struct ow_coder *c, struct ow_message_ask *m)
{
	OW_CODER_ENUM(c, "part", m->part, OW_MESSAGE_AGAIN, OW_MESSAGE_PARTS);
	bool again = m->part == OW_MESSAGE_AGAIN, second = m->part == OW_MESSAGE_SECOND;
	bool table = m->part == OW_MESSAGE_TABLE;
	ow_coder_u8(c, "shift", &m->sample_shift, 0, again ? OW_MESSAGE_SHIFT_MAX : 0);
	ow_coder_u8(c, "order", &m->order, second, second ? 255 : 0);
	ow_coder_u8(c, "banks", &m->banks, table, table ? 8 : 0);
	ow_coder_u32(c, "cells", &m->cells, !again, again ? 0 : OW_MESSAGE_CELLS_MAX);
}

/* Which bits of times are sent. */
static void code_bits(struct ow_coder *c, bool sample, uint8_t *low, uint8_t *bits)
{
	ow_coder_u8(c, "low bit", low, 0, sample ? OW_LOW_BITS_MAX - 1 : 0);
	ow_coder_u8(c, "bits", bits, sample, sample ? OW_LOW_BITS_MAX : 0);
	if (!c->failed && *low + *bits > OW_LOW_BITS_MAX)
		ow_coder_fail(c, "bits", "are too many");
}

void ow_code_names(struct ow_coder *c, struct ow_message_names *m)
{
	OW_CODER_ENUM(c, "sums", m->sums, 0, OW_MESSAGE_SUMS_KINDS);
	ow_coder_bool(c, "width", &m->wide);
	code_bits(c, m->sums == OW_MESSAGE_SUMS, &m->low, &m->bits);
	ow_coder_u32(c, "buckets", &m->buckets, m->sums == OW_MESSAGE_CLEAN,
	             m->sums == OW_MESSAGE_NO_SUMS ? 0 : OW_MESSAGE_BUCKETS_MAX);
	ow_coder_u32(c, "sample", &m->sample, m->sums == OW_MESSAGE_CLEAN,
	             m->sums == OW_MESSAGE_NO_SUMS ? 0
	             : m->buckets                  ? OW_MESSAGE_SAMPLE_MAX
	                                           : OW_MESSAGE_TIMES_MAX);
	ow_coder_double(c, "differences", &m->differences);
	if (m->differences < 0 || m->differences > (double)OW_MESSAGE_PACKETS_MAX)
		ow_coder_fail(c, "differences", "are out of range");
	ow_coder_u32(c, "size of wanted names", &m->wanted_size, 0, 8 * OW_MESSAGE_NAMED_MAX);
	ow_coder_u32(c, "size of other names", &m->others_size, 0, 8 * OW_MESSAGE_NAMED_MAX);
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
		ow_coder_time(c, field, &value);
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
		m->bucket = dest = room(c, "buckets", m->buckets, clean ? 20 : 8, sizeof *dest);
		if (!dest)
			return;
	}
	for (uint32_t i = 0; i < m->buckets && !c->failed; i++) {
		struct ow_message_bucket bucket = m->bucket[i];
		ow_coder_uint(c, "sum of a bucket", 8, &bucket.time, 0, UINT64_MAX);
		if (clean) {
			ow_coder_uint(c, "digest of a bucket", 8, &bucket.digest, 0, UINT64_MAX);
			ow_coder_u32(c, "packets of a bucket", &bucket.packets, 0, UINT32_MAX);
		}
		if (dest)
			dest[i] = bucket;
	}
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
	ow_coder_u32(c, "unknown names", &m->unknown, 0, 2 * OW_MESSAGE_NAMED_MAX);
	code_packets(c, "packets kept", &m->kept);
	ow_coder_uint(c, "digest", 8, &m->digest, 0, UINT64_MAX);
	bool sums = m->sums == OW_MESSAGE_SUMS && !m->unknown, clean = m->sums == OW_MESSAGE_CLEAN && !m->unknown;
	ow_coder_u32(c, "times", &m->times, 0, m->unknown ? 0 : OW_MESSAGE_NAMED_MAX);
	ow_coder_u32(c, "copies", &m->copies, 0, m->times);
	ow_coder_u32(c, "buckets", &m->buckets, 0, sums || clean ? OW_MESSAGE_BUCKETS_MAX : 0);
	ow_coder_u32(c, "sample", &m->samples, 0, sums ? OW_MESSAGE_TIMES_MAX : 0);
	ow_coder_u32(c, "size of the synopsis", &m->synopsis_size, 0, clean ? OW_MESSAGE_SYNOPSIS_MAX : 0);
	ow_coder_u32(c, "size of shared flows", &m->shared_size, 0, (m->times + 7) / 8);
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

/* -- results ------------------------------------------------------------------------------------------------------ */

/* The numbers of the message, and the place of values that are not fields of a result. */
_Static_assert(OW_VALUE_NONE == 0 && OW_VALUE_ESTIMATED == 1 && OW_VALUE_EXACT == 2, "values as in docs/protocol.md");
_Static_assert(OW_RESULT_MEASURED == 0 && OW_RESULT_PARTIAL == 1 && OW_RESULT_UNKNOWN == 2,
               "status as in docs/protocol.md");
#define WIRE_DIFFERENCES 5
#define WIRE_FLOOR       47
/*
 * The fields of the first release. A result of an older point may end before a later field; fields of a newer point
 * behind the last known one are skipped.
 */
#define WIRE_FIRST_RELEASE 42

/* A reason that this version does not know cannot be shown. */
static void code_reason(struct ow_coder *c, const char *field, enum ow_reason *reason)
{
	uint32_t hash = ow_reason_hash(*reason);
	ow_coder_u32(c, field, &hash, 0, UINT32_MAX);
	if (c->does == OW_CODER_READS && !c->failed)
		*reason = ow_reason_of_hash(hash, OW_REASON_PEER_COULD_NOT_TELL);
}

static void code_value(struct ow_coder *c, const char *field, struct ow_value *v)
{
	OW_CODER_ENUM(c, field, v->status, OW_VALUE_NONE, OW_VALUE_EXACT + 1);
	if (c->failed)
		return;
	if (v->status == OW_VALUE_NONE) {
		code_reason(c, field, &v->reason);
		return;
	}
	ow_coder_double(c, field, &v->value);
	if (v->status == OW_VALUE_EXACT) {
		v->low = v->high = v->value;
	} else {
		ow_coder_double(c, field, &v->low);
		ow_coder_double(c, field, &v->high);
	}
	if (!c->failed && !(isfinite(v->value) && v->low <= v->value && v->value <= v->high))
		ow_coder_fail(c, field, "is not within its interval");
}

static void code_count(struct ow_coder *c, const struct ow_field *field, uint64_t *count)
{
	bool may_be_unknown = field->flags & OW_FIELD_NOT_COUNTED;
	uint64_t most = field->flags & OW_FIELD_OF_BYTES ? OW_MESSAGE_BYTES_MAX : OW_MESSAGE_PACKETS_MAX;
	ow_coder_uint(c, field->json, 8, count, 0, may_be_unknown ? UINT64_MAX : most);
	if (!c->failed && *count > most && *count != OW_RESULT_NOT_COUNTED)
		ow_coder_fail(c, field->json, "is out of range");
}

static void code_number(struct ow_coder *c, const struct ow_field *field, uint32_t *number)
{
	bool shift = field->type == OW_FIELD_SHIFT;
	uint64_t value = *number;
	ow_coder_uint(c, field->json, shift ? 1 : 4, &value, 0, shift ? OW_MESSAGE_SHIFT_MAX : UINT32_MAX);
	*number = (uint32_t)value;
}

static void code_field(struct ow_coder *c, const struct ow_field *field, struct ow_interval_result *r)
{
	void *member = ow_field_at(field, r);
	struct ow_value *value = member;
	switch (field->type) {
	case OW_FIELD_TEXT:
		/* A result that is not complete has a cause. */
		ow_coder_text(c, field->json, member, field->size,
		              member != r->cause || r->status == OW_RESULT_MEASURED);
		break;
	case OW_FIELD_INTEGER:
		ow_coder_int(c, field->json, member, INT64_MIN, DURATION_NS_MAX);
		break;
	case OW_FIELD_FLAG:
		ow_coder_bool(c, field->json, member);
		break;
	case OW_FIELD_STATUS:
		OW_CODER_ENUM(c, field->json, r->status, OW_RESULT_MEASURED, OW_RESULT_UNKNOWN + 1);
		break;
	case OW_FIELD_COUNT:
		code_count(c, field, member);
		break;
	case OW_FIELD_SHIFT:
	case OW_FIELD_NUMBER:
		code_number(c, field, member);
		break;
	case OW_FIELD_SHARE:
		ow_coder_double(c, field->json, member);
		break;
	case OW_FIELD_VALUE:
		code_value(c, field->json, value);
		break;
	case OW_FIELD_QUANTILES:
		for (int q = 0; q < OW_QUANTILES; q++)
			code_value(c, field->json, &value[q]);
		break;
	case OW_FIELD_CLOCK:
		ow_code_clock(c, member);
		break;
	default: /* computed from others */
		break;
	}
}

/* For any status: packets are conserved, and no part is larger than the whole. */
static void check_counts(struct ow_coder *c, const struct ow_interval_result *r)
{
	if (c->failed)
		return;
	if (r->sent != r->matched + r->late + r->lost + r->pending)
		ow_coder_fail(c, "sent", "is not matched + late + lost + pending");
	else if (r->received != r->matched + r->late_received + r->extra)
		ow_coder_fail(c, "received", "is not matched + late + extra");
	else if (r->final && r->pending && r->status == OW_RESULT_MEASURED)
		ow_coder_fail(c, "pending", "is not 0 though the result is final");
	else if (r->duplicated > r->extra)
		ow_coder_fail(c, "duplicated", "is more than extra");
	else if (r->ambiguous > r->matched + r->late)
		ow_coder_fail(c, "ambiguous", "is more than matched + late");
	else if (r->absent > r->unshared_sent)
		ow_coder_fail(c, "absent", "is more than unshared_sent");
	else if (r->lost_whole_flows > r->lost)
		ow_coder_fail(c, "lost_whole_flows", "is more than lost");
	else if (!(r->coverage >= 0 && r->coverage <= 1))
		ow_coder_fail(c, "coverage", "is not between 0 and 1");
}

static void code_floor(struct ow_coder *c, struct ow_clock_floor *floor)
{
	ow_coder_u32(c, "samples of the floor", &floor->samples, 0, UINT32_MAX);
	if (!floor->samples)
		return;
	ow_coder_u32(c, "impossible delays", &floor->impossible, 0, UINT32_MAX);
	ow_coder_int(c, "time of the floor", &floor->at_ns, 0, INT64_MAX);
	ow_coder_int(c, "floor", &floor->low_ns, INT64_MIN, INT64_MAX);
	ow_coder_int(c, "drift", &floor->drift_ppb, -DRIFT_PPB_MAX, DRIFT_PPB_MAX);
}

void ow_code_result(struct ow_coder *c, struct ow_interval_result *result, uint64_t *differences,
                    struct ow_clock_floor *floor, int64_t *cut_shift_ns)
{
	ow_coder_int(c, "shift of intervals", cut_shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	for (unsigned wire = 1; wire <= ow_field_count; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (wire == WIRE_DIFFERENCES)
			code_packets(c, "differences", differences);
		else if (wire == WIRE_FLOOR && !(c->does == OW_CODER_READS && c->at == c->size))
			code_floor(c, floor);
		else if (field && wire > WIRE_FIRST_RELEASE && c->does == OW_CODER_READS && c->at == c->size)
			ow_field_absent(field, result);
		else if (field)
			code_field(c, field, result);
	}
	if (c->does == OW_CODER_READS && !c->failed)
		c->at = c->size;
	check_counts(c, result);
}
