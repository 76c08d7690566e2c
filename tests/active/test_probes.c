/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes through a simulated network with known truth: counts, directions of loss, delays, order, and undecided cases.
 */
#include "active/probes.h"

#include "base/random.h"
#include "base/time.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED     5357
#define T0       (INT64_C(1700000000) * OW_NS_PER_S)
#define RESULTS  6000
#define EVENTS   200000
#define OFFSET   (-3 * OW_NS_PER_MS) /* of the reflector's clock */
#define STAY_NS  (20 * OW_NS_PER_US)
#define THERE_NS (5 * OW_NS_PER_MS)
#define BACK_NS  (9 * OW_NS_PER_MS)

static const struct ow_clock_state near = {true, 1000}, far = {true, 2000};

struct world {
	struct ow_random random;
	double rate, loss[2], duplicate[2];
	int64_t jitter_ns; /* uniform */
	bool stateless;
	int64_t seconds;
	uint32_t first_number; /* of the reflector */

	struct ow_probes *probes;
	struct ow_interval_result result[RESULTS];
	size_t results;
	/* The truth, by interval of sending. */
	uint64_t sent, lost[2], copied[2], verdict[OW_PROBES_VERDICTS];
};

static void keep(void *arg, const struct ow_interval_result *r)
{
	struct world *w = arg;
	assert_true(w->results < RESULTS);
	assert_true(r->sent == r->matched + r->late + r->lost + r->pending);
	assert_true(r->received == r->matched + r->late_received + r->extra);
	assert_true(r->active && r->final && !r->exact);
	w->result[w->results++] = *r;
}

static void begin(struct world *w, int64_t length_ns, int64_t wait_ns, uint32_t window)
{
	const struct ow_probes_options o = {.segment = "x",
	                                    .class_name = "all",
	                                    .from = "a",
	                                    .to = "b",
	                                    .method = "STAMP",
	                                    .length_ns = length_ns,
	                                    .wait_ns = wait_ns,
	                                    .window = window,
	                                    .sink = keep,
	                                    .arg = w};
	assert_int_equal(ow_probes_create(&o, &w->probes), 0);
}

struct event {
	int64_t at_ns;
	enum { SEND, ARRIVE, RETURN } kind;
	uint32_t sequence, number;
	int64_t t2_ns;
};

/* A heap by time. */
struct heap {
	struct event event[EVENTS];
	size_t count;
};

static void push(struct heap *h, struct event e)
{
	assert_true(h->count < EVENTS);
	size_t i = h->count++;
	for (; i && h->event[(i - 1) / 2].at_ns > e.at_ns; i = (i - 1) / 2)
		h->event[i] = h->event[(i - 1) / 2];
	h->event[i] = e;
}

static struct event pop(struct heap *h)
{
	struct event top = h->event[0], last = h->event[--h->count];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= h->count)
			break;
		child += child + 1 < h->count && h->event[child + 1].at_ns < h->event[child].at_ns;
		if (h->event[child].at_ns >= last.at_ns)
			break;
		h->event[i] = h->event[child];
		i = child;
	}
	h->event[i] = last;
	return top;
}

static int64_t delay(struct world *w, int way)
{
	return (way ? BACK_NS : THERE_NS) +
	       (w->jitter_ns ? (int64_t)ow_random_below(&w->random, (uint64_t)w->jitter_ns) : 0);
}

/* Onto one way: lost, or one or two arrivals. */
static void carry(struct world *w, struct heap *h, int way, struct event e)
{
	if (ow_random_unit(&w->random) < w->loss[way]) {
		w->lost[way]++;
		return;
	}
	struct event copy = e;
	e.at_ns += delay(w, way);
	push(h, e);
	if (ow_random_unit(&w->random) < w->duplicate[way]) {
		w->copied[way]++;
		copy.at_ns += delay(w, way) + 1;
		push(h, copy);
	}
}

static void run(struct world *w)
{
	struct heap *h = calloc(1, sizeof *h);
	uint32_t number = w->first_number;
	assert_non_null(h);
	ow_random_seed(&w->random, SEED);
	push(h, (struct event){.at_ns = T0 + 1, .kind = SEND});
	int64_t now_ns = T0;
	while (h->count) {
		struct event e = pop(h);
		now_ns = e.at_ns;
		ow_probes_work(w->probes, now_ns, &near);
		if (e.kind == SEND) {
			struct event probe = {now_ns, ARRIVE, ow_probes_next(w->probes), 0, 0};
			assert_int_equal(ow_probes_room(w->probes), 0);
			ow_probes_sent(w->probes, now_ns, 72);
			w->sent++;
			carry(w, h, 0, probe);
			int64_t next_ns = now_ns + (int64_t)(-log1p(-ow_random_unit(&w->random)) / w->rate * 1e9);
			if (next_ns < T0 + w->seconds * OW_NS_PER_S)
				push(h, (struct event){.at_ns = next_ns, .kind = SEND});
		} else if (e.kind == ARRIVE) {
			struct event back = {now_ns + STAY_NS, RETURN, e.sequence, w->stateless ? e.sequence : number++,
			                     now_ns};
			carry(w, h, 1, back);
		} else {
			const struct ow_probes_reply reply = {.sequence = e.sequence,
			                                      .number = e.number,
			                                      .t2_ns = e.t2_ns + OFFSET,
			                                      .t3_ns = e.t2_ns + STAY_NS + OFFSET,
			                                      .t4_ns = now_ns,
			                                      .timed = true,
			                                      .bytes = 72,
			                                      .far = far};
			w->verdict[ow_probes_reply(w->probes, &reply)]++;
		}
	}
	free(h);
	ow_probes_work(w->probes, now_ns + 100 * OW_NS_PER_S, &near);
	ow_probes_close(w->probes, now_ns + 100 * OW_NS_PER_S, &near, "the run ended");
}

static void done(struct world *w)
{
	ow_probes_free(w->probes);
}

static struct ow_interval_result sum_of(const struct world *w, int lane)
{
	struct ow_interval_result sum = {0};
	for (size_t i = (size_t)lane; i < w->results; i += OW_PROBES_LANES) {
		sum.sent += w->result[i].sent;
		sum.lost += w->result[i].lost;
		sum.pending += w->result[i].pending;
		sum.matched += w->result[i].matched;
		sum.extra += w->result[i].extra;
		sum.samples += w->result[i].samples;
		sum.late_received += w->result[i].late_received;
	}
	return sum;
}

/* Nothing is lost: delays to the nanosecond, offsets where they belong. */
static void test_quiet(void **state)
{
	(void)state;
	static struct world w = {.rate = 20, .seconds = 30};
	begin(&w, OW_NS_PER_S, 2 * OW_NS_PER_S, 200);
	run(&w);
	const double expected[] = {THERE_NS + OFFSET, BACK_NS - OFFSET, THERE_NS + BACK_NS};
	const char *const from[] = {"a", "b", "a"}, *const to[] = {"b", "a", "a"};
	for (int lane = 0; lane < OW_PROBES_LANES; lane++) {
		struct ow_interval_result total, sum = sum_of(&w, lane);
		ow_probes_total(w.probes, lane, &total);
		assert_true(total.status == OW_RESULT_MEASURED && total.samples == w.sent && total.sent == w.sent);
		assert_true(sum.sent == w.sent && sum.matched == w.sent && !sum.lost && !sum.pending && !sum.extra);
		assert_true(fabs(total.mean_ns.value - expected[lane]) < 1 && total.stddev_ns.value < 1);
		assert_true(total.reordered == 0 && total.coverage == 1);
		assert_string_equal(total.from, from[lane]);
		assert_string_equal(total.to, to[lane]);
		assert_string_equal(total.class_name, lane == OW_PROBES_ROUND ? "round-trip" : "all");
		/* Wilson: 0 of n, at most z^2 / (n + z^2). */
		assert_true(total.loss_ratio.value == 0 && total.loss_ratio.high < 3.85 / (double)w.sent);
	}
	const struct ow_interval_result *there = &w.result[0], *back = &w.result[1], *round = &w.result[2];
	assert_true(there->clock_from.error_ns == 1000 && there->clock_to.error_ns == 2000);
	assert_true(back->clock_from.error_ns == 2000 && back->clock_to.error_ns == 1000);
	assert_true(round->clock_from.error_ns == 0 && round->clock_to.error_ns == 0);
	assert_string_equal(there->synopsis, "STAMP probes, stateful reflector");
	/* Intervals follow each other without holes. */
	for (size_t i = OW_PROBES_LANES; i < w.results; i++) {
		const struct ow_interval_result *a = &w.result[i - OW_PROBES_LANES], *b = &w.result[i];
		assert_true(b->start_ns == a->start_ns + a->length_ns && b->interval == a->interval + 1);
	}
	done(&w);
}

/* Loss both ways: what is decided is right, and little is not. */
static void test_both_ways(void **state)
{
	(void)state;
	static struct world w = {.rate = 50, .seconds = 200, .loss = {0.05, 0.02}};
	begin(&w, OW_NS_PER_S, 2 * OW_NS_PER_S, 1000);
	run(&w);
	struct ow_interval_result there = sum_of(&w, OW_PROBES_THERE), back = sum_of(&w, OW_PROBES_BACK),
				  round = sum_of(&w, OW_PROBES_ROUND);
	assert_true(there.sent == w.sent && round.sent == w.sent && round.lost == w.lost[0] + w.lost[1]);
	assert_true(there.lost <= w.lost[0] && w.lost[0] <= there.lost + there.pending);
	assert_true(back.lost <= w.lost[1] && w.lost[1] <= back.lost + there.pending);
	assert_true(there.lost + back.lost + there.pending == w.lost[0] + w.lost[1]);
	/* Undecided: gaps of two and more (7 % of 7 %) of both kinds that lie across a boundary (one in 50). */
	assert_true((double)there.pending < 0.01 * (double)(w.lost[0] + w.lost[1]) + 6);
	print_message("seed %d: %llu sent, %llu + %llu lost, %llu undecided\n", SEED, (unsigned long long)w.sent,
	              (unsigned long long)there.lost, (unsigned long long)back.lost, (unsigned long long)there.pending);
	struct ow_interval_result total;
	ow_probes_total(w.probes, OW_PROBES_THERE, &total);
	/* 5 standard deviations of a binomial. */
	assert_true(fabs(total.loss_ratio.value - 0.05) < 5 * sqrt(0.05 * 0.95 / (double)w.sent));
	assert_true(total.loss_ratio.low < 0.05 && total.loss_ratio.high > 0.05);
	done(&w);
}

/* With a stateless reflector only the loss itself is known. */
static void test_stateless(void **state)
{
	(void)state;
	static struct world w = {.rate = 50, .seconds = 20, .loss = {0.05, 0.02}, .stateless = true};
	begin(&w, OW_NS_PER_S, 2 * OW_NS_PER_S, 1000);
	run(&w);
	struct ow_interval_result there = sum_of(&w, OW_PROBES_THERE), round = sum_of(&w, OW_PROBES_ROUND), total;
	assert_true(there.lost == 0 && there.pending == w.lost[0] + w.lost[1]);
	assert_true(round.lost == w.lost[0] + w.lost[1] && round.pending == 0);
	for (int lane = OW_PROBES_THERE; lane <= OW_PROBES_BACK; lane++) {
		ow_probes_total(w.probes, lane, &total);
		assert_true(total.loss_ratio.status == OW_VALUE_NONE && total.status == OW_RESULT_PARTIAL);
		assert_true(total.reordered == OW_RESULT_NOT_COUNTED && total.mean_ns.status == OW_VALUE_ESTIMATED);
	}
	ow_probes_total(w.probes, OW_PROBES_ROUND, &total);
	assert_true(total.loss_ratio.status == OW_VALUE_ESTIMATED && total.status == OW_RESULT_MEASURED);
	done(&w);
}

/* Copies and other orders: counted where they happened; numbers around 2^32 and from a session of before. */
static void test_disorder(void **state)
{
	(void)state;
	static struct world w = {.rate = 200,
	                         .seconds = 50,
	                         .duplicate = {0.03, 0.01},
	                         .jitter_ns = 20 * OW_NS_PER_MS,
	                         .first_number = UINT32_MAX - 2000};
	begin(&w, OW_NS_PER_S, OW_NS_PER_S, 1000);
	run(&w);
	struct ow_interval_result there = sum_of(&w, OW_PROBES_THERE), back = sum_of(&w, OW_PROBES_BACK), total;
	assert_true(there.lost == 0 && there.pending == 0 && back.lost == 0);
	assert_true(there.extra == w.copied[0] && back.extra == w.copied[1]);
	assert_true(back.sent == w.sent + w.copied[0]);
	assert_true(w.verdict[OW_PROBES_DUPLICATE] == w.copied[0] + w.copied[1]);
	assert_true(w.verdict[OW_PROBES_ANSWER] == w.sent && !w.verdict[OW_PROBES_UNASKED]);
	for (int lane = 0; lane < OW_PROBES_LANES; lane++) {
		ow_probes_total(w.probes, lane, &total);
		/* Gaps of 5 ms on average against differences of up to 20 ms: much disorder, not only disorder. */
		assert_true(total.reordered > w.sent / 10 && total.reordered < w.sent);
	}
	done(&w);
}

/* Disorder and loss together: never more losses than there are, all conserved. */
static void test_everything(void **state)
{
	(void)state;
	static struct world w = {.rate = 200,
	                         .seconds = 60,
	                         .loss = {0.1, 0.2},
	                         .duplicate = {0.05, 0.05},
	                         .jitter_ns = 15 * OW_NS_PER_MS};
	begin(&w, OW_NS_PER_S, OW_NS_PER_S, 1000);
	run(&w);
	struct ow_interval_result there = sum_of(&w, OW_PROBES_THERE), back = sum_of(&w, OW_PROBES_BACK),
				  round = sum_of(&w, OW_PROBES_ROUND);
	assert_true(there.sent == w.sent && there.lost + there.pending + back.lost == round.lost);
	assert_true(there.matched == round.matched + back.lost);
	done(&w);
}

/* A loss of a single probe, by hand: sequences 0, 2, 3, 4 (1 is left out); 3 is lost there, or back. */
static void one_loss(bool there, uint64_t *ret_there, uint64_t *ret_back)
{
	static struct world w;
	memset(&w, 0, sizeof w);
	w.rate = 1;
	begin(&w, OW_NS_PER_S, OW_NS_PER_S, 10);
	const uint32_t sequences[] = {0, 2, 3, 4};
	uint32_t number = 0;
	for (unsigned i = 0; i < 4; i++) {
		int64_t sent_ns = T0 + (int64_t)i * 10 * OW_NS_PER_MS;
		assert_int_equal(ow_probes_next(w.probes), sequences[i]);
		ow_probes_sent(w.probes, sent_ns, 72);
		bool lost = sequences[i] == 3;
		if (!lost) {
			struct ow_probes_reply reply = {
				sequences[i], number, sent_ns + 1000, sent_ns + 2000, sent_ns + 4000, true, 72, far};
			assert_int_equal(ow_probes_reply(w.probes, &reply), OW_PROBES_ANSWER);
		}
		number += !(lost && there);
	}
	ow_probes_work(w.probes, T0 + 5 * OW_NS_PER_S, &near);
	assert_true(w.results >= 3);
	*ret_there = w.result[0].lost;
	*ret_back = w.result[1].lost;
	assert_true(w.result[0].pending == 0 && w.result[2].lost == 1);
	/* 1 us there, 2 us back. */
	assert_true(w.result[0].mean_ns.value == 1000 && w.result[1].mean_ns.value == 2000);
	assert_true(w.result[2].mean_ns.value == 3000);
	/* Three samples bound no quantile. */
	assert_true(w.result[2].quantile_ns[OW_Q50].status == OW_VALUE_NONE);
	done(&w);
}

static void test_one_loss(void **state)
{
	(void)state;
	uint64_t there, back;
	one_loss(true, &there, &back);
	assert_true(there == 1 && back == 0);
	one_loss(false, &there, &back);
	assert_true(there == 0 && back == 1);
}

/* What hostile or broken reflectors say. */
static void test_hostile(void **state)
{
	(void)state;
	static struct world w = {.rate = 1};
	struct ow_random random;
	begin(&w, 100 * OW_NS_PER_MS, OW_NS_PER_S, 2000);
	ow_random_seed(&random, SEED);
	int64_t now_ns = T0;
	uint64_t sent = 0, verdict[OW_PROBES_VERDICTS] = {0};
	for (int i = 0; i < 20000; i++) {
		now_ns += (int64_t)ow_random_below(&random, 5 * OW_NS_PER_MS);
		if (ow_random_below(&random, 3) == 0 && ow_probes_room(w.probes) == 0) {
			ow_probes_sent(w.probes, now_ns, 72);
			sent++;
		}
		struct ow_probes_reply reply = {
			.sequence = ow_probes_next(w.probes) - (uint32_t)ow_random_below(&random, 3000),
			.number = ow_random_below(&random, 2) ? (uint32_t)ow_random_u64(&random) : (uint32_t)i,
			.t2_ns = now_ns + (int64_t)(ow_random_u64(&random) >> 3) - (INT64_MAX >> 3),
			.t4_ns = now_ns,
			.timed = true,
			.far = {ow_random_below(&random, 2) != 0, (int64_t)(ow_random_u64(&random) >> 1)},
		};
		reply.t3_ns = reply.t2_ns + (int64_t)ow_random_below(&random, 2 * OW_NS_PER_MS) - OW_NS_PER_MS;
		verdict[ow_probes_reply(w.probes, &reply)]++;
		w.results = 0;
		ow_probes_work(w.probes, now_ns, &near);
	}
	for (int i = 0; i < OW_PROBES_VERDICTS; i++)
		assert_true(verdict[i] > 0);
	ow_probes_close(w.probes, now_ns, &near, "the run ended");
	struct ow_interval_result total;
	ow_probes_total(w.probes, OW_PROBES_ROUND, &total);
	assert_true(total.sent == sent && total.late_received == verdict[OW_PROBES_LATE]);
	/* A round trip is never below 0. */
	assert_true(total.samples == 0 || total.mean_ns.value >= 0);
	done(&w);
}

/* The run ends, or the clock is set: what is under way is neither lost nor answered. */
static void test_close(void **state)
{
	(void)state;
	static struct world w = {.rate = 1};
	begin(&w, OW_NS_PER_S, 2 * OW_NS_PER_S, 100);
	for (int i = 0; i < 8; i++)
		ow_probes_sent(w.probes, T0 + i * 500 * OW_NS_PER_MS, 72);
	ow_probes_close(w.probes, T0 + 3600 * OW_NS_PER_MS, &near, "the clock was set");
	struct ow_interval_result round = sum_of(&w, OW_PROBES_ROUND), there = sum_of(&w, OW_PROBES_THERE);
	/* Sent at 0, 0.5, 1 and 1.5 s: 2 s have passed. */
	assert_true(round.sent == 8 && round.lost == 4 && round.pending == 4);
	assert_true(there.pending == 8);
	const struct ow_interval_result *last = &w.result[w.results - 1];
	assert_true(last->status == OW_RESULT_PARTIAL && last->length_ns == 600 * OW_NS_PER_MS);
	assert_string_equal(last->cause, "the clock was set: 2 probes may still have been answered");
	/* What comes now is late, and measuring goes on at another time. */
	struct ow_probes_reply reply = {.sequence = 8, .t4_ns = T0, .far = far};
	assert_int_equal(ow_probes_reply(w.probes, &reply), OW_PROBES_LATE);
	w.results = 0;
	ow_probes_sent(w.probes, T0 - 100 * OW_NS_PER_S, 72);
	ow_probes_work(w.probes, T0 - 90 * OW_NS_PER_S, &near);
	assert_true(w.results > 0 && w.result[0].start_ns == T0 - 100 * OW_NS_PER_S && w.result[0].sent == 1);
	done(&w);
}

/* The mean's 95 % interval holds the truth in about 95 % of intervals: few uniform samples, Student. */
static void test_coverage(void **state)
{
	(void)state;
	static struct world w = {.rate = 10, .seconds = 1300, .jitter_ns = 10 * OW_NS_PER_MS};
	begin(&w, OW_NS_PER_S, OW_NS_PER_S, 1000);
	run(&w);
	unsigned held = 0, all = 0;
	for (size_t i = OW_PROBES_THERE; i < w.results; i += OW_PROBES_LANES) {
		const struct ow_value *m = &w.result[i].mean_ns;
		double truth = THERE_NS + OFFSET + 5 * OW_NS_PER_MS;
		if (m->status == OW_VALUE_NONE)
			continue;
		all++;
		held += m->low <= truth && truth <= m->high;
	}
	print_message("seed %d: %u of %u intervals hold the mean\n", SEED, held, all);
	/* 5 standard deviations of a binomial, and 1 % for uniform samples, which are not normal. */
	assert_true(all > 1000 && held > (0.94 - 5 * sqrt(0.95 * 0.05 / all)) * all);
	done(&w);
}

static void test_options(void **state)
{
	(void)state;
	struct ow_probes *probes;
	struct ow_probes_options o = {"x", "voice", "a", "b", "STAMP", OW_NS_PER_S, OW_NS_PER_S, 10, NULL, NULL};
	assert_int_equal(ow_probes_create(&o, &probes), 0);
	for (int i = 0; ow_probes_room(probes) == 0; i++)
		ow_probes_sent(probes, T0 + i, 72);
	struct ow_interval_result total;
	ow_probes_total(probes, OW_PROBES_ROUND, &total);
	assert_string_equal(total.class_name, "voice/round-trip");
	ow_probes_free(probes);
	o.segment = "a name of a segment that is longer than any name of a segment may be, with its end";
	assert_int_equal(ow_probes_create(&o, &probes), -ENAMETOOLONG);
	o.segment = "x";
	o.wait_ns = INT64_MAX;
	assert_int_equal(ow_probes_create(&o, &probes), -EINVAL);
	ow_probes_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quiet),    cmocka_unit_test(test_both_ways),  cmocka_unit_test(test_stateless),
		cmocka_unit_test(test_disorder), cmocka_unit_test(test_everything), cmocka_unit_test(test_one_loss),
		cmocka_unit_test(test_hostile),  cmocka_unit_test(test_close),      cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
