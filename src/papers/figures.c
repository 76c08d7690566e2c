/* SPDX-License-Identifier: Apache-2.0 */
/* All figures, and the choice among them. */
#include "papers/figure.h"

#include "base/word.h"
#include <errno.h>
#include <string.h>

/* One line for each paper: its array of figures. */
const struct ow_figure *const ow_figure_sets[] = {
	ow_figures_lda, ow_figures_finecomb, ow_figures_rda, ow_figures_colate, ow_figures_mplane, NULL,
};

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
