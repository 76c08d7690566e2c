/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_WORD_H
#define OW_BASE_WORD_H

#include <stdint.h>

/* 1 packet, 2 packets: the form that goes with the count. */
static inline const char *ow_plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* The number of letters to change, add or leave out between two words. */
unsigned ow_word_distance(const char *a, const char *b);
/* Words at most this far apart may be a slip of the fingers. */
#define OW_WORD_NEAR 2
/* Longer words are far from all others. */
#define OW_WORD_MAX 64

/* "Did you mean": the one of the words that there are which is nearest to the one that was written. */
struct ow_word_guess {
	const char *written;
	const char *best; /* NULL = none is near */
	unsigned distance;
};
/* Begin with {.written = ...}, offer all. A word in which no letter was right is not near. */
void ow_word_offer(struct ow_word_guess *guess, const char *word);

#endif
