/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an encoded sketch of the public interface, as a program uses what another one sends: what decodes must
 * encode to the same bytes; then it is merged, subtracted and estimated. The check of the seed is inserted, because
 * otherwise hardly anything would decode. fuzz/sketch_corpus.c makes the seeds.
 */
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>

#define SEED     1
#define CHECK_AT 32 /* position of the seed's check: byte 8 of the synopsis, which begins at 24 */
#define CHECK    8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void check_value(const struct ow_sketch_value *value)
{
	if (value->status == OW_SKETCH_NONE)
		check(value->reason != NULL);
	else
		check(value->low <= value->value && value->value <= value->high);
}

static void estimate(struct ow_sketch *a, struct ow_sketch *b)
{
	struct ow_sketch_estimate e = {.size = sizeof e};
	if (ow_sketch_estimate(a, b, &e, NULL) < 0)
		return;
	check_value(&e.lost);
	check_value(&e.extra);
	check_value(&e.loss_ratio);
	check_value(&e.differences);
	check_value(&e.mean_ns);
	check_value(&e.stddev_ns);
	for (int q = 0; q < OW_QUANTILES; q++)
		check_value(&e.quantile_ns[q]);
}

static struct ow_sketch *decode(const uint8_t *bytes, size_t size)
{
	struct ow_sketch *sketch = NULL;
	struct ow_error err = {""};
	if (ow_sketch_decode(bytes, size, SEED, &sketch, &err) == 0)
		return sketch;
	check(err.text[0] && !sketch);
	return NULL;
}

static void use(struct ow_sketch *sketch, const uint8_t *bytes, size_t size)
{
	struct ow_sketch *copy = decode(bytes, size);
	struct ow_sketch_record record = {7, 7};
	uint8_t *again;
	size_t length;
	check(copy != NULL);
	check(ow_sketch_encode(sketch, true, &again, &length, NULL) == 0);
	check(length == size && memcmp(bytes, again, size) == 0);
	free(again);
	estimate(sketch, copy);
	if (ow_sketch_add(copy, &record, 1, NULL) == 0)
		estimate(copy, sketch);
	if (ow_sketch_merge(copy, sketch, NULL) == 0)
		estimate(copy, sketch);
	if (ow_sketch_subtract(copy, sketch, NULL) == 0)
		estimate(sketch, copy);
	ow_sketch_free(copy);
}

/* Inserts the check that a sketch of the seed has. */
static void put_check(uint8_t *bytes)
{
	struct ow_sketch_params params;
	struct ow_sketch *sketch;
	uint8_t *own;
	size_t size;
	ow_sketch_defaults(&params, OW_SKETCH_AMS);
	params.seed = SEED;
	params.cells = 4;
	check(ow_sketch_create(&params, &sketch, NULL) == 0 && ow_sketch_encode(sketch, false, &own, &size, NULL) == 0);
	memcpy(bytes + CHECK_AT, own + CHECK_AT, CHECK);
	free(own);
	ow_sketch_free(sketch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	check(bytes != NULL);
	memcpy(bytes, data, size);
	if (size >= CHECK_AT + CHECK)
		put_check(bytes);
	struct ow_sketch *sketch = decode(bytes, size);
	if (sketch)
		use(sketch, bytes, size);
	ow_sketch_free(sketch);
	free(bytes);
	return 0;
}
