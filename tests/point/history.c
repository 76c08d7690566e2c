/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "history.h"
#include "reconcile/running_copies.h"
#include <stdlib.h>
#include <string.h>

static void keep(void *arg, const struct ow_interval_result *result)
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
	assert_int_equal(ow_interval_results_create(horizon, keep, history, &history->settle), 0);
	assert_int_equal(ow_interval_copies_create(&history->copies), 0);
}

void history_done(struct history *history)
{
	ow_interval_results_free(history->settle);
	ow_interval_copies_free(history->copies);
	free(history->first);
	free(history->final);
}

static struct ow_interval_packets *page_of(struct ow_interval_log *ledger, const struct ow_sighting *stamp,
                                           size_t count, int64_t interval, int64_t length_ns)
{
	struct ow_chunk *chunk = calloc(1, sizeof *chunk + (count + 1) * sizeof *stamp);
	assert_non_null(chunk);
	chunk->interval = interval;
	chunk->count = (uint32_t)count;
	chunk->packets = count;
	for (size_t i = 0; i < count; i++)
		chunk->sighting[i] = (struct ow_sighting){stamp[i].id, stamp[i].time_ns - interval * length_ns};
	assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
	free(chunk);
	struct ow_interval_packets *page = ow_interval_log_next(ledger, (interval + 1) * length_ns);
	assert_non_null(page);
	assert_int_equal(page->interval, interval);
	return page;
}

static size_t until(const struct ow_sighting *stamp, size_t count, int64_t time_ns)
{
	size_t n = 0;
	while (n < count && stamp[n].time_ns < time_ns)
		n++;
	return n;
}

static int by_time(const void *x, const void *y)
{
	const struct ow_sighting *a = x, *b = y;
	return a->time_ns != b->time_ns ? (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns) : (a > b) - (a < b);
}

void history_sort(struct ow_sighting *stamp, size_t count)
{
	qsort(stamp, count, sizeof *stamp, by_time);
}

/* As live does: an interval whose delays may be longer is partial. */
static void doubt_delays(struct ow_running_copies *running, const struct ow_interval_packets *a, bool two_clocks,
                         const struct ow_joined *joined, struct ow_interval_results_input *input)
{
	struct ow_running_interval interval = {.compared = true,
	                                       .start_ns = a->start_ns,
	                                       .begun_ns = a->start_ns,
	                                       .sent = a->sighting,
	                                       .count = a->count,
	                                       .copies = a->copies,
	                                       .others = joined->aligned ? joined->samples : 0,
	                                       .aligned = joined->aligned,
	                                       .unsure = input->close || input->result.ambiguous,
	                                       .most_ns = two_clocks ? INT64_MAX : 200000000,
	                                       .lost_ns = 2000000000};
	if (ow_running_copies_doubt(running, &interval) && input->result.status == OW_RESULT_MEASURED)
		input->result.status = OW_RESULT_PARTIAL;
}

static void play(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                 size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon, bool doubts, bool two_clocks,
                 history_look *look, void *arg)
{
	struct ow_interval_log_options options = {.length_ns = length_ns, .sightings_max = as + bs + 1, .open_max = 4};
	struct ow_interval_log *ledger_a, *ledger_b;
	assert_int_equal(ow_interval_log_create(&options, &ledger_a), 0);
	assert_int_equal(ow_interval_log_create(&options, &ledger_b), 0);
	struct ow_interval_packets *before = NULL;
	history_open(history, horizon, intervals);
	/* Some tests have times of a few nanoseconds: less than clocks show, and alignment expects. */
	struct ow_interval_copies *copies = length_ns < 1000000 ? NULL : history->copies;
	struct ow_running_copies running = {0};
	for (int64_t i = 0; i < (int64_t)intervals; i++) {
		size_t n = until(a, as, (i + 1) * length_ns), m = until(b, bs, (i + 1) * length_ns);
		struct ow_interval_packets *page_a = page_of(ledger_a, a, n, i, length_ns);
		struct ow_interval_packets *page_b = page_of(ledger_b, b, m, i, length_ns);
		struct ow_interval_results_input input;
		struct ow_joined joined;
		assert_int_equal(
			ow_interval_match_pair(page_a, page_b,
		                               &(struct ow_interval_match_past){history->settle, before, NULL, copies,
		                                                                running.longer, two_clocks},
		                               &input, &joined),
			0);
		input.result.clock_from = input.result.clock_to = (struct ow_clock_state){true, 0};
		if (doubts)
			doubt_delays(&running, page_a, two_clocks, &joined, &input);
		if (look)
			look(arg, page_a, page_b, &input);
		assert_int_equal(ow_interval_results_step(history->settle, &input), 0);
		ow_joined_done(&joined);
		ow_interval_packets_free(page_a);
		ow_interval_packets_free(before);
		before = page_b;
		a += n;
		as -= n;
		b += m;
		bs -= m;
	}
	ow_interval_packets_free(before);
	ow_interval_log_free(ledger_a);
	ow_interval_log_free(ledger_b);
}

void history_play_seen(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                       size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon, history_look *look, void *arg)
{
	play(history, a, as, b, bs, length_ns, intervals, horizon, false, false, look, arg);
}

void history_play_running(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                          size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon, bool two_clocks)
{
	play(history, a, as, b, bs, length_ns, intervals, horizon, true, two_clocks, NULL, NULL);
}

void history_play(struct history *history, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                  size_t bs, int64_t length_ns, size_t intervals, uint32_t horizon)
{
	history_play_seen(history, a, as, b, bs, length_ns, intervals, horizon, NULL, NULL);
}
