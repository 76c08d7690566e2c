/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Which keys two sets do not share, from sketches of a few bytes, whatever the size of the sets: PinSketch (Dodis et
 * al., Fuzzy extractors, 2008). A key is an element x of GF(2^40); a sketch of capacity c is the sums of x, x^3, x^5, ...,
 * x^(2c-1) over the set, 5 bytes each. The sum of two sketches is the sketch of what is in one set only: those x are the
 * roots of a polynomial that Berlekamp and Massey find, if there are at most c. Roots are found by traces (Berlekamp 1970).
 * The field is that of x^40 + x^5 + x^4 + x^3 + 1.
 *
 * Key 0 is in no sketch.
 */
#define OW_KEY_SKETCH_MAX   32 /* capacity */
#define OW_KEY_SKETCH_BYTES 5  /* of each sum */

struct ow_key_sketch {
	unsigned capacity;
	uint64_t sum[OW_KEY_SKETCH_MAX];
};

/* Adds a key that is not in the sketch, or removes one that is. */
void ow_key_sketch_toggle(struct ow_key_sketch *sketch, uint64_t key);
/* The keys of the sketch, in any order. Returns their number, or -1: there are more than its capacity. If there are many
 * more, keys that are not in it may come out. */
int ow_key_sketch_solve(const struct ow_key_sketch *sketch, uint64_t ret_keys[OW_KEY_SKETCH_MAX]);
