/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an encoded synopsis: the first byte is the kind, the others are its encoding. What decodes must encode
 * to the same bytes; then it is merged with a copy, subtracted from one, peeled and estimated, as a point does with
 * what a peer sends. The same bytes are also given to the parser of the common header, and to that of name lists.
 * fuzz/synopsis_corpus.c makes the seeds.
 */
#include "base/bytes.h"
#include "estimate/estimate.h"
#include "estimate/fold_estimate.h"
#include "reconcile/fold_peel.h"
#include "reconcile/key_list.h"
#include "synopsis/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED   1
#define CACHED 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* NONE with a reason, or low <= value <= high without NaN. */
static void check_value(const struct ow_value *value)
{
	if (value->status == OW_VALUE_NONE)
		check(value->reason != OW_NO_REASON);
	else
		check(value->low <= value->value && value->value <= value->high);
	if (value->status == OW_VALUE_EXACT)
		check(value->low == value->high);
}

static void check_estimate(const struct ow_estimate *e)
{
	check_value(&e->mean_ns);
	check_value(&e->stddev_ns);
	check_value(&e->lost);
	check_value(&e->extra);
	check_value(&e->loss_ratio);
	for (int q = 0; q < OW_QUANTILES; q++)
		check_value(&e->quantile_ns[q]);
}

static struct ow_synopsis *decode(const uint8_t *bytes, size_t size)
{
	struct ow_synopsis *synopsis = NULL;
	struct ow_error err;
	memset(err.text, 0, sizeof err.text);
	if (ow_synopsis_decode(bytes, size, SEED, &synopsis, &err) == 0)
		return synopsis;
	/* A failure gives a reason and returns no synopsis. */
	check(err.text[0] && !synopsis);
	return NULL;
}

static void check_round_trip(const struct ow_synopsis *synopsis, const uint8_t *bytes, size_t size)
{
	check(ow_synopsis_encoded_size(synopsis) == size);
	uint8_t *again = malloc(size);
	check(again != NULL);
	ow_synopsis_encode(synopsis, again);
	check(memcmp(bytes, again, size) == 0);
	free(again);
}

/* With and without caches; the peer's counts may contradict its synopsis. */
static void estimate(const struct ow_synopsis *mine, const struct ow_synopsis *theirs)
{
	struct ow_sighting cache[CACHED];
	struct ow_estimate e;
	struct ow_error err;
	for (uint64_t i = 0; i < CACHED; i++)
		cache[i] = (struct ow_sighting){ow_mix64(i + 1), (int64_t)i * 1000};
	struct ow_view a = {mine, CACHED, cache, CACHED}, b = {theirs, CACHED - 3, cache + 3, CACHED - 3};
	for (int cached = 1; cached >= 0; cached--) {
		if (ow_estimate(&a, &b, &e, &err) == 0)
			check_estimate(&e);
		a.cache = b.cache = NULL;
		a.cached = b.cached = 0;
		a.packets = 0;
		b.packets = UINT64_MAX;
	}
}

static void peel(struct ow_synopsis *fold)
{
	struct ow_fold_difference diff = {0};
	struct ow_synopsis *copy, *second;
	const struct ow_fold_params *params = &ow_fold_of(fold)->params;
	check(ow_fold_to(fold, params->cells, params->order, &copy) == 0);
	check(ow_fold_peel(copy, NULL, &diff) == 0);
	check(diff.complete == (diff.left == 0));
	/* A second fold that is unrelated to the first. */
	struct ow_fold_params other = {params->banks, 5, (params->order + 1) % OW_FOLD_ORDERS, false};
	check(ow_fold_create(&other, SEED, &second) == 0);
	check(ow_fold_peel(copy, second, &diff) == 0);
	ow_fold_difference_done(&diff);
	ow_synopsis_free(copy);
	ow_synopsis_free(second);
}

static void use(struct ow_synopsis *synopsis, const uint8_t *bytes, size_t size)
{
	struct ow_synopsis *copy = decode(bytes, size), *sum = decode(bytes, size);
	check(copy && sum);
	check_round_trip(synopsis, bytes, size);
	check(ow_synopsis_comparable(synopsis, copy, NULL) == 0);
	estimate(synopsis, copy);
	if (ow_synopsis_merge(sum, copy, NULL) == 0) {
		estimate(synopsis, sum);
		/* 2x - x = x, for kinds where this is defined. */
		bool linear = synopsis->ops->kind == OW_SYNOPSIS_FOLD || synopsis->ops->kind == OW_SYNOPSIS_AMS;
		if (ow_synopsis_subtract(sum, copy, NULL) == 0 && linear)
			check_round_trip(sum, bytes, size);
	}
	if (ow_synopsis_subtract(copy, synopsis, NULL) == 0)
		estimate(copy, synopsis);
	if (synopsis->ops->kind == OW_SYNOPSIS_FOLD)
		peel(synopsis);
	synopsis->ops->reset(synopsis);
	estimate(synopsis, copy);
	ow_synopsis_free(copy);
	ow_synopsis_free(sum);
}

static void use_names(const uint8_t *data, size_t size)
{
	uint64_t *keys = NULL;
	size_t count = 0;
	struct ow_error err = {""};
	if (ow_key_list_decode(OW_KEY_LIST_PACKET, data, size, &keys, &count, &err) < 0) {
		check(err.text[0] && !keys);
		return;
	}
	uint8_t *again = malloc(size);
	check(again && ow_key_list_size(OW_KEY_LIST_PACKET, keys, count) == size);
	ow_key_list_encode(OW_KEY_LIST_PACKET, keys, count, again);
	check(memcmp(data, again, size) == 0);
	free(again);
	free(keys);
}

/* Puts a valid header in front: the check of the seed is copied from a synopsis with that seed. */
static uint8_t *with_header(const uint8_t *data, size_t size)
{
	struct ow_synopsis *ams = NULL;
	uint8_t *bytes = malloc(OW_SYNOPSIS_HEADER + size), header[OW_SYNOPSIS_HEADER + 64];
	check(bytes && ow_ams_create(OW_AMS_COUNTERS_MIN, SEED, &ams) == 0);
	ow_synopsis_encode(ams, header);
	ow_synopsis_free(ams);
	memcpy(bytes, header, OW_SYNOPSIS_HEADER);
	bytes[4] = data[0];
	ow_store_le64(bytes + 16, size - 1);
	memcpy(bytes + OW_SYNOPSIS_HEADER, data + 1, size - 1);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ow_synopsis_free(decode(data, size));
	use_names(data, size);
	if (size == 0)
		return 0;
	use_names(data + 1, size - 1);
	uint8_t *bytes = with_header(data, size);
	size_t all = OW_SYNOPSIS_HEADER + size - 1;
	struct ow_synopsis *synopsis = decode(bytes, all);
	if (synopsis)
		use(synopsis, bytes, all);
	ow_synopsis_free(synopsis);
	free(bytes);
	return 0;
}
