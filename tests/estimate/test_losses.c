/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/losses.h"
#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SEED    5
#define BUCKETS 512

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.17g is not %.17g (seed %d)", got, want, SEED);
}

/* Throws lost and extra packets into the buckets of one bank that takes a share of them. */
static void throw(struct ow_random * random, unsigned lost, unsigned extra, double share, int64_t *difference)
{
	for (int i = 0; i < BUCKETS; i++)
		difference[i] = 0;
	for (unsigned i = 0; i < lost + extra; i++) {
		if (ow_random_unit(random) < share)
			difference[ow_random_below(random, BUCKETS)] += i < lost ? 1 : -1;
	}
}

/* Without bias, and the interval of 95 % holds the truth in 93 % of 400 runs at least (4 sigma: 90.6 %). */
static void extra_packets(void **state)
{
	(void)state;
	enum { RUNS = 400 };
	static const double shares[] = {1, 0.5, 0.1};
	struct ow_random random;
	int64_t difference[BUCKETS];
	ow_random_seed(&random, SEED);
	for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
		unsigned lost = 3000, extra = 2000, held = 0;
		double sum = 0, variances = 0;
		for (int run = 0; run < RUNS; run++) {
			struct ow_losses losses = {0};
			struct ow_estimate e = {0};
			double variance;
			throw(&random, lost, extra, shares[k], difference);
			ow_losses_add_bank(&losses, difference, BUCKETS, shares[k]);
			sum += ow_losses_extra(&losses, &variance);
			variances += variance;
			ow_losses_values(&losses, 100000, 99000, &e);
			held += e.lost.low <= lost && lost <= e.lost.high;
			/* Conservation: sent - lost = received - extra. */
			near(e.lost.value - e.extra.value, 1000, 1e-6);
			near(e.loss_ratio.value, e.lost.value / 100000, 1e-12);
			assert_true(losses.surplus && ow_losses_disordered(&losses, 100000, 99000));
		}
		near(sum / RUNS, extra, 5 * sqrt(variances / RUNS / RUNS));
		assert_true(held >= RUNS * 0.906);
	}
}

/* Only losses: no bucket has a surplus, and the difference of the counts is the loss. */
static void losses_alone(void **state)
{
	(void)state;
	struct ow_random random;
	int64_t difference[BUCKETS];
	struct ow_losses losses = {0};
	struct ow_estimate e = {0};
	ow_random_seed(&random, SEED);
	throw(&random, 100, 0, 1, difference);
	ow_losses_add_bank(&losses, difference, BUCKETS, 1);
	assert_false(losses.surplus);
	ow_losses_values(&losses, 10000, 9900, &e);
	assert_true(e.lost.value >= 100 && e.lost.low <= 100 && e.lost.high >= 100 && e.extra.value >= 0);
	/* Equal counts and equal counters: nothing is lost, but a lost and an extra packet of one bucket would be hidden. */
	throw(&random, 0, 0, 1, difference);
	losses = (struct ow_losses){0};
	ow_losses_add_bank(&losses, difference, BUCKETS, 1);
	ow_losses_values(&losses, 10000, 10000, &e);
	assert_true(e.lost.value == 0 && e.extra.value == 0 && e.lost.low == 0 && e.lost.high < 2);
}

/* No buckets know nothing: the interval goes to all that arrived. Nothing sent: no ratio, with its reason. */
static void nothing(void **state)
{
	(void)state;
	struct ow_losses losses = {0};
	struct ow_estimate e = {0};
	double variance;
	assert_true(ow_losses_extra(&losses, &variance) == 0 && isinf(variance));
	ow_losses_values(&losses, 50, 40, &e);
	assert_true(e.lost.value == 10 && e.lost.low == 10 && e.lost.high == 50);
	ow_losses_values(&losses, 0, 0, &e);
	assert_int_equal(e.loss_ratio.status, OW_VALUE_NONE);
	assert_int_equal(e.loss_ratio.reason, OW_REASON_NO_PACKET_SENT);
}

/* P(l = x > 0 | l = x) of Poisson numbers, against the sum of its terms. */
static void mixed(void **state)
{
	(void)state;
	for (double l = 0; l < 4; l += 0.5) {
		for (double x = 0; x < 4; x += 0.5) {
			double p = exp(-l - x), equal = 0, empty = p;
			for (int n = 0; n < 60; n++) {
				equal += p;
				p *= l * x / ((n + 1.0) * (n + 1.0));
			}
			near(ow_losses_mixed(l, x), 1 - empty / equal, 1e-9);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(extra_packets), cmocka_unit_test(losses_alone),
	                                   cmocka_unit_test(nothing), cmocka_unit_test(mixed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
