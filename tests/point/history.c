/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "history.h"
#include <stdlib.h>
#include <string.h>

static void keep(void *arg, const struct ow_live_result *result)
{
	struct history *history = arg;
	assert_true(result->sent == result->matched + result->late + result->lost + result->pending);
	assert_true(result->received == result->matched + result->late_received + result->extra);
	assert_true(result->duplicated <= result->extra && result->ambiguous <= result->matched + result->late);
	if (result->final)
		history->final[history->finals++] = *result;
	else
		history->first[history->firsts++] = *result;
}

void history_open(struct history *history, uint32_t horizon, size_t intervals)
{
	*history = (struct history){0};
	history->first = calloc(intervals, sizeof *history->first);
	history->final = calloc(intervals, sizeof *history->final);
	assert_non_null(history->first);
	assert_non_null(history->final);
	assert_int_equal(ow_settle_create(horizon, keep, history, &history->settle), 0);
}

void history_done(struct history *history)
{
	ow_settle_free(history->settle);
	free(history->first);
	free(history->final);
}

static struct ow_page *page_of(struct ow_ledger *ledger, const struct ow_stamp *stamp, size_t count, int64_t interval,
                               int64_t length_ns)
{
	struct ow_chunk *chunk = calloc(1, sizeof *chunk + (count + 1) * sizeof *stamp);
	assert_non_null(chunk);
	chunk->interval = interval;
	chunk->count = (uint32_t)count;
	chunk->packets = count;
	for (size_t i = 0; i < count; i++)
		chunk->stamp[i] = (struct ow_stamp){stamp[i].id, stamp[i].time_ns - interval * length_ns};
	assert_int_equal(ow_ledger_add(ledger, chunk), 0);
	free(chunk);
	struct ow_page *page = ow_ledger_next(ledger, (interval + 1) * length_ns);
	assert_non_null(page);
	assert_int_equal(page->interval, interval);
	return page;
}

static size_t until(const struct ow_stamp *stamp, size_t count, int64_t time_ns)
{
	size_t n = 0;
	while (n < count && stamp[n].time_ns < time_ns)
		n++;
	return n;
}

static int by_time(const void *x, const void *y)
{
	const struct ow_stamp *a = x, *b = y;
	return a->time_ns != b->time_ns ? (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns) : (a > b) - (a < b);
}

void history_sort(struct ow_stamp *stamp, size_t count)
{
	qsort(stamp, count, sizeof *stamp, by_time);
}

void history_play(struct history *history, const struct ow_stamp *a, size_t as, const struct ow_stamp *b, size_t bs,
                  int64_t length_ns, size_t intervals, uint32_t horizon)
{
	struct ow_ledger_options options = {.length_ns = length_ns, .stamps_max = as + bs + 1, .open_max = 4};
	struct ow_ledger *ledger_a, *ledger_b;
	assert_int_equal(ow_ledger_create(&options, &ledger_a), 0);
	assert_int_equal(ow_ledger_create(&options, &ledger_b), 0);
	struct ow_page *before = NULL;
	history_open(history, horizon, intervals);
	for (int64_t i = 0; i < (int64_t)intervals; i++) {
		size_t n = until(a, as, (i + 1) * length_ns), m = until(b, bs, (i + 1) * length_ns);
		struct ow_page *page_a = page_of(ledger_a, a, n, i, length_ns);
		struct ow_page *page_b = page_of(ledger_b, b, m, i, length_ns);
		struct ow_settle_input input;
		struct ow_joined joined;
		assert_int_equal(
			ow_join_pages(page_a, page_b, &(struct ow_join_past){history->settle, before}, &input, &joined),
			0);
		input.result.clock_from = input.result.clock_to = (struct ow_clock_state){true, 0};
		assert_int_equal(ow_settle_step(history->settle, &input), 0);
		ow_joined_done(&joined);
		ow_page_free(page_a);
		ow_page_free(before);
		before = page_b;
		a += n;
		as -= n;
		b += m;
		bs -= m;
	}
	ow_page_free(before);
	ow_ledger_free(ledger_a);
	ow_ledger_free(ledger_b);
}
