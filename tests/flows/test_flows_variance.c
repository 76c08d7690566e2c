/* SPDX-License-Identifier: Apache-2.0 */
/* The fit of the variances: residuals by their definition, and steps that never make the counters less likely. */
#include "flows/flows_private.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define FLOWS 400u
#define ROWS  300u

struct scene {
	struct ow_flow_system system;
	struct ow_flow_prior prior;
	struct ow_flow_fit fit;
	struct ow_flow_entry entry[FLOWS];
	double packets[FLOWS], mean[FLOWS], var[FLOWS], sum[ROWS], noise[ROWS], residual[ROWS], variance[ROWS];
	uint32_t used[ROWS];
	uint8_t class_of[FLOWS];
};

/* One bank. The means of flows are spread around 1000 ns by a third. */
static void scene_make(struct scene *s, uint64_t seed)
{
	struct ow_random random;
	*s = (struct scene){0};
	ow_random_seed(&random, seed);
	for (uint32_t f = 0; f < FLOWS; f++) {
		uint32_t row = (uint32_t)ow_random_below(&random, ROWS);
		s->packets[f] = (double)(1 + ow_random_below(&random, 40));
		s->mean[f] = 1000;
		s->var[f] = 1;
		s->class_of[f] = (uint8_t)(s->packets[f] > 8);
		s->entry[f] = (struct ow_flow_entry){.row = row, .load = s->packets[f]};
		s->used[row]++;
		s->sum[row] += s->packets[f] * 1000 * (1 + 0.6 * (ow_random_unit(&random) - 0.5));
	}
	s->system = (struct ow_flow_system){.flows = FLOWS,
	                                    .packets = s->packets,
	                                    .slots = 1,
	                                    .entry = s->entry,
	                                    .rows = ROWS,
	                                    .sum = s->sum,
	                                    .noise = s->noise,
	                                    .used = s->used};
	s->prior = (struct ow_flow_prior){.mean_ns = 1000, .mean = s->mean, .var = s->var};
	s->fit = (struct ow_flow_fit){.system = &s->system,
	                              .prior = &s->prior,
	                              .residual = s->residual,
	                              .variance = s->variance,
	                              .class_of = s->class_of,
	                              .a = {1, 1, 1, 1}};
	for (int k = 0; k < OW_FLOW_CLASSES; k++)
		s->fit.factor[k] = 1;
}

/* -2 log of the likelihood of all counters, but for a constant. */
static double deviance(struct scene *s)
{
	double sum = 0;
	ow_flow_residuals(&s->system, &s->prior, s->residual, s->variance);
	for (uint32_t c = 0; c < ROWS; c++) {
		if (s->variance[c] > 0)
			sum += log(s->variance[c]) + s->residual[c] * s->residual[c] / s->variance[c];
	}
	return sum;
}

static void residuals_are_what_is_left(void **state)
{
	(void)state;
	static struct scene s;
	scene_make(&s, 1);
	s.prior.within = 0.5;
	s.entry[0].partial = 3;
	s.entry[0].unknown = 2;
	s.used[s.entry[1].row] = 0;
	ow_flow_residuals(&s.system, &s.prior, s.residual, s.variance);
	for (uint32_t c = 0; c < ROWS; c++) {
		double left = s.used[c] ? s.sum[c] : 0, var = 0;
		for (uint32_t f = 0; f < FLOWS; f++) {
			const struct ow_flow_entry *e = &s.entry[f];
			if (e->row != c)
				continue;
			left -= e->load * s.mean[f];
			var += e->load * e->load * s.var[f] + (e->partial * 0.5 + e->unknown) * s.mean[f] * s.mean[f];
		}
		assert_true(fabs(s.residual[c] - left) <= 1e-9 * (1 + fabs(left)));
		assert_true(fabs(s.variance[c] - var) <= 1e-9 * (1 + var));
	}
}

/* Multiplicative steps of variance components: each makes the counters likelier, and values stay positive. A step on
 * the classes is drawn to the line, which is no maximum of the likelihood alone: those begin after the line is fitted,
 * and all together must not lose. */
static void steps_go_up(void **state)
{
	(void)state;
	static struct scene s;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		scene_make(&s, seed);
		ow_flow_fit_line(&s.fit);
		double before = deviance(&s), line;
		for (int i = 0; i < 30; i++) {
			ow_flow_fit_line(&s.fit);
			double after = deviance(&s);
			assert_true(after <= before + 1e-9 * fabs(before));
			before = after;
		}
		line = before;
		for (int i = 0; i < 12; i++)
			ow_flow_fit_classes(&s.fit);
		assert_true(deviance(&s) <= line + 1e-6 * fabs(line));
		for (uint32_t f = 0; f < FLOWS; f++)
			assert_true(s.var[f] >= 0 && isfinite(s.var[f]));
	}
}

/* A uniform spread of +- 0.3 has the variance 0.6^2 / 12 = 0.03. Of some 200 counters the error of a variance is 10 %,
 * of a mean over ten of them 3 %: 15 % is five of these. */
static void finds_the_variance(void **state)
{
	(void)state;
	static struct scene s;
	double sum = 0;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		double mean = 0;
		scene_make(&s, seed);
		for (int i = 0; i < 100; i++)
			ow_flow_fit_line(&s.fit);
		for (uint32_t f = 0; f < FLOWS; f++)
			mean += s.var[f] * s.packets[f] * s.packets[f];
		double weight = 0;
		for (uint32_t f = 0; f < FLOWS; f++)
			weight += s.packets[f] * s.packets[f];
		sum += mean / weight / 1e6 / 10;
	}
	assert_true(fabs(sum - 0.03) < 0.15 * 0.03);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(residuals_are_what_is_left),
		cmocka_unit_test(steps_go_up),
		cmocka_unit_test(finds_the_variance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
