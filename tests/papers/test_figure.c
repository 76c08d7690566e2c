/* SPDX-License-Identifier: Apache-2.0 */
/* The framework of the figures: points, claims, CSV, a plot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "papers/figure.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int run(struct ow_figure_run *run, struct ow_error *err)
{
	if (ow_figure_seed(run) == 13)
		return ow_error_set(err, EDOM, "no luck");
	for (int i = 1; i <= 10; i++) {
		double y = i == 1 ? 0 : 1.0 / i;
		int r = ow_figure_point(run, "ours, with 'quotes'", pow(10, -i), y, y * 0.9, y * 1.1);
		if (r == 0)
			r = ow_figure_point(run, "paper", pow(10, -i), y, y, y);
		if (r < 0)
			return r;
		ow_figure_progress(run, i / 10.);
	}
	assert_int_equal(ow_figure_point(run, "paper", NAN, 1, 1, 1), -EINVAL);
	return ow_figure_claim(run, "at most 1", true, "%s", ow_figure_quick(run) ? "1.0 (quick)" : "1.0");
}

static const struct ow_figure figure = {"test-1", "A figure", "x", "y", true, true, run};

static void on_progress(void *arg, double done)
{
	*(double *)arg = done;
}

static void test_collects(void **state)
{
	(void)state;
	double done = 0;
	struct ow_figure_options options = {.quick = true, .seed = 1, .on_progress = on_progress, .arg = &done};
	struct ow_figure_run *r;
	struct ow_error err;
	assert_int_equal(ow_figure_compute(&figure, &options, &r, &err), 0);
	assert_true(done == 1);
	assert_int_equal(ow_figure_points(r), 20);
	size_t claims;
	const struct ow_figure_claim *claim = ow_figure_claims(r, &claims);
	assert_int_equal(claims, 1);
	assert_string_equal(claim->ours, "1.0 (quick)");

	assert_int_equal(ow_figure_write_csv(r, "test-figure.csv", &err), 0);
	char line[200];
	FILE *in = fopen("test-figure.csv", "r");
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof line, in));
	assert_string_equal(line, "series,x,y,low,high\n");
	assert_non_null(fgets(line, sizeof line, in));
	assert_string_equal(line, "\"ours, with 'quotes'\",0.1,0,0,0\n");
	fclose(in);
	unlink("test-figure.csv");

	int drawn = ow_figure_write_plot(r, "test-figure.svg", &err);
	if (drawn == -ENOENT)
		print_message("no picture: gnuplot is not installed\n");
	else
		assert_int_equal(drawn, 0);
	unlink("test-figure.svg");
	assert_int_equal(ow_figure_write_plot(r, "test-figure.gif", &err), -EINVAL);
	assert_int_equal(ow_figure_write_csv(r, "/nowhere/test.csv", &err), -ENOENT);
	ow_figure_free(r);
}

static void test_passes_errors_on(void **state)
{
	(void)state;
	struct ow_figure_run *r = NULL;
	struct ow_error err;
	assert_int_equal(ow_figure_compute(&figure, &(struct ow_figure_options){.seed = 13}, &r, &err), -EDOM);
	assert_string_equal(err.text, "test-1: no luck");
	assert_null(r);
	ow_figure_free(NULL);
}

/* Names are what people type and what files are called. */
static void test_names(void **state)
{
	(void)state;
	for (const struct ow_figure *const *set = ow_figure_sets; *set; set++) {
		for (const struct ow_figure *f = *set; f->name; f++) {
			assert_non_null(strchr(f->name, '-'));
			assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(f->name));
			assert_true(f->title && f->x_label && f->y_label && f->run);
			for (const struct ow_figure *const *other = ow_figure_sets; *other; other++) {
				for (const struct ow_figure *g = *other; g->name; g++)
					assert_true(f == g || strcmp(f->name, g->name) != 0);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collects),
		cmocka_unit_test(test_passes_errors_on),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
