/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The synopses as programs use them (include/oneway/synopsis.h): a synopsis, the number of records, and the records
 * themselves if the method needs them. In that case the synopsis is made from the records when it is needed, because
 * only then it is known which of them are identical.
 *
 * The encoding, little-endian:
 *
 *    0  'O' 'W' 'K' version (1)
 *    4  flags (1; bit 0: it keeps records), reserved (3, zero)
 *    8  records that it stands for (8)
 *   16  bytes of the synopsis (8)
 *   24  the synopsis (synopsis/synopsis.h)
 *   ..  if it keeps records: for each its keyed id (8) and time (8), in the order of adding
 */
#include "base/array.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/versioned.h"
#include "estimate/estimate.h"
#include "estimate/fold_estimate.h"
#include "estimate/rda_estimate.h"
#include "synopsis/ams.h"
#include "synopsis/copies.h"
#include "synopsis/finecomb.h"
#include "synopsis/fold.h"
#include "synopsis/sketch_size.h"
#include <errno.h>
#include <math.h>
#include <oneway/synopsis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define VERSION    1
#define FLAGS_AT   4
#define RECORDS_AT 8
#define SIZE_AT    16
#define HEADER     24
#define RECORD     16 /* bytes of a record */
#define KEPT       1  /* the flag */

#define BATCH 256
/* Makes the ids of sketches different from other uses of the seed. */
#define ID_KEY UINT64_C(0x736b657463686964)

/* Bytes of the first version of each struct. They never change. */
#define PARAMS_LEAST (offsetof(struct ow_sketch_params, share) + OW_SKETCH_BANKS_MAX * sizeof(double))
#define ESTIMATE_LEAST \
	(offsetof(struct ow_sketch_estimate, quantile_ns) + OW_QUANTILES * sizeof(struct ow_sketch_value))

struct ow_sketch {
	struct ow_synopsis *synopsis;
	uint64_t key;   /* for ids */
	uint64_t count; /* records that it stands for */
	bool keeps;
	struct ow_sighting *record; /* the added records, with keyed ids; `count` if it keeps them */
	size_t room;
	struct ow_sighting
		*cache; /* the same in order of time, identical ones with their own ids; NULL = not made yet */
	bool stale;     /* the synopsis must be made from the cache */
};

/*
 * -- creating -------------------------------------------------------------------------------------------------------
 */

static int out_of_memory(struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "sketch: out of memory");
}

/* Owns the synopsis, also if it fails. */
static int make(struct ow_synopsis *synopsis, bool keeps, struct ow_sketch **ret_sketch, struct ow_error *err)
{
	struct ow_sketch *sketch = calloc(1, sizeof *sketch);
	if (!sketch) {
		ow_synopsis_free(synopsis);
		return out_of_memory(err);
	}
	*sketch = (struct ow_sketch){.synopsis = synopsis, .key = ow_mix64(synopsis->seed ^ ID_KEY), .keeps = keeps};
	*ret_sketch = sketch;
	return 0;
}

int ow_sketch_create(const struct ow_sketch_params *params, struct ow_sketch **ret_sketch, struct ow_error *err)
{
	struct ow_sketch_params p;
	struct ow_synopsis *synopsis;
	int r = ow_versioned_take(&p, sizeof p, params, PARAMS_LEAST, "ow_sketch_params", err);
	if (r < 0)
		return r;
	r = ow_sketch_synopsis(&p, &synopsis, err);
	if (r < 0)
		return r;
	bool keeps = p.keep != OW_KEEP_NOT && ow_sketch_uses_records(synopsis->ops->kind);
	return make(synopsis, keeps, ret_sketch, err);
}

static void forget_cache(struct ow_sketch *sketch)
{
	free(sketch->cache);
	sketch->cache = NULL;
}

void ow_sketch_free(struct ow_sketch *sketch)
{
	if (!sketch)
		return;
	ow_synopsis_free(sketch->synopsis);
	free(sketch->record);
	free(sketch->cache);
	free(sketch);
}

void ow_sketch_reset(struct ow_sketch *sketch)
{
	sketch->synopsis->ops->reset(sketch->synopsis);
	sketch->count = 0;
	sketch->stale = false;
	forget_cache(sketch);
}

size_t ow_sketch_memory(const struct ow_sketch *sketch)
{
	return sketch->synopsis->ops->memory(sketch->synopsis);
}

void ow_sketch_describe(const struct ow_sketch *sketch, char *text, size_t size)
{
	const struct ow_synopsis_ops *ops = sketch->synopsis->ops;
	int used = snprintf(text, size, "%s: ", ops->name);
	if (used > 0 && (size_t)used < size)
		ops->describe(sketch->synopsis, text + used, size - (size_t)used);
}

void ow_sketch_expect(struct ow_sketch *sketch, double differences)
{
	if (sketch->synopsis->ops == &ow_fold_ops)
		ow_fold_expect(sketch->synopsis, differences);
}

/* -- adding ---------------------------------------------------------------------------------------------------------
 */

/* Makes room for more kept records. 0, -EINVAL or -ENOMEM. */
static int reserve(struct ow_sketch *sketch, uint64_t count, struct ow_error *err)
{
	if (count > OW_SKETCH_RECORDS_MAX || sketch->count + count > OW_SKETCH_RECORDS_MAX)
		return ow_error_set(err, EINVAL, "sketch: keeps at most %u records", OW_SKETCH_RECORDS_MAX);
	return OW_GROW(sketch->record, sketch->room, sketch->count + count) < 0 ? out_of_memory(err) : 0;
}

/* Converts records: their ids become uniform and keyed, whatever the program provides. */
static void take(const struct ow_sketch *sketch, const struct ow_sketch_record *records, size_t count,
                 struct ow_sighting *ret_stamps)
{
	for (size_t i = 0; i < count; i++)
		ret_stamps[i] = (struct ow_sighting){ow_mix64(records[i].id ^ sketch->key), records[i].time_ns};
}

typedef void (*adder)(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count);

static void add_batches(struct ow_sketch *sketch, adder add, const struct ow_sketch_record *records, size_t count)
{
	struct ow_sighting sightings[BATCH];
	for (size_t done = 0, batch; done < count; done += batch) {
		batch = count - done < BATCH ? count - done : BATCH;
		take(sketch, records + done, batch, sightings);
		add(sketch->synopsis, sightings, batch);
	}
}

static void changed(struct ow_sketch *sketch)
{
	forget_cache(sketch);
	sketch->stale = true;
}

int ow_sketch_add(struct ow_sketch *sketch, const struct ow_sketch_record *records, size_t count, struct ow_error *err)
{
	if (!sketch->keeps) {
		add_batches(sketch, sketch->synopsis->ops->add, records, count);
		sketch->count += count;
		return 0;
	}
	int r = reserve(sketch, count, err);
	if (r < 0)
		return r;
	take(sketch, records, count, sketch->record + sketch->count);
	sketch->count += count;
	changed(sketch);
	return 0;
}

int ow_sketch_add_bytes(struct ow_sketch *sketch, const void *bytes, size_t size, int64_t time_ns, struct ow_error *err)
{
	struct ow_sketch_record record = {XXH3_64bits_withSeed(bytes, size, sketch->key), time_ns};
	return ow_sketch_add(sketch, &record, 1, err);
}

static void add_before(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	ow_finecomb_before((struct ow_finecomb *)synopsis, sightings, count);
}

static void add_after(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	ow_finecomb_after((struct ow_finecomb *)synopsis, sightings, count);
}

int ow_sketch_add_near(struct ow_sketch *sketch, bool after, const struct ow_sketch_record *records, size_t count,
                       struct ow_error *err)
{
	if (sketch->synopsis->ops != &ow_finecomb_ops)
		return ow_error_set(err, EINVAL, "%s: does not use records outside of the interval",
		                    sketch->synopsis->ops->name);
	add_batches(sketch, after ? add_after : add_before, records, count);
	return 0;
}

/* -- kept records ---------------------------------------------------------------------------------------------------
 */

static int by_time(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static bool in_order(const struct ow_sighting *sightings, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (sightings[i].time_ns < sightings[i - 1].time_ns)
			return false;
	}
	return true;
}

/* A sorted copy of the kept records; has room for at least one. */
static struct ow_sighting *copy_sorted(const struct ow_sketch *sketch, int (*order)(const void *a, const void *b))
{
	size_t count = sketch->count;
	struct ow_sighting *copy = malloc((count + 1) * sizeof *copy);
	if (!copy)
		return NULL;
	if (count)
		memcpy(copy, sketch->record, count * sizeof *copy);
	if (order != by_time || !in_order(copy, count))
		qsort(copy, count, sizeof *copy, order);
	return copy;
}

/* Makes cache and synopsis from the kept records. */
static int finish(struct ow_sketch *sketch, struct ow_error *err)
{
	struct ow_synopsis *synopsis = sketch->synopsis;
	if (!sketch->keeps)
		return 0;
	if (!sketch->cache) {
		struct ow_sighting *cache = copy_sorted(sketch, by_time);
		if (!cache || ow_copies_rename(cache, sketch->count) < 0) {
			free(cache);
			return out_of_memory(err);
		}
		sketch->cache = cache;
	}
	if (sketch->stale) {
		synopsis->ops->reset(synopsis);
		synopsis->ops->add(synopsis, sketch->cache, sketch->count);
		sketch->stale = false;
	}
	return 0;
}

/* -- merging, subtracting -------------------------------------------------------------------------------------------
 */

static int check_pair(const struct ow_sketch *a, const struct ow_sketch *b, struct ow_error *err)
{
	int r = ow_synopsis_comparable(a->synopsis, b->synopsis, err);
	if (r < 0)
		return r;
	if (a->keeps != b->keeps)
		return ow_error_set(err, EINVAL, "%s: one sketch keeps records, the other does not",
		                    a->synopsis->ops->name);
	return 0;
}

int ow_sketch_merge(struct ow_sketch *sketch, struct ow_sketch *other, struct ow_error *err)
{
	uint64_t count = other->count;
	int r = check_pair(sketch, other, err);
	if (r < 0)
		return r;
	if (sketch->keeps) {
		r = reserve(sketch, count, err);
		if (r < 0)
			return r;
		if (count)
			memcpy(sketch->record + sketch->count, other->record, count * sizeof *sketch->record);
		changed(sketch);
	} else {
		r = ow_synopsis_merge(sketch->synopsis, other->synopsis, err);
		if (r < 0)
			return r;
	}
	sketch->count += count;
	return 0;
}

/* Removes the records in `out` from `sightings`; both are sorted by id. Returns how many are left, or -EINVAL. */
static int64_t take_out(struct ow_sighting *sightings, size_t count, const struct ow_sighting *out, size_t outs)
{
	size_t left = 0, found = 0;
	for (size_t i = 0; i < count; i++) {
		if (found < outs && ow_sighting_by_id_and_time(&sightings[i], &out[found]) == 0)
			found++;
		else
			sightings[left++] = sightings[i];
	}
	return found == outs ? (int64_t)left : -EINVAL;
}

static int subtract_kept(struct ow_sketch *sketch, const struct ow_sketch *other, struct ow_error *err)
{
	struct ow_sighting *mine = copy_sorted(sketch, ow_sighting_by_id_and_time),
			   *theirs = copy_sorted(other, ow_sighting_by_id_and_time);
	int64_t left = mine && theirs ? take_out(mine, sketch->count, theirs, other->count) : -ENOMEM;
	free(theirs);
	if (left < 0) {
		free(mine);
		return left == -ENOMEM ? out_of_memory(err)
		                       : ow_error_set(err, EINVAL, "%s: a record to be removed does not exist",
		                                      sketch->synopsis->ops->name);
	}
	qsort(mine, (size_t)left, sizeof *mine, by_time);
	free(sketch->record);
	sketch->record = mine;
	sketch->room = sketch->count + 1;
	sketch->count = (uint64_t)left;
	changed(sketch);
	return 0;
}

int ow_sketch_subtract(struct ow_sketch *sketch, struct ow_sketch *other, struct ow_error *err)
{
	int r = check_pair(sketch, other, err);
	if (r < 0)
		return r;
	if (other->count > sketch->count)
		return ow_error_set(err, EINVAL, "%s: more records to be removed than there are",
		                    sketch->synopsis->ops->name);
	if (sketch->keeps)
		return subtract_kept(sketch, other, err);
	r = ow_synopsis_subtract(sketch->synopsis, other->synopsis, err);
	if (r == 0)
		sketch->count -= other->count;
	return r;
}

/*
 * -- encoding -------------------------------------------------------------------------------------------------------
 */

int ow_sketch_encode(struct ow_sketch *sketch, bool with_records, uint8_t **ret_bytes, size_t *ret_size,
                     struct ow_error *err)
{
	int r = finish(sketch, err);
	if (r < 0)
		return r;
	bool kept = with_records && sketch->keeps;
	size_t records = kept ? sketch->count : 0, inner = ow_synopsis_encoded_size(sketch->synopsis);
	size_t size = HEADER + inner + records * RECORD;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return out_of_memory(err);
	uint8_t *at = bytes + HEADER + inner;
	memcpy(bytes, "OWK", 3);
	bytes[3] = VERSION;
	ow_store_le32(bytes + FLAGS_AT, kept ? KEPT : 0);
	ow_store_le64(bytes + RECORDS_AT, sketch->count);
	ow_store_le64(bytes + SIZE_AT, inner);
	ow_synopsis_encode(sketch->synopsis, bytes + HEADER);
	for (size_t i = 0; i < records; i++, at += RECORD) {
		ow_store_le64(at, sketch->record[i].id);
		ow_store_le64(at + 8, (uint64_t)sketch->record[i].time_ns);
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* Checks that the sizes in the header fit the bytes. */
static int check_header(const uint8_t *bytes, size_t size, struct ow_error *err)
{
	if (size < HEADER)
		return ow_error_set(err, EINVAL, "sketch: %zu bytes are less than its header", size);
	if (memcmp(bytes, "OWK", 3) != 0)
		return ow_error_set(err, EINVAL, "sketch: does not begin with OWK");
	if (bytes[3] != VERSION)
		return ow_error_set(err, EINVAL, "sketch: version %u, known is %d", bytes[3], VERSION);
	uint32_t flags = ow_load_le32(bytes + FLAGS_AT);
	if (flags & ~(uint32_t)KEPT)
		return ow_error_set(err, EINVAL, "sketch: unknown flags, or reserved bytes that are not 0");
	uint64_t inner = ow_load_le64(bytes + SIZE_AT), records = ow_load_le64(bytes + RECORDS_AT),
		 left = size - HEADER;
	if (inner > left)
		return ow_error_set(err, EINVAL, "sketch: the synopsis is cut");
	left -= inner;
	if ((flags & KEPT) && records > OW_SKETCH_RECORDS_MAX)
		return ow_error_set(err, EINVAL, "sketch: more than %u records", OW_SKETCH_RECORDS_MAX);
	if (left != (flags & KEPT ? records * RECORD : 0))
		return ow_error_set(err, EINVAL, "sketch: %zu bytes are not what its header says", size);
	return 0;
}

static int read_records(struct ow_sketch *sketch, const uint8_t *bytes, uint64_t count, struct ow_error *err)
{
	int r = reserve(sketch, count, err);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < count; i++, bytes += RECORD)
		sketch->record[i] = (struct ow_sighting){ow_load_le64(bytes), (int64_t)ow_load_le64(bytes + 8)};
	return 0;
}

int ow_sketch_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_sketch **ret_sketch,
                     struct ow_error *err)
{
	struct ow_synopsis *synopsis;
	struct ow_sketch *sketch = NULL;
	int r = check_header(bytes, size, err);
	if (r < 0)
		return r;
	size_t inner = ow_load_le64(bytes + SIZE_AT);
	r = ow_synopsis_decode(bytes + HEADER, inner, seed, &synopsis, err);
	if (r < 0)
		return r;
	bool keeps = ow_load_le32(bytes + FLAGS_AT) & KEPT;
	if (keeps && !ow_sketch_uses_records(synopsis->ops->kind)) {
		r = ow_error_set(err, EINVAL, "%s: keeps no records", synopsis->ops->name);
		ow_synopsis_free(synopsis);
		return r;
	}
	r = make(synopsis, keeps, &sketch, err);
	if (r < 0)
		return r;
	uint64_t count = ow_load_le64(bytes + RECORDS_AT);
	r = keeps ? read_records(sketch, bytes + HEADER + inner, count, err) : 0;
	if (r < 0) {
		ow_sketch_free(sketch);
		return r;
	}
	sketch->count = count;
	*ret_sketch = sketch;
	return 0;
}

/* -- estimating -----------------------------------------------------------------------------------------------------
 */

static struct ow_sketch_value value_of(const struct ow_value *value)
{
	switch (value->status) {
	case OW_VALUE_EXACT:
		return (struct ow_sketch_value){OW_SKETCH_EXACT, value->value, value->low, value->high, NULL};
	case OW_VALUE_ESTIMATED:
		return (struct ow_sketch_value){OW_SKETCH_ESTIMATED, value->value, value->low, value->high, NULL};
	case OW_VALUE_NONE:
		break;
	}
	return (struct ow_sketch_value){.status = OW_SKETCH_NONE, .reason = ow_reason_text(value->reason)};
}

/* The estimate of AMS counters; at least as many packets differ as one point saw more. */
static int count_differences(const struct ow_sketch *a, const struct ow_sketch *b, struct ow_value *ret_differences)
{
	double value, deviation, least = fabs((double)a->count - (double)b->count);
	int r = ow_ams_difference(a->synopsis, b->synopsis, &value, &deviation);
	if (r < 0)
		return r;
	*ret_differences = (struct ow_value){.status = OW_VALUE_ESTIMATED,
	                                     .value = fmax(least, value),
	                                     .low = fmax(least, value - 1.96 * deviation),
	                                     .high = fmax(least, value + 1.96 * deviation)};
	return 0;
}

static struct ow_value sum_of(const struct ow_estimate *estimate)
{
	if (estimate->lost.status == OW_VALUE_EXACT && estimate->extra.status == OW_VALUE_EXACT)
		return ow_value_exact(estimate->lost.value + estimate->extra.value);
	return ow_value_none(OW_REASON_DIFFERENCES_UNKNOWN);
}

static int estimate_differences(const struct ow_sketch *a, const struct ow_sketch *b, struct ow_estimate *ret_estimate,
                                struct ow_value *ret_differences)
{
	ow_estimate_none(ret_estimate, OW_REASON_DIFFERENCES_ONLY);
	return a->synopsis->ops->kind == OW_SYNOPSIS_AMS
	               ? count_differences(a, b, ret_differences)
	               : ow_minhash_difference(a->synopsis, b->synopsis, a->count, b->count, ret_differences);
}

static int run_estimator(const struct ow_sketch *a, const struct ow_sketch *b, struct ow_estimate *ret_estimate,
                         struct ow_value *ret_differences, struct ow_error *err)
{
	const struct ow_synopsis_ops *ops = a->synopsis->ops;
	struct ow_view va = {a->synopsis, a->count, a->cache, a->cache ? a->count : 0},
		       vb = {b->synopsis, b->count, b->cache, b->cache ? b->count : 0};
	int r;
	/* One fold may have been folded for its encoding, so the shapes may differ. */
	if (ops != &ow_fold_ops || b->synopsis->ops != ops || a->synopsis->seed != b->synopsis->seed) {
		r = ow_synopsis_comparable(a->synopsis, b->synopsis, err);
		if (r < 0)
			return r;
	}
	if (ops->kind == OW_SYNOPSIS_AMS || ops->kind == OW_SYNOPSIS_MINHASH) {
		r = estimate_differences(a, b, ret_estimate, ret_differences);
		return r < 0 ? ow_error_set(err, -r, "%s: %s", ops->name, strerror(-r)) : 0;
	}
	if (ops == &ow_fold_ops) {
		r = ow_fold_estimate(&va, &vb, ret_estimate);
		if (r < 0)
			return ow_error_set(err, -r, "fold: %s",
			                    r == -EINVAL ? "sketches with different parameters" : strerror(-r));
	} else {
		r = ow_estimate(&va, &vb, ret_estimate, err);
		if (r < 0)
			return r;
	}
	*ret_differences = sum_of(ret_estimate);
	return 0;
}

int ow_sketch_estimate(struct ow_sketch *a, struct ow_sketch *b, struct ow_sketch_estimate *ret_estimate,
                       struct ow_error *err)
{
	struct ow_estimate e;
	struct ow_value differences;
	int r = finish(a, err);
	if (r == 0)
		r = finish(b, err);
	if (r == 0)
		r = run_estimator(a, b, &e, &differences, err);
	if (r < 0)
		return r;
	struct ow_sketch_estimate given = {
		.size = sizeof given,
		.sent = a->count,
		.received = b->count,
		.samples = e.useful,
		.complete = e.complete,
		.lost = value_of(&e.lost),
		.extra = value_of(&e.extra),
		.loss_ratio = value_of(&e.loss_ratio),
		.differences = value_of(&differences),
		.mean_ns = value_of(&e.mean_ns),
		.stddev_ns = value_of(&e.stddev_ns),
	};
	for (int q = 0; q < OW_QUANTILES; q++)
		given.quantile_ns[q] = value_of(&e.quantile_ns[q]);
	return ow_versioned_give(ret_estimate, ESTIMATE_LEAST, &given, sizeof given, "ow_sketch_estimate", err);
}
