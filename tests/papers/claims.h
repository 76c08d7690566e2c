/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "../effort.h"
#include "papers/figure.h"
#include <string.h>

/* The figures of a paper run, and their claims come out as docs/reproduction.md says. Include cmocka.h before. */

struct expected_figure {
	const char *name;
	/* A letter for each claim: y agrees with the paper, n does not, ? depends on the seed in a quick run, or on how
	 * fast the machine is. NULL: not computed here, it takes too long. */
	const char *claims;
	bool slow;    /* in a sanitized build: left out there */
	bool threads; /* has several */
};

static inline void check_claims(const struct expected_figure *e, const struct ow_figure_run *run)
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

/* All figures of a paper, in their order, in quick runs of seed 3. topologies: a folder of maps, or NULL. */
static inline void check_figures(const struct ow_figure *figure, const struct expected_figure *expected, size_t count,
                                 const char *topologies)
{
	const struct ow_figure_options options = {.quick = true, .seed = 3, .topologies = topologies};
	for (size_t i = 0; i < count; i++, figure++) {
		assert_non_null(figure->name);
		assert_string_equal(figure->name, expected[i].name);
		if (!expected[i].claims)
			continue;
		if ((RUN_STEP > 1 && expected[i].slow) || (ONLY_THREADS && !expected[i].threads))
			continue;
		struct ow_figure_run *run;
		struct ow_error err;
		if (ow_figure_compute(figure, &options, &run, &err) < 0)
			fail_msg("%s: %s", figure->name, err.text);
		check_claims(expected + i, run);
		ow_figure_free(run);
	}
	assert_null(figure->name);
}
