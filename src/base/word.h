/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The form for the count: 1 packet, 2 packets. */
static inline const char *ow_plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* The number of letters to change, insert or delete to turn one word into the other. */
unsigned ow_word_distance(const char *a, const char *b);
/* Words at most this far apart may be typing errors. */
#define OW_WORD_NEAR 2
/* Longer words match no other word. */
#define OW_WORD_MAX 64

/* "Did you mean": the known word nearest to the written one. */
struct ow_word_guess {
	const char *written;
	const char *best; /* NULL = none is near */
	unsigned distance;
};
/* Start with {.written = ...}, then offer every known word. A word that has no letter in common is not near. */
void ow_word_offer(struct ow_word_guess *guess, const char *word);
