/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synopsis_corpus DIRECTORY: makes the seeds of fuzz_synopsis: each structure empty, and with packets, in a few small
 * sizes. A seed is the kind and the encoding; files are named by structure, bytes of memory and packets.
 */
#include "base/hash.h"
#include "save.h"
#include "synopsis/ams.h"
#include "synopsis/bottomk.h"
#include "synopsis/finecomb.h"
#include "synopsis/fold.h"
#include "synopsis/lda.h"
#include "synopsis/minhash.h"
#include "synopsis/moments.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <stdio.h>
#include <stdlib.h>

#define SEED           1
#define PACKETS        64
#define SEED_BYTES_MAX 1200 /* larger seeds only slow the fuzzer down */

typedef int (*create_for)(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis);

static const create_for structures[] = {
	ow_lda_create_for, ow_finecomb_create_for, ow_srda_create_for,    ow_rda_create_for,     ow_fold_create_for,
	ow_ams_create_for, ow_bottomk_create_for,  ow_moments_create_for, ow_minhash_create_for,
};

static int save_synopsis(const char *directory, const struct ow_synopsis *synopsis, size_t memory, size_t packets)
{
	char name[64];
	size_t size = 1 + synopsis->ops->encoded_size(synopsis);
	if (size > SEED_BYTES_MAX)
		return 0;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return -1;
	bytes[0] = (uint8_t)synopsis->ops->kind;
	synopsis->ops->encode(synopsis, bytes + 1);
	snprintf(name, sizeof name, "%s-%zu-%zu", synopsis->ops->name, memory, packets);
	save(directory, name, bytes, size);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	static const size_t memory[] = {64, 400, 8500};
	struct ow_sizing sizing = {PACKETS, 0.1, 0.02};
	struct ow_sighting stamps[PACKETS];
	int r = 0;
	if (argc != 2) {
		fprintf(stderr, "usage: synopsis_corpus DIRECTORY\n");
		return 2;
	}
	for (uint64_t i = 0; i < PACKETS; i++)
		stamps[i] = (struct ow_sighting){ow_mix64(i + 1), (int64_t)i * 1000};
	for (size_t i = 0; i < sizeof structures / sizeof *structures && r == 0; i++) {
		for (size_t k = 0; k < sizeof memory / sizeof *memory && r == 0; k++) {
			struct ow_synopsis *synopsis;
			if (structures[i](memory[k], &sizing, SEED, &synopsis) < 0)
				continue;
			for (size_t packets = 0; packets <= PACKETS && r == 0; packets = packets ? packets * 8 : 1) {
				synopsis->ops->reset(synopsis);
				synopsis->ops->add(synopsis, stamps, packets);
				r = save_synopsis(argv[1], synopsis, memory[k], packets);
			}
			ow_synopsis_free(synopsis);
		}
	}
	return r < 0;
}
