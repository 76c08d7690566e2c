/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectory samples of a source: sampler.h. */
#include "discovery/sampler.h"

#include "packet/scope_flow.h"
#include "packet/segments.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bytes from the IP header on that enter the id. All vantages must use the same, so it is not an option. It is beyond
 * the headers of transport and of what is encrypted (QUIC, RTP), where packets differ; and captures that are cut after
 * 96 bytes have as much.
 */
#define HASH_BYTES 72u
#define OPEN       2 /* epochs of a vantage: frames around the end of one are slightly out of order */
#define NO_EPOCH   INT64_MIN
/* An interface tells how time passes, every few milliseconds. If it skips as much, a clock was set, or the host slept. */
#define SKIP_NS INT64_C(1000000000)

/* -- the sample of an epoch --------------------------------------------------------------------------------------- */

int ow_bottom_init(struct ow_bottom *bottom, uint32_t k)
{
	*bottom = (struct ow_bottom){.k = k, .room = 2 * (k + 1), .below = UINT64_MAX};
	bottom->record = malloc(bottom->room * sizeof *bottom->record);
	return bottom->record ? 0 : -ENOMEM;
}

void ow_bottom_done(struct ow_bottom *bottom)
{
	free(bottom->record);
	bottom->record = NULL;
}

void ow_bottom_reset(struct ow_bottom *bottom)
{
	bottom->count = 0;
	bottom->packets = 0;
	bottom->below = UINT64_MAX;
}

static int by_id(const void *a, const void *b)
{
	const struct ow_sample_record *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Sorts records, and joins those of one id. Returns how many are left. */
static uint32_t join_copies(struct ow_sample_record *record, uint32_t count)
{
	uint32_t kept = 0;
	qsort(record, count, sizeof *record, by_id);
	for (uint32_t i = 0; i < count; i++) {
		if (kept == 0 || record[kept - 1].id != record[i].id) {
			record[kept++] = record[i];
			continue;
		}
		unsigned copies = record[kept - 1].copies + (unsigned)record[i].copies;
		record[kept - 1].copies = (uint8_t)(copies < OW_SAMPLE_COPIES_MAX ? copies : OW_SAMPLE_COPIES_MAX);
	}
	return kept;
}

void ow_bottom_tidy(struct ow_bottom *bottom)
{
	bottom->count = join_copies(bottom->record, bottom->count);
	if (bottom->count > bottom->k) {
		bottom->count = bottom->k;
		bottom->below = bottom->record[bottom->k].id;
	}
}

int ow_bottom_take(struct ow_bottom *bottom, struct ow_vantage_sample *sample)
{
	struct ow_sample_record *record = malloc((bottom->k + 1) * sizeof *record);
	if (!record)
		return -ENOMEM;
	ow_bottom_tidy(bottom);
	memcpy(record, bottom->record, bottom->count * sizeof *record);
	sample->record = record;
	sample->count = bottom->count;
	sample->packets = bottom->packets;
	sample->tau = bottom->below;
	return 0;
}

int ow_vantage_sample_merge(struct ow_vantage_sample *sample, const struct ow_vantage_sample *more, uint32_t k)
{
	uint32_t count = sample->count + more->count;
	struct ow_sample_record *record = malloc((count + 1) * sizeof *record);
	if (!record)
		return -ENOMEM;
	if (sample->count)
		memcpy(record, sample->record, sample->count * sizeof *record);
	if (more->count)
		memcpy(record + sample->count, more->record, more->count * sizeof *record);
	free(sample->record);
	sample->record = record;
	sample->count = join_copies(record, count);
	sample->tau = more->tau < sample->tau ? more->tau : sample->tau;
	if (sample->count > k && record[k].id < sample->tau)
		sample->tau = record[k].id;
	while (sample->count && record[sample->count - 1].id >= sample->tau)
		sample->count--;
	sample->packets += more->packets;
	sample->drops += more->drops;
	sample->start_ns = more->start_ns > sample->start_ns ? more->start_ns : sample->start_ns;
	sample->end_ns = more->end_ns < sample->end_ns ? more->end_ns : sample->end_ns;
	return 0;
}

/* -- a source ----------------------------------------------------------------------------------------------------- */

struct open_epoch {
	int64_t epoch; /* NO_EPOCH: free */
	struct ow_bottom bottom;
};

struct vantage {
	enum ow_vantage_kind kind;
	struct open_epoch open[OPEN];
	unsigned now; /* the one that was used last */
};

struct ow_sampler {
	struct ow_sampler_options options;
	unsigned source, vantages;
	struct vantage vantage[2];
	struct ow_identity identity;
	struct ow_scope_hash flow_hash;
	uint64_t clock_generation;
	int64_t since_ns;        /* frames are seen since then; INT64_MAX: not begun */
	int64_t next;            /* the first epoch that was not finished */
	int64_t last_ns;         /* the latest time that was seen */
	int64_t skipped;         /* up to this epoch, time was skipped */
	uint64_t dropped, drops; /* until the last pass; those of epochs that are not finished */
	struct ow_segments segments;
};

static int vantage_init(struct vantage *vantage, enum ow_vantage_kind kind, uint32_t k)
{
	int r = 0;
	vantage->kind = kind;
	for (unsigned i = 0; i < OPEN && r == 0; i++) {
		vantage->open[i].epoch = NO_EPOCH;
		r = ow_bottom_init(&vantage->open[i].bottom, k);
	}
	return r;
}

int ow_sampler_create(const struct ow_sampler_options *options, unsigned source, bool directed,
                      struct ow_sampler **ret_sampler, struct ow_error *err)
{
	struct ow_sampler *sampler = calloc(1, sizeof *sampler);
	int r = sampler ? 0 : -ENOMEM;
	if (r == 0) {
		sampler->options = *options;
		sampler->source = source;
		sampler->since_ns = INT64_MAX;
		sampler->vantages = directed ? 2 : 1;
		sampler->identity = (struct ow_identity){
			.level = OW_LEVEL_NAT, .inner = true, .tcp_headers = true, .hash_limit = HASH_BYTES};
		ow_identity_seed(&sampler->identity, options->key);
		ow_scope_hash_seed(&sampler->flow_hash, options->key);
		r = vantage_init(&sampler->vantage[0], directed ? OW_VANTAGE_OUT : OW_VANTAGE_TAP, options->records);
		if (r == 0 && directed)
			r = vantage_init(&sampler->vantage[1], OW_VANTAGE_IN, options->records);
	}
	if (r < 0) {
		ow_sampler_free(sampler);
		return ow_error_set(err, ENOMEM, "not enough memory for samples");
	}
	*ret_sampler = sampler;
	return 0;
}

void ow_sampler_free(struct ow_sampler *sampler)
{
	for (unsigned i = 0; sampler && i < sampler->vantages; i++) {
		for (unsigned k = 0; k < OPEN; k++)
			ow_bottom_done(&sampler->vantage[i].open[k].bottom);
	}
	free(sampler);
}

void ow_sampler_clock(struct ow_sampler *sampler, uint64_t generation)
{
	if (sampler->clock_generation == generation)
		return;
	sampler->clock_generation = generation;
	sampler->since_ns = INT64_MAX;
	for (unsigned i = 0; i < sampler->vantages; i++) {
		for (unsigned k = 0; k < OPEN; k++)
			sampler->vantage[i].open[k].epoch = NO_EPOCH;
	}
}

/* Reports an epoch of a vantage: what is open of it, or that nothing passed. */
static void report(struct ow_sampler *sampler, struct vantage *vantage, int64_t epoch, int64_t end_ns)
{
	const struct ow_sampler_options *options = &sampler->options;
	int64_t from_ns = epoch * options->epoch_ns, until_ns = from_ns + options->epoch_ns;
	struct ow_vantage_sample sample = {.kind = vantage->kind,
	                                   .key_generation = options->key_generation,
	                                   .clock_generation = sampler->clock_generation,
	                                   .epoch = epoch,
	                                   .epoch_ns = options->epoch_ns,
	                                   .start_ns = sampler->since_ns > from_ns ? sampler->since_ns : from_ns,
	                                   .end_ns = end_ns < until_ns ? end_ns : until_ns,
	                                   .clock_error_ns = -1,
	                                   .drops = sampler->drops,
	                                   .tau = UINT64_MAX};
	int r = 0;
	if (sample.end_ns < sample.start_ns || epoch <= sampler->skipped)
		sample.end_ns = sample.start_ns;
	for (unsigned k = 0; k < OPEN; k++) {
		if (vantage->open[k].epoch != epoch)
			continue;
		r = ow_bottom_take(&vantage->open[k].bottom, &sample);
		vantage->open[k].epoch = NO_EPOCH;
		break;
	}
	/* Out of memory: nobody gets the sample, as if the message were lost. */
	if (r == 0)
		options->on_sample(options->arg, sampler->source, &sample);
	ow_vantage_sample_done(&sample);
}

/* Finishes the epochs before this one. */
static void finish_until(struct ow_sampler *sampler, int64_t epoch)
{
	/* Epochs in which nothing was read, such as those of a hole in a capture, are not reported one by one, and those
	 * at its ends are not complete. */
	if (epoch - sampler->next > OPEN + 1) {
		sampler->skipped = epoch - 1;
		for (int64_t e = sampler->next; e < sampler->next + OPEN; e++) {
			for (unsigned i = 0; i < sampler->vantages; i++)
				report(sampler, &sampler->vantage[i], e, INT64_MAX);
			sampler->drops = 0;
		}
		sampler->next = epoch - 1;
	}
	for (; sampler->next < epoch; sampler->next++) {
		for (unsigned i = 0; i < sampler->vantages; i++)
			report(sampler, &sampler->vantage[i], sampler->next, INT64_MAX);
		sampler->drops = 0;
	}
}

/* The open epoch for a time; NULL: it was finished before. */
static __attribute__((noinline)) struct open_epoch *turn(struct ow_sampler *sampler, struct vantage *vantage,
                                                         int64_t epoch)
{
	if (epoch < sampler->next) {
		sampler->drops++;
		return NULL;
	}
	/* Only files are read so far beyond the time that has passed. */
	if (epoch >= sampler->next + OPEN)
		finish_until(sampler, epoch - OPEN + 1);
	unsigned at = (unsigned)(epoch % OPEN);
	struct open_epoch *open = &vantage->open[at];
	vantage->now = at;
	if (open->epoch != epoch) {
		ow_bottom_reset(&open->bottom);
		open->epoch = epoch;
	}
	return open;
}

static struct vantage *vantage_of(struct ow_sampler *sampler, enum ow_heading heading)
{
	return &sampler->vantage[sampler->vantages == 2 && heading == OW_HEADING_IN];
}

/* TTL of the outermost packet of a tunnel; 0: not in a tunnel. */
static uint8_t outer_ttl_of(const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (ow_packet_decode(frame, false, &packet) != OW_DECODE_IP || !packet.has_tunnel)
		return 0;
	return packet.version == 4 ? packet.ip[8] : packet.ip[7];
}

static __attribute__((noinline)) void keep(struct ow_sampler *sampler, struct ow_bottom *bottom,
                                           const struct ow_iface_frame *frame, uint64_t id)
{
	const struct ow_segments *segments = &sampler->segments;
	struct ow_sample_record record = {.id = id,
	                                  .time_ns = frame->frame.time_ns,
	                                  .flow = (uint32_t)ow_scope_hash_flow(&sampler->flow_hash, &segments->flow),
	                                  .ttl = segments->ttl,
	                                  .outer_ttl = outer_ttl_of(&frame->frame),
	                                  .copies = 1};
	ow_bottom_add(bottom, &record);
}

/* To several hosts, by multicast or broadcast. Such a packet takes several ways at once: the points that it passed are not
 * one row. Only the frame tells a broadcast to a network. */
static inline bool is_to_many(const struct ow_frame *frame, const struct ow_flow_key *flow)
{
	static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};
	return (flow->version == 4 && (flow->dst[0] & 0xf0) == 0xe0) || (flow->version == 6 && flow->dst[0] == 0xff) ||
	       (flow->version == 4 && memcmp(flow->dst, all, 4) == 0) ||
	       (frame->linktype == OW_LINKTYPE_ETHERNET && frame->caplen >= 6 && memcmp(frame->data, all, 6) == 0);
}

static inline void advance(struct ow_sampler *sampler, int64_t time_ns)
{
	if (time_ns <= sampler->last_ns)
		return;
	if (time_ns - sampler->last_ns > SKIP_NS && sampler->vantages == 2)
		sampler->skipped = time_ns / sampler->options.epoch_ns;
	sampler->last_ns = time_ns;
}

static inline void sample_frame(struct ow_sampler *sampler, const struct ow_iface_frame *frame)
{
	struct vantage *vantage = vantage_of(sampler, frame->heading);
	struct open_epoch *open = &vantage->open[vantage->now];
	struct ow_segments *segments = &sampler->segments;
	int64_t epoch = frame->frame.time_ns / sampler->options.epoch_ns;
	if (frame->frame.time_ns < 0)
		return;
	advance(sampler, frame->frame.time_ns);
	if (epoch != open->epoch && !(open = turn(sampler, vantage, epoch)))
		return;
	/* A superframe that cannot be cut has an id that no packet on the wire has. The sample lacks its packets, and
	 * those that are truncated. */
	int r = ow_segments_of_frame(&sampler->identity, frame, segments);
	if (r < 0 || segments->uncut) {
		sampler->drops += r != -ENOMSG;
		return;
	}
	if (is_to_many(&frame->frame, &segments->flow))
		return;
	open->bottom.packets += segments->count;
	for (unsigned i = 0; i < segments->count; i++) {
		if (ow_bottom_wants(&open->bottom, segments->id[i]))
			keep(sampler, &open->bottom, frame, segments->id[i]);
	}
}

/* The first frames: an epoch that began before them is not complete. */
static void begin(struct ow_sampler *sampler, int64_t time_ns)
{
	sampler->since_ns = time_ns > 0 ? time_ns : 0;
	sampler->last_ns = sampler->since_ns;
	sampler->next = sampler->since_ns / sampler->options.epoch_ns;
	sampler->skipped = sampler->next - 1;
}

void ow_sampler_frames(struct ow_sampler *sampler, const struct ow_iface_frame *frames, size_t count)
{
	if (count && sampler->since_ns == INT64_MAX)
		begin(sampler, frames[0].frame.time_ns);
	for (size_t i = 0; i < count; i++)
		sample_frame(sampler, &frames[i]);
}

void ow_sampler_pass(struct ow_sampler *sampler, int64_t passed_ns, uint64_t dropped)
{
	sampler->drops += dropped - sampler->dropped;
	sampler->dropped = dropped;
	if (sampler->since_ns == INT64_MAX) {
		/* Nothing was seen yet, but this time has passed without packets. */
		if (passed_ns != INT64_MAX && passed_ns > 0)
			begin(sampler, passed_ns);
		return;
	}
	if (passed_ns != INT64_MAX) {
		advance(sampler, passed_ns);
		int64_t epoch = passed_ns / sampler->options.epoch_ns;
		if (passed_ns > 0 && epoch > sampler->next)
			finish_until(sampler, epoch);
		return;
	}
	/* The end: what is open is not complete, because nobody knows whether there was more. */
	for (int64_t epoch = sampler->next; epoch < sampler->next + OPEN; epoch++) {
		for (unsigned i = 0; i < sampler->vantages; i++) {
			struct vantage *vantage = &sampler->vantage[i];
			if (vantage->open[epoch % OPEN].epoch == epoch)
				report(sampler, vantage, epoch, epoch * sampler->options.epoch_ns);
		}
	}
	sampler->next += OPEN;
	sampler->since_ns = INT64_MAX;
}
