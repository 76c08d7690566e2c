/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the RDA paper run, and their claims come out as docs/reproduction.md says. */
#include "sim/figure.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* A letter for each claim: y agrees with the paper, n does not, ? depends on the seed in a quick run,
 * or on how fast the machine is. */
static const struct expected {
	const char *name, *claims;
	bool slow; /* in a sanitized build */
} expected[] = {
	{"rda-6", "y", false},
	{"rda-7", "yy?", true},
	{"rda-8", "yy?", true},
	{"rda-10", "?", false},
	{"rda-11", "y?y", false},
	{"rda-12", "??", false},
	{"rda-13", "??", false},
	{"rda-14", "??", false},
	{"rda-15", "??", false},
	{"rda-s1", "ynny", true},
	{"rda-s2", "ynny", true},
	{"rda-s3", "n", true},
	{"rda-s4", "n", true},
	{"rda-s5", "y", false},
	{"rda-s6", "?yy", true},
	{"rda-s7", "?yy", true},
	{"rda-s8", "?", true},
	{"rda-s9", "?", true},
	{"rda-s10", "?", true},
	{"rda-s11", "?", true},
	{"rda-table-1", "yyy", false},
	{"rda-published", "ny", true},
	{"rda-late-binding", "n", false},
};

static void test_claims(void **state)
{
	(void)state;
	size_t figures = 0;
	for (const struct ow_figure *f = ow_figures_rda; f->name; f++, figures++) {
		const struct expected *e = expected + figures;
		assert_true(figures < sizeof expected / sizeof *expected);
		assert_string_equal(f->name, e->name);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
		if (e->slow)
			continue;
#endif
		struct ow_figure_run *run;
		struct ow_error err;
		assert_int_equal(
			ow_figure_compute(f, &(struct ow_figure_options){.quick = true, .seed = 3}, &run, &err), 0);
		size_t claims;
		const struct ow_figure_claim *claim = ow_figure_claims(run, &claims);
		assert_int_equal(claims, strlen(e->claims));
		assert_true(ow_figure_points(run) > 0);
		for (size_t i = 0; i < claims; i++) {
			if (e->claims[i] != '?' && claim[i].agrees != (e->claims[i] == 'y'))
				fail_msg("%s: %s: %s", f->name, claim[i].paper, claim[i].ours);
		}
		ow_figure_free(run);
	}
	assert_int_equal(figures, sizeof expected / sizeof *expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
