/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks become the packets of intervals: names of copies, halving, order, intervals, and the conservation of packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "record/interval_log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 1000

static struct ow_identity identity;

static struct ow_interval_log *create(size_t sightings_max, size_t open_max)
{
	struct ow_interval_log *ledger = NULL;
	struct ow_interval_log_options options = {identity, 5000, LENGTH, sightings_max, open_max};
	assert_int_equal(ow_interval_log_create(&options, &ledger), 0);
	return ledger;
}

static struct ow_chunk *chunk_of(int64_t interval, const struct ow_sighting *sighting, size_t count)
{
	struct ow_chunk *chunk = calloc(1, sizeof *chunk + (count ? count : 1) * sizeof *sighting);
	assert_non_null(chunk);
	chunk->interval = interval;
	chunk->count = (uint32_t)count;
	chunk->packets = count;
	chunk->bytes = count * 100;
	if (count)
		memcpy(chunk->sighting, sighting, count * sizeof *sighting);
	return chunk;
}

static void add(struct ow_interval_log *ledger, int64_t interval, const struct ow_sighting *sighting, size_t count)
{
	struct ow_chunk *chunk = chunk_of(interval, sighting, count);
	assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
	free(chunk);
}

/*
 * The packets of an interval, computed in the slow way: the smallest shift that fits, and the names of what it keeps.
 */
struct model {
	unsigned shift;
	size_t count;
	struct ow_sighting sighting[4096];
	uint64_t base[4096];
	uint32_t nth[4096];
};

static bool kept(uint64_t id, unsigned shift)
{
	return ow_sampled(ow_sample_rank(&identity, id), shift);
}

static void model_make(struct model *model, const struct ow_sighting *sighting, size_t count, size_t max,
                       unsigned shift)
{
	for (model->shift = shift;; model->shift++) {
		size_t n = 0;
		for (size_t i = 0; i < count; i++)
			n += kept(sighting[i].id, model->shift);
		if (n <= max || model->shift == 64)
			break;
	}
	model->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!kept(sighting[i].id, model->shift))
			continue;
		size_t to = model->count++;
		model->sighting[to] = sighting[i];
		model->base[to] = sighting[i].id;
		model->nth[to] = 1;
		for (size_t k = 0; k < i; k++) {
			if (sighting[k].id == sighting[i].id) {
				model->nth[to]++;
				model->sighting[to].id = ow_copy_next(model->sighting[to].id);
			}
		}
	}
}

/* The packets are the model's, in the same order. */
static void check(const struct ow_interval_packets *page, const struct model *model)
{
	assert_int_equal(page->sample_shift, model->shift);
	assert_int_equal(page->count, model->count);
	size_t copies = 0;
	for (size_t i = 0; i < page->count; i++) {
		assert_true(page->sighting[i].id == model->sighting[i].id);
		assert_true(page->sighting[i].time_ns == model->sighting[i].time_ns);
		const struct ow_copy *copy = ow_interval_packets_copy(page, page->sighting[i].id);
		assert_int_equal(copy != NULL, model->nth[i] > 1);
		if (copy) {
			assert_true(copy->base_id == model->base[i] && copy->nth == model->nth[i]);
			copies++;
		}
	}
	assert_int_equal(page->copies, copies);
	for (size_t i = 1; i < page->copies; i++)
		assert_true(page->copy[i - 1].id < page->copy[i].id);
}

/* Every sequence of up to 6 packets of 3 kinds, divided in two at every place, in intervals of every size. */
static void test_exhaustive(void **state)
{
	(void)state;
	static struct model model;
	const uint64_t kind[] = {0, UINT64_C(0x123456789abcdef0), UINT64_MAX};
	for (size_t count = 0, all = 1; count <= 6; count++, all *= 3) {
		for (size_t which = 0; which < all; which++) {
			struct ow_sighting sighting[6];
			for (size_t i = 0, rest = which; i < count; i++, rest /= 3)
				sighting[i] = (struct ow_sighting){kind[rest % 3], (int64_t)i};
			for (size_t max = 1; max <= 6; max++) {
				size_t cut = (which + max) % (count + 1);
				struct ow_interval_log *ledger = create(max, 2);
				add(ledger, 0, sighting, cut);
				add(ledger, 0, sighting + cut, count - cut);
				struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + LENGTH);
				assert_non_null(page);
				model_make(&model, sighting, count, max, 0);
				check(page, &model);
				assert_int_equal(page->total_packets, count);
				assert_int_equal(page->total_bytes, 100 * count);
				unsigned more = model.shift + 1 + (unsigned)which % 3;
				ow_interval_packets_resample(page, &identity, more);
				model_make(&model, sighting, count, max, more);
				check(page, &model);
				ow_interval_packets_resample(page, &identity, 0); /* never back */
				check(page, &model);
				ow_interval_packets_free(page);
				ow_interval_log_free(ledger);
			}
		}
	}
}

/* Random intervals of up to 4000 packets with many copies, in chunks with their own shifts. */
static void test_halving(void **state)
{
	(void)state;
	static struct model model;
	static struct ow_sighting sighting[4000];
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		size_t count = ow_random_below(&random, 4001), max = 1 + ow_random_below(&random, 1500);
		uint64_t kinds = 1 + ow_random_below(&random, seed % 2 ? 20 : 8000);
		for (size_t i = 0; i < count; i++)
			sighting[i] =
				(struct ow_sighting){ow_mix64(ow_random_below(&random, kinds) + 77), (int64_t)i / 5};
		struct ow_interval_log *ledger = create(max, 1);
		unsigned shift = 0;
		for (size_t from = 0, step; from < count; from += step) {
			step = 1 + ow_random_below(&random, 700);
			step = step < count - from ? step : count - from;
			struct ow_chunk *chunk = chunk_of(0, sighting + from, step);
			chunk->sample_shift = (unsigned)ow_random_below(&random, 3);
			shift = chunk->sample_shift > shift ? chunk->sample_shift : shift;
			chunk->count = 0; /* the recorder has chosen already */
			for (size_t i = 0; i < step; i++) {
				if (kept(sighting[from + i].id, chunk->sample_shift))
					chunk->sighting[chunk->count++] = sighting[from + i];
			}
			assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
			free(chunk);
		}
		struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + LENGTH);
		model_make(&model, sighting, count, max, shift);
		check(page, &model);
		assert_int_equal(page->total_packets, count);
		ow_interval_packets_free(page);
		ow_interval_log_free(ledger);
	}
}

static int by_stamp(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
	                      : (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Chunks of several threads, each in the order of its own time, handed over in any order. */
#define STREAMS   4
#define PACKETS   3000 /* of a stream */
#define INTERVALS 7

struct stream {
	int64_t now;
	size_t left;
};

/* The next chunk of a stream: up to 50 packets of one interval. */
static struct ow_chunk *stream_next(struct stream *stream, struct ow_random *random)
{
	struct ow_sighting sighting[50];
	size_t count = 0, want = ow_random_below(random, 50) + 1;
	int64_t interval = stream->now / LENGTH;
	while (count < want && stream->left > 0 && stream->now / LENGTH == interval) {
		sighting[count++] = (struct ow_sighting){ow_mix64(ow_random_below(random, 2000)), stream->now % LENGTH};
		stream->now += (int64_t)ow_random_below(random, 2 * LENGTH * INTERVALS / PACKETS + 1);
		stream->left--;
	}
	return chunk_of(interval, sighting, count);
}

static void keep_packets(struct ow_sighting *all, size_t *count, const struct ow_chunk *chunk)
{
	memcpy(all + *count, chunk->sighting, chunk->count * sizeof *all);
	*count += chunk->count;
}

static void test_streams(void **state)
{
	(void)state;
	enum { PAGES = 4 * INTERVALS };
	static struct ow_sighting want[PAGES][STREAMS * PACKETS];
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		struct stream stream[STREAMS];
		for (int i = 0; i < STREAMS; i++)
			stream[i] = (struct stream){0, PACKETS};
		struct ow_interval_log *ledger = create(1000000, PAGES);
		size_t count[PAGES] = {0};
		uint64_t packets = 0, in_pages = 0, misplaced = 0;
		int64_t next = 0, passed = 0;
		for (;;) {
			struct stream *s = &stream[ow_random_below(&random, STREAMS)];
			if (s->left > 0) {
				struct ow_chunk *chunk = stream_next(s, &random);
				packets += chunk->packets;
				if (chunk->interval < next)
					misplaced += chunk->packets;
				else
					keep_packets(want[chunk->interval], &count[chunk->interval], chunk);
				assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
				free(chunk);
			}
			/* Sometimes too early: then packets come too late. */
			int64_t least = INT64_MAX;
			for (int i = 0; i < STREAMS; i++)
				least = stream[i].left && stream[i].now < least ? stream[i].now : least;
			bool end = least == INT64_MAX;
			passed = end ? INT64_MAX : 5000 + least + (seed % 3 == 0 ? LENGTH / 4 : 0);
			struct ow_interval_packets *page;
			while ((page = ow_interval_log_next(ledger, passed))) {
				assert_int_equal(page->interval, next);
				assert_int_equal(page->start_ns, 5000 + next * LENGTH);
				assert_true(end || page->start_ns + LENGTH <= passed);
				assert_int_equal(page->count, count[next]);
				assert_int_equal(page->total_packets, count[next]);
				in_pages += page->total_packets;
				for (size_t i = 1; i < page->count; i++)
					assert_true(page->sighting[i - 1].time_ns <= page->sighting[i].time_ns);
				assert_int_equal(ow_copies_rename(want[next], count[next]), 0);
				qsort(want[next], count[next], sizeof **want, by_stamp);
				qsort(page->sighting, page->count, sizeof **want, by_stamp);
				assert_memory_equal(page->sighting, want[next], page->count * sizeof **want);
				ow_interval_packets_free(page);
				next++;
			}
			if (end)
				break;
		}
		assert_int_equal(ow_interval_log_misplaced(ledger), misplaced);
		assert_int_equal(in_pages + misplaced, packets);
		assert_int_equal(packets, STREAMS * PACKETS);
		ow_interval_log_free(ledger);
	}
}

/* One thread is far ahead of the other within a large interval: it is sorted at the end. */
static void test_far_ahead(void **state)
{
	(void)state;
	enum { COUNT = 100000 };
	struct ow_interval_log *ledger = create(10 * COUNT, 2);
	struct ow_sighting sighting[2000];
	for (int thread = 0; thread < 3; thread++) {
		for (int from = 0; from < COUNT; from += 2000) {
			for (int i = 0; i < 2000; i++) {
				uint64_t id = ow_mix64((uint64_t)(from + i) * 3 + (uint64_t)thread);
				sighting[i] = (struct ow_sighting){id, (from + i) * 3 + thread};
			}
			add(ledger, 0, sighting, 2000);
		}
	}
	struct ow_interval_packets *page = ow_interval_log_next(ledger, INT64_MAX);
	assert_int_equal(page->count, 3 * COUNT);
	for (int i = 0; i < 3 * COUNT; i++) {
		assert_int_equal(page->sighting[i].time_ns, i);
		assert_true(page->sighting[i].id == ow_mix64((uint64_t)i));
	}
	ow_interval_packets_free(page);
	ow_interval_log_free(ledger);
}

/* Takes all closed intervals; returns their number, and the number of the last. */
static int take(struct ow_interval_log *ledger, int64_t passed_ns, int64_t *ret_last, uint64_t *packets)
{
	int pages = 0;
	for (struct ow_interval_packets *page; (page = ow_interval_log_next(ledger, passed_ns)); pages++) {
		*ret_last = page->interval;
		*packets += page->total_packets;
		ow_interval_packets_free(page);
	}
	return pages;
}

/*
 * A reader that was delayed delivers packets for intervals that are too far away, or closed: these must not look
 * complete.
 */
static void test_held_up(void **state)
{
	(void)state;
	struct ow_interval_log *ledger = create(1000, 4);
	struct ow_sighting sighting = {7, 0};
	/* Of 4 pages that may be open the 6th and 7th are none. */
	for (int64_t interval = 0; interval < 7; interval++) {
		struct ow_chunk *chunk = interval == 4 ? NULL : chunk_of(interval, &sighting, 1);
		if (chunk)
			assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
		free(chunk);
	}
	assert_int_equal(ow_interval_log_misplaced(ledger), 2);
	for (int64_t interval = 0; interval < 7; interval++) {
		struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + 100 * LENGTH);
		assert_non_null(page);
		assert_int_equal(page->total_packets, interval < 4);
		assert_int_equal(page->ring_drops > 0, interval > 4);
		ow_interval_packets_free(page);
	}
	/* Too late for the one that is closed: the next one is marked. */
	struct ow_chunk *chunk = chunk_of(6, &sighting, 1);
	assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
	free(chunk);
	struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + 100 * LENGTH);
	assert_int_equal(page->interval, 7);
	assert_true(page->ring_drops > 0);
	ow_interval_packets_free(page);
	ow_interval_log_free(ledger);
}

/* Intervals without packets exist, and a clock that jumps does not create thousands of them. */
static void test_gaps(void **state)
{
	(void)state;
	struct ow_sighting sighting = {7, 1};
	struct ow_interval_log *ledger = create(100, 8);
	int64_t last = -1, t0 = 5000;
	uint64_t packets = 0;
	assert_null(ow_interval_log_next(ledger, INT64_MIN / 2));
	assert_null(ow_interval_log_next(ledger, t0 + LENGTH - 1));
	assert_null(ow_interval_log_next(ledger, INT64_MAX));
	add(ledger, 3, &sighting, 1);
	assert_int_equal(take(ledger, t0 + 5 * LENGTH, &last, &packets), 5);
	assert_int_equal(last, 4);
	assert_int_equal(packets, 1);
	add(ledger, 4, &sighting, 1);     /* closed */
	add(ledger, 5 + 8, &sighting, 1); /* too far away */
	add(ledger, -1, &sighting, 1);
	assert_int_equal(ow_interval_log_misplaced(ledger), 3);
	add(ledger, 5 + 7, &sighting, 1);

	/* An hour later: open intervals are closed, then it continues there. */
	add(ledger, 3600000, &sighting, 1);
	assert_int_equal(ow_interval_log_misplaced(ledger), 4);
	assert_int_equal(take(ledger, t0 + 3600000 * (int64_t)LENGTH, &last, &packets), 8);
	assert_int_equal(last, 12);
	assert_int_equal(packets, 2);
	add(ledger, 3600000, &sighting, 1);
	assert_int_equal(take(ledger, t0 + 3600001 * (int64_t)LENGTH, &last, &packets), 1);
	assert_int_equal(last, 3600000);
	assert_int_equal(packets, 3);

	/* Back again: nothing moves, nothing is forgotten. */
	add(ledger, 20, &sighting, 1);
	assert_int_equal(take(ledger, t0 + 21 * LENGTH, &last, &packets), 0);
	assert_int_equal(ow_interval_log_misplaced(ledger), 5);

	/* The end of files: up to the last packet. */
	add(ledger, 3600003, &sighting, 1);
	assert_int_equal(take(ledger, INT64_MAX, &last, &packets), 3);
	assert_int_equal(last, 3600003);
	assert_int_equal(take(ledger, INT64_MAX, &last, &packets), 0);
	ow_interval_log_free(ledger);
}

static void drop(struct ow_interval_log *ledger, int64_t from_ns, int64_t until_ns, uint64_t frames)
{
	struct ow_drops drops = {frames, from_ns, until_ns};
	ow_interval_log_drops(ledger, &drops);
}

static void expect_drops(struct ow_interval_log *ledger, int64_t interval, uint64_t want)
{
	struct ow_interval_packets *page = ow_interval_log_next(ledger, INT64_MAX);
	assert_non_null(page);
	assert_int_equal(page->interval, interval);
	assert_int_equal(page->ring_drops, want);
	assert_int_equal(page->count, 0);
	ow_interval_packets_free(page);
}

static void expect_blind(struct ow_interval_log *ledger, int64_t interval, const char *want)
{
	struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + (interval + 1) * LENGTH);
	assert_non_null(page);
	assert_int_equal(page->interval, interval);
	assert_string_equal(page->blind, want);
	ow_interval_packets_free(page);
}

/* Intervals that an outage touches say so; those before and after do not. */
static void test_outage(void **state)
{
	(void)state;
	struct ow_interval_log *ledger = create(100, 3);
	struct ow_outage outage = {.from_ns = 5000 + LENGTH, .until_ns = 5000 + LENGTH + 1, .cause = "eth0 was down"};
	struct ow_sighting sighting = {7, 1};
	ow_interval_log_outage(ledger, &outage);
	expect_blind(ledger, 0, "");
	add(ledger, 1, &sighting, 1);
	expect_blind(ledger, 1, "eth0 was down");
	expect_blind(ledger, 2, "");
	/* It is reported in parts, and by another interface as well. */
	outage = (struct ow_outage){5000 + 4 * LENGTH - 1, 5000 + 4 * LENGTH + 1, false, "eth1 was removed"};
	ow_interval_log_outage(ledger, &outage);
	outage = (struct ow_outage){5000 + 4 * LENGTH, 5000 + 6 * LENGTH, false, "eth0 was down"};
	ow_interval_log_outage(ledger, &outage);
	expect_blind(ledger, 3, "eth1 was removed");
	for (int i = 4; i < 6; i++)
		expect_blind(ledger, i, "eth0 was down");
	expect_blind(ledger, 6, "");
	/* At the end of everything, too; without end. */
	outage = (struct ow_outage){5000 + 8 * LENGTH, INT64_MAX, false, "eth0 was down"};
	ow_interval_log_outage(ledger, &outage);
	expect_blind(ledger, 7, "");
	for (int i = 8; i < 10; i++) {
		struct ow_interval_packets *page = ow_interval_log_next(ledger, INT64_MAX);
		assert_non_null(page);
		assert_int_equal(page->interval, i);
		assert_string_equal(page->blind, "eth0 was down");
		ow_interval_packets_free(page);
	}
	ow_interval_log_free(ledger);
}

static void test_drops(void **state)
{
	(void)state;
	struct ow_interval_log *ledger = create(100, 3);
	drop(ledger, 4000, 4999, 100); /* before the first interval */
	drop(ledger, 5000, 5000, 1);
	drop(ledger, 5000 + LENGTH / 2, 5000 + LENGTH - 1, 2);
	drop(ledger, 5000 + LENGTH, 5000 + LENGTH, 0);
	expect_drops(ledger, 0, 3);
	assert_null(ow_interval_log_next(ledger, INT64_MAX));
	drop(ledger, 5000, 5000, 16); /* its page is gone: to the next */
	expect_drops(ledger, 1, 16);
	assert_null(ow_interval_log_next(ledger, INT64_MAX));

	/* Over several intervals, also those whose pages are not open yet: each has a share of them all. */
	drop(ledger, 5000 + 2 * LENGTH + LENGTH / 2, 5000 + 6 * LENGTH - 1, 700);
	expect_drops(ledger, 2, 100);
	for (int i = 3; i < 6; i++)
		expect_drops(ledger, i, 200);
	assert_null(ow_interval_log_next(ledger, INT64_MAX));

	/* One frame could have been in any of four, so all are in doubt; and then none. */
	drop(ledger, 5000 + 6 * LENGTH, 5000 + 10 * LENGTH - 1, 1);
	for (int i = 6; i < 10; i++)
		expect_drops(ledger, i, 1);
	assert_null(ow_interval_log_next(ledger, INT64_MAX));
	ow_interval_log_free(ledger);

	ledger = create(100, 8);
	/* What is open when it is freed. */
	struct ow_sighting sighting[] = {{7, 1}, {7, 2}, {8, 3}};
	add(ledger, 4, sighting, 3);
	ow_interval_log_free(ledger);
	ow_interval_log_free(NULL);
	ow_interval_packets_free(NULL);
}

/*
 * An interval that is split anywhere: every packet is in one of the two, at the same time, and copies keep their names.
 */
static void test_split(void **state)
{
	(void)state;
	for (int64_t at = 5000; at <= 5000 + LENGTH; at += LENGTH / 4) {
		struct ow_interval_log *ledger = create(100, 3);
		struct ow_sighting sighting[] = {{7, 0}, {7, 249}, {8, 250}, {9, 500}, {7, 999}};
		add(ledger, 0, sighting, 5);
		struct ow_interval_packets *page = ow_interval_log_next(ledger, 5000 + LENGTH);
		assert_non_null(page);
		struct ow_sighting whole[5];
		memcpy(whole, page->sighting, sizeof whole);
		struct ow_interval_packets *rest = ow_interval_packets_rest(page, at);
		assert_non_null(rest);
		ow_interval_packets_cut(page, at);
		assert_int_equal(page->count + rest->count, 5);
		assert_int_equal(page->total_packets, page->count);
		assert_int_equal(page->total_bytes, 100 * page->count);
		assert_int_equal(page->start_ns, 5000);
		assert_int_equal(page->length_ns, at - 5000);
		assert_int_equal(rest->interval, page->interval + 1);
		assert_int_equal(rest->start_ns, at);
		assert_int_equal(rest->length_ns, 5000 + LENGTH - at);
		for (size_t i = 0; i < 5; i++) {
			const struct ow_interval_packets *in = i < page->count ? page : rest;
			const struct ow_sighting *is = in->sighting + (i < page->count ? i : i - page->count);
			assert_int_equal(is->id, whole[i].id);
			assert_int_equal(in->start_ns + is->time_ns, 5000 + whole[i].time_ns);
			const struct ow_copy *copy = ow_interval_packets_copy(in, is->id);
			assert_int_equal(copy ? copy->base_id : is->id, sighting[i].id);
		}
		ow_interval_packets_free(page);
		ow_interval_packets_free(rest);
		ow_interval_log_free(ledger);
	}
}

static void test_refuses(void **state)
{
	(void)state;
	struct ow_interval_log *ledger = NULL;
	struct ow_interval_log_options options = {identity, 0, 0, 10, 1};
	assert_int_equal(ow_interval_log_create(&options, &ledger), -22);
	options.length_ns = 1;
	options.open_max = 0;
	assert_int_equal(ow_interval_log_create(&options, &ledger), -22);
	options.open_max = SIZE_MAX;
	assert_int_equal(ow_interval_log_create(&options, &ledger), -22);
	assert_null(ledger);
}

int main(void)
{
	ow_identity_seed(&identity, 42);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_halving), cmocka_unit_test(test_streams),
		cmocka_unit_test(test_far_ahead),  cmocka_unit_test(test_held_up), cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_outage),     cmocka_unit_test(test_drops),   cmocka_unit_test(test_split),
		cmocka_unit_test(test_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
