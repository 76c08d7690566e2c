/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between two exchanges, compared with the truth: every kind of traffic, every kind of fault on the wire.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../effort.h"
#include "duet.h"
#include "result/cause.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static const struct line good_line;
static const struct ow_exchange_options fold = {.method = OW_METHOD_FOLD}, rda = {.method = OW_METHOD_RDA};

static bool near(double x, double y, double tolerance)
{
	return fabs(x - y) <= tolerance * fmax(1, fabs(y));
}

static void check_same_value(const struct ow_value *a, const struct ow_value *b)
{
	assert_int_equal(a->status, b->status);
	if (a->status == OW_VALUE_NONE)
		assert_int_equal(a->reason, b->reason);
	else
		assert_true(a->value == b->value && a->low == b->low && a->high == b->high);
}

static void check_same_result(const struct ow_interval_result *a, const struct ow_interval_result *b)
{
	assert_string_equal(a->segment, b->segment);
	assert_string_equal(a->class_name, b->class_name);
	assert_string_equal(a->cause, b->cause);
	assert_string_equal(a->synopsis, b->synopsis);
	assert_true(a->status == b->status && a->final == b->final && a->exact == b->exact);
	/* From the counts to the samples, all are numbers of the same size. */
	assert_memory_equal(&a->sent, &b->sent,
	                    offsetof(struct ow_interval_result, sample_shift) -
	                            offsetof(struct ow_interval_result, sent));
	assert_true(a->sample_shift == b->sample_shift && a->coverage == b->coverage && a->samples == b->samples);
	assert_true(a->total_sent == b->total_sent && a->total_received == b->total_received);
	check_same_value(&a->mean_ns, &b->mean_ns);
	check_same_value(&a->stddev_ns, &b->stddev_ns);
	check_same_value(&a->min_ns, &b->min_ns);
	check_same_value(&a->max_ns, &b->max_ns);
	check_same_value(&a->loss_ratio, &b->loss_ratio);
	for (int q = 0; q < OW_QUANTILES; q++)
		check_same_value(&a->quantile_ns[q], &b->quantile_ns[q]);
	assert_memory_equal(&a->cost.transmit_ns, &b->cost.transmit_ns, 6 * sizeof(int64_t));
	assert_true(a->cost.bytes == b->cost.bytes && a->cost.round_trips == b->cost.round_trips);
	assert_true(a->clock_from.error_ns == b->clock_from.error_ns && a->clock_to.error_ns == b->clock_to.error_ns);
}

/* Both points have the same results. */
static void check_same(const struct duet *d)
{
	for (unsigned i = 0; i < d->intervals; i++) {
		for (int final = 0; final < 2; final++) {
			const struct ow_interval_result *a = final ? d->got[0].final : d->got[0].provisional,
							*b = final ? d->got[1].final : d->got[1].provisional;
			const bool *has_a = final ? d->got[0].has_final : d->got[0].has_provisional,
				   *has_b = final ? d->got[1].has_final : d->got[1].has_provisional;
			assert_true(has_a[i] && has_b[i]);
			check_same_result(&a[i], &b[i]);
		}
	}
}

/* Every final result: loss exact, mean exact; deviation and quantiles hold the truth or are exact. */
static void check_truth(const struct duet *d)
{
	for (unsigned i = 0; i < d->intervals; i++) {
		const struct ow_interval_result *r = &d->got[0].final[i];
		const struct truth *t = &d->truth[i];
		if (r->status != OW_RESULT_MEASURED)
			fail_msg("interval %u: %s", i, r->cause);
		assert_int_equal(r->sent, t->sent);
		assert_int_equal(r->lost, t->lost);
		assert_int_equal(r->late, t->arrived_late);
		assert_int_equal(r->pending, 0);
		assert_true(r->coverage == 1);
		double arrived = (double)(t->sent - t->lost);
		if (arrived == 0) {
			assert_int_equal(r->mean_ns.status, OW_VALUE_NONE);
			continue;
		}
		assert_int_equal(r->samples + r->ambiguous, t->sent - t->lost);
		if (r->ambiguous)
			continue;
		assert_int_equal(r->mean_ns.status, OW_VALUE_EXACT);
		assert_true(near(r->mean_ns.value, t->delay_sum / arrived, 1e-9));
		if (r->exact) {
			assert_true(r->min_ns.value == (double)t->min_ns && r->max_ns.value == (double)t->max_ns);
			double mean = t->delay_sum / arrived;
			assert_true(
				near(r->stddev_ns.value, sqrt(fmax(0, t->delay_sum2 / arrived - mean * mean)), 1e-3));
		}
	}
	assert_int_equal(d->total[0].sent, d->traffic.packets * d->traffic.intervals);
	assert_int_equal(d->total[0].sent, d->total[1].sent);
	assert_int_equal(d->total[0].lost, d->total[1].lost);
}

static void test_losses(void **state)
{
	(void)state;
	static const double loss[] = {0, 0.0001, 0.01, 0.1};
	static const uint64_t packets[] = {3, 1000, 20000};
	for (size_t i = 0; i < 4; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct duet d;
			struct traffic t = {.packets = packets[k],
			                    .intervals = 5,
			                    .length_ns = SECOND / 10,
			                    .delay_ns = 100000,
			                    .jitter_ns = 20000,
			                    .loss = loss[i],
			                    .seed = 10 * i + k};
			duet_run(&d, &t, &good_line, &fold);
			check_truth(&d);
			check_same(&d);
			assert_int_equal(d.got[0].final[0].exact, packets[k] <= 1000);
			duet_done(&d);
		}
	}
}

/* Most packets arrive in the next interval or the one after it. */
static void test_over_boundaries(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct duet d;
		struct traffic t = {.packets = 2000,
		                    .intervals = 6,
		                    .length_ns = SECOND / 10,
		                    .delay_ns = SECOND / 20,
		                    .jitter_ns = SECOND / 100,
		                    .loss = 0.05,
		                    .duplicate = 0.02,
		                    .seed = seed};
		duet_run(&d, &t, &good_line, &fold);
		check_truth(&d);
		check_same(&d);
		duet_done(&d);
	}
}

static void test_duplicates(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 2000,
	                    .intervals = 3,
	                    .length_ns = SECOND,
	                    .delay_ns = 1000,
	                    .jitter_ns = 100,
	                    .loss = 0.01,
	                    .duplicate = 0.1,
	                    .seed = 5};
	duet_run(&d, &t, &good_line, &fold);
	check_truth(&d);
	uint64_t duplicated = 0, extra = 0;
	for (unsigned i = 0; i < d.intervals; i++) {
		duplicated += d.got[0].final[i].duplicated;
		extra += d.got[0].final[i].extra;
	}
	assert_int_equal(duplicated, extra);
	assert_true(duplicated > 500);
	duet_done(&d);
}

/* Each loss is in the interval in which it arose, or the result says how many packets may be in another one. Returns the
 * number of measured intervals. */
static unsigned check_identical(const struct duet *d)
{
	uint64_t lost = 0, sent = 0, truth = 0, in_doubt = 0;
	unsigned measured = 0;
	for (unsigned i = 0; i < d->intervals; i++) {
		const struct ow_interval_result *r = &d->got[0].final[i];
		uint64_t real = d->truth[i].lost, off = r->lost > real ? r->lost - real : real - r->lost;
		bool whole = r->status == OW_RESULT_MEASURED;
		measured += whole && i < d->traffic.intervals;
		in_doubt += r->pending;
		assert_true(whole || ow_cause_of(r->cause) == OW_CAUSE_IDENTICAL_LATE ||
		            ow_cause_of(r->cause) == OW_CAUSE_IDENTICAL_CLOSE);
		const char *second = strstr(r->cause, "; ");
		uint64_t most = strtoull(r->cause, NULL, 10) + (second ? strtoull(second + 2, NULL, 10) : 0);
		assert_true(off <= most);
		double loss = r->sent ? (double)real / (double)r->sent : 0;
		assert_true(!r->sent || (r->loss_ratio.low <= loss && loss <= r->loss_ratio.high));
		lost += r->lost;
		sent += r->sent;
		truth += real;
		if (r->samples && r->min_ns.status != OW_VALUE_NONE)
			assert_true(r->min_ns.value >= (double)d->traffic.delay_ns);
	}
	assert_int_equal(sent, d->traffic.packets * d->traffic.intervals);
	assert_int_equal(in_doubt, 0);
	if (!d->traffic.duplicate)
		assert_int_equal(lost, truth);
	const struct ow_value *loss = &d->total[0].loss_ratio;
	double share = (double)truth / (double)sent;
	assert_true(loss->low <= share && share <= loss->high);
	return measured;
}

/* Identical packets: counts are exact over the run; uncertain delays are omitted. */
static void test_identical(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RUN_COUNT(40); seed++) {
		struct duet d;
		struct traffic t = {.packets = 1000,
		                    .intervals = 6,
		                    .length_ns = SECOND / 10,
		                    .delay_ns = 1000000,
		                    .jitter_ns = 100000,
		                    .loss = seed & 1 ? 0.05 : 0,
		                    .identical = 0.3,
		                    .seed = seed};
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		unsigned measured = check_identical(&d);
		assert_true(t.loss > 0 || measured == t.intervals);
		duet_done(&d);
	}
}

struct beats_case {
	int64_t length_ms, beat_ms, delay_ms;
	uint64_t packets;
	double loss;
	bool shifts;    /* the receiver's intervals */
	unsigned least; /* intervals that are measured */
};

static void play_beats(const struct beats_case *c, uint64_t seed)
{
	const int64_t ms = 1000000;
	struct duet d;
	struct traffic t = {.packets = c->packets,
	                    .intervals = c->length_ms < 1000 ? 100 : 10,
	                    .length_ns = c->length_ms * ms,
	                    .delay_ns = c->delay_ms * ms,
	                    .jitter_ns = ms / 10,
	                    .loss = c->loss,
	                    .beat_ns = c->beat_ms * ms,
	                    .seed = seed,
	                    .trusted = true};
	struct ow_exchange_options options = fold;
	options.horizon = (uint32_t)(2 * c->delay_ms / c->length_ms + 2);
	options.shift_max_ns = c->shifts ? SECOND : 0;
	duet_run(&d, &t, &good_line, &options);
	check_same(&d);
	unsigned measured = 0;
	for (unsigned i = 0; i < t.intervals; i++) {
		const struct ow_interval_result *r = &d.got[0].final[i];
		if (r->status != OW_RESULT_MEASURED)
			continue;
		measured++;
		assert_int_equal(r->lost, d.truth[i].lost);
		assert_true(r->mean_ns.status == OW_VALUE_NONE || r->mean_ns.high >= (double)t.delay_ns);
		assert_true(r->min_ns.status == OW_VALUE_NONE || r->min_ns.value >= (double)t.delay_ns);
	}
	printf("interval %d ms, one every %d ms, path %d ms: %u of %u measured\n", (int)c->length_ms, (int)c->beat_ms,
	       (int)c->delay_ms, measured, t.intervals);
	assert_true(measured >= c->least);
	duet_done(&d);
}

/*
 * No interval has two packets of a stream in which all are identical, and several of them are on their way at a time: delays are
 * right, or the result says that they may be longer. Those that arrive before the next one is sent are measured.
 */
static void test_beats(void **state)
{
	(void)state;
	static const struct beats_case cases[] = {
		{10, 10, 50, 1, 0, false, 0},    {10, 10, 50, 2, .05, false, 0},
		{10, 20, 50, 1, 0, false, 0},    {10, 5, 50, 1, 0, false, 0},
		{10, 30, 50, 1, 0, false, 0},    {20, 20, 50, 3, 0, false, 0},
		{10, 10, 9, 2, 0, false, 0},     {1000, 1000, 700, 100, 0, false, 0},
		{10, 10, 50, 10, .05, false, 0}, {10, 10, 1, 2, 0, false, 95},
		{10, 100, 50, 2, 0, false, 80},  {1000, 1000, 50, 100, 0, false, 9},
		{10, 10, 50, 2, 0, true, 0},     {10, 20, 50, 2, .05, true, 0},
		{20, 20, 50, 3, 0, true, 0},     {1000, 1000, 700, 100, 0, true, 0},
		{10, 20, 50, 1, 0, true, 0},     {10, 20, 50, 2, 0, true, 0},
		{10, 30, 50, 2, 0, true, 0},     {10, 20, 54, 1, 0, true, 0},
		{10, 20, 48, 1, 0, true, 0},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		play_beats(&cases[k], 900 + k);
}

/* All packets of the lane are identical, 200 a second. */
static void test_identical_alone(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		int64_t delay_ns, jitter_ns;
		double loss, duplicate;
		unsigned least; /* measured intervals of 4 runs of 6 */
	} cases[] = {{"5 % lost, path of 1 ms", 1000000, 100000, .05, 0, 24},
	             {"1 % lost, path of 1 ms", 1000000, 100000, .01, 0, 24},
	             {"30 % lost, path of 1 ms", 1000000, 100000, .3, 0, 12},
	             {"5 % lost, path of 50 ms", 50000000, 100000, .05, 0, 0},
	             {"5 % lost, jitter above the time between packets", 1000000, 10000000, .05, 0, 0},
	             {"5 % lost, 2 % twice", 1000000, 100000, .05, .02, 0},
	             {"5 % twice", 1000000, 100000, 0, .05, 0}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		unsigned measured = 0;
		for (uint64_t seed = 0; seed < 4; seed++) {
			struct duet d;
			struct traffic t = {.packets = 200,
			                    .intervals = 6,
			                    .length_ns = SECOND,
			                    .delay_ns = cases[k].delay_ns,
			                    .jitter_ns = cases[k].jitter_ns,
			                    .loss = cases[k].loss,
			                    .duplicate = cases[k].duplicate,
			                    .identical = 1,
			                    .seed = seed};
			duet_run(&d, &t, &good_line, &fold);
			check_same(&d);
			measured += check_identical(&d);
			duet_done(&d);
		}
		print_message("identical, %s: %u of 24 intervals measured\n", cases[k].what, measured);
		assert_true(measured >= cases[k].least);
	}
}

/* The same on a path of 50 ms, while the points' messages take another way, which is short: that says nothing about the path. */
static void test_identical_elsewhere(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct duet d;
		struct traffic t = {.packets = 200,
		                    .intervals = 6,
		                    .length_ns = SECOND,
		                    .delay_ns = 50000000,
		                    .jitter_ns = 100000,
		                    .loss = seed & 1 ? .05 : 0,
		                    .identical = 1,
		                    .seed = seed,
		                    .trusted = true,
		                    .elsewhere = true};
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			double loss = (double)d.truth[i].lost / (double)r->sent;
			assert_true(r->loss_ratio.low <= loss && loss <= r->loss_ratio.high);
			bool known = r->status == OW_RESULT_MEASURED && r->mean_ns.status != OW_VALUE_NONE;
			assert_true(!known || r->mean_ns.value >= (double)t.delay_ns);
		}
		duet_done(&d);
	}
}

/* The sending point is at a mirror port for both directions: what it shows twice was sent once. With 2 % of loss the truth is
 * within the loss that each interval tells. */
static void test_shown_twice(void **state)
{
	(void)state;
	static const int64_t apart[] = {30000, 30000, 5000000, 20000000};
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct duet d;
		struct traffic t = {.packets = 400,
		                    .intervals = 6,
		                    .length_ns = SECOND,
		                    .delay_ns = 1000000,
		                    .jitter_ns = 100000,
		                    .loss = seed ? .02 : 0,
		                    .mirrored_ns = apart[seed],
		                    .seed = seed};
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			double lost = (double)d.truth[i].lost / (double)d.truth[i].sent;
			assert_int_equal(r->status, OW_RESULT_PARTIAL);
			assert_non_null(strstr(r->cause, "seen twice at the sender"));
			/* One at the end of an interval may be shown again in the next. */
			double slack = (double)t.mirrored_ns / (double)t.length_ns + 1e-9;
			assert_true(r->loss_ratio.low <= lost + slack && lost <= r->loss_ratio.high);
		}
		duet_done(&d);
	}
}

/* Nothing arrives; nothing is sent. */
static void test_extremes(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {
		.packets = 30000, .intervals = 2, .length_ns = SECOND, .delay_ns = 10, .loss = 1, .seed = 1};
	duet_run(&d, &t, &good_line, &fold);
	check_truth(&d);
	check_same(&d);
	duet_done(&d);
}

/* The points sample differently: the coarser sample is used, and the other point is informed. */
static void test_shifts(void **state)
{
	(void)state;
	static const struct {
		unsigned shift[2];
		size_t most[2];
		unsigned least; /* shift of the results */
	} cases[] = {{{0, 2}, {0, 0}, 2},
	             {{3, 0}, {0, 0}, 3},
	             {{1, 1}, {0, 0}, 1},
	             {{0, 0}, {700, 0}, 1},
	             {{0, 0}, {0, 300}, 2}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct duet d;
		struct traffic t = {.packets = 1000,
		                    .intervals = 4,
		                    .length_ns = SECOND,
		                    .delay_ns = 1000000,
		                    .jitter_ns = 1000,
		                    .loss = 0.02,
		                    .seed = k};
		memcpy(t.shift, cases[k].shift, sizeof t.shift);
		memcpy(t.sightings_max, cases[k].most, sizeof t.sightings_max);
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			assert_int_equal(r->status, OW_RESULT_MEASURED);
			assert_true(r->sample_shift >= cases[k].least && r->sample_shift < SHIFTS);
			assert_int_equal(r->total_sent, t.packets);
			assert_int_equal(r->sent, d.truth[i].sent_at[r->sample_shift]);
			assert_int_equal(r->lost, d.truth[i].lost_at[r->sample_shift]);
			assert_true(r->coverage < 1);
		}
		if (cases[k].shift[0] != cases[k].shift[1])
			assert_int_equal(d.got[cases[k].shift[0] > cases[k].shift[1]].shift, cases[k].least);
		duet_done(&d);
	}
}

/* Many packets for a while: a sample only then, whichever point has too little memory. */
static void test_calm(void **state)
{
	(void)state;
	static const struct {
		size_t most[2];
		int64_t length_ns;
	} cases[] = {{{300, 0}, SECOND}, {{0, 300}, SECOND}, {{300, 600}, SECOND / 10}, {{300, 300}, SECOND / 100}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct duet d;
		/* Two steps to refine, each within 44 intervals, where they have 10 ms. */
		struct traffic t = {.packets = 1000,
		                    .intervals = 150,
		                    .length_ns = cases[k].length_ns,
		                    .delay_ns = 1000000,
		                    .jitter_ns = 1000,
		                    .loss = 0.02,
		                    .seed = k,
		                    .calm_from = 40,
		                    .calm = 8};
		memcpy(t.sightings_max, cases[k].most, sizeof t.sightings_max);
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		unsigned sampled = 0;
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			assert_int_equal(r->status, OW_RESULT_MEASURED);
			assert_int_equal(r->total_sent, d.truth[i].sent);
			assert_int_equal(r->sent, d.truth[i].sent_at[r->sample_shift]);
			assert_int_equal(r->lost, d.truth[i].lost_at[r->sample_shift]);
			if (i < t.calm_from)
				assert_true(r->sample_shift >= 2);
			else
				sampled += r->sample_shift > 0;
		}
		const struct ow_interval_result *last = &d.got[0].final[t.intervals - 1];
		assert_int_equal(last->sample_shift, 0);
		assert_true(sampled <= 2 * 44);
		assert_int_equal(d.got[0].shift + d.got[1].shift, 0);
		duet_done(&d);
	}
}

/* Rings that dropped frames: nothing is called lost that may be their fault. */
static void test_ring_drops(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		struct duet d;
		struct traffic t = {.packets = 1000,
		                    .intervals = 3,
		                    .length_ns = SECOND,
		                    .delay_ns = 1000,
		                    .loss = 0.02,
		                    .seed = 3};
		t.drops[side] = 7;
		duet_run(&d, &t, &good_line, &fold);
		check_same(&d);
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			assert_int_equal(r->status, OW_RESULT_PARTIAL);
			assert_non_null(strstr(r->cause, side ? "b missed 7" : "a missed 7"));
			assert_int_equal(side ? r->ring_drops_to : r->ring_drops_from, 7);
			assert_int_equal(r->lost, side ? 0 : d.truth[i].lost);
			assert_int_equal(r->pending, side ? d.truth[i].lost : 0);
		}
		duet_done(&d);
	}
}

/* A filter that names the link layer and takes no packet at one point: as far as anybody knows it cannot. */
/* What was sent last is held up, and arrives while the receiver sees nothing: it is undecided, also where all packets must
 * arrive. */
static void test_held_up(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 1000,
	                    .intervals = 6,
	                    .length_ns = SECOND,
	                    .delay_ns = 1000000,
	                    .jitter_ns = 100000,
	                    .loss = .01,
	                    .blind_at = 3,
	                    .seed = 8};
	duet_run(&d, &t, &good_line, &fold);
	check_same(&d);
	const struct ow_interval_result *r = &d.got[0].final[2];
	assert_int_equal(d.got[0].final[3].status, OW_RESULT_UNKNOWN);
	assert_int_equal(r->status, OW_RESULT_PARTIAL);
	assert_true(r->lost <= d.truth[2].lost && r->pending >= 190 && r->pending <= 210);
	duet_done(&d);
}

static void test_link_filter(void **state)
{
	(void)state;
	static const double loss[] = {1, 0.1};
	for (int i = 0; i < 4; i++) {
		struct duet d;
		struct ow_exchange_options options = i % 2 ? rda : fold;
		struct traffic t = {.packets = 500,
		                    .intervals = 4,
		                    .length_ns = SECOND,
		                    .delay_ns = 1000,
		                    .loss = loss[i / 2],
		                    .seed = 8};
		options.link_filter = true;
		duet_run(&d, &t, &good_line, &options);
		for (unsigned k = 0; k < 2 * t.intervals; k++) {
			const struct ow_interval_result *r = &d.got[k % 2].final[k / 2];
			assert_true(d.got[k % 2].has_final[k / 2]);
			assert_int_equal(r->status == OW_RESULT_UNKNOWN, i < 2);
			if (i < 2)
				assert_string_equal(r->cause, "the filter takes no packet at b: is it tagged alike?");
		}
		if (i == 2)
			check_truth(&d);
		duet_done(&d);
	}
}

/* Whatever happens to frames: a final result is right, or says that it is not whole. */
static void test_bad_lines(void **state)
{
	(void)state;
	static const struct line lines[] = {
		{.drop = 0.1},
		{.twice = 0.5},
		{.swap = 0.3},
		{.damage = 0.2},
		{.drop = 0.05, .twice = 0.2, .swap = 0.1, .damage = 0.1, .delay_ns = SECOND / 20},
	};
	unsigned measured = 0, all = 0, refused = 0;
	for (uint64_t run = 0; run < 60; run++) {
		struct duet d;
		struct traffic t = {.packets = run & 1 ? 300 : 4000,
		                    .intervals = 8,
		                    .length_ns = SECOND / 10,
		                    .delay_ns = SECOND / 100,
		                    .jitter_ns = SECOND / 100,
		                    .loss = 0.02,
		                    .duplicate = 0.01,
		                    .seed = run};
		duet_run(&d, &t, &lines[run % 5], run % 7 == 6 ? &rda : &fold);
		for (int side = 0; side < 2; side++) {
			for (unsigned i = 0; i < d.intervals; i++) {
				const struct ow_interval_result *r = &d.got[side].final[i];
				assert_true(d.got[side].has_final[i]);
				all++;
				/* A damaged shift is a request to sample: the result says that it is of a sample. */
				if (r->status != OW_RESULT_MEASURED || r->sample_shift)
					continue;
				measured++;
				if (r->lost != d.truth[i].lost || r->sent != d.truth[i].sent)
					fail_msg("run %u side %d interval %u: lost %u of %u, truth %u of %u",
					         (unsigned)run, side, i, (unsigned)r->lost, (unsigned)r->sent,
					         (unsigned)d.truth[i].lost, (unsigned)d.truth[i].sent);
			}
		}
		refused += d.refused;
		duet_done(&d);
	}
	printf("bad lines: %u of %u results measured, %u frames refused\n", measured, all, refused);
	assert_true(measured > all / 3);
}

/* The connection breaks again and again: nothing is lost, it only takes longer. */
static void test_reconnect(void **state)
{
	(void)state;
	for (int method = 0; method < 2; method++) {
		struct duet d;
		struct line line = {.cut_at = true, .delay_ns = SECOND / 50};
		struct traffic t = {.packets = 500,
		                    .intervals = 17,
		                    .length_ns = SECOND / 10,
		                    .delay_ns = SECOND / 50,
		                    .jitter_ns = SECOND / 100,
		                    .loss = method ? 0 : 0.02,
		                    .seed = 8};
		duet_run(&d, &t, &line, method ? &rda : &fold);
		check_same(&d);
		for (unsigned i = 0; i < d.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			if (method == 0 || r->status == OW_RESULT_MEASURED)
				assert_int_equal(r->lost, d.truth[i].lost);
			assert_true(method == 1 || r->status == OW_RESULT_MEASURED);
		}
		duet_done(&d);
	}
}

/* A line with a round trip of several intervals: they are under way side by side. */
static void test_long_line(void **state)
{
	(void)state;
	struct duet d;
	struct line line = {.delay_ns = SECOND * 45 / 100};
	struct ow_exchange_options patient = {.method = OW_METHOD_FOLD, .intervals_max = 64};
	struct traffic t = {.packets = 2000,
	                    .intervals = 20,
	                    .length_ns = SECOND / 10,
	                    .delay_ns = SECOND / 50,
	                    .jitter_ns = SECOND / 100,
	                    .loss = 0.02,
	                    .seed = 8};
	duet_run(&d, &t, &line, &patient);
	check_truth(&d);
	check_same(&d);
	duet_done(&d);
}

/* More differences than the largest fold holds. */
static void check_same_total(const struct duet *d)
{
	const struct ow_interval_result *a = &d->total[0], *b = &d->total[1];
	assert_memory_equal(&a->sent, &b->sent,
	                    offsetof(struct ow_interval_result, reordered) - offsetof(struct ow_interval_result, sent));
	assert_string_equal(a->cause, b->cause);
	assert_true(a->status == b->status && a->total_sent == b->total_sent && a->samples == b->samples);
}

static void test_too_many(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 600000,
	                    .intervals = 1,
	                    .length_ns = SECOND,
	                    .delay_ns = 1000000,
	                    .jitter_ns = 100000,
	                    .loss = 0.5,
	                    .seed = 8};
	duet_run(&d, &t, &good_line, &fold);
	check_same(&d);
	const struct ow_interval_result *r = &d.got[0].final[0];
	const struct truth *truth = d.truth;
	double arrived = (double)(truth->sent - truth->lost), ratio = (double)truth->lost / (double)truth->sent;
	assert_int_equal(r->status, OW_RESULT_PARTIAL);
	assert_non_null(strstr(r->cause, "cannot be told apart"));
	assert_int_equal(r->loss_ratio.status, OW_VALUE_ESTIMATED);
	assert_true(r->loss_ratio.low <= ratio + 0.002 && r->loss_ratio.high >= ratio - 0.002);
	assert_int_equal(r->mean_ns.status, OW_VALUE_ESTIMATED);
	assert_true(fabs(r->mean_ns.value - truth->delay_sum / arrived) < 2 * (r->mean_ns.high - r->mean_ns.low));
	assert_int_equal(r->sent, truth->sent);
	/* The next intervals are what they are, and the run is the sum of all at both points. */
	assert_int_equal(d.got[0].final[3].status, OW_RESULT_MEASURED);
	check_same_total(&d);
	assert_int_equal(d.total[0].sent, truth->sent);
	duet_done(&d);
}

static void test_large(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 1000000,
	                    .intervals = 2,
	                    .length_ns = 10 * SECOND,
	                    .delay_ns = 1000000,
	                    .jitter_ns = 100000,
	                    .loss = 0.01,
	                    .seed = 8};
	duet_run(&d, &t, &good_line, &fold);
	check_truth(&d);
	check_same(&d);
	const struct ow_result_cost *c = &d.got[0].final[1].cost;
	printf("1e6 packets, 1 %% lost: %llu bytes, decode %.1f ms, erase %.1f ms, compute %.1f ms\n",
	       (unsigned long long)c->bytes, (double)c->decode_ns / 1e6, (double)c->erase_ns / 1e6,
	       (double)c->compute_ns / 1e6);
	duet_done(&d);
}

/* A second of 1e5 packets of 500 bytes with 1 % loss costs no more than 0.1 % of the traffic. */
static void test_cost(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 100000,
	                    .intervals = 4,
	                    .length_ns = SECOND,
	                    .delay_ns = 100000,
	                    .jitter_ns = 20000,
	                    .loss = 0.01,
	                    .seed = 9};
	duet_run(&d, &t, &good_line, &fold);
	check_truth(&d);
	uint64_t sum = 0;
	for (unsigned i = 0; i < d.intervals; i++) {
		const struct ow_result_cost *c = &d.got[0].final[i].cost;
		sum += c->bytes;
		if (i >= t.intervals)
			continue;
		printf("1e5 packets, 1 %% lost: %llu bytes, %u round trips; decode %.2f, erase %.2f, compute %.2f ms\n",
		       (unsigned long long)c->bytes, c->round_trips, (double)c->decode_ns / 1e6,
		       (double)c->erase_ns / 1e6, (double)c->compute_ns / 1e6);
		assert_true(c->bytes <= 50000);
	}
	/* What the results say is what went over the wire. */
	assert_int_equal(sum, d.bytes);
	duet_done(&d);
}

/* All times, for at most 3 bytes a packet where delays vary by 2 ms. */
static void test_exact(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		uint64_t packets;
		int64_t delay_ns, jitter_ns;
		double loss, most;
	} cases[] = {
		{"path of 1 ms, up to 2 ms of jitter", 10000, 1000000, 200000, 0.001, 3.3},
		{"path of 1 ms, jitter exponential of mean 2 ms", 10000, 1000000, 2000000, 0.001, 4},
		{"LAN", 10000, 100000, 10000, 0, 3},
		{"LAN, 1e5 packets", 100000, 100000, 10000, 0.0001, 3},
	};
	const struct ow_exchange_options exact = {.method = OW_METHOD_FOLD, .exact = true};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct duet d;
		struct traffic t = {.packets = cases[i].packets,
		                    .intervals = 8,
		                    .length_ns = SECOND,
		                    .delay_ns = cases[i].delay_ns,
		                    .jitter_ns = cases[i].jitter_ns,
		                    .loss = cases[i].loss,
		                    .seed = i};
		duet_run(&d, &t, &good_line, &exact);
		check_truth(&d);
		check_same(&d);
		double bytes = 0;
		unsigned round_trips = 0;
		for (unsigned k = 0; k < t.intervals; k++) {
			const struct ow_interval_result *r = &d.got[0].final[k];
			assert_true(r->exact && r->quantile_ns[OW_QUANTILES - 1].status == OW_VALUE_EXACT);
			assert_true(r->reordered != OW_RESULT_NOT_COUNTED);
			/* The first interval knows nothing about delays. */
			bytes += k ? (double)r->cost.bytes : 0;
			round_trips += k ? r->cost.round_trips : 0;
		}
		double each = bytes / (double)(t.packets * (t.intervals - 1));
		printf("exact, %s: %.2f bytes a packet, %u round trips in %u intervals, %llu reordered\n",
		       cases[i].what, each, round_trips, t.intervals - 1,
		       (unsigned long long)d.got[0].final[1].reordered);
		assert_true(each <= cases[i].most);
		duet_done(&d);
	}
}

/* A few packets that are much slower than the samples show: sums of times come whole then, and the mean is exact. */
static void test_outliers(void **state)
{
	(void)state;
	struct duet d;
	struct traffic t = {.packets = 20000,
	                    .intervals = 10,
	                    .length_ns = SECOND,
	                    .delay_ns = 1000000,
	                    .jitter_ns = 5000,
	                    .slow = 0.0001,
	                    .slow_ns = 200000000,
	                    .seed = 5};
	unsigned again = 0;
	duet_run(&d, &t, &good_line, &fold);
	check_truth(&d);
	check_same(&d);
	for (unsigned i = 1; i < t.intervals; i++)
		again += d.got[0].final[i].cost.round_trips > 1;
	assert_true(again > 0);
	duet_done(&d);
}

/* Half of the 95 % interval of the p99, relative to it. */
static double p99_error(const struct ow_interval_result *r)
{
	const struct ow_value *v = &r->quantile_ns[OW_QUANTILES - 2];
	assert_true(ow_quantile_level[OW_QUANTILES - 2] == 0.99);
	return (v->high - v->low) / 2 / v->value;
}

/* The p99 is known within 10 %, by as many samples as the intervals before ask for. */
static void test_target(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		int64_t delay_ns, jitter_ns;
	} cases[] = {
		{"path of 1 ms, exponential jitter of mean 2 ms", 1000000, 2000000},
		{"path of 10 us, exponential jitter of mean 200 us", 10000, 200000},
		{"LAN", 100000, 10000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct duet d;
		struct traffic t = {.packets = 100000,
		                    .intervals = 12,
		                    .length_ns = SECOND,
		                    .delay_ns = cases[i].delay_ns,
		                    .jitter_ns = cases[i].jitter_ns,
		                    .seed = i};
		duet_run(&d, &t, &good_line, &fold);
		check_truth(&d);
		unsigned good = 0;
		double sum = 0;
		for (unsigned k = 1; k < t.intervals; k++) {
			double error = p99_error(&d.got[0].final[k]);
			good += error <= 0.1;
			sum += error;
		}
		printf("p99, %s: +- %.1f %% with 1000 samples and %llu bytes, then +- %.1f %% on average and %llu "
		       "bytes\n",
		       cases[i].what, 100 * p99_error(&d.got[0].final[0]),
		       (unsigned long long)d.got[0].final[0].cost.bytes, 100 * sum / (t.intervals - 1),
		       (unsigned long long)d.got[0].final[6].cost.bytes);
		/* Each interval is of another sample. */
		assert_true(good + 2 >= t.intervals - 1);
		/* The times of the sample take no more bytes than the sums, 8 kB. */
		assert_true(d.got[0].final[6].cost.bytes <= d.got[0].final[0].cost.bytes + 8192 - 1000 * 31 / 8 + 1000);
		duet_done(&d);
	}
}

/* -- lies --------------------------------------------------------------------------------------------------------- */

static unsigned lies;

static void lie(struct duet *d, int to, const struct ow_message *m, int64_t now_ns)
{
	struct ow_error err = {""};
	uint8_t *frame;
	size_t size;
	/* What the codec would not say is no lie that an exchange can hear. */
	if (ow_message_encode(m, &frame, &size, NULL) < 0)
		return;
	int r = ow_exchange_frame(d->x[to], frame, size, now_ns, &err);
	if (r != -EPROTO)
		fail_msg("%s: %d", ow_message_name(m->type), r);
	assert_true(err.text[0] != 0);
	lies++;
	free(frame);
}

static void lie_about_synopsis(struct duet *d, int to, const struct ow_message *m, int64_t now_ns)
{
	struct ow_message bad = *m;
	bad.lane++;
	lie(d, to, &bad, now_ns);
	bad = *m;
	bad.synopsis.synopsis_size--;
	lie(d, to, &bad, now_ns);
	bad = *m;
	bad.synopsis.synopsis_size = m->synopsis.packets ? 0 : 1;
	bad.synopsis.synopsis = (const uint8_t *)"";
	lie(d, to, &bad, now_ns);
	if (m->synopsis.part == OW_MESSAGE_SECOND) {
		bad = *m;
		bad.synopsis.packets++;
		bad.synopsis.total_packets++;
		lie(d, to, &bad, now_ns);
	}
	/* A receiving point gets none. */
	lie(d, !to, m, now_ns);
}

static void lie_about_times(struct duet *d, int to, const struct ow_message *m, int64_t now_ns)
{
	struct ow_message bad = *m;
	if (m->times.times) {
		bad.times.times--;
		bad.times.copies = 0;
		lie(d, to, &bad, now_ns);
	}
	if (m->times.samples) {
		bad = *m;
		bad.times.samples--;
		lie(d, to, &bad, now_ns);
		bad = *m;
		bad.times.bits--;
		lie(d, to, &bad, now_ns);
	}
	if (m->times.buckets) {
		bad = *m;
		bad.times.buckets--;
		lie(d, to, &bad, now_ns);
	}
	lie(d, !to, m, now_ns);
}

static void mischief(struct duet *d, int to, const uint8_t *frame, size_t size, int64_t now_ns)
{
	struct ow_message m, bad;
	static const uint8_t twice[16] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
	assert_int_equal(ow_message_decode(frame, size, &m, NULL), 0);
	bad = m;
	switch (m.type) {
	case OW_MESSAGE_SYNOPSIS:
		lie_about_synopsis(d, to, &m, now_ns);
		break;
	case OW_MESSAGE_TIMES:
		lie_about_times(d, to, &m, now_ns);
		break;
	case OW_MESSAGE_ASK:
		bad.ask.cells = OW_MESSAGE_CELLS_MAX;
		lie(d, to, &bad, now_ns);
		lie(d, !to, &m, now_ns);
		break;
	case OW_MESSAGE_NAMES:
		bad.names.wanted = twice;
		bad.names.wanted_size = 16;
		lie(d, to, &bad, now_ns);
		bad.names.wide = true;
		lie(d, to, &bad, now_ns);
		lie(d, !to, &m, now_ns);
		break;
	default:
		lie(d, !to, &m, now_ns);
		break;
	}
	ow_message_done(&m);
}

/* What cannot be is refused, and changes nothing. */
static void test_lies(void **state)
{
	(void)state;
	struct duet d;
	struct line line = {.mischief = mischief};
	struct traffic t = {.packets = 5000,
	                    .intervals = 5,
	                    .length_ns = SECOND / 10,
	                    .delay_ns = SECOND / 50,
	                    .jitter_ns = SECOND / 100,
	                    .loss = 0.02,
	                    .duplicate = 0.01,
	                    .seed = 4};
	duet_run(&d, &t, &line, &fold);
	check_truth(&d);
	check_same(&d);
	printf("%u lies refused\n", lies);
	assert_true(lies > 50);
	duet_done(&d);
}

/* RDA as published: what is complete is right, the rest says what it is. */
static void test_rda(void **state)
{
	(void)state;
	unsigned measured = 0, all = 0;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct duet d;
		struct traffic t = {.packets = 3000,
		                    .intervals = 5,
		                    .length_ns = SECOND / 10,
		                    .delay_ns = SECOND / 1000,
		                    .jitter_ns = SECOND / 10000,
		                    .loss = seed & 1 ? 0.01 : 0,
		                    .duplicate = seed & 2 ? 0.01 : 0,
		                    .seed = seed};
		duet_run(&d, &t, &good_line, &rda);
		check_same(&d);
		check_same_total(&d);
		/* An interval that is only estimated has its part in the sum, too. */
		assert_int_equal(d.total[0].sent, t.packets * t.intervals);
		for (unsigned i = 0; i < t.intervals; i++) {
			const struct ow_interval_result *r = &d.got[0].final[i];
			assert_int_equal(strncmp(r->synopsis, "rda 2 x ", 8), 0);
			all++;
			if (r->status != OW_RESULT_MEASURED)
				continue;
			measured++;
			assert_int_equal(r->lost, d.truth[i].lost);
			if (!r->ambiguous)
				assert_true(near(r->mean_ns.value,
				                 d.truth[i].delay_sum / (double)(r->sent - d.truth[i].lost), 1e-9));
		}
		duet_done(&d);
	}
	printf("rda: %u of %u intervals complete\n", measured, all);
	assert_true(measured > all / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_over_boundaries),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_identical),
		cmocka_unit_test(test_identical_alone),
		cmocka_unit_test(test_shown_twice),
		cmocka_unit_test(test_identical_elsewhere),
		cmocka_unit_test(test_beats),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_shifts),
		cmocka_unit_test(test_calm),
		cmocka_unit_test(test_ring_drops),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_reconnect),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_rda),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_link_filter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
