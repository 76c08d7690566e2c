/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open pages are a window of open_max intervals from the next one to be closed on. A chunk is copied, thinned out
 * to the page's sample, renamed and appended: a few passes over some 64 KB, which stay in the cache.
 *
 * Chunks of several threads overlap a little in time. Each is merged into the end of its page, so that a page is in the
 * order of arrival; where they overlap too much for that (files that are replayed unpaced) the page is sorted at its
 * end.
 */
#include "record/interval_log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OW_SHIFT_MAX 64 /* no packet is left */
/* Stamps that may be moved to merge a chunk into its page: 1 MB, some 100 us. */
#define OW_INTERVAL_LOG_OVERLAP 65536u
/* Empty pages in a row. If more intervals than this pass without a packet, the clock has jumped (or nobody cared for so
 * long), and their pages are left out. */
#define OW_INTERVAL_LOG_EMPTY_MAX 1024
#define OW_INTERVAL_LOG_OPEN_MAX  65536u
#define OW_INTERVAL_LOG_BLIND_NS  INT64_C(60000000000) /* a reader that is held up for longer is not thought of */

struct open_page {
	bool used;
	bool disordered; /* to be sorted when it is closed */
	struct ow_interval_packets page;
	size_t room; /* of page.stamp */
	struct ow_copies copies;
};

struct ow_interval_log {
	struct ow_interval_log_options options;
	struct open_page *open; /* interval i at i % open_max, for first .. first + open_max - 1 */
	int64_t first;          /* the next page to be closed */
	size_t used;            /* open pages */
	uint64_t misplaced;
	struct ow_drops drops;                     /* of intervals that are not closed yet */
	bool blind;                                /* in a part of them, */
	struct ow_outage outage;                   /* this one */
	char cause[OW_OUTAGE_CAUSE];               /* of it, as told last */
	size_t expected;                           /* stamps of a page, by the last one */
	struct ow_copies spare;                    /* of the last page: fresh memory costs more than clearing this */
	struct ow_sighting piece[OW_CHUNK_STAMPS]; /* what is added at a time */
};

int ow_interval_log_create(const struct ow_interval_log_options *options, struct ow_interval_log **ret_ledger)
{
	if (options->length_ns <= 0 || options->open_max == 0 || options->open_max > OW_INTERVAL_LOG_OPEN_MAX)
		return -EINVAL;
	struct ow_interval_log *ledger = calloc(1, sizeof *ledger);
	if (!ledger)
		return -ENOMEM;
	ledger->options = *options;
	ledger->open = calloc(options->open_max, sizeof *ledger->open);
	if (!ledger->open) {
		free(ledger);
		return -ENOMEM;
	}
	*ret_ledger = ledger;
	return 0;
}

void ow_interval_log_set_max(struct ow_interval_log *ledger, size_t stamps_max)
{
	ledger->options.stamps_max = stamps_max;
}

static void close_page(struct open_page *open)
{
	free(open->page.stamp);
	ow_copies_done(&open->copies);
	*open = (struct open_page){0};
}

void ow_interval_log_free(struct ow_interval_log *ledger)
{
	if (!ledger)
		return;
	for (size_t i = 0; i < ledger->options.open_max; i++)
		close_page(&ledger->open[i]);
	ow_copies_done(&ledger->spare);
	free(ledger->open);
	free(ledger);
}

void ow_interval_packets_free(struct ow_interval_packets *page)
{
	if (!page)
		return;
	free(page->stamp);
	free(page->copy);
	free(page);
}

static struct open_page *slot_of(struct ow_interval_log *ledger, int64_t interval)
{
	return &ledger->open[(uint64_t)interval % ledger->options.open_max];
}

static bool within(const struct ow_interval_log *ledger, int64_t interval)
{
	return interval >= ledger->first && (uint64_t)(interval - ledger->first) < ledger->options.open_max;
}

/* The page of an interval within the window. */
static struct open_page *open_page(struct ow_interval_log *ledger, int64_t interval)
{
	struct open_page *open = slot_of(ledger, interval);
	if (!open->used) {
		open->used = true;
		open->copies = ledger->spare;
		ow_copies_init(&ledger->spare);
		ow_copies_reset(&open->copies);
		ledger->used++;
	}
	return open;
}

/* Thinning out. */

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

/* Copies the chosen ones of packets that have no names yet; in place is fine. */
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
	return id >> 48; /* of 64 * OW_SIEVE_WORDS */
}

/*
 * Thins out named packets. Copies go with the packet that they are copies of; they must be sorted. A sieve spares most
 * packets the search among them.
 */
static size_t choose_named(const struct sample *sample, struct ow_sighting *stamp, size_t count,
                           const struct ow_copy *copy, size_t copies)
{
	uint64_t sieve[OW_SIEVE_WORDS] = {0};
	for (size_t i = 0; i < copies; i++)
		sieve[sieve_bit(copy[i].id) / 64] |= UINT64_C(1) << sieve_bit(copy[i].id) % 64;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t base_id = stamp[i].id;
		if (sieve[sieve_bit(base_id) / 64] >> sieve_bit(base_id) % 64 & 1) {
			const struct ow_copy *found = ow_copies_find(copy, copies, base_id);
			base_id = found ? found->base_id : base_id;
		}
		stamp[kept] = stamp[i];
		kept += chosen(sample, base_id);
	}
	return kept;
}

/* Reduces an open page to the sample of a larger shift. */
static void thin(const struct ow_interval_log *ledger, struct open_page *open, unsigned shift)
{
	struct sample sample = {&ledger->options.identity, shift};
	ow_copies_sort(open->copies.copy, open->copies.copies);
	open->page.count =
		choose_named(&sample, open->page.stamp, open->page.count, open->copies.copy, open->copies.copies);
	ow_copies_keep(&open->copies, keeps, &sample);
	open->page.sample_shift = shift;
}

void ow_interval_packets_resample(struct ow_interval_packets *page, const struct ow_identity *identity,
                                  unsigned sample_shift)
{
	if (sample_shift <= page->sample_shift)
		return;
	struct sample sample = {identity, sample_shift < OW_SHIFT_MAX ? sample_shift : OW_SHIFT_MAX};
	page->count = choose_named(&sample, page->stamp, page->count, page->copy, page->copies);
	size_t kept = 0;
	for (size_t i = 0; i < page->copies; i++) {
		if (chosen(&sample, page->copy[i].base_id))
			page->copy[kept++] = page->copy[i];
	}
	page->copies = kept;
	page->sample_shift = sample.shift;
}

const struct ow_copy *ow_interval_packets_copy(const struct ow_interval_packets *page, uint64_t id)
{
	return ow_copies_find(page->copy, page->copies, id);
}

/* Names of copies that are gone do no harm. */
void ow_interval_packets_cut(struct ow_interval_packets *page, int64_t end_ns)
{
	size_t kept = 0, before = page->count;
	for (size_t i = 0; i < page->count; i++) {
		if (page->stamp[i].time_ns < end_ns - page->start_ns)
			page->stamp[kept++] = page->stamp[i];
	}
	page->count = kept;
	page->length_ns = end_ns - page->start_ns;
	if (before) {
		double share = (double)kept / (double)before;
		page->total_bytes = (uint64_t)(share * (double)page->total_bytes);
		page->total_packets = (uint64_t)(share * (double)page->total_packets + 0.5);
	}
}

struct ow_interval_packets *ow_interval_packets_rest(const struct ow_interval_packets *page, int64_t from_ns)
{
	struct ow_interval_packets *rest = malloc(sizeof *rest);
	if (!rest)
		return NULL;
	*rest = *page;
	rest->interval++;
	rest->start_ns = from_ns;
	rest->length_ns = page->start_ns + page->length_ns - from_ns;
	rest->stamp = malloc((page->count + 1) * sizeof *rest->stamp);
	rest->copy = malloc((page->copies + 1) * sizeof *rest->copy);
	rest->count = 0;
	if (!rest->stamp || !rest->copy) {
		ow_interval_packets_free(rest);
		return NULL;
	}
	if (page->copies)
		memcpy(rest->copy, page->copy, page->copies * sizeof *rest->copy);
	int64_t shift_ns = from_ns - page->start_ns;
	for (size_t i = 0; i < page->count; i++) {
		if (page->stamp[i].time_ns >= shift_ns)
			rest->stamp[rest->count++] =
				(struct ow_sighting){page->stamp[i].id, page->stamp[i].time_ns - shift_ns};
	}
	return rest;
}

/* Adding. */

/* 0; -ENOSPC when the page is full; -ENOMEM. */
static int make_room(struct ow_interval_log *ledger, struct open_page *open, size_t count)
{
	size_t want = open->page.count + count, max = ledger->options.stamps_max;
	if (want > max)
		return -ENOSPC;
	if (open->page.count == 0)
		ow_copies_expect(&open->copies, ledger->expected);
	if (want > open->room) {
		size_t room = open->room ? open->room * 2 : ledger->expected;
		room = room < want ? want : room > max ? max : room;
		struct ow_sighting *stamp = realloc(open->page.stamp, room * sizeof *stamp);
		if (!stamp)
			return -ENOMEM;
		open->page.stamp = stamp;
		open->room = room;
	}
	return ow_copies_reserve(&open->copies, count);
}

/* Into the end of the page, by time; each of the two keeps its own order. There is room. */
static void merge(struct open_page *open, const struct ow_sighting *piece, size_t count)
{
	struct ow_sighting *stamp = open->page.stamp;
	size_t a = open->page.count, to = a + count, b = count;
	size_t least = a > OW_INTERVAL_LOG_OVERLAP ? a - OW_INTERVAL_LOG_OVERLAP : 0;
	open->page.count = to;
	if (least > 0 && stamp[least - 1].time_ns > piece[0].time_ns) {
		open->disordered = true;
		least = a;
	}
	while (a > least && b > 0 && stamp[a - 1].time_ns > piece[0].time_ns)
		stamp[--to] = stamp[a - 1].time_ns > piece[b - 1].time_ns ? stamp[--a] : piece[--b];
	memcpy(stamp + a, piece, b * sizeof *piece);
}

/* The first `count` of ledger->piece, which are of the page's sample. The page halves itself until there is room. */
static int add_piece(struct ow_interval_log *ledger, struct open_page *open, size_t count)
{
	int r, failed = 0;
	while (count > 0 && (r = make_room(ledger, open, count)) < 0) {
		if (r == -ENOMEM)
			failed = r;
		if (open->page.sample_shift == OW_SHIFT_MAX)
			return failed;
		thin(ledger, open, open->page.sample_shift + 1);
		struct sample sample = {&ledger->options.identity, open->page.sample_shift};
		count = choose(&sample, ledger->piece, count, ledger->piece);
	}
	if (count > 0) {
		ow_copies_name(&open->copies, ledger->piece, count);
		merge(open, ledger->piece, count);
	}
	return failed;
}

int ow_interval_log_add(struct ow_interval_log *ledger, const struct ow_chunk *chunk)
{
	if (!within(ledger, chunk->interval)) {
		int64_t start_ns = ledger->options.t0_ns + chunk->interval * ledger->options.length_ns;
		struct ow_drops drops = {chunk->packets, start_ns, start_ns + ledger->options.length_ns - 1};
		ledger->misplaced += chunk->packets;
		/* Its interval must not look complete. */
		ow_interval_log_drops(ledger, &drops);
		return 0;
	}
	struct open_page *open = open_page(ledger, chunk->interval);
	open->page.total_packets += chunk->packets;
	open->page.total_bytes += chunk->bytes;
	open->page.unreadable += chunk->unreadable;
	if (chunk->sample_shift > open->page.sample_shift)
		thin(ledger, open, chunk->sample_shift < OW_SHIFT_MAX ? chunk->sample_shift : OW_SHIFT_MAX);
	int failed = 0;
	for (size_t from = 0, step; from < chunk->count; from += step) {
		struct sample sample = {&ledger->options.identity, open->page.sample_shift};
		step = chunk->count - from < OW_CHUNK_STAMPS ? chunk->count - from : OW_CHUNK_STAMPS;
		size_t count = choose(&sample, chunk->stamp + from, step, ledger->piece);
		int r = add_piece(ledger, open, count);
		failed = r < 0 ? r : failed;
	}
	return failed;
}

/* Pages may not be open as far as that yet: the reader is late, or there would have been no drops. */
void ow_interval_log_drops(struct ow_interval_log *ledger, const struct ow_drops *drops)
{
	const struct ow_interval_log_options *o = &ledger->options;
	struct ow_drops more = *drops, *kept = &ledger->drops;
	int64_t start_ns = o->t0_ns + ledger->first * o->length_ns;
	if (more.frames == 0 || more.until_ns < o->t0_ns)
		return;
	/* Better near its interval than nowhere. */
	more.from_ns = more.from_ns < start_ns ? start_ns : more.from_ns;
	more.until_ns = more.until_ns < more.from_ns ? more.from_ns : more.until_ns;
	if (kept->frames) {
		more.frames += kept->frames;
		more.from_ns = kept->from_ns < more.from_ns ? kept->from_ns : more.from_ns;
		more.until_ns = kept->until_ns > more.until_ns ? kept->until_ns : more.until_ns;
	}
	/* Longer only when a clock jumps. */
	if (more.until_ns - more.from_ns > OW_INTERVAL_LOG_BLIND_NS)
		more.until_ns = more.from_ns + OW_INTERVAL_LOG_BLIND_NS;
	*kept = more;
}

/* Drops of an interval that is closed. */
static uint64_t drops_until(struct ow_interval_log *ledger, int64_t end_ns)
{
	struct ow_drops *drops = &ledger->drops;
	uint64_t share = drops->frames;
	if (share == 0 || drops->from_ns >= end_ns)
		return 0;
	if (drops->until_ns < end_ns) {
		drops->frames = 0;
		return share;
	}
	double part = (double)(end_ns - drops->from_ns) / (double)(drops->until_ns - drops->from_ns + 1);
	share = (uint64_t)(part * (double)share + 0.5);
	/* One at least, here and in the intervals that follow. */
	share = share ? share : 1;
	drops->frames = drops->frames > share ? drops->frames - share : 1;
	drops->from_ns = end_ns;
	return share;
}

void ow_interval_log_outage(struct ow_interval_log *ledger, const struct ow_outage *outage)
{
	struct ow_outage *kept = &ledger->outage;
	int64_t from_ns = outage->from_ns, until_ns = outage->until_ns;
	if (ledger->blind) {
		from_ns = kept->from_ns < from_ns ? kept->from_ns : from_ns;
		until_ns = kept->until_ns > until_ns ? kept->until_ns : until_ns;
	}
	/* The first of several causes in an interval; the next interval has the last one. */
	if (!ledger->blind)
		*kept = *outage;
	kept->from_ns = from_ns;
	kept->until_ns = until_ns;
	memcpy(ledger->cause, outage->cause, sizeof ledger->cause);
	ledger->blind = true;
}

/* Of the interval that is closed. */
static void mark_blind(struct ow_interval_log *ledger, struct ow_interval_packets *page)
{
	struct ow_outage *outage = &ledger->outage;
	int64_t end_ns = page->start_ns + page->length_ns;
	if (!ledger->blind)
		return;
	if (outage->from_ns < end_ns && outage->until_ns > page->start_ns)
		memcpy(page->blind, outage->cause, sizeof page->blind);
	if (end_ns > outage->from_ns)
		memcpy(outage->cause, ledger->cause, sizeof outage->cause);
	ledger->blind = outage->until_ns > end_ns;
}

uint64_t ow_interval_log_misplaced(const struct ow_interval_log *ledger)
{
	return ledger->misplaced;
}

/* Closing. */

/* Merges neighbouring runs of `width` from a into b. */
static void merge_runs(const struct ow_sighting *a, struct ow_sighting *b, size_t count, size_t width)
{
	for (size_t from = 0; from < count; from += 2 * width) {
		size_t middle = count - from < width ? count : from + width;
		size_t end = count - from < 2 * width ? count : from + 2 * width;
		for (size_t i = from, j = middle, to = from; to < end; to++)
			b[to] = j == end || (i < middle && a[i].time_ns <= a[j].time_ns) ? a[i++] : a[j++];
	}
}

/* By time; equal ones keep their order. Without memory for it the page stays as it is. */
static void sort_page(struct open_page *open)
{
	size_t count = open->page.count;
	struct ow_sighting *from = open->page.stamp, *to = malloc((count ? count : 1) * sizeof *to);
	if (!to)
		return;
	for (size_t width = 1; width < count; width *= 2) {
		merge_runs(from, to, count, width);
		struct ow_sighting *swap = from;
		from = to;
		to = swap;
	}
	free(to);
	open->page.stamp = from;
}

/* Keeps the table of ids for the next page, unless it is far too large for such pages. */
static void keep_spare(struct ow_interval_log *ledger, struct open_page *open)
{
	if (open->copies.bits == 0 || open->copies.used < ((size_t)1 << open->copies.bits) / 16)
		return;
	ow_copies_done(&ledger->spare);
	ledger->spare = open->copies;
	ow_copies_init(&open->copies);
}

/* A page without the memory that it took to make it. */
static void finish(struct open_page *open)
{
	struct ow_interval_packets *page = &open->page;
	if (open->disordered)
		sort_page(open);
	if (page->count < open->room) {
		struct ow_sighting *less = realloc(page->stamp, (page->count ? page->count : 1) * sizeof *less);
		if (less)
			page->stamp = less;
	}
	page->copies = open->copies.copies;
	if (page->copies > 0) {
		struct ow_copy *less = realloc(open->copies.copy, page->copies * sizeof *less);
		page->copy = less ? less : open->copies.copy;
		open->copies.copy = NULL;
		open->copies.room = 0;
		ow_copies_sort(page->copy, page->copies);
	}
}

/* Intervals that have ended by then. */
static int64_t ended_by(const struct ow_interval_log *ledger, int64_t passed_ns)
{
	if (passed_ns == INT64_MAX)
		return ledger->used || ledger->drops.frames || ledger->blind ? INT64_MAX : ledger->first;
	return passed_ns < ledger->options.t0_ns ? 0 : (passed_ns - ledger->options.t0_ns) / ledger->options.length_ns;
}

bool ow_interval_log_due(struct ow_interval_log *ledger, int64_t passed_ns)
{
	int64_t ended = ended_by(ledger, passed_ns);
	if (ledger->used == 0 && !ledger->blind && passed_ns != INT64_MAX &&
	    ended - ledger->first > OW_INTERVAL_LOG_EMPTY_MAX)
		ledger->first = ended;
	return ended > ledger->first;
}

struct ow_interval_packets *ow_interval_log_next(struct ow_interval_log *ledger, int64_t passed_ns)
{
	if (!ow_interval_log_due(ledger, passed_ns))
		return NULL;
	struct ow_interval_packets *page = malloc(sizeof *page);
	if (!page)
		return NULL;
	struct open_page *open = slot_of(ledger, ledger->first);
	if (open->used) {
		finish(open);
		keep_spare(ledger, open);
		ledger->used--;
		/* Some more, so that a page grows once at most when traffic does not change much. */
		ledger->expected = open->page.count + open->page.count / 8;
	}
	*page = open->page;
	page->interval = ledger->first;
	page->start_ns = ledger->options.t0_ns + ledger->first * ledger->options.length_ns;
	page->length_ns = ledger->options.length_ns;
	page->ring_drops = drops_until(ledger, page->start_ns + page->length_ns);
	mark_blind(ledger, page);
	open->page.stamp = NULL;
	close_page(open);
	ledger->first++;
	return page;
}
