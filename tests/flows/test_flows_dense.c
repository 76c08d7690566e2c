/* SPDX-License-Identifier: Apache-2.0 */
/* The exact solver against the definition of the best linear prediction, on small systems. */
#include "flows/flows_solver.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define FLOWS 6u
#define ROWS  4u
#define SLOTS 2u

/* A system of which b, noise and r are given; x and var are asked for. */
struct scene {
	size_t start[FLOWS + 1];
	uint32_t row[FLOWS * SLOTS];
	struct ow_flow_solver solver;
	double b[FLOWS * SLOTS], noise[ROWS], r[ROWS], x[FLOWS], var[FLOWS];
};

static void scene_make(struct scene *s, struct ow_random *random, double noise)
{
	*s = (struct scene){0};
	s->solver = (struct ow_flow_solver){.rows = ROWS,
	                                    .columns = FLOWS,
	                                    .start = s->start,
	                                    .row = s->row,
	                                    .b = s->b,
	                                    .noise = s->noise,
	                                    .r = s->r,
	                                    .x = s->x,
	                                    .var = s->var};
	for (uint32_t f = 0; f < FLOWS; f++) {
		s->start[f + 1] = (f + 1) * SLOTS;
		for (uint32_t j = 0; j < SLOTS; j++) {
			/* One row of either bank. */
			s->row[f * SLOTS + j] = 2 * j + (uint32_t)ow_random_below(random, 2);
			s->b[f * SLOTS + j] = 0.1 + ow_random_unit(random);
		}
	}
	for (uint32_t c = 0; c < ROWS; c++) {
		s->noise[c] = noise;
		s->r[c] = ow_random_unit(random) - 0.5;
	}
}

static double dot(const struct scene *s, uint32_t f, const double *v)
{
	double sum = 0;
	for (uint32_t j = 0; j < SLOTS; j++)
		sum += s->b[f * SLOTS + j] * v[s->row[f * SLOTS + j]];
	return sum;
}

/* Residual of (B B' + N) y = v. */
static void residual(const struct scene *s, const double *v, const double *y, double *ret)
{
	for (uint32_t c = 0; c < ROWS; c++)
		ret[c] = v[c] - s->noise[c] * y[c];
	for (uint32_t f = 0; f < FLOWS; f++) {
		double x = dot(s, f, y);
		for (uint32_t j = 0; j < SLOTS; j++)
			ret[s->row[f * SLOTS + j]] -= s->b[f * SLOTS + j] * x;
	}
}

/* Solves it by conjugate gradients: as many steps as there are rows, and some against rounding. */
static void solve(const struct scene *s, const double *v, double *y)
{
	double zero[ROWS] = {0}, g[ROWS], p[ROWS], q[ROWS], gg = 0;
	for (uint32_t c = 0; c < ROWS; c++) {
		y[c] = 0;
		g[c] = p[c] = v[c];
		gg += g[c] * g[c];
	}
	for (int step = 0; step < 40 && gg > 1e-28; step++) {
		double pq = 0, next = 0;
		residual(s, zero, p, q);
		for (uint32_t c = 0; c < ROWS; c++)
			pq -= p[c] * q[c];
		for (uint32_t c = 0; c < ROWS; c++) {
			y[c] += gg / pq * p[c];
			g[c] += gg / pq * q[c];
			next += g[c] * g[c];
		}
		for (uint32_t c = 0; c < ROWS; c++)
			p[c] = g[c] + next / gg * p[c];
		gg = next;
	}
}

/* x = B' y with (B B' + N) y = r; the variance of x_f is 1 - b_f' (B B' + N)^-1 b_f. */
static void is_the_best_prediction(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	for (int round = 0; round < 200; round++) {
		struct scene s;
		double y[ROWS];
		scene_make(&s, &random, 0.05 + ow_random_unit(&random));
		assert_int_equal(ow_flow_solve_dense(&s.solver), 1);
		solve(&s, s.r, y);
		for (uint32_t f = 0; f < FLOWS; f++) {
			double column[ROWS] = {0}, z[ROWS];
			assert_true(fabs(s.x[f] - dot(&s, f, y)) < 1e-9);
			for (uint32_t j = 0; j < SLOTS; j++)
				column[s.row[f * SLOTS + j]] += s.b[f * SLOTS + j];
			solve(&s, column, z);
			assert_true(fabs(s.var[f] - (1 - dot(&s, f, z))) < 1e-9);
		}
	}
}

/* Both banks have the same sum, so that without noise the matrix has no inverse: rows still say the same. */
static void banks_with_the_same_sum(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 4);
	for (int round = 0; round < 100; round++) {
		struct scene s;
		double x[FLOWS];
		scene_make(&s, &random, 0);
		for (uint32_t c = 0; c < ROWS; c++)
			s.r[c] = 0;
		for (uint32_t f = 0; f < FLOWS; f++) {
			x[f] = ow_random_unit(&random) - 0.5;
			s.b[f * SLOTS + 1] = s.b[f * SLOTS];
			for (uint32_t j = 0; j < SLOTS; j++)
				s.r[s.row[f * SLOTS + j]] += s.b[f * SLOTS + j] * x[f];
		}
		assert_int_equal(ow_flow_solve_dense(&s.solver), 1);
		double left[ROWS];
		for (uint32_t c = 0; c < ROWS; c++)
			left[c] = s.r[c];
		for (uint32_t f = 0; f < FLOWS; f++) {
			assert_true(s.var[f] >= 0 && s.var[f] <= 1 + 1e-9);
			for (uint32_t j = 0; j < SLOTS; j++)
				left[s.row[f * SLOTS + j]] -= s.b[f * SLOTS + j] * s.x[f];
		}
		for (uint32_t c = 0; c < ROWS; c++)
			assert_true(fabs(left[c]) < 1e-6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_best_prediction),
		cmocka_unit_test(banks_with_the_same_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
