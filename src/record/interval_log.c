/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open intervals are a window of open_max intervals, from the next one to be closed on. A chunk is copied, reduced
 * to the sample of its interval, renamed and appended. These are a few passes over some 64 KB, which fit into the
 * cache.
 *
 * Chunks of several threads overlap slightly in time. Each is merged into the end of its interval's packets, so that
 * these are in order of arrival. If they overlap too much (files that are replayed at full speed), the packets are
 * sorted when the interval is closed.
 */
#include "record/interval_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OW_SHIFT_MAX 64 /* no packet is left */
/* Sightings that may be moved to merge a chunk: 1 MB, some 100 us. */
#define OW_INTERVAL_LOG_OVERLAP 65536u
/*
 * The most empty intervals in a row. If more intervals pass without a packet, the clock has jumped (or the log was not
 * read for that long), and they are omitted.
 */
#define OW_INTERVAL_LOG_EMPTY_MAX 1024
#define OW_INTERVAL_LOG_OPEN_MAX  65536u
/* An interval has one flow for this many packets, at most: its flows take less memory than its packets. */
#define OW_INTERVAL_LOG_FLOW_SHARE 8
#define OW_INTERVAL_LOG_BLIND_NS   INT64_C(60000000000) /* a reader is not expected to be delayed for longer */

struct open_interval {
	bool used;
	bool disordered; /* to be sorted when the interval is closed */
	struct ow_interval_packets packets;
	uint64_t frames; /* that they came in */
	size_t room;     /* of packets.sighting */
	struct ow_copies copies;
};

struct ow_interval_log {
	struct ow_interval_log_options options;
	struct ow_interval_cuts cuts;
	struct open_interval *open; /* interval i at i % open_max, for first .. first + open_max - 1 */
	int64_t first;              /* the next interval to be closed */
	size_t used;                /* open intervals */
	uint64_t misplaced;
	double per_frame;                              /* packets in a frame, of late */
	struct ow_drops drops;                         /* in intervals that are not closed yet */
	bool blind;                                    /* there is an outage in some of them: */
	struct ow_outage outage;                       /* this one */
	char cause[OW_OUTAGE_CAUSE];                   /* its last reported cause */
	size_t expected;                               /* sightings of an interval, by the last one */
	struct ow_copies spare;                        /* of the last interval; clearing costs less than new memory */
	struct ow_sighting sightings[OW_CHUNK_STAMPS]; /* one chunk of sightings to be added */
	uint32_t number[OW_CHUNK_STAMPS + 1];          /* of the chunk's flows in its interval */
};

int ow_interval_log_create(const struct ow_interval_log_options *options, struct ow_interval_log **ret_log)
{
	if (options->length_ns <= 0 || options->open_max == 0 || options->open_max > OW_INTERVAL_LOG_OPEN_MAX)
		return -EINVAL;
	struct ow_interval_log *log = calloc(1, sizeof *log);
	if (!log)
		return -ENOMEM;
	log->options = *options;
	log->cuts = (struct ow_interval_cuts){options->t0_ns, options->length_ns, 0, 0, 0};
	log->open = calloc(options->open_max, sizeof *log->open);
	if (!log->open) {
		free(log);
		return -ENOMEM;
	}
	*ret_log = log;
	return 0;
}

void ow_interval_log_set_max(struct ow_interval_log *log, size_t sightings_max)
{
	log->options.sightings_max = sightings_max;
}

void ow_interval_log_set_cuts(struct ow_interval_log *log, const struct ow_interval_cuts *cuts)
{
	log->cuts = *cuts;
}

static void close_interval(struct open_interval *open)
{
	free(open->packets.sighting);
	ow_lane_flows_done(&open->packets.flows);
	ow_copies_done(&open->copies);
	*open = (struct open_interval){0};
}

void ow_interval_log_free(struct ow_interval_log *log)
{
	if (!log)
		return;
	for (size_t i = 0; i < log->options.open_max; i++)
		close_interval(&log->open[i]);
	ow_copies_done(&log->spare);
	free(log->open);
	free(log);
}

void ow_interval_packets_free(struct ow_interval_packets *packets)
{
	if (!packets)
		return;
	free(packets->sighting);
	free(packets->copy);
	ow_lane_flows_done(&packets->flows);
	free(packets);
}

static struct open_interval *slot_of(struct ow_interval_log *log, int64_t interval)
{
	return &log->open[(uint64_t)interval % log->options.open_max];
}

static bool within(const struct ow_interval_log *log, int64_t interval)
{
	return interval >= log->first && (uint64_t)(interval - log->first) < log->options.open_max;
}

/* The entry of an interval within the window. */
static struct open_interval *interval_at(struct ow_interval_log *log, int64_t interval)
{
	struct open_interval *open = slot_of(log, interval);
	if (!open->used) {
		open->used = true;
		open->copies = log->spare;
		ow_copies_init(&log->spare);
		ow_copies_reset(&open->copies);
		log->used++;
	}
	return open;
}

/*
 * -- sampling -------------------------------------------------------------------------------------------------------
 */

struct sample {
	const struct ow_identity *identity;
	unsigned shift;
};

static bool chosen(const struct sample *sample, uint64_t base_id)
{
	return ow_sampled(ow_sample_rank(sample->identity, base_id), sample->shift);
}

static bool keeps(const void *arg, uint64_t base_id)
{
	return chosen(arg, base_id);
}

/* Copies the packets of the sample, which are not renamed yet; `from` and `to` may be the same. */
static size_t choose(const struct sample *sample, const struct ow_sighting *from, size_t count, struct ow_sighting *to)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		to[kept] = from[i];
		kept += chosen(sample, from[i].id);
	}
	return kept;
}

#define OW_SIEVE_WORDS 1024u

static unsigned sieve_bit(uint64_t id)
{
	return id >> 48; /* one of 64 * OW_SIEVE_WORDS */
}

/*
 * Reduces renamed packets to the sample. A copy follows the packet that it is a copy of; the copies must be sorted. A
 * small filter avoids the search among them for most packets.
 */
static size_t choose_named(const struct sample *sample, struct ow_sighting *sighting, size_t count,
                           const struct ow_copy *copy, size_t copies)
{
	uint64_t sieve[OW_SIEVE_WORDS] = {0};
	for (size_t i = 0; i < copies; i++)
		sieve[sieve_bit(copy[i].id) / 64] |= UINT64_C(1) << sieve_bit(copy[i].id) % 64;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t base_id = sighting[i].id;
		if (sieve[sieve_bit(base_id) / 64] >> sieve_bit(base_id) % 64 & 1) {
			const struct ow_copy *found = ow_copies_find(copy, copies, base_id);
			base_id = found ? found->base_id : base_id;
		}
		sighting[kept] = sighting[i];
		kept += chosen(sample, base_id);
	}
	return kept;
}

/* Reduces an open interval to the sample of a larger shift. */
static void thin(const struct ow_interval_log *log, struct open_interval *open, unsigned shift)
{
	struct sample sample = {&log->options.identity, shift};
	ow_copies_sort(open->copies.copy, open->copies.copies);
	open->packets.count = choose_named(&sample, open->packets.sighting, open->packets.count, open->copies.copy,
	                                   open->copies.copies);
	ow_copies_keep(&open->copies, keeps, &sample);
	open->packets.sample_shift = shift;
}

void ow_interval_packets_resample(struct ow_interval_packets *packets, const struct ow_identity *identity,
                                  unsigned sample_shift)
{
	if (sample_shift <= packets->sample_shift)
		return;
	struct sample sample = {identity, sample_shift < OW_SHIFT_MAX ? sample_shift : OW_SHIFT_MAX};
	packets->count = choose_named(&sample, packets->sighting, packets->count, packets->copy, packets->copies);
	size_t kept = 0;
	for (size_t i = 0; i < packets->copies; i++) {
		if (chosen(&sample, packets->copy[i].base_id))
			packets->copy[kept++] = packets->copy[i];
	}
	packets->copies = kept;
	packets->sample_shift = sample.shift;
}

const struct ow_copy *ow_interval_packets_copy(const struct ow_interval_packets *packets, uint64_t id)
{
	return ow_copies_find(packets->copy, packets->copies, id);
}

int ow_interval_packets_join(struct ow_interval_packets *packets, const struct ow_sighting *earlier, size_t count)
{
	struct ow_copies copies;
	size_t all = packets->count + count;
	struct ow_sighting *sighting = malloc((all + 1) * sizeof *sighting);
	ow_copies_init(&copies);
	if (!sighting || ow_copies_reserve(&copies, all) < 0) {
		free(sighting);
		ow_copies_done(&copies);
		return -ENOMEM;
	}
	memcpy(sighting, earlier, count * sizeof *sighting);
	for (size_t i = 0; i < packets->count; i++) {
		const struct ow_copy *copy =
			packets->copies ? ow_interval_packets_copy(packets, packets->sighting[i].id) : NULL;
		sighting[count + i] = packets->sighting[i];
		if (copy)
			sighting[count + i].id = copy->base_id;
	}
	ow_copies_name(&copies, sighting, all);
	free(packets->sighting);
	free(packets->copy);
	packets->sighting = sighting;
	packets->count = all;
	packets->copies = copies.copies;
	packets->copy = copies.copy;
	copies.copy = NULL;
	ow_copies_sort(packets->copy, packets->copies);
	ow_copies_done(&copies);
	return 0;
}

/* Entries of copies that were cut stay; they are harmless. */
void ow_interval_packets_cut(struct ow_interval_packets *packets, int64_t end_ns)
{
	size_t kept = 0, before = packets->count;
	for (size_t i = 0; i < packets->count; i++) {
		if (packets->sighting[i].time_ns < end_ns - packets->start_ns)
			packets->sighting[kept++] = packets->sighting[i];
	}
	packets->count = kept;
	packets->length_ns = end_ns - packets->start_ns;
	if (before) {
		double share = (double)kept / (double)before;
		packets->total_bytes = (uint64_t)(share * (double)packets->total_bytes);
		packets->total_packets = (uint64_t)(share * (double)packets->total_packets + 0.5);
	}
}

struct ow_interval_packets *ow_interval_packets_rest(const struct ow_interval_packets *packets, int64_t from_ns)
{
	struct ow_interval_packets *rest = malloc(sizeof *rest);
	if (!rest)
		return NULL;
	*rest = *packets;
	if (ow_lane_flows_copy(&packets->flows, &rest->flows) < 0) {
		free(rest);
		return NULL;
	}
	rest->interval++;
	rest->start_ns = from_ns;
	rest->length_ns = packets->start_ns + packets->length_ns - from_ns;
	rest->sighting = malloc((packets->count + 1) * sizeof *rest->sighting);
	rest->copy = malloc((packets->copies + 1) * sizeof *rest->copy);
	rest->count = 0;
	if (!rest->sighting || !rest->copy) {
		ow_interval_packets_free(rest);
		return NULL;
	}
	if (packets->copies)
		memcpy(rest->copy, packets->copy, packets->copies * sizeof *rest->copy);
	int64_t shift_ns = from_ns - packets->start_ns;
	for (size_t i = 0; i < packets->count; i++) {
		if (packets->sighting[i].time_ns >= shift_ns)
			rest->sighting[rest->count++] =
				(struct ow_sighting){packets->sighting[i].id, packets->sighting[i].time_ns - shift_ns,
			                             packets->sighting[i].flow};
	}
	return rest;
}

/*
 * -- adding ---------------------------------------------------------------------------------------------------------
 */

/* 0; -ENOSPC: the interval has its maximum of packets; -ENOMEM. */
static int make_room(struct ow_interval_log *log, struct open_interval *open, size_t count)
{
	size_t want = open->packets.count + count, max = log->options.sightings_max;
	if (want > max)
		return -ENOSPC;
	if (open->packets.count == 0)
		ow_copies_expect(&open->copies, log->expected);
	if (want > open->room) {
		size_t room = open->room ? open->room * 2 : log->expected;
		room = room < want ? want : room > max ? max : room;
		struct ow_sighting *sighting = realloc(open->packets.sighting, room * sizeof *sighting);
		if (!sighting)
			return -ENOMEM;
		open->packets.sighting = sighting;
		open->room = room;
	}
	return ow_copies_reserve(&open->copies, count);
}

/* Merges into the end of the interval's packets by time; both keep their own order. There is room. */
static void merge(struct open_interval *open, const struct ow_sighting *sightings, size_t count)
{
	struct ow_sighting *all = open->packets.sighting;
	size_t a = open->packets.count, to = a + count, b = count;
	size_t least = a > OW_INTERVAL_LOG_OVERLAP ? a - OW_INTERVAL_LOG_OVERLAP : 0;
	open->packets.count = to;
	if (least > 0 && all[least - 1].time_ns > sightings[0].time_ns) {
		open->disordered = true;
		least = a;
	}
	while (a > least && b > 0 && all[a - 1].time_ns > sightings[0].time_ns)
		all[--to] = all[a - 1].time_ns > sightings[b - 1].time_ns ? all[--a] : sightings[--b];
	memcpy(all + a, sightings, b * sizeof *sightings);
}

/*
 * Adds the first `count` of log->sightings, which are in the sample of the interval. Halves the sample until there is
 * room.
 */
static int add_sightings(struct ow_interval_log *log, struct open_interval *open, size_t count)
{
	int r, failed = 0;
	while (count > 0 && (r = make_room(log, open, count)) < 0) {
		if (r == -ENOMEM)
			failed = r;
		if (open->packets.sample_shift == OW_SHIFT_MAX)
			return failed;
		thin(log, open, open->packets.sample_shift + 1);
		struct sample sample = {&log->options.identity, open->packets.sample_shift};
		count = choose(&sample, log->sightings, count, log->sightings);
	}
	if (count > 0) {
		ow_copies_name(&open->copies, log->sightings, count);
		merge(open, log->sightings, count);
	}
	return failed;
}

/* Adds the flows of a chunk to its interval. A flow that finds no place has number 0. -ENOMEM: not for want of a place. */
static int number_flows(struct ow_interval_log *log, struct open_interval *open, const struct ow_lane_flows *flows)
{
	uint32_t max = (uint32_t)(log->options.sightings_max / OW_INTERVAL_LOG_FLOW_SHARE);
	int r = 0;
	for (uint32_t i = 0; i < flows->count && i < OW_CHUNK_STAMPS; i++) {
		const struct ow_scope_flow *flow = &flows->flow[i];
		uint32_t number = ow_lane_flows_find(&open->packets.flows, flow->flow);
		if (!number)
			number = ow_lane_flows_add(&open->packets.flows, flow, max + 1);
		if (number)
			open->packets.flows.flow[number - 1].ttl = flow->ttl;
		log->number[i + 1] = number;
		r = number || open->packets.flows.count > max ? r : -ENOMEM;
	}
	return r;
}

/* The interval of the chunk must not look complete. */
static void lose(struct ow_interval_log *log, const struct ow_chunk *chunk)
{
	struct ow_drops drops = {chunk->packets, ow_cuts_start(&log->cuts, chunk->interval),
	                         ow_cuts_start(&log->cuts, chunk->interval + 1) - 1};
	ow_interval_log_drops(log, &drops);
}

int ow_interval_log_add(struct ow_interval_log *log, const struct ow_chunk *chunk)
{
	if (!within(log, chunk->interval)) {
		log->misplaced += chunk->packets;
		lose(log, chunk);
		return 0;
	}
	struct open_interval *open = interval_at(log, chunk->interval);
	open->packets.total_packets += chunk->packets;
	open->packets.total_bytes += chunk->bytes;
	open->frames += chunk->frames;
	open->packets.unreadable += chunk->unreadable;
	open->packets.session |= chunk->session;
	if (chunk->sample_shift > open->packets.sample_shift)
		thin(log, open, chunk->sample_shift < OW_SHIFT_MAX ? chunk->sample_shift : OW_SHIFT_MAX);
	int failed = number_flows(log, open, &chunk->flows);
	/* Packets of flows without a number look as if the other point did not see them. */
	if (failed < 0)
		lose(log, chunk);
	for (size_t from = 0, step; from < chunk->count; from += step) {
		struct sample sample = {&log->options.identity, open->packets.sample_shift};
		step = chunk->count - from < OW_CHUNK_STAMPS ? chunk->count - from : OW_CHUNK_STAMPS;
		size_t count = choose(&sample, chunk->sighting + from, step, log->sightings);
		for (size_t i = 0; i < count && chunk->flows.count; i++)
			log->sightings[i].flow = log->number[log->sightings[i].flow];
		int r = add_sightings(log, open, count);
		failed = r < 0 ? r : failed;
	}
	return failed;
}

/* The drops may be later than all open intervals: drops happen when the reader is late. */
void ow_interval_log_drops(struct ow_interval_log *log, const struct ow_drops *drops)
{
	struct ow_drops more = *drops, *kept = &log->drops;
	int64_t start_ns = ow_cuts_start(&log->cuts, log->first);
	if (more.frames == 0 || more.until_ns < ow_cuts_start(&log->cuts, 0))
		return;
	/* Better an interval near it than none. */
	more.from_ns = more.from_ns < start_ns ? start_ns : more.from_ns;
	more.until_ns = more.until_ns < more.from_ns ? more.from_ns : more.until_ns;
	if (kept->frames) {
		more.frames += kept->frames;
		more.from_ns = kept->from_ns < more.from_ns ? kept->from_ns : more.from_ns;
		more.until_ns = kept->until_ns > more.until_ns ? kept->until_ns : more.until_ns;
	}
	/* A longer time occurs only if a clock jumps. */
	if (more.until_ns - more.from_ns > OW_INTERVAL_LOG_BLIND_NS)
		more.until_ns = more.from_ns + OW_INTERVAL_LOG_BLIND_NS;
	*kept = more;
}

/* Drops of the interval that is closed. */
static uint64_t drops_until(struct ow_interval_log *log, int64_t end_ns)
{
	struct ow_drops *drops = &log->drops;
	uint64_t share = drops->frames;
	if (share == 0 || drops->from_ns >= end_ns)
		return 0;
	if (drops->until_ns < end_ns) {
		drops->frames = 0;
		return share;
	}
	double part = (double)(end_ns - drops->from_ns) / (double)(drops->until_ns - drops->from_ns + 1);
	share = (uint64_t)(part * (double)share + 0.5);
	/* At least one, here and in the following intervals. */
	share = share ? share : 1;
	drops->frames = drops->frames > share ? drops->frames - share : 1;
	drops->from_ns = end_ns;
	return share;
}

void ow_interval_log_outage(struct ow_interval_log *log, const struct ow_outage *outage)
{
	struct ow_outage *kept = &log->outage;
	int64_t from_ns = outage->from_ns, until_ns = outage->until_ns;
	if (log->blind) {
		from_ns = kept->from_ns < from_ns ? kept->from_ns : from_ns;
		until_ns = kept->until_ns > until_ns ? kept->until_ns : until_ns;
	}
	/* An interval with several causes has the first; the next interval has the last one. */
	if (!log->blind)
		*kept = *outage;
	kept->from_ns = from_ns;
	kept->until_ns = until_ns;
	memcpy(log->cause, outage->cause, sizeof log->cause);
	log->blind = true;
}

/* Marks the interval that is closed. */
static void mark_blind(struct ow_interval_log *log, struct ow_interval_packets *packets)
{
	struct ow_outage *outage = &log->outage;
	int64_t start_ns = packets->start_ns + packets->shift_ns;
	int64_t end_ns = packets->start_ns + packets->length_ns + packets->end_shift_ns;
	if (!log->blind)
		return;
	if (outage->from_ns < end_ns && outage->until_ns > start_ns)
		memcpy(packets->blind, outage->cause, sizeof packets->blind);
	if (end_ns > outage->from_ns)
		memcpy(outage->cause, log->cause, sizeof outage->cause);
	log->blind = outage->until_ns > end_ns;
}

uint64_t ow_interval_log_misplaced(const struct ow_interval_log *log)
{
	return log->misplaced;
}

/*
 * -- closing --------------------------------------------------------------------------------------------------------
 */

/* Merges neighbouring runs of length `width` from a into b. */
static void merge_runs(const struct ow_sighting *a, struct ow_sighting *b, size_t count, size_t width)
{
	for (size_t from = 0; from < count; from += 2 * width) {
		size_t middle = count - from < width ? count : from + width;
		size_t end = count - from < 2 * width ? count : from + 2 * width;
		for (size_t i = from, j = middle, to = from; to < end; to++)
			b[to] = j == end || (i < middle && a[i].time_ns <= a[j].time_ns) ? a[i++] : a[j++];
	}
}

/* Sorts by time; stable. If there is no memory, the order stays as it is. */
static void sort_packets(struct open_interval *open)
{
	size_t count = open->packets.count;
	struct ow_sighting *from = open->packets.sighting, *to = malloc((count ? count : 1) * sizeof *to);
	if (!to)
		return;
	for (size_t width = 1; width < count; width *= 2) {
		merge_runs(from, to, count, width);
		struct ow_sighting *swap = from;
		from = to;
		to = swap;
	}
	free(to);
	open->packets.sighting = from;
}

/* Keeps the table of ids for the next interval, unless it is far too large. */
static void keep_spare(struct ow_interval_log *log, struct open_interval *open)
{
	if (open->copies.bits == 0 || open->copies.used < ((size_t)1 << open->copies.bits) / 16)
		return;
	ow_copies_done(&log->spare);
	log->spare = open->copies;
	ow_copies_init(&open->copies);
}

/* Frees the memory that was only needed to build the interval. */
static void finish(struct open_interval *open)
{
	struct ow_interval_packets *packets = &open->packets;
	if (open->disordered)
		sort_packets(open);
	if (packets->count < open->room) {
		struct ow_sighting *less =
			realloc(packets->sighting, (packets->count ? packets->count : 1) * sizeof *less);
		if (less)
			packets->sighting = less;
	}
	ow_lane_flows_close(&packets->flows);
	for (size_t i = 0; i < packets->count && packets->flows.count; i++) {
		if (packets->sighting[i].flow)
			packets->flows.flow[packets->sighting[i].flow - 1].packets++;
	}
	packets->copies = open->copies.copies;
	if (packets->copies > 0) {
		struct ow_copy *less = realloc(open->copies.copy, packets->copies * sizeof *less);
		packets->copy = less ? less : open->copies.copy;
		open->copies.copy = NULL;
		open->copies.room = 0;
		ow_copies_sort(packets->copy, packets->copies);
	}
}

/* Number of intervals that have ended by passed_ns. */
static int64_t ended_by(const struct ow_interval_log *log, int64_t passed_ns)
{
	if (passed_ns == INT64_MAX)
		return log->used || log->drops.frames || log->blind ? INT64_MAX : log->first;
	int64_t interval = ow_cuts_interval(&log->cuts, passed_ns);
	return interval < 0 ? 0 : interval;
}

bool ow_interval_log_due(struct ow_interval_log *log, int64_t passed_ns)
{
	int64_t ended = ended_by(log, passed_ns);
	if (log->used == 0 && !log->blind && passed_ns != INT64_MAX && ended - log->first > OW_INTERVAL_LOG_EMPTY_MAX)
		log->first = ended;
	return ended > log->first;
}

struct ow_interval_packets *ow_interval_log_next(struct ow_interval_log *log, int64_t passed_ns)
{
	if (!ow_interval_log_due(log, passed_ns))
		return NULL;
	struct ow_interval_packets *packets = malloc(sizeof *packets);
	if (!packets)
		return NULL;
	struct open_interval *open = slot_of(log, log->first);
	if (open->used) {
		finish(open);
		keep_spare(log, open);
		log->used--;
		/* A little more, so that the next interval grows at most once if traffic changes little. */
		log->expected = open->packets.count + open->packets.count / 8;
	}
	*packets = open->packets;
	packets->interval = log->first;
	packets->start_ns = ow_cuts_origin(&log->cuts, log->first);
	packets->length_ns = log->options.length_ns;
	packets->shift_ns = ow_cuts_shift(&log->cuts, log->first);
	packets->end_shift_ns = ow_cuts_shift(&log->cuts, log->first + 1);
	packets->ring_drops = drops_until(log, ow_cuts_start(&log->cuts, log->first + 1));
	if (open->frames)
		log->per_frame = (double)packets->total_packets / (double)open->frames;
	packets->missed = (uint64_t)((double)packets->ring_drops * (log->per_frame > 1 ? log->per_frame : 1));
	mark_blind(log, packets);
	open->packets.sighting = NULL;
	open->packets.flows = (struct ow_lane_flows){0};
	close_interval(open);
	log->first++;
	return packets;
}
