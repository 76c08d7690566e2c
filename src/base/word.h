/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_WORD_H
#define OW_BASE_WORD_H

/* The number of letters to change, add or leave out between two words, for "did you mean". */
unsigned ow_word_distance(const char *a, const char *b);
/* Words at most this far apart may be a slip of the fingers. */
#define OW_WORD_NEAR 2
/* Longer words are far from all others. */
#define OW_WORD_MAX 64

#endif
