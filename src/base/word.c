/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance of words, for "did you mean". */
#include "base/word.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Levenshtein distance, one row of the table at a time. */
unsigned ow_word_distance(const char *a, const char *b)
{
	size_t n = strlen(b);
	unsigned row[OW_WORD_MAX + 1];
	if (strlen(a) > OW_WORD_MAX || n > OW_WORD_MAX)
		return OW_WORD_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned replace = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = least(replace, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

void ow_word_offer(struct ow_word_guess *guess, const char *word)
{
	unsigned distance = ow_word_distance(guess->written, word);
	unsigned most = guess->best ? guess->distance - 1 : OW_WORD_NEAR;
	if ((guess->best && !guess->distance) || distance > most || distance >= strlen(guess->written))
		return;
	guess->best = word;
	guess->distance = distance;
}
