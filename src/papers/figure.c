/* SPDX-License-Identifier: Apache-2.0 */
/* The framework of the figures: collects points and claims of a run, and writes them. */
#include "papers/figure.h"

#include "base/array.h"
#include "report/curves.h"
#include "base/word.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line for each paper: its array of figures. */
const struct ow_figure *const ow_figure_sets[] = {
	ow_figures_lda, ow_figures_finecomb, ow_figures_rda, ow_figures_colate, ow_figures_mplane, NULL,
};

struct ow_figure_run {
	const struct ow_figure *figure;
	struct ow_figure_options options;
	struct ow_curves curves;
	struct ow_figure_claim *claim;
	size_t claims, claims_room;
};

uint64_t ow_figure_seed(const struct ow_figure_run *run)
{
	return run->options.seed;
}

bool ow_figure_quick(const struct ow_figure_run *run)
{
	return run->options.quick;
}

const char *ow_figure_traces(const struct ow_figure_run *run)
{
	return run->options.traces;
}

const char *ow_figure_topologies(const struct ow_figure_run *run)
{
	return run->options.topologies;
}

int ow_figure_point(struct ow_figure_run *run, const char *series, double x, double y, double low, double high)
{
	return ow_curves_add(&run->curves, series, x, y, low, high);
}

int ow_figure_claim(struct ow_figure_run *run, const char *paper, const char *ours, bool agrees)
{
	if (OW_GROW(run->claim, run->claims_room, run->claims + 1) < 0)
		return -ENOMEM;
	struct ow_figure_claim *claim = run->claim + run->claims;
	*claim = (struct ow_figure_claim){strdup(paper), strdup(ours), agrees};
	if (!claim->paper || !claim->ours) {
		free(claim->paper);
		free(claim->ours);
		return -ENOMEM;
	}
	run->claims++;
	return 0;
}

void ow_figure_progress(struct ow_figure_run *run, double done)
{
	if (run->options.on_progress)
		run->options.on_progress(run->options.arg, done);
}

int ow_figure_compute(const struct ow_figure *figure, const struct ow_figure_options *options,
                      struct ow_figure_run **ret_run, struct ow_error *err)
{
	struct ow_figure_run *run = calloc(1, sizeof *run);
	if (!run)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", figure->name);
	run->figure = figure;
	run->options = *options;
	run->curves = (struct ow_curves){.title = figure->title,
	                                 .x_label = figure->x_label,
	                                 .y_label = figure->y_label,
	                                 .log_x = figure->log_x,
	                                 .log_y = figure->log_y};
	struct ow_error reason = {"no reason given"};
	int r = figure->run(run, &reason);
	if (r < 0) {
		ow_figure_free(run);
		return ow_error_set(err, -r, "%s: %.400s", figure->name,
		                    r == -ENOMEM ? "not enough memory" : reason.text);
	}
	*ret_run = run;
	return 0;
}

void ow_figure_free(struct ow_figure_run *run)
{
	if (!run)
		return;
	ow_curves_done(&run->curves);
	for (size_t i = 0; i < run->claims; i++) {
		free(run->claim[i].paper);
		free(run->claim[i].ours);
	}
	free(run->claim);
	free(run);
}

const struct ow_figure_claim *ow_figure_claims(const struct ow_figure_run *run, size_t *ret_count)
{
	*ret_count = run->claims;
	return run->claim;
}

size_t ow_figure_points(const struct ow_figure_run *run)
{
	return run->curves.points;
}

int ow_figure_write_csv(const struct ow_figure_run *run, const char *path, struct ow_error *err)
{
	FILE *out = fopen(path, "we");
	if (!out)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	ow_curves_csv(out, &run->curves);
	bool failed = ferror(out);
	if (fclose(out) != 0 || failed) {
		int code = errno ? errno : EIO;
		unlink(path);
		return ow_error_set(err, code, "%s: %s", path, strerror(code));
	}
	return 0;
}

int ow_figure_write_plot(const struct ow_figure_run *run, const char *path, struct ow_error *err)
{
	return ow_curves_draw(&run->curves, path, err);
}

/* A word selects figures: all, a paper (the part before the dash), one figure, or its parts a, b, ... or -PART. */
static bool chooses(const char *word, const struct ow_figure *figure)
{
	size_t length = strlen(word);
	if (strcmp(word, "all") == 0 || strcmp(word, figure->name) == 0)
		return true;
	if (strncmp(figure->name, word, length) != 0)
		return false;
	const char *rest = figure->name + length;
	return *rest == '-' || (strchr(word, '-') && *rest >= 'a' && *rest <= 'z' && !rest[1]);
}

bool ow_figure_chosen(const struct ow_figure *figure, char *const *word, int words)
{
	for (int i = 0; i < words; i++) {
		if (chooses(word[i], figure))
			return true;
	}
	return false;
}

int ow_figure_check_words(char *const *word, int words, struct ow_error *err)
{
	for (int i = 0; i < words; i++) {
		bool found = false;
		struct ow_word_guess guess = {.written = word[i]};
		for (const struct ow_figure *const *set = ow_figure_sets; *set; set++) {
			for (const struct ow_figure *f = *set; f->name; f++) {
				found |= chooses(word[i], f);
				ow_word_offer(&guess, f->name);
			}
		}
		if (!found && guess.best)
			return ow_error_set(err, EINVAL, "no figure '%.60s', did you mean '%s'?", word[i], guess.best);
		if (!found)
			return ow_error_set(err, EINVAL, "no figure '%.60s'; 'oneway reproduce' lists them", word[i]);
	}
	return 0;
}
