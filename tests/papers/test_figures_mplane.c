/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 9 of the MPLANE paper: its claims come out as docs/reproduction.md says, with and without maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "claims.h"

static const struct expected_figure expected[] = {
	{"mplane-9", "n", false},          {"mplane-9-1221a", "yyy", false}, {"mplane-9-1221b", "y", false},
	{"mplane-9-1239a", "yyyyy", true}, {"mplane-9-1239b", "yyy", true},  {"mplane-9-1755a", "nyy", false},
	{"mplane-9-1755b", "?", false},    {"mplane-9-3257a", "yyy", true},  {"mplane-9-3257b", "y", true},
	{"mplane-9-3967a", "nyy", false},  {"mplane-9-3967b", "n", false},   {"mplane-9-6461a", "nyy", false},
	{"mplane-9-6461b", "y", false},
};

static void with_maps(void **state)
{
	(void)state;
	static const char folder[] = OW_SHARED "/topologies";
	if (access(folder, R_OK) < 0) {
		print_message("skipped: no Rocketfuel maps beside this checkout\n");
		skip();
	}
	check_figures(ow_figures_mplane, expected, sizeof expected / sizeof *expected, folder);
}

/* Without maps there is nothing to agree with; a folder without them is an error. */
static void without_maps(void **state)
{
	(void)state;
	for (const struct ow_figure *f = ow_figures_mplane; f->name; f++) {
		struct ow_figure_run *run;
		struct ow_error err;
		assert_int_equal(ow_figure_compute(f, &(struct ow_figure_options){.quick = true}, &run, &err), 0);
		size_t claims;
		const struct ow_figure_claim *claim = ow_figure_claims(run, &claims);
		assert_int_equal(claims, 1);
		assert_false(claim->agrees);
		assert_non_null(strstr(claim->ours, "--topologies"));
		assert_int_equal(ow_figure_points(run), 0);
		ow_figure_free(run);
		assert_true(ow_figure_compute(f, &(struct ow_figure_options){.topologies = "/nonexistent"}, &run,
		                              &err) < 0);
		assert_non_null(strstr(err.text, "/nonexistent/rocketfuel-"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(with_maps), cmocka_unit_test(without_maps)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
