/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESULT: which of its fields it contains, as bits, and these in the order of their places (result/fields.h). A field
 * that is not there has its default or, in a final result, the value of the provisional one.
 */
#include "exchange/message_lane.h"
#include "result/fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* The numbers of the message, and the place of values that are not fields of a result. */
_Static_assert(OW_VALUE_NONE == 0 && OW_VALUE_ESTIMATED == 1 && OW_VALUE_EXACT == 2, "values as in docs/protocol.md");
_Static_assert(OW_RESULT_MEASURED == 0 && OW_RESULT_PARTIAL == 1 && OW_RESULT_UNKNOWN == 2,
               "status as in docs/protocol.md");
#define WIRE_DIFFERENCES 5
#define WIRE_FLOOR       47
#define WIRE_MAX         64

/* Clocks that gain more than this are not clocks. */
#define DRIFT_PPB_MAX 1000000000
/* Integers up to this are doubles as well. */
#define WHOLE_MAX (INT64_C(1) << 53)

/* How a value is coded: its status, and these bits. */
#define VALUE_WHOLE   4 /* its numbers are integers */
#define VALUE_NO_LOW  8 /* a whole one that has no lower end, */
#define VALUE_NO_HIGH 16
#define VALUE_CODES   32

static uint64_t bit_of(unsigned wire)
{
	return UINT64_C(1) << (wire - 1);
}

/* -- fields ------------------------------------------------------------------------------------------------------- */

/* A reason that this version does not know cannot be shown. */
static void code_reason(struct ow_coder *c, const char *field, enum ow_reason *reason)
{
	uint32_t hash = ow_reason_hash(*reason);
	ow_coder_u32(c, field, &hash, 0, UINT32_MAX);
	if (c->does == OW_CODER_READS && !c->failed)
		*reason = ow_reason_of_hash(hash, OW_REASON_PEER_COULD_NOT_TELL);
}

static bool is_whole(double x)
{
	return fabs(x) <= (double)WHOLE_MAX && x == rint(x) && !(x == 0 && signbit(x));
}

static uint8_t value_code(const struct ow_value *v)
{
	uint8_t code = (uint8_t)v->status;
	bool low = isfinite(v->low), high = isfinite(v->high);
	if (v->status == OW_VALUE_NONE || !is_whole(v->value) || (low && !is_whole(v->low)) ||
	    (high && !is_whole(v->high)))
		return code;
	code |= VALUE_WHOLE;
	if (v->status == OW_VALUE_ESTIMATED)
		code |= (uint8_t)((low ? 0 : VALUE_NO_LOW) | (high ? 0 : VALUE_NO_HIGH));
	return code;
}

static void code_distance(struct ow_coder *c, const char *field, double *distance)
{
	uint64_t whole = c->does == OW_CODER_READS ? 0 : (uint64_t)*distance;
	ow_coder_varint(c, field, &whole, 0, 2 * (uint64_t)WHOLE_MAX);
	*distance = (double)whole;
}

static void code_whole(struct ow_coder *c, const char *field, uint8_t code, struct ow_value *v)
{
	int64_t value = c->does == OW_CODER_READS ? 0 : (int64_t)v->value;
	double below = v->value - v->low, above = v->high - v->value;
	ow_coder_signed(c, field, &value, -WHOLE_MAX, WHOLE_MAX);
	if (v->status == OW_VALUE_EXACT)
		below = above = 0;
	else if (!(code & VALUE_NO_LOW))
		code_distance(c, field, &below);
	if (v->status == OW_VALUE_ESTIMATED && !(code & VALUE_NO_HIGH))
		code_distance(c, field, &above);
	v->value = (double)value;
	v->low = code & VALUE_NO_LOW ? -INFINITY : v->value - below;
	v->high = code & VALUE_NO_HIGH ? INFINITY : v->value + above;
}

static void code_value(struct ow_coder *c, const char *field, struct ow_value *v)
{
	uint8_t code = c->does == OW_CODER_READS ? 0 : value_code(v);
	ow_coder_u8(c, field, &code, 0, VALUE_CODES - 1);
	bool ends = code & (VALUE_NO_LOW | VALUE_NO_HIGH), whole = code & VALUE_WHOLE;
	uint8_t status = code & 3;
	if (status > OW_VALUE_EXACT || (ends && !(whole && status == OW_VALUE_ESTIMATED)) ||
	    (whole && status == OW_VALUE_NONE))
		ow_coder_fail(c, field, "has an unknown code");
	if (c->failed)
		return;
	v->status = status;
	if (v->status == OW_VALUE_NONE) {
		code_reason(c, field, &v->reason);
		return;
	}
	if (whole) {
		code_whole(c, field, code, v);
	} else {
		ow_coder_double(c, field, &v->value);
		if (v->status == OW_VALUE_EXACT)
			v->low = v->high = v->value;
	}
	if (!whole && v->status == OW_VALUE_ESTIMATED) {
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
	ow_coder_varint(c, field->json, count, 0, may_be_unknown ? UINT64_MAX : most);
	if (!c->failed && *count > most && *count != OW_RESULT_NOT_COUNTED)
		ow_coder_fail(c, field->json, "is out of range");
}

/* Its bytes, after their number. */
static void code_histogram(struct ow_coder *c, const struct ow_field *field, struct ow_delay_histogram *histogram)
{
	uint8_t encoded[OW_DELAY_HISTOGRAM_BYTES];
	const uint8_t *bytes = encoded;
	uint32_t size = 0;
	if (c->does != OW_CODER_READS)
		size = (uint32_t)ow_delay_histogram_encode(histogram, encoded);
	ow_coder_varint32(c, field->json, &size, 0, OW_DELAY_HISTOGRAM_BYTES);
	ow_coder_bytes(c, field->json, &bytes, size);
	if (c->does == OW_CODER_READS && !c->failed && ow_delay_histogram_decode(bytes, size, histogram, NULL) < 0)
		ow_coder_fail(c, field->json, "is not a histogram");
}

static void code_field(struct ow_coder *c, const struct ow_field *field, struct ow_interval_result *r)
{
	void *member = ow_field_at(field, r);
	struct ow_value *value = member;
	switch (field->type) {
	case OW_FIELD_TEXT:
		ow_coder_text(c, field->json, member, field->size, true);
		break;
	case OW_FIELD_INTEGER:
		ow_coder_signed(c, field->json, member, INT64_MIN, INT64_MAX);
		break;
	case OW_FIELD_STATUS:
		OW_CODER_ENUM(c, field->json, r->status, OW_RESULT_MEASURED, OW_RESULT_UNKNOWN + 1);
		break;
	case OW_FIELD_COUNT:
		code_count(c, field, member);
		break;
	case OW_FIELD_SHIFT:
		ow_coder_varint32(c, field->json, member, 0, OW_MESSAGE_SHIFT_MAX);
		break;
	case OW_FIELD_NUMBER:
		ow_coder_varint32(c, field->json, member, 0, UINT32_MAX);
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
	case OW_FIELD_HISTOGRAM:
		code_histogram(c, field, member);
		break;
	default: /* a flag, which is a bit, or computed from others */
		break;
	}
}

static void code_floor(struct ow_coder *c, struct ow_clock_floor *floor)
{
	ow_coder_varint32(c, "samples of the floor", &floor->samples, 1, UINT32_MAX);
	ow_coder_varint32(c, "impossible delays", &floor->impossible, 0, UINT32_MAX);
	ow_coder_int(c, "time of the floor", &floor->at_ns, 0, INT64_MAX);
	ow_coder_signed(c, "floor", &floor->low_ns, INT64_MIN, INT64_MAX);
	ow_coder_signed(c, "drift", &floor->drift_ppb, -DRIFT_PPB_MAX, DRIFT_PPB_MAX);
}

/* -- the whole result ---------------------------------------------------------------------------------------------- */

/* The histogram has all packets with a delay; in a sum, those of the intervals that have one. */
static bool stands_for_packets(const struct ow_interval_result *r)
{
	if (r->intervals)
		return true;
	uint64_t known = r->matched + r->late - r->ambiguous;
	return r->delays.packets == (unsigned __int128)known << r->sample_shift;
}

/* For any status: packets are conserved, and no part is larger than the whole. */
static const char *wrong_counts(const struct ow_interval_result *r)
{
	if (r->sent != r->matched + r->late + r->lost + r->pending)
		return "sent is not matched + late + lost + pending";
	if (r->received != r->matched + r->late_received + r->extra)
		return "received is not matched + late + extra";
	if (r->final && r->pending && r->status == OW_RESULT_MEASURED)
		return "pending is not 0 though the result is final";
	if (r->duplicated > r->extra)
		return "duplicated is more than extra";
	if (r->ambiguous > r->matched + r->late)
		return "ambiguous is more than matched + late";
	if (r->intervals_partial > r->intervals || r->intervals_unknown > r->intervals - r->intervals_partial)
		return "more intervals are partial or unknown than there are";
	if (r->intervals && (r->status == OW_RESULT_UNKNOWN) != (r->intervals_unknown == r->intervals))
		return "status is not that of its intervals";
	/* Of a minute, some may have no histogram. */
	if (r->delays.packets && !r->intervals && !stands_for_packets(r))
		return "the histogram is not one of its packets";
	if (r->absent > r->unshared_sent)
		return "absent is more than unshared_sent";
	if (r->lost_whole_flows > r->lost)
		return "lost_whole_flows is more than lost";
	if (!(r->coverage >= 0 && r->coverage <= 1))
		return "coverage is not between 0 and 1";
	if (r->status != OW_RESULT_MEASURED && !r->cause[0])
		return "cause is empty";
	return NULL;
}

/* A value that is not there has the reason of the one before it that is not known either. */
static void set_default(const struct ow_field *field, enum ow_reason reason, struct ow_interval_result *r)
{
	void *member = ow_field_at(field, r);
	memset(member, 0, field->size);
	if (field->type == OW_FIELD_SHARE)
		*(double *)member = 1;
	else if (field->type == OW_FIELD_CLOCK)
		((struct ow_clock_state *)member)->error_ns = INT64_MAX;
	else if (field->type == OW_FIELD_VALUE || field->type == OW_FIELD_QUANTILES)
		for (size_t i = 0; i < field->size / sizeof(struct ow_value); i++)
			((struct ow_value *)member)[i].reason = reason;
	else
		ow_field_absent(field, r);
}

static bool same_value(const struct ow_value *a, const struct ow_value *b)
{
	if (a->status != b->status)
		return false;
	if (a->status == OW_VALUE_NONE)
		return a->reason == b->reason;
	return a->value == b->value && a->low == b->low && a->high == b->high && signbit(a->value) == signbit(b->value);
}

static bool same_field(const struct ow_field *field, const struct ow_interval_result *x,
                       const struct ow_interval_result *y)
{
	const void *a = ow_field_of(field, x), *b = ow_field_of(field, y);
	const struct ow_clock_state *p = a, *q = b;
	switch (field->type) {
	case OW_FIELD_TEXT:
		return strcmp(a, b) == 0;
	case OW_FIELD_CLOCK:
		return p->synchronised == q->synchronised && p->error_ns == q->error_ns;
	case OW_FIELD_VALUE:
	case OW_FIELD_QUANTILES:
		for (size_t i = 0; i < field->size / sizeof(struct ow_value); i++) {
			if (!same_value((const struct ow_value *)a + i, (const struct ow_value *)b + i))
				return false;
		}
		return true;
	default:
		return memcmp(a, b, field->size) == 0;
	}
}

static enum ow_reason last_reason(const struct ow_field *field, const struct ow_interval_result *r,
                                  enum ow_reason before)
{
	const struct ow_value *value = ow_field_of(field, r);
	bool has = field->type == OW_FIELD_VALUE || field->type == OW_FIELD_QUANTILES;
	for (size_t i = 0; has && i < field->size / sizeof *value; i++)
		before = value[i].status == OW_VALUE_NONE ? value[i].reason : before;
	return before;
}

void ow_message_choose(struct ow_message_result *m, const struct ow_interval_result *before)
{
	struct ow_interval_result usual = {0};
	enum ow_reason reason = OW_REASON_PEER_COULD_NOT_TELL;
	m->changes = before != NULL;
	m->present = (m->differences ? bit_of(WIRE_DIFFERENCES) : 0) | (m->floor.samples ? bit_of(WIRE_FLOOR) : 0);
	for (unsigned wire = 1; wire <= WIRE_MAX; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (!field)
			continue;
		set_default(field, reason, &usual);
		if (!same_field(field, &m->result, before && field->type != OW_FIELD_FLAG ? before : &usual))
			m->present |= bit_of(wire);
		reason = last_reason(field, &m->result, reason);
	}
}

static void set_defaults(struct ow_message_result *m)
{
	enum ow_reason reason = OW_REASON_PEER_COULD_NOT_TELL;
	for (unsigned wire = 1; wire <= WIRE_MAX; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (!field)
			continue;
		if (field->type == OW_FIELD_FLAG)
			*(bool *)ow_field_at(field, &m->result) = m->present & bit_of(wire);
		else if (!(m->present & bit_of(wire)))
			set_default(field, reason, &m->result);
		reason = last_reason(field, &m->result, reason);
	}
}

int ow_message_complete(const struct ow_message_result *m, const struct ow_interval_result *before,
                        struct ow_interval_result *ret_result, struct ow_error *err)
{
	for (unsigned wire = 1; wire <= WIRE_MAX; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (!field)
			continue;
		bool is_there = !m->changes || field->type == OW_FIELD_FLAG || m->present & bit_of(wire);
		memcpy(ow_field_at(field, ret_result), ow_field_of(field, is_there ? &m->result : before), field->size);
	}
	const char *wrong = wrong_counts(ret_result);
	return wrong ? ow_error_set(err, EPROTO, "message RESULT: %s", wrong) : 0;
}

void ow_code_result(struct ow_coder *c, struct ow_message_result *m)
{
	ow_coder_bool(c, "changes", &m->changes);
	ow_coder_varint32(c, "idle intervals", &m->idle, 0, m->changes ? 0 : OW_MESSAGE_IDLE_MAX - 1);
	ow_coder_signed(c, "shift of intervals", &m->cut_shift_ns, -OW_MESSAGE_CUT_MAX_NS, OW_MESSAGE_CUT_MAX_NS);
	ow_coder_varint(c, "fields", &m->present, 0, UINT64_MAX);
	for (unsigned wire = 1; wire <= WIRE_MAX && !c->failed; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (!(m->present & bit_of(wire)))
			continue;
		if (wire == WIRE_DIFFERENCES)
			ow_coder_varint(c, "differences", &m->differences, 0, OW_MESSAGE_PACKETS_MAX);
		else if (wire == WIRE_FLOOR)
			code_floor(c, &m->floor);
		else if (field)
			code_field(c, field, &m->result);
	}
	/* Fields of a newer version come after the last one that is known. */
	if (c->does == OW_CODER_READS && !c->failed) {
		c->at = c->size;
		set_defaults(m);
	}
	const char *wrong = c->failed || m->changes ? NULL : wrong_counts(&m->result);
	if (wrong)
		c->failed =
			ow_error_set(c->err, c->does == OW_CODER_READS ? EPROTO : EINVAL, "message RESULT: %s", wrong);
}
