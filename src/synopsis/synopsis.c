/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all synopses share: the checks before merging and subtracting, the header of the encoding, and the table of the
 * structures by kind.
 */
#include "synopsis/synopsis.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "synopsis/ams.h"
#include "synopsis/bottomk.h"
#include "synopsis/finecomb.h"
#include "synopsis/fold.h"
#include "synopsis/lda.h"
#include "synopsis/minhash.h"
#include "synopsis/moments.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define KIND_AT 4
#define SEED_AT 8
#define SIZE_AT 16

/* One line for each structure, in the order of enum ow_synopsis_kind; the last is NULL. */
/* clang-format off */
static const struct ow_synopsis_ops *const structures[] = {
	&ow_lda_ops,
	&ow_finecomb_ops,
	&ow_srda_ops,
	&ow_rda_ops,
	&ow_fold_ops,
	&ow_ams_ops,
	&ow_bottomk_ops,
	&ow_moments_ops,
	&ow_minhash_ops,
	NULL,
};
/* clang-format on */

/* The structure of this kind, or NULL. */
static const struct ow_synopsis_ops *ops_of(enum ow_synopsis_kind kind)
{
	for (const struct ow_synopsis_ops *const *s = structures; *s; s++) {
		if ((*s)->kind == kind)
			return *s;
	}
	return NULL;
}

int ow_synopsis_comparable(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_error *err)
{
	if (a->ops->kind != b->ops->kind)
		return ow_error_set(err, EINVAL, "synopses of different kinds: %s and %s", a->ops->name, b->ops->name);
	if (a->seed != b->seed)
		return ow_error_set(err, EINVAL, "%s: synopses with different seeds", a->ops->name);
	if (!a->ops->same_shape(a, b))
		return ow_error_set(err, EINVAL, "%s: synopses with different parameters", a->ops->name);
	return 0;
}

int ow_synopsis_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err)
{
	int r = ow_synopsis_comparable(synopsis, other, err);
	if (r == 0) {
		r = synopsis->ops->merge(synopsis, other);
		if (r < 0)
			ow_error_set(err, -r, "%s: cannot be merged: %s", synopsis->ops->name, strerror(-r));
	}
	return r;
}

int ow_synopsis_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err)
{
	int r = ow_synopsis_comparable(synopsis, other, err);
	if (r == 0 && !synopsis->ops->subtract)
		return ow_error_set(err, EINVAL, "%s: one synopsis cannot be subtracted from another",
		                    synopsis->ops->name);
	if (r == 0) {
		r = synopsis->ops->subtract(synopsis, other);
		if (r < 0)
			ow_error_set(err, -r, "%s: cannot be subtracted: %s", synopsis->ops->name, strerror(-r));
	}
	return r;
}

/*
 * Detects peers with different seeds without revealing the seed. Folded products lose bits, so the steps cannot be
 * inverted; a seed has 64 random bits, so it cannot be guessed.
 */
static uint64_t seed_check(uint64_t seed)
{
	uint64_t x =
		ow_mum64(seed ^ UINT64_C(0x8bb84b93962eacc9), (seed << 32 | seed >> 32) ^ UINT64_C(0x4b33a62ed433d4a3));
	return ow_mum64(ow_mix64(x) ^ UINT64_C(0x2d358dccaa6c78a5), ow_mix64(seed) ^ x ^ UINT64_C(0x9e3779b97f4a7c15));
}

size_t ow_synopsis_encoded_size(const struct ow_synopsis *synopsis)
{
	return OW_SYNOPSIS_HEADER + synopsis->ops->encoded_size(synopsis);
}

void ow_synopsis_encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	memcpy(bytes, "OWS", 3);
	bytes[3] = VERSION;
	memset(bytes + KIND_AT, 0, 4);
	bytes[KIND_AT] = (uint8_t)synopsis->ops->kind;
	ow_store_le64(bytes + SEED_AT, seed_check(synopsis->seed));
	ow_store_le64(bytes + SIZE_AT, synopsis->ops->encoded_size(synopsis));
	synopsis->ops->encode(synopsis, bytes + OW_SYNOPSIS_HEADER);
}

static int check_header(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_error *err)
{
	if (size < OW_SYNOPSIS_HEADER)
		return ow_error_set(err, EINVAL, "synopsis: %zu bytes are less than its header", size);
	if (memcmp(bytes, "OWS", 3) != 0)
		return ow_error_set(err, EINVAL, "synopsis: does not begin with OWS");
	if (bytes[3] != VERSION)
		return ow_error_set(err, EINVAL, "synopsis: version %u, known is %d", bytes[3], VERSION);
	if (bytes[KIND_AT + 1] || bytes[KIND_AT + 2] || bytes[KIND_AT + 3])
		return ow_error_set(err, EINVAL, "synopsis: reserved bytes are not 0");
	uint64_t follows = ow_load_le64(bytes + SIZE_AT);
	if (follows > OW_SYNOPSIS_BYTES_MAX)
		return ow_error_set(err, EINVAL, "synopsis: %" PRIu64 " bytes are more than %u", follows,
		                    OW_SYNOPSIS_BYTES_MAX);
	if (follows != size - OW_SYNOPSIS_HEADER)
		return ow_error_set(err, EINVAL, "synopsis: says %" PRIu64 " bytes, has %zu", follows,
		                    size - OW_SYNOPSIS_HEADER);
	if (ow_load_le64(bytes + SEED_AT) != seed_check(seed))
		return ow_error_set(err, EINVAL, "synopsis: was made with another seed");
	return 0;
}

int ow_synopsis_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                       struct ow_error *err)
{
	int r = check_header(bytes, size, seed, err);
	if (r < 0)
		return r;
	const struct ow_synopsis_ops *ops = ops_of((enum ow_synopsis_kind)bytes[KIND_AT]);
	if (!ops)
		return ow_error_set(err, EINVAL, "synopsis: unknown kind %u", bytes[KIND_AT]);
	return ops->decode(bytes + OW_SYNOPSIS_HEADER, size - OW_SYNOPSIS_HEADER, seed, ret_synopsis, err);
}

static int by_time(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int ow_sighting_by_id_and_time(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

void ow_sightings_sort(struct ow_sighting *sightings, size_t count)
{
	if (count)
		qsort(sightings, count, sizeof *sightings, by_time);
}
