/* SPDX-License-Identifier: Apache-2.0 */
#include "scope_world.h"

#include "reconcile/key_list.h"
#include "reconcile/scope_waste.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct page { /* packets of an interval at a point */
	uint32_t *trip;
	uint32_t *flow_of;
	size_t count;
	struct ow_scope_flow *flow;
	size_t flows;
	uint8_t *in_scope;
};

struct run {
	struct scope_world *w;
	struct scope_account *account;
	struct ow_scope_announcer *announcer;
	struct ow_scope_receiver *receiver;
	struct ow_scope_verdict *verdict;
	struct page *a, *b;
	uint8_t *early; /* B had it before A */
	uint32_t *synopsis;
	size_t in_synopsis;
};

static void *some(size_t count, size_t size)
{
	void *p = calloc(count + 1, size);
	assert_non_null(p);
	return p;
}

/* -- pages --------------------------------------------------------------------------------------------------------- */

static int64_t edge(const struct scope_world *w, int64_t interval)
{
	return interval * w->length_ns + (w->edge_ns ? w->edge_ns[interval] : 0);
}

static int64_t b_interval_of(const struct scope_world *w, int64_t time_ns)
{
	int64_t i = time_ns / w->length_ns;
	while (i > 0 && time_ns < edge(w, i))
		i--;
	while (i + 1 < w->intervals && time_ns >= edge(w, i + 1))
		i++;
	return i;
}

static void place_trips(struct run *run)
{
	struct scope_world *w = run->w;
	for (size_t t = 0; t < w->trip_count; t++) {
		struct trip *trip = &w->trips[t];
		trip->a_interval = trip->b_interval = trip->compared = trip->matched = -1;
		trip->judged = trip->in_scope = false;
		if (trip->fate != TRIP_ONLY_B) {
			trip->a_interval = trip->sent_ns / w->length_ns;
			if (trip->a_interval < w->intervals)
				run->a[trip->a_interval].count++;
		}
		if (trip->fate == TRIP_ARRIVES || trip->fate == TRIP_ONLY_B) {
			trip->b_interval = b_interval_of(w, trip->arrived_ns);
			if (trip->b_interval < w->intervals)
				run->b[trip->b_interval].count++;
		}
	}
}

struct timed {
	int64_t time_ns;
	uint32_t trip;
};

static int by_time(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->trip > y->trip) - (x->trip < y->trip);
}

/* The flows of a page, each once. `mark` has the place of a flow + 1, and is 0 before and after. */
static void make_flows(const struct scope_world *w, struct page *page, uint32_t *mark, bool at_b)
{
	page->flow = some(page->count, sizeof *page->flow);
	page->flow_of = some(page->count, sizeof *page->flow_of);
	page->in_scope = some(page->count, 1);
	for (size_t i = 0; i < page->count; i++) {
		const struct trip *trip = &w->trips[page->trip[i]];
		if (!mark[trip->flow]) {
			page->flow[page->flows] = w->flows[trip->flow];
			page->flow[page->flows].packets = 0;
			mark[trip->flow] = (uint32_t)++page->flows;
		}
		page->flow_of[i] = mark[trip->flow] - 1;
		page->flow[page->flow_of[i]].packets++;
		if (at_b)
			page->flow[page->flow_of[i]].ttl = trip->ttl_b;
	}
	for (size_t i = 0; i < page->count; i++)
		mark[w->trips[page->trip[i]].flow] = 0;
}

static void make_pages(struct run *run, struct page *pages, bool at_b)
{
	struct scope_world *w = run->w;
	struct timed *timed = some(w->trip_count, sizeof *timed);
	uint32_t *mark = some(w->flow_count, sizeof *mark);
	size_t n = 0;
	for (size_t t = 0; t < w->trip_count; t++) {
		const struct trip *trip = &w->trips[t];
		int64_t interval = at_b ? trip->b_interval : trip->a_interval;
		if (interval >= 0 && interval < w->intervals)
			timed[n++] = (struct timed){at_b ? trip->arrived_ns : trip->sent_ns, (uint32_t)t};
	}
	qsort(timed, n, sizeof *timed, by_time);
	for (int64_t i = 0; i < w->intervals; i++) {
		pages[i].trip = some(pages[i].count, sizeof *pages[i].trip);
		pages[i].count = 0;
	}
	for (size_t k = 0; k < n; k++) {
		const struct trip *trip = &w->trips[timed[k].trip];
		struct page *page = &pages[at_b ? trip->b_interval : trip->a_interval];
		page->trip[page->count++] = timed[k].trip;
	}
	for (int64_t i = 0; i < w->intervals; i++)
		make_flows(w, &pages[i], mark, at_b);
	free(mark);
	free(timed);
}

static void free_pages(struct page *pages, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		free(pages[i].trip);
		free(pages[i].flow_of);
		free(pages[i].flow);
		free(pages[i].in_scope);
	}
	free(pages);
}

/* -- the exchange of an interval ----------------------------------------------------------------------------------- */

static double list_bytes(const struct ow_scope_list *list)
{
	return list->count ? (double)ow_key_list_size(OW_SCOPE_KEY_BITS, list->key, list->count) : 0;
}

#define FRAME_BYTES  20
#define UPDATE_BYTES 28
#define ANSWER_BYTES 24

static void announce(struct run *run, int64_t interval)
{
	const struct ow_scope_update *update;
	const struct page *page = &run->a[interval];
	for (size_t f = 0; run->w->fine_at && interval == run->w->fine_at && f < run->w->flow_count; f++) {
		uint64_t pair = ow_scope_key(run->w->flows[f].pair);
		assert_int_equal(ow_scope_make_fine(run->announcer, &pair, 1), 0);
	}
	assert_int_equal(ow_scope_announce(run->announcer, interval, page->flow, page->flows, &update), 0);
	run->account->scope_bytes += FRAME_BYTES + UPDATE_BYTES + list_bytes(&update->hot) + list_bytes(&update->fine) +
	                             list_bytes(&update->keys);
	struct ow_scope_announcer_counts counts;
	ow_scope_announcer_counts(run->announcer, &counts);
	run->account->unannounced += counts.unannounced;
	assert_true(counts.live <= OW_SCOPE_LIVE_MAX);
}

/* A packet of B is in the synopsis of this interval: never twice. */
static void into_synopsis(struct run *run, int64_t interval, uint32_t t)
{
	struct trip *trip = &run->w->trips[t];
	assert_int_equal(trip->compared, -1);
	trip->compared = interval;
	run->synopsis[run->in_synopsis++] = t;
	run->account->in_synopsis++;
}

static int receive(struct run *run, int64_t interval, const struct ow_scope_update *update,
                   struct ow_scope_answer *answer)
{
	struct ow_scope_held held[OW_SCOPE_HOLD_MAX];
	size_t helds = 0;
	struct page *page = &run->b[interval];
	struct ow_error err = {""};
	int r = ow_scope_receive(run->receiver, interval, update, page->flow, page->flows, page->in_scope, held, &helds,
	                         answer, &err);
	run->in_synopsis = 0;
	run->account->received += page->count;
	for (size_t i = 0; i < page->count; i++) {
		if (page->in_scope[page->flow_of[i]] == OW_SCOPE_JOINS)
			into_synopsis(run, interval, page->trip[i]);
	}
	for (size_t k = 0; k < helds; k++) {
		const struct page *old = &run->b[held[k].interval];
		assert_int_equal(held[k].flows, old->flows);
		for (size_t i = 0; i < old->count; i++) {
			if (held[k].joins[old->flow_of[i]] == OW_SCOPE_JOINS)
				into_synopsis(run, interval, old->trip[i]);
			run->account->expired += held[k].joins[old->flow_of[i]] == OW_SCOPE_EXPIRES;
		}
	}
	assert_true(r == 0 || err.text[0]);
	return r;
}

/* What is in B's synopsis meets what is at A: compared in this interval, or waiting since an earlier one. */
static void match(struct run *run, int64_t interval)
{
	for (size_t k = 0; k < run->in_synopsis; k++) {
		struct trip *trip = &run->w->trips[run->synopsis[k]];
		if (trip->fate == TRIP_ONLY_B) {
			const struct page *page = &run->b[trip->b_interval];
			for (size_t i = 0; i < page->count; i++) {
				if (page->trip[i] == run->synopsis[k]) {
					ow_scope_received_only(run->receiver, &page->flow[page->flow_of[i]], 1);
					break;
				}
			}
			run->account->waste_bytes += OW_SCOPE_WASTE_B_ONLY;
		} else if (trip->a_interval > interval) {
			run->early[run->synopsis[k]] = 1;
		} else if (interval - trip->a_interval <= run->w->horizon) {
			trip->matched = interval;
			if (trip->a_interval < interval)
				ow_scope_verdict_late(run->verdict, trip->a_interval, &run->w->flows[trip->flow],
				                      trip->sent_ns - trip->a_interval * run->w->length_ns);
		}
	}
}

static void note(struct run *run, int64_t interval)
{
	struct page *page = &run->a[interval];
	uint8_t *matched = some(page->count, 1);
	struct ow_sighting *packets = some(page->count, sizeof *packets);
	for (size_t i = 0; i < page->count; i++) {
		struct trip *trip = &run->w->trips[page->trip[i]];
		trip->in_scope = page->in_scope[page->flow_of[i]];
		if (run->early[page->trip[i]] && trip->matched < 0)
			trip->matched = interval;
		matched[i] = trip->matched >= 0;
		packets[i] = (struct ow_sighting){page->trip[i] + 1, trip->sent_ns - interval * run->w->length_ns,
		                                  page->flow_of[i] + 1};
	}
	assert_int_equal(
		ow_scope_verdict_note(run->verdict, interval, page->flow, page->flows, packets, matched, page->count),
		0);
	free(packets);
	free(matched);
}

/* -- verdicts ------------------------------------------------------------------------------------------------------ */

static void count_trip(struct scope_account *account, const struct trip *trip)
{
	bool lost = trip->matched < 0 && trip->verdict <= OW_SCOPE_LOST_WHOLE;
	account->sent++;
	account->arrived += trip->fate == TRIP_ARRIVES;
	account->lost += trip->fate == TRIP_LOST;
	account->elsewhere += trip->fate == TRIP_ELSEWHERE;
	account->strays += trip->fate == TRIP_ARRIVES && trip->matched < 0;
	account->false_lost += trip->fate != TRIP_LOST && lost;
	account->false_whole += trip->fate != TRIP_LOST && lost && trip->verdict == OW_SCOPE_LOST_WHOLE;
	account->missed += trip->fate == TRIP_LOST && !lost;
	account->missed_absent += trip->fate == TRIP_LOST && !lost && trip->verdict == OW_SCOPE_ABSENT;
	if (trip->matched < 0 && trip->verdict == OW_SCOPE_ABSENT && trip->in_scope)
		account->waste_bytes += OW_SCOPE_WASTE_A_ONLY;
}

static void take_events(struct run *run)
{
	struct ow_scope_event event[OW_SCOPE_EVENTS_MAX];
	size_t n = ow_scope_verdict_events(run->verdict, event);
	for (size_t i = 0; i < n && run->account->events < WORLD_EVENTS_MAX; i++)
		run->account->event[run->account->events++] = event[i];
	uint64_t fine[1024];
	size_t fines = ow_scope_verdict_fine(run->verdict, fine, 1024);
	assert_int_equal(ow_scope_make_fine(run->announcer, fine, fines), 0);
}

static void judge(struct run *run, int64_t interval)
{
	const struct page *page = &run->a[interval];
	struct ow_scope_packet *unmatched = some(page->count, sizeof *unmatched);
	uint8_t *fate = some(page->count, 1);
	struct ow_scope_sums sums;
	size_t n = 0;
	for (size_t i = 0; i < page->count; i++) {
		const struct trip *trip = &run->w->trips[page->trip[i]];
		if (trip->matched < 0)
			unmatched[n++] = (struct ow_scope_packet){
				page->flow_of[i], trip->sent_ns - interval * run->w->length_ns, trip->in_scope};
	}
	assert_int_equal(
		ow_scope_verdict_judge(run->verdict, interval, page->flow, page->flows, unmatched, n, fate, &sums), 0);
	assert_int_equal(sums.lost + sums.unshared, n);
	assert_true(sums.unsure <= sums.absent && sums.absent <= sums.unshared && sums.whole <= sums.lost);
	n = 0;
	for (size_t i = 0; i < page->count; i++) {
		struct trip *trip = &run->w->trips[page->trip[i]];
		trip->judged = true;
		trip->verdict = trip->matched < 0 ? fate[n++] : 0;
		count_trip(run->account, trip);
	}
	run->account->sums.lost += sums.lost;
	run->account->sums.whole += sums.whole;
	run->account->sums.unsure += sums.unsure;
	run->account->sums.absent += sums.absent;
	run->account->sums.unshared += sums.unshared;
	run->account->sums.networks += sums.networks;
	take_events(run);
	free(unmatched);
	free(fate);
}

static void count_answer(struct run *run, const struct ow_scope_answer *answer)
{
	run->account->answer_bytes += ANSWER_BYTES + (double)answer->seen_bytes + list_bytes(&answer->late) +
	                              list_bytes(&answer->fine) + list_bytes(&answer->rerouted) +
	                              (double)answer->rerouted.count;
}

static void exchange(struct run *run, int64_t interval)
{
	struct ow_scope_answer answer;
	struct ow_error err = {""};
	struct page *page = &run->a[interval];
	int64_t of = -1;
	const struct ow_scope_update *update = NULL;
	for (size_t n = 0; of < interval && (update = ow_scope_in_flight(run->announcer, n, &of)); n++)
		;
	bool there = update && of == interval && (!run->w->break_at || interval != run->w->break_at);
	int r = receive(run, interval, there ? update : NULL, &answer);
	if (r == 0 && there)
		r = ow_scope_confirm(run->announcer, interval, &answer, page->flow, page->flows, page->in_scope, &err);
	if (r < 0 || !there) {
		assert_true(r == 0 || r == -ESTALE);
		run->account->unknown++;
		memset(page->in_scope, 0, page->flows);
		if (r == -ESTALE)
			ow_scope_announcer_reset(run->announcer);
	} else {
		count_answer(run, &answer);
		ow_scope_verdict_ttl(run->verdict, interval, answer.rerouted.key, answer.ttl_change,
		                     answer.rerouted.count);
		match(run, interval);
	}
	ow_scope_answer_done(&answer);
	note(run, interval);
	if (interval >= run->w->horizon)
		judge(run, interval - run->w->horizon);
}

void scope_world_run(struct scope_world *w, struct scope_account *ret_account)
{
	memset(ret_account, 0, sizeof *ret_account);
	struct run run = {.w = w, .account = ret_account};
	struct ow_scope_options options = {.hold = w->hold, .overlap = w->horizon, .secret = 1};
	struct ow_scope_verdict_options judge_options = {w->length_ns, w->horizon, 3};
	assert_int_equal(ow_scope_announcer_create(&options, &run.announcer), 0);
	options.secret = 2;
	assert_int_equal(ow_scope_receiver_create(&options, &run.receiver), 0);
	assert_int_equal(ow_scope_verdict_create(&judge_options, &run.verdict), 0);
	run.a = some((size_t)w->intervals, sizeof *run.a);
	run.b = some((size_t)w->intervals, sizeof *run.b);
	run.early = some(w->trip_count, 1);
	run.synopsis = some(w->trip_count, sizeof *run.synopsis);
	place_trips(&run);
	make_pages(&run, run.a, false);
	make_pages(&run, run.b, true);
	int64_t announced = 0;
	for (int64_t i = 0; i < w->intervals; i++) {
		while (announced <= i + w->ahead && announced < w->intervals)
			announce(&run, announced++);
		exchange(&run, i);
	}
	for (int64_t i = w->intervals > w->horizon ? w->intervals - w->horizon : 0; i < w->intervals; i++)
		judge(&run, i);
	ow_scope_announcer_counts(run.announcer, &ret_account->counts);
	ow_scope_announcer_free(run.announcer);
	ow_scope_receiver_free(run.receiver);
	ow_scope_verdict_free(run.verdict);
	free_pages(run.a, w->intervals);
	free_pages(run.b, w->intervals);
	free(run.early);
	free(run.synopsis);
}
