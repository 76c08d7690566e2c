/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 9 of the MPLANE paper: its claims come out as docs/reproduction.md says, with and without maps. */
#include "sim/figure.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* A letter for each claim: y agrees with the paper, n does not, ? depends on the seed. */
static const struct expected {
	const char *name, *claims;
	bool slow; /* in a sanitized build */
} expected[] = {
	{"mplane-9", "n", false},          {"mplane-9-1221a", "yyy", false}, {"mplane-9-1221b", "y", false},
	{"mplane-9-1239a", "yyyyy", true}, {"mplane-9-1239b", "yyy", true},  {"mplane-9-1755a", "nyy", false},
	{"mplane-9-1755b", "?", false},    {"mplane-9-3257a", "yyy", true},  {"mplane-9-3257b", "y", true},
	{"mplane-9-3967a", "nyy", false},  {"mplane-9-3967b", "n", false},   {"mplane-9-6461a", "nyy", false},
	{"mplane-9-6461b", "y", false},
};

static void check_claims(const struct expected *e, const struct ow_figure_run *run)
{
	size_t claims;
	const struct ow_figure_claim *claim = ow_figure_claims(run, &claims);
	if (claims != strlen(e->claims))
		fail_msg("%s: %zu claims", e->name, claims);
	assert_true(ow_figure_points(run) > 0);
	for (size_t i = 0; i < claims; i++) {
		if (e->claims[i] != '?' && claim[i].agrees != (e->claims[i] == 'y'))
			fail_msg("%s: %s: %s", e->name, claim[i].paper, claim[i].ours);
	}
}

static void with_maps(void **state)
{
	(void)state;
	static const char folder[] = OW_SHARED "/topologies";
	if (access(folder, R_OK) < 0) {
		print_message("skipped: no Rocketfuel maps beside this checkout\n");
		skip();
	}
	size_t figures = 0;
	for (const struct ow_figure *f = ow_figures_mplane; f->name; f++, figures++) {
		const struct expected *e = expected + figures;
		assert_true(figures < sizeof expected / sizeof *expected);
		assert_string_equal(f->name, e->name);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
		if (e->slow)
			continue;
#endif
		struct ow_figure_run *run;
		struct ow_error err;
		struct ow_figure_options options = {.quick = true, .seed = 3, .topologies = folder};
		if (ow_figure_compute(f, &options, &run, &err) < 0)
			fail_msg("%s", err.text);
		check_claims(e, run);
		ow_figure_free(run);
	}
	assert_int_equal(figures, sizeof expected / sizeof *expected);
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
