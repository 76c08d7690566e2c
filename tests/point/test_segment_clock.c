/* SPDX-License-Identifier: Apache-2.0 */
/* Two points that tell each other floors: what each makes of the delays that it sends. */
#include "base/random.h"
#include "point/segment_clock.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US      1e3
#define MS      1e6
#define S       INT64_C(1000000000)
#define START   (INT64_C(1700000000) * S)
#define SAMPLES 200

/* B's clock is ahead by the offset. least_ns: of the path, A to B and B to A. */
struct world {
	enum ow_clock_mode mode;
	double offset_ns, drift_ppb, least_ns[2];
	int64_t stated_ns; /* by each clock; -1 = not synchronised */
	bool same, files, one_way;
	int64_t length_ns;
};

struct points {
	struct world w;
	struct ow_random random;
	struct ow_segment_clock *clock[2]; /* of A and of B */
	int64_t now_ns;
	struct ow_interval_result last[2]; /* by direction, with delays corrected */
};

static struct points begin(const struct world *w)
{
	struct points p = {.w = *w, .now_ns = START};
	struct ow_segment_clock_options options = {w->mode, w->length_ns, w->same, w->files};
	ow_random_seed(&p.random, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ow_segment_clock_create(&options, &p.clock[i]), 0);
	return p;
}

static void end(struct points *p)
{
	ow_segment_clock_free(p->clock[0]);
	ow_segment_clock_free(p->clock[1]);
}

/* One interval of one direction: the sending point corrects, the other one is told. */
static void send(struct points *p, int way)
{
	struct ow_clock_sample samples[SAMPLES];
	struct ow_clock_floor floor;
	struct ow_interval_result r;
	double sum = 0;
	ow_result_blank(0, p->now_ns, p->w.length_ns, &r);
	r.clock_from = r.clock_to =
		(struct ow_clock_state){p->w.stated_ns >= 0, p->w.stated_ns >= 0 ? p->w.stated_ns : OW_CLOCK_UNKNOWN};
	for (int i = 0; i < SAMPLES; i++) {
		int64_t at_ns = p->now_ns + (int64_t)(ow_random_unit(&p->random) * (double)p->w.length_ns);
		double ahead = p->w.offset_ns + p->w.drift_ppb * (double)(at_ns - START) / 1e9;
		double delay =
			p->w.least_ns[way] - 50 * US * log(1 - ow_random_unit(&p->random)) + (way ? -ahead : ahead);
		samples[i] = (struct ow_clock_sample){at_ns, llrint(delay)};
		sum += delay;
	}
	r.mean_ns = ow_value_exact(sum / SAMPLES);
	ow_segment_clock_correct(p->clock[way], way ? OW_B_TO_A : OW_A_TO_B, samples, SAMPLES, NULL, &r, &floor);
	if (r.clock_offset_ns.status != OW_VALUE_NONE)
		r.mean_ns = ow_value_exact(r.mean_ns.value + r.clock_offset_ns.value);
	ow_result_clock_widen(&r);
	if (floor.samples)
		ow_segment_clock_told(p->clock[!way], way ? OW_B_TO_A : OW_A_TO_B, &floor, &r);
	p->last[way] = r;
}

static void play(struct points *p, int intervals)
{
	for (int i = 0; i < intervals; i++, p->now_ns += p->w.length_ns) {
		send(p, 0);
		if (!p->w.one_way)
			send(p, 1);
	}
}

static struct points after(const struct world *w, int intervals)
{
	struct points p = begin(w);
	play(&p, intervals);
	return p;
}

static void is(const struct points *p, int way, const char *method, double mean_ns, double error_ns)
{
	const struct ow_interval_result *r = &p->last[way];
	assert_string_equal(r->clock_method, method);
	if (!(fabs(r->mean_ns.value - mean_ns) < 15 * US))
		fail_msg("mean %.1f us instead of %.1f us", r->mean_ns.value / US, mean_ns / US);
	if (isnan(error_ns) != isnan(ow_result_clock_error_ns(r)) ||
	    fabs(ow_result_clock_error_ns(r) - error_ns) > 40 * US)
		fail_msg("error %g us instead of %g us", ow_result_clock_error_ns(r) / US, error_ns / US);
}

/* The clocks are 2 ms apart on a path of 0.5 ms: 2.55 and -1.45 ms as they are. */
static void clocks_apart(void **state)
{
	(void)state;
	static const int64_t lengths[] = {S, S / 5, 10 * S};
	for (unsigned i = 0; i < 3; i++) {
		for (int64_t stated_ns = -1; stated_ns < 50000; stated_ns += 40001) {
			const struct world w = {.offset_ns = 2 * MS,
			                        .least_ns = {500 * US, 500 * US},
			                        .stated_ns = stated_ns,
			                        .length_ns = lengths[i]};
			struct points p = after(&w, i == 1 ? 100 : 20);
			for (int way = 0; way < 2; way++) {
				is(&p, way, "relative", 550 * US, 500 * US);
				const struct ow_interval_result *r = &p.last[way];
				assert_true(fabs(r->clock_offset_ns.value - (way ? 2 : -2) * MS) < 10 * US);
				assert_true(r->mean_ns.low < 100 * US && r->mean_ns.low > 0 &&
				            r->mean_ns.high > 1000 * US);
				assert_true(fabs(r->round_trip_min_ns.value - 1 * MS) < 10 * US);
				assert_true(fabs(r->round_trip_mean_ns.value - 1.1 * MS) < 30 * US);
				assert_true(fabs(r->above_min_ns.value - 50 * US) < 15 * US);
			}
			end(&p);
		}
	}
}

static void drift_is_followed(void **state)
{
	(void)state;
	const struct world w = {
		.offset_ns = 1 * MS, .drift_ppb = 50e3, .least_ns = {5 * MS, 5 * MS}, .stated_ns = -1, .length_ns = S};
	struct points p = after(&w, 60);
	is(&p, 0, "relative", 5.05 * MS, 5.03 * MS);
	is(&p, 1, "relative", 5.05 * MS, 5.03 * MS);
	assert_true(fabs(p.last[0].clock_drift_ppb.value - 50e3) < 1e3);
	assert_true(fabs(p.last[1].clock_drift_ppb.value + 50e3) < 1e3);
	end(&p);
}

/* An error of 100 us is less than a tenth of 5 ms; one of 800 us is not. */
static void good_clocks_are_trusted(void **state)
{
	(void)state;
	struct world w = {.offset_ns = 80 * US, .least_ns = {5 * MS, 5 * MS}, .stated_ns = 50000, .length_ns = S};
	struct points p = after(&w, 20);
	is(&p, 0, "trusted", 5.13 * MS, 100 * US);
	is(&p, 1, "trusted", 4.97 * MS, 100 * US);
	assert_true(p.last[0].clock_offset_ns.value == 0 && p.last[0].mean_ns.low < 5.05 * MS);
	end(&p);
	w.stated_ns = 400000; /* both together: 0.8 ms, which is the bound of what is estimated, too */
	p = after(&w, 20);
	is(&p, 0, "relative", 5.05 * MS, 880 * US);
	end(&p);
}

/* What clocks state is not believed against packets. */
static void packets_contradict(void **state)
{
	(void)state;
	const struct world w = {.offset_ns = -7 * MS, .least_ns = {5 * MS, 5 * MS}, .stated_ns = 50000, .length_ns = S};
	struct points p = after(&w, 20);
	is(&p, 0, "relative", 5.05 * MS, 5 * MS);
	end(&p);
	const struct world files = {
		.offset_ns = -7 * MS, .least_ns = {5 * MS, 5 * MS}, .stated_ns = -1, .files = true, .length_ns = S};
	p = after(&files, 20);
	is(&p, 1, "relative", 5.05 * MS, 5 * MS);
	end(&p);
}

/* Paths of 8 and 2 ms: clocks that say that they are good to 1 ms bound the estimate. */
static void stated_errors_bound_the_estimate(void **state)
{
	(void)state;
	const struct world w = {.least_ns = {8 * MS, 2 * MS}, .stated_ns = 500000, .length_ns = S};
	struct points p = after(&w, 20);
	const struct ow_interval_result *r = &p.last[0];
	assert_string_equal(r->clock_method, "relative");
	assert_true(r->mean_ns.low < 8.05 * MS && 8.05 * MS < r->mean_ns.high &&
	            r->mean_ns.high - r->mean_ns.low < 2.1 * MS);
	end(&p);
}

static void one_clock_has_no_error(void **state)
{
	(void)state;
	struct world w = {.least_ns = {5 * MS, 50 * US}, .stated_ns = -1, .same = true, .length_ns = S};
	struct points p = after(&w, 20);
	is(&p, 0, "trusted", 5.05 * MS, 0);
	is(&p, 1, "trusted", 100 * US, 0);
	assert_int_equal(p.last[0].mean_ns.status, OW_VALUE_EXACT);
	end(&p);
	w.mode = OW_CLOCK_RELATIVE;
	p = after(&w, 20);
	is(&p, 0, "relative", 2.575 * MS, 2.525 * MS);
	end(&p);
}

static void what_is_not_known_is_said(void **state)
{
	(void)state;
	struct world w = {.least_ns = {5 * MS, 5 * MS}, .stated_ns = -1, .one_way = true, .length_ns = S};
	char note[OW_RESULT_CLOCK_NOTE];
	struct points p = after(&w, 20);
	is(&p, 0, "none", 0, NAN);
	assert_int_equal(p.last[0].mean_ns.status, OW_VALUE_NONE);
	assert_int_equal(p.last[0].mean_ns.reason, OW_REASON_CLOCK_ONE_WAY);
	assert_int_equal(p.last[0].clock_offset_ns.reason, OW_REASON_CLOCK_ONE_WAY);
	assert_int_equal(p.last[0].round_trip_min_ns.reason, OW_REASON_CLOCK_ONE_WAY);
	ow_result_clock_note(&p.last[0], "paris", note);
	assert_non_null(strstr(note, "one direction only"));
	end(&p);
	w.stated_ns = 3000000; /* then they are trusted with that */
	p = after(&w, 20);
	is(&p, 0, "trusted", 5.05 * MS, 6 * MS);
	end(&p);
	w.stated_ns = -1;
	w.mode = OW_CLOCK_TRUSTED;
	p = after(&w, 20);
	is(&p, 0, "trusted", 5.05 * MS, NAN);
	end(&p);
}

/* A step of the clock that only packets show: told once, by each point. */
static void a_step_is_told(void **state)
{
	(void)state;
	const struct world w = {
		.mode = OW_CLOCK_RELATIVE, .least_ns = {5 * MS, 5 * MS}, .stated_ns = -1, .length_ns = S};
	struct points p = after(&w, 30);
	unsigned told = 0, refused = 0;
	p.w.offset_ns = 3 * MS;
	for (int i = 0; i < 10; i++) {
		play(&p, 1);
		told += strstr(p.last[0].clock_event, "stepped by +3") != NULL;
		refused += strcmp(p.last[0].clock_method, "none") == 0;
	}
	assert_int_equal(told, 1);
	assert_true(refused >= 1 && refused <= 3);
	is(&p, 0, "relative", 5.05 * MS, 5 * MS);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_apart),
		cmocka_unit_test(drift_is_followed),
		cmocka_unit_test(good_clocks_are_trusted),
		cmocka_unit_test(packets_contradict),
		cmocka_unit_test(stated_errors_bound_the_estimate),
		cmocka_unit_test(one_clock_has_no_error),
		cmocka_unit_test(what_is_not_known_is_said),
		cmocka_unit_test(a_step_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
