/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes samples: sample_message.h. */
#include "discovery/sample_message.h"

#include "base/coder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIME_UNIT_NS   4
#define IN_TUNNEL      0x80
#define NS_PER_MS      1000000
#define TIME_MAX_NS    (INT64_C(1) << 62) /* as in struct ow_frame */
#define LEAST_OF_EPOCH (OW_SAMPLE_EPOCH_MIN_NS / NS_PER_MS)
#define MOST_OF_EPOCH  (OW_SAMPLE_EPOCH_MAX_NS / NS_PER_MS)

const char *const ow_vantage_kind_name[OW_VANTAGE_KINDS] = {"out", "in", "tap"};

void ow_vantage_sample_done(struct ow_vantage_sample *sample)
{
	free(sample->record);
	sample->record = NULL;
	sample->count = 0;
}

bool ow_vantage_sample_complete(const struct ow_vantage_sample *sample)
{
	int64_t from_ns = sample->epoch * sample->epoch_ns;
	return sample->start_ns <= from_ns && sample->end_ns >= from_ns + sample->epoch_ns;
}

/* A number that counts from `origin`. */
static void code_since(struct ow_coder *coder, const char *field, int64_t *value, int64_t origin, uint64_t most)
{
	uint64_t since = (uint64_t)(*value - origin);
	ow_coder_varint(coder, field, &since, 0, most);
	*value = origin + (int64_t)since;
}

static void code_times(struct ow_coder *coder, struct ow_vantage_sample *s)
{
	uint64_t ms = (uint64_t)s->epoch_ns / NS_PER_MS, epoch = (uint64_t)s->epoch;
	uint64_t error = (uint64_t)(s->clock_error_ns + 1);
	ow_coder_varint(coder, "length of the epoch", &ms, LEAST_OF_EPOCH, MOST_OF_EPOCH);
	ow_coder_varint(coder, "epoch", &epoch, 0, TIME_MAX_NS / NS_PER_MS / (ms ? ms : 1));
	if (coder->failed)
		return;
	s->epoch_ns = (int64_t)ms * NS_PER_MS;
	s->epoch = (int64_t)epoch;
	int64_t from_ns = s->epoch * s->epoch_ns;
	code_since(coder, "start", &s->start_ns, from_ns, (uint64_t)s->epoch_ns);
	code_since(coder, "end", &s->end_ns, from_ns, (uint64_t)s->epoch_ns);
	if (!coder->failed && s->end_ns < s->start_ns)
		ow_coder_fail(coder, "end", "is before the start");
	ow_coder_varint(coder, "clock error", &error, 0, INT64_MAX);
	s->clock_error_ns = (int64_t)error - 1;
}

static void code_header(struct ow_coder *coder, struct ow_vantage_sample *s)
{
	static const char magic[] = {'O', 'W', 'S'};
	for (size_t i = 0; i < sizeof magic; i++) {
		uint8_t byte = (uint8_t)magic[i];
		ow_coder_u8(coder, "first bytes", &byte, byte, byte);
	}
	uint8_t version = OW_SAMPLE_VERSION;
	uint64_t clock = s->clock_generation;
	ow_coder_u8(coder, "version", &version, OW_SAMPLE_VERSION, OW_SAMPLE_VERSION);
	OW_CODER_ENUM(coder, "kind", s->kind, 0, OW_VANTAGE_KINDS);
	ow_coder_u32(coder, "key generation", &s->key_generation, 0, UINT32_MAX);
	ow_coder_uint(coder, "clock generation", 8, &clock, 0, UINT64_MAX);
	s->clock_generation = clock;
	code_times(coder, s);
	ow_coder_varint(coder, "packets", &s->packets, 0, UINT64_MAX);
	ow_coder_varint(coder, "drops", &s->drops, 0, UINT64_MAX);
	ow_coder_varint32(coder, "records", &s->count, 0, OW_SAMPLE_RECORDS_MAX);
	ow_coder_uint(coder, "tau", 8, &s->tau, 0, UINT64_MAX);
	ow_coder_text(coder, "point", s->point, sizeof s->point, false);
	ow_coder_text(coder, "interface", s->interface, sizeof s->interface, false);
}

static void code_record(struct ow_coder *coder, const struct ow_vantage_sample *s, uint64_t *before, bool first,
                        struct ow_sample_record *r)
{
	int64_t from_ns = s->epoch * s->epoch_ns;
	uint64_t more = r->id - *before, units = (uint64_t)(r->time_ns - from_ns) / TIME_UNIT_NS;
	uint8_t copies = (uint8_t)(r->copies | (r->outer_ttl ? IN_TUNNEL : 0));
	/* Ids are different, and below tau. */
	ow_coder_varint(coder, "id", &more, first ? 0 : 1, UINT64_MAX);
	if (coder->failed)
		return;
	if (more > UINT64_MAX - *before || *before + more >= s->tau) {
		ow_coder_fail(coder, "id", "is not below tau");
		return;
	}
	r->id = *before += more;
	ow_coder_uint(coder, "time", 4, &units, 0, (uint64_t)(s->epoch_ns - 1) / TIME_UNIT_NS);
	if (coder->failed)
		return;
	r->time_ns = from_ns + (int64_t)units * TIME_UNIT_NS;
	ow_coder_u32(coder, "flow", &r->flow, 0, UINT32_MAX);
	ow_coder_u8(coder, "TTL", &r->ttl, 0, UINT8_MAX);
	ow_coder_u8(coder, "copies", &copies, 1, UINT8_MAX);
	r->copies = copies & OW_SAMPLE_COPIES_MAX;
	if (!coder->failed && r->copies == 0)
		ow_coder_fail(coder, "copies", "are none");
	if (copies & IN_TUNNEL)
		ow_coder_u8(coder, "outer TTL", &r->outer_ttl, 1, UINT8_MAX);
	else
		r->outer_ttl = 0;
}

static void code_records(struct ow_coder *coder, struct ow_vantage_sample *s)
{
	uint64_t before = 0;
	for (uint32_t i = 0; i < s->count && !coder->failed; i++)
		code_record(coder, s, &before, i == 0, &s->record[i]);
}

int ow_vantage_sample_encode(const struct ow_vantage_sample *sample, uint8_t **ret_bytes, size_t *ret_size,
                             struct ow_error *err)
{
	struct ow_vantage_sample copy = *sample;
	uint8_t *bytes = malloc(OW_SAMPLE_BYTES_MAX);
	/* The coder writes numbers back as they are read: times in units of 4 ns. */
	copy.record = malloc((sample->count + 1) * sizeof *copy.record);
	int r = bytes && copy.record ? 0 : ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0) {
		struct ow_coder coder = {.does = OW_CODER_WRITES,
		                         .to = bytes,
		                         .size = OW_SAMPLE_BYTES_MAX,
		                         .message = "sample",
		                         .err = err};
		if (sample->count)
			memcpy(copy.record, sample->record, sample->count * sizeof *copy.record);
		code_header(&coder, &copy);
		code_records(&coder, &copy);
		*ret_size = coder.at;
		r = coder.failed;
	}
	free(copy.record);
	if (r < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return r;
}

int ow_vantage_sample_decode(const uint8_t *bytes, size_t size, struct ow_vantage_sample *ret_sample,
                             struct ow_error *err)
{
	struct ow_vantage_sample sample = {.epoch_ns = 0};
	struct ow_coder coder = {.does = OW_CODER_READS, .from = bytes, .size = size, .message = "sample", .err = err};
	code_header(&coder, &sample);
	if (coder.failed)
		return coder.failed;
	/* At most OW_SAMPLE_RECORDS_MAX: 100 KB. */
	sample.record = calloc(sample.count + 1, sizeof *sample.record);
	if (!sample.record)
		return ow_error_set(err, ENOMEM, "out of memory");
	code_records(&coder, &sample);
	if (!coder.failed && coder.at != size)
		ow_coder_fail(&coder, "end", "is followed by more bytes");
	if (coder.failed)
		ow_vantage_sample_done(&sample);
	else
		*ret_sample = sample;
	return coder.failed;
}
