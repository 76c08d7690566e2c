/* SPDX-License-Identifier: Apache-2.0 */
#include "books.h"

#include "base/clock.h"
#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S 60 /* for what takes milliseconds on an idle machine */

struct ow_identity books_identity(uint64_t seed)
{
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&identity, seed);
	return identity;
}

void books_open(struct books *books, const struct ow_source_options *sources, unsigned count)
{
	struct ow_error err = {""};
	*books = (struct books){.passed_ns = INT64_MIN, .open_max = OW_REPLAY_OPEN};
	if (ow_recorder_open(sources, count, &books->recorder, &err) < 0 ||
	    ow_recorder_start(books->recorder, &err) < 0)
		fail_msg("%s", err.text);
}

unsigned books_add(struct books *books, const struct ow_lane_options *options, size_t sightings_max)
{
	struct ow_error err = {""};
	assert_true(books->lanes < BOOKS_LANES);
	struct books_lane *lane = &books->lane[books->lanes];
	*lane = (struct books_lane){.t0_ns = options->t0_ns, .length_ns = options->length_ns};
	if (ow_recorder_add_lane(books->recorder, options, &lane->lane, &err) < 0)
		fail_msg("%s", err.text);
	struct ow_interval_log_options ledger = {options->identity, options->t0_ns, options->length_ns, sightings_max,
	                                         books->open_max};
	assert_int_equal(ow_interval_log_create(&ledger, &lane->ledger), 0);
	return books->lanes++;
}

void books_remove(struct books *books, unsigned index)
{
	ow_recorder_remove_lane(books->recorder, books->lane[index].lane);
	books->lane[index].removed = true;
}

/* passed_ns: every packet before it was taken already. */
static void add_chunk(struct books *books, const struct ow_chunk *chunk, int64_t passed_ns)
{
	unsigned i = 0;
	while (i < books->lanes && books->lane[i].lane != chunk->lane)
		i++;
	assert_true(i < books->lanes);
	struct books_lane *lane = &books->lane[i];
	assert_false(lane->removed);
	assert_true(chunk->count <= chunk->packets && chunk->count <= OW_CHUNK_STAMPS);
	assert_true(chunk->packets + chunk->unreadable > 0);
	assert_true(chunk->sample_shift || chunk->count == chunk->packets);
	assert_true(chunk->interval >= 0);
	for (uint32_t k = 0; k < chunk->count; k++)
		assert_true(lane->t0_ns + chunk->interval * lane->length_ns + chunk->sighting[k].time_ns >= passed_ns);
	lane->chunk_packets += chunk->packets;
	lane->chunk_bytes += chunk->bytes;
	assert_int_equal(ow_interval_log_add(lane->ledger, chunk), 0);
}

static void add_page(struct books_lane *lane, struct ow_interval_packets *page, int64_t passed_ns)
{
	assert_int_equal(page->interval, lane->pages);
	assert_true(page->start_ns + page->length_ns <= passed_ns);
	assert_true(page->count <= page->total_packets);
	for (size_t i = 0; i < page->count; i++)
		assert_true(page->sighting[i].time_ns >= 0 && page->sighting[i].time_ns < page->length_ns);
	lane->page = realloc(lane->page, (lane->pages + 1) * sizeof(struct ow_interval_packets *));
	assert_non_null(lane->page);
	lane->page[lane->pages++] = page;
	lane->packets += page->total_packets;
	lane->stamps += page->count;
	lane->unreadable += page->unreadable;
}

void books_step(struct books *books, int timeout_ms)
{
	struct pollfd fd = {.fd = ow_recorder_fd(books->recorder), .events = POLLIN};
	struct ow_chunk *chunk, *next;
	int64_t passed_ns;
	(void)poll(&fd, 1, timeout_ms);
	int r = ow_recorder_take(books->recorder, &chunk, &passed_ns, &books->err);
	if (r < 0) {
		books->failed = r;
		books->failures++;
	}
	int64_t before_ns = books->passed_ns;
	assert_true(passed_ns >= before_ns);
	books->passed_ns = passed_ns;
	for (; chunk; chunk = next) {
		next = chunk->next;
		add_chunk(books, chunk, before_ns);
		ow_chunk_free(chunk);
	}
	for (unsigned i = 0; i < books->lanes; i++) {
		struct ow_interval_packets *page;
		while (!books->lane[i].removed && (page = ow_interval_log_next(books->lane[i].ledger, passed_ns)))
			add_page(&books->lane[i], page, passed_ns);
	}
}

void books_run(struct books *books, int64_t until_ns)
{
	int64_t end = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	while (books->passed_ns < until_ns) {
		assert_true(ow_clock_steady_ns() < end);
		books_step(books, 1000);
	}
	/*
	 * Conservation: every recorded packet is in an interval. Some intervals may be open unless everything has
	 * ended.
	 */
	for (unsigned i = 0; i < books->lanes && until_ns == INT64_MAX; i++) {
		if (books->lane[i].removed)
			continue;
		assert_int_equal(ow_interval_log_misplaced(books->lane[i].ledger), 0);
		assert_int_equal(books->lane[i].packets, books->lane[i].chunk_packets);
	}
}

void books_close(struct books *books)
{
	ow_recorder_free(books->recorder);
	for (unsigned i = 0; i < books->lanes; i++) {
		for (size_t k = 0; k < books->lane[i].pages; k++)
			ow_interval_packets_free(books->lane[i].page[k]);
		free(books->lane[i].page);
		ow_interval_log_free(books->lane[i].ledger);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

struct ow_sighting *books_stamps(const struct books *books, unsigned index, size_t *ret_count)
{
	const struct books_lane *lane = &books->lane[index];
	struct ow_sighting *stamps = malloc((lane->stamps + 1) * sizeof *stamps);
	size_t count = 0;
	assert_non_null(stamps);
	for (size_t i = 0; i < lane->pages; i++) {
		for (size_t k = 0; k < lane->page[i]->count; k++) {
			const struct ow_sighting *stamp = &lane->page[i]->sighting[k];
			stamps[count++] = (struct ow_sighting){stamp->id, lane->page[i]->start_ns + stamp->time_ns};
		}
	}
	assert_int_equal(count, lane->stamps);
	qsort(stamps, count, sizeof *stamps, by_id);
	*ret_count = count;
	return stamps;
}
