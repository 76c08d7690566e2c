/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples compared with the theory. Tolerances: 5 standard errors of the statistic at the sample size, so that a
 * correct implementation fails for one seed in a million; the seeds are fixed.
 */
#include "sim/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define N      200000
#define SIGMAS 5

static int ascending(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a > b) - (a < b);
}

static int64_t *draw(const struct ow_sim_model *model, uint64_t seed)
{
	static int64_t sample[N];
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < N; i++)
		sample[i] = ow_model_sample(model, &random);
	qsort(sample, N, sizeof *sample, ascending);
	return sample;
}

static double mean_of(const int64_t *x)
{
	double sum = 0;
	for (size_t i = 0; i < N; i++)
		sum += (double)x[i];
	return sum / N;
}

static void near(double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance)
		fail_msg("%g is not %g within %g", got, want, tolerance);
}

/* The empirical share below the theoretical q-quantile is binomial. */
static void quantile_near(const int64_t *x, double q, double value)
{
	size_t below = 0;
	while (below < N && (double)x[below] <= value)
		below++;
	near((double)below / N, q, SIGMAS * sqrt(q * (1 - q) / N));
}

static void weibull(void **state)
{
	(void)state;
	/* Shape 0.6 and 0.8: LDA section IV; scale so that nanoseconds do not matter. */
	const double shapes[] = {0.6, 0.8, 2};
	for (size_t i = 0; i < 3; i++) {
		double scale = 1e6, k = shapes[i];
		struct ow_sim_model model = {.kind = OW_SIM_WEIBULL, .a = scale, .b = k};
		const int64_t *x = draw(&model, 100 + i);
		double mean = scale * tgamma(1 + 1 / k), variance = scale * scale * tgamma(1 + 2 / k) - mean * mean;
		near(mean_of(x), mean, SIGMAS * sqrt(variance / N));
		for (int q = 1; q <= 9; q++)
			quantile_near(x, q / 10.0, scale * pow(-log(1 - q / 10.0), 1 / k));
		quantile_near(x, 0.999, scale * pow(-log(0.001), 1 / k));
		near(ow_model_median(&model), scale * pow(log(2), 1 / k), 1e-6);
	}
}

static void pareto(void **state)
{
	(void)state;
	double scale = 1e6, k = 3;
	struct ow_sim_model model = {.kind = OW_SIM_PARETO, .a = scale, .b = k};
	const int64_t *x = draw(&model, 7);
	double mean = scale * k / (k - 1), variance = scale * scale * k / ((k - 1) * (k - 1) * (k - 2));
	near(mean_of(x), mean, SIGMAS * sqrt(variance / N));
	assert_true(x[0] >= scale);
	for (int q = 1; q <= 9; q++)
		quantile_near(x, q / 10.0, scale * pow(1 - q / 10.0, -1 / k));
}

static void normal(void **state)
{
	(void)state;
	struct ow_sim_model model = {.kind = OW_SIM_NORMAL, .a = 1e6, .b = 1e5};
	const int64_t *x = draw(&model, 8);
	double mean = mean_of(x), squares = 0;
	near(mean, 1e6, SIGMAS * 1e5 / sqrt(N));
	for (size_t i = 0; i < N; i++)
		squares += ((double)x[i] - mean) * ((double)x[i] - mean);
	/* The variance of a sample variance of normals is 2 s^4 / n. */
	near(squares / N, 1e10, SIGMAS * sqrt(2.0 / N) * 1e10);
	quantile_near(x, 0.975, 1e6 + 1.959963985 * 1e5);
	quantile_near(x, 0.025, 1e6 - 1.959963985 * 1e5);

	/* Mean 0: half of it is cut, the rest is a half-normal with mean s sqrt(2/pi). */
	model.a = 0;
	x = draw(&model, 9);
	assert_true(x[0] >= 0);
	near(mean_of(x), 1e5 * sqrt(2 / M_PI), SIGMAS * 1e5 * sqrt((1 - 2 / M_PI) / N));
}

static void constant_is_constant(void **state)
{
	(void)state;
	struct ow_sim_model model = {.kind = OW_SIM_CONSTANT, .a = 4242};
	const int64_t *x = draw(&model, 1);
	assert_int_equal(x[0], 4242);
	assert_int_equal(x[N - 1], 4242);
}

static void zipf(void **state)
{
	(void)state;
	const double exponents[] = {0, 1, 1.5};
	for (size_t e = 0; e < 3; e++) {
		struct ow_alias alias;
		struct ow_random random;
		unsigned count[100] = {0};
		double sum = 0;
		ow_random_seed(&random, 5 + e);
		assert_int_equal(ow_alias_zipf(&alias, 100, exponents[e]), 0);
		for (size_t i = 0; i < N; i++)
			count[ow_alias_sample(&alias, &random)]++;
		for (int i = 1; i <= 100; i++)
			sum += pow(i, -exponents[e]);
		for (int i = 1; i <= 100; i++) {
			double p = pow(i, -exponents[e]) / sum;
			near((double)count[i - 1] / N, p, SIGMAS * sqrt(p * (1 - p) / N));
		}
		ow_alias_done(&alias);
	}
}

static void one_flow_is_always_chosen(void **state)
{
	(void)state;
	struct ow_alias alias;
	struct ow_random random;
	ow_random_seed(&random, 1);
	assert_int_equal(ow_alias_zipf(&alias, 1, 1), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ow_alias_sample(&alias, &random), 0);
	ow_alias_done(&alias);
}

static void sizes(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	struct ow_sim_size imix = {.kind = OW_SIM_SIZE_IMIX}, uniform = {OW_SIM_SIZE_UNIFORM, 100, 1500};
	double sum = 0;
	uint32_t least = 9999, most = 0;
	for (size_t i = 0; i < N; i++) {
		sum += ow_size_sample(&imix, &random);
		uint32_t size = ow_size_sample(&uniform, &random);
		least = size < least ? size : least;
		most = size > most ? size : most;
	}
	near(sum / N, ow_size_mean(&imix), SIGMAS * 400 / sqrt(N));
	assert_int_equal(least, 100);
	assert_int_equal(most, 1500);
}

static void uniform_loss(void **state)
{
	(void)state;
	struct ow_sim_loss model = {.ratio = 0.03};
	struct ow_loss loss;
	struct ow_random random;
	ow_random_seed(&random, 12);
	ow_loss_init(&loss, &model, &random);
	unsigned lost = 0;
	for (size_t i = 0; i < N; i++)
		lost += ow_loss_next(&loss, &random);
	near((double)lost / N, 0.03, SIGMAS * sqrt(0.03 * 0.97 / N));
}

static void no_loss_and_all_loss(void **state)
{
	(void)state;
	const struct ow_sim_loss models[] = {{0, 0}, {0, 100}, {1, 0}, {1, 100}};
	for (size_t i = 0; i < 4; i++) {
		struct ow_loss loss;
		struct ow_random random;
		ow_random_seed(&random, i);
		ow_loss_init(&loss, &models[i], &random);
		for (int k = 0; k < 1000; k++)
			assert_int_equal(ow_loss_next(&loss, &random), models[i].ratio == 1);
	}
}

static void loss_episodes(void **state)
{
	(void)state;
	/*
	 * Alternating exponentials with means L and G = L (1-P)/P. A renewal cycle has a lost share whose variance, by
	 * the delta method, makes Var(share) = 2 L P (1-P)^2 / n <= 2 L P / n over n packets.
	 */
	struct ow_sim_loss model = {.ratio = 0.05, .episode = 100};
	struct ow_loss loss;
	struct ow_random random;
	size_t n = 20 * N, lost = 0, runs = 0;
	bool before = false;
	ow_random_seed(&random, 77);
	ow_loss_init(&loss, &model, &random);
	for (size_t i = 0; i < n; i++) {
		bool now = ow_loss_next(&loss, &random);
		lost += now;
		runs += now && !before;
		before = now;
	}
	near((double)lost / (double)n, 0.05, SIGMAS * sqrt(2 * 100 * 0.05 / (double)n));
	/* Runs shorter than a packet may fall between two: a share 1 - exp(-1/L) of them or less. */
	near((double)lost / (double)runs, 100, 1 + SIGMAS * 100 / sqrt((double)runs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weibull),
		cmocka_unit_test(pareto),
		cmocka_unit_test(normal),
		cmocka_unit_test(constant_is_constant),
		cmocka_unit_test(zipf),
		cmocka_unit_test(one_flow_is_always_chosen),
		cmocka_unit_test(sizes),
		cmocka_unit_test(uniform_loss),
		cmocka_unit_test(no_loss_and_all_loss),
		cmocka_unit_test(loss_episodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
