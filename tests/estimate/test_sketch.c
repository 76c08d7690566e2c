/* SPDX-License-Identifier: Apache-2.0 */
/* The public synopses, used as another program would use them: only public headers, except for random numbers. */
#include "../point/scarce.h"
#include "base/random.h"
#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RECORDS 20000
#define LOSS    0.01
#define SEED    42
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS 5
#else
#define RUNS 20
#endif

#define KINDS OW_SKETCH_MINHASH /* they are numbered from 1 on */

/* What two points saw, and what is true of it. */
struct stream {
	struct ow_sketch_record a[RECORDS], b[RECORDS];
	size_t as, bs;
	double lost, mean, stddev;
};

/* Ids that are not random at all, a record each microsecond, delays of 1 ms and an exponential of 0.1 ms. */
static void make_stream(struct stream *s, double loss, uint64_t seed)
{
	struct ow_random random;
	double sum = 0, squares = 0;
	ow_random_seed(&random, seed);
	s->as = s->bs = 0;
	for (uint64_t i = 0; i < RECORDS; i++) {
		int64_t sent = (int64_t)i * 1000;
		s->a[s->as++] = (struct ow_sketch_record){i, sent};
		if (ow_random_unit(&random) < loss)
			continue;
		int64_t delay = 1000000 + (int64_t)(-1e5 * log1p(-ow_random_unit(&random)));
		s->b[s->bs++] = (struct ow_sketch_record){i, sent + delay};
		sum += (double)delay;
		squares += (double)delay * (double)delay;
	}
	double n = (double)s->bs;
	s->lost = (double)(s->as - s->bs);
	s->mean = sum / n;
	s->stddev = sqrt(squares / n - s->mean * s->mean);
}

static struct ow_sketch_params params_of(enum ow_sketch_kind kind)
{
	struct ow_sketch_params params;
	ow_sketch_defaults(&params, kind);
	params.seed = SEED;
	params.records = RECORDS;
	params.loss = LOSS;
	params.variation = 0.1;
	params.error = 0.02;
	if (kind == OW_SKETCH_MINHASH)
		params.cells = 1024;
	if (kind == OW_SKETCH_FINECOMB)
		params.reorder = 0.001;
	return params;
}

static struct ow_sketch *create(const struct ow_sketch_params *params)
{
	struct ow_sketch *sketch = NULL;
	struct ow_error err = {""};
	int r = ow_sketch_create(params, &sketch, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return sketch;
}

static struct ow_sketch *sketch_of(const struct ow_sketch_params *params, const struct ow_sketch_record *records,
                                   size_t count)
{
	struct ow_sketch *sketch = create(params);
	assert_int_equal(ow_sketch_add(sketch, records, count, NULL), 0);
	return sketch;
}

/* Through bytes and back. */
static struct ow_sketch *send_sketch(struct ow_sketch *sketch, bool with_records)
{
	struct ow_sketch *received = NULL;
	struct ow_error err;
	uint8_t *bytes, *again;
	size_t size, sizes;
	assert_int_equal(ow_sketch_encode(sketch, with_records, &bytes, &size, &err), 0);
	assert_int_equal(ow_sketch_decode(bytes, size, SEED, &received, &err), 0);
	assert_int_equal(ow_sketch_encode(received, with_records, &again, &sizes, &err), 0);
	assert_int_equal(size, sizes);
	assert_memory_equal(bytes, again, size);
	free(bytes);
	free(again);
	return received;
}

static void check_value(const struct ow_sketch_value *value)
{
	if (value->status == OW_SKETCH_NONE) {
		assert_non_null(value->reason);
		assert_true(value->reason[0]);
		assert_true(value->value == 0 && value->low == 0 && value->high == 0);
		return;
	}
	assert_null(value->reason);
	assert_true(value->low <= value->value && value->value <= value->high);
	if (value->status == OW_SKETCH_EXACT)
		assert_true(value->low == value->high);
}

/* Every value is a number with its interval or a reason, and records are conserved. */
static struct ow_sketch_estimate estimate(struct ow_sketch *a, struct ow_sketch *b)
{
	struct ow_sketch_estimate e = {.size = sizeof e};
	struct ow_error err = {""};
	int r = ow_sketch_estimate(a, b, &e, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	assert_int_equal(e.size, sizeof e);
	check_value(&e.lost);
	check_value(&e.extra);
	check_value(&e.loss_ratio);
	check_value(&e.differences);
	check_value(&e.mean_ns);
	check_value(&e.stddev_ns);
	for (int q = 0; q < OW_QUANTILES; q++)
		check_value(&e.quantile_ns[q]);
	/* sent - lost = received - extra = matched */
	if (e.lost.status == OW_SKETCH_EXACT && e.extra.status == OW_SKETCH_EXACT)
		assert_true((double)e.sent - e.lost.value == (double)e.received - e.extra.value);
	return e;
}

static bool holds(const struct ow_sketch_value *value, double truth)
{
	double slack = 1e-9 * fabs(truth); /* sums of doubles */
	return value->low <= truth + slack && truth - slack <= value->high;
}

/* In 95 % of runs an interval holds the truth; four standard deviations less of so many runs. */
static void check_share(const char *what, enum ow_sketch_kind kind, int good, int all)
{
	if (good < all * 0.95 - 4 * sqrt(0.95 * 0.05 * all)) {
		print_error("kind %d: %s in %d of %d runs\n", (int)kind, what, good, all);
		fail();
	}
}

struct score {
	int loss, mean, stddev, differences, means, stddevs, losses, counts, close;
};

static void judge(const struct stream *s, const struct ow_sketch_estimate *e, double error, struct score *score)
{
	assert_int_equal(e->sent, s->as);
	assert_int_equal(e->received, s->bs);
	score->losses += e->lost.status != OW_SKETCH_NONE;
	score->loss += e->lost.status != OW_SKETCH_NONE && holds(&e->lost, s->lost);
	score->counts += e->differences.status != OW_SKETCH_NONE;
	score->differences += e->differences.status != OW_SKETCH_NONE && holds(&e->differences, s->lost);
	score->means += e->mean_ns.status != OW_SKETCH_NONE;
	score->mean += e->mean_ns.status != OW_SKETCH_NONE && holds(&e->mean_ns, s->mean);
	score->close += e->mean_ns.status != OW_SKETCH_NONE && fabs(e->mean_ns.value / s->mean - 1) <= error;
	score->stddevs += e->stddev_ns.status != OW_SKETCH_NONE;
	score->stddev += e->stddev_ns.status != OW_SKETCH_NONE && holds(&e->stddev_ns, s->stddev);
}

static void test_every_kind(void **state)
{
	(void)state;
	static struct stream s;
	for (unsigned kind = 1; kind <= KINDS; kind++) {
		struct ow_sketch_params params = params_of(kind);
		struct score score = {0};
		for (uint64_t run = 0; run < RUNS; run++) {
			make_stream(&s, kind == OW_SKETCH_MOMENTS ? 0 : LOSS, run + 1);
			struct ow_sketch *a = sketch_of(&params, s.a, s.as), *b = sketch_of(&params, s.b, s.bs);
			struct ow_sketch *peer = send_sketch(b, true);
			struct ow_sketch_estimate e = estimate(a, peer);
			judge(&s, &e, params.error, &score);
			ow_sketch_free(a);
			ow_sketch_free(b);
			ow_sketch_free(peer);
		}
		bool counts_only = kind == OW_SKETCH_AMS || kind == OW_SKETCH_MINHASH;
		check_share("loss held", kind, score.loss, score.losses);
		check_share("mean held", kind, score.mean, score.means);
		check_share("stddev held", kind, score.stddev, score.stddevs);
		check_share("differences held", kind, score.differences, score.counts);
		check_share("mean within the error", kind, score.close, score.means);
		assert_int_equal(score.means, counts_only ? 0 : RUNS);
		assert_int_equal(score.stddevs, counts_only ? 0 : RUNS);
		assert_int_equal(score.losses, counts_only || kind == OW_SKETCH_MOMENTS ? 0 : RUNS);
		if (counts_only)
			assert_int_equal(score.counts, RUNS);
	}
}

/* The methods that find every difference are exact, and say so. */
static void test_exact(void **state)
{
	(void)state;
	static struct stream s;
	const enum ow_sketch_kind kinds[] = {OW_SKETCH_RDA, OW_SKETCH_SRDA, OW_SKETCH_FOLD};
	make_stream(&s, LOSS, 99);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct ow_sketch_params params = params_of(kinds[i]);
		struct ow_sketch *a = sketch_of(&params, s.a, s.as), *b = sketch_of(&params, s.b, s.bs);
		struct ow_sketch *peer = send_sketch(b, true), *bare = send_sketch(b, false);
		struct ow_sketch_estimate e = estimate(a, peer);
		assert_true(e.complete);
		assert_int_equal(e.lost.status, OW_SKETCH_EXACT);
		assert_true(e.lost.value == s.lost && e.extra.value == 0 && e.differences.value == s.lost);
		assert_int_equal(e.mean_ns.status, OW_SKETCH_EXACT);
		assert_true(holds(&e.mean_ns, s.mean));
		/* Without the records of the other point the losses are still known. */
		e = estimate(a, bare);
		assert_true(e.lost.status == OW_SKETCH_EXACT && e.lost.value == s.lost);
		if (kinds[i] == OW_SKETCH_FOLD)
			assert_int_equal(e.mean_ns.status, OW_SKETCH_NONE);
		ow_sketch_free(a);
		ow_sketch_free(b);
		ow_sketch_free(peer);
		ow_sketch_free(bare);
	}
}

/* Records with the same id, added in any order, are compared in the order of their times. */
static void test_identical(void **state)
{
	(void)state;
	struct ow_sketch_params params = params_of(OW_SKETCH_FOLD);
	struct ow_sketch_record sent[] = {{7, 10}, {7, 20}, {7, 30}, {8, 40}};
	struct ow_sketch_record received[] = {{8, 45}, {7, 35}, {7, 25}, {7, 15}};
	struct ow_sketch *a = sketch_of(&params, sent, 4), *b = sketch_of(&params, received, 4);
	struct ow_sketch_estimate e = estimate(a, b);
	assert_true(e.lost.value == 0 && e.extra.value == 0 && e.lost.status == OW_SKETCH_EXACT);
	assert_true(e.mean_ns.value == 5 && e.stddev_ns.value == 0 && e.samples == 4);
	ow_sketch_free(a);
	ow_sketch_free(b);
}

static void assert_same(struct ow_sketch *a, struct ow_sketch *b)
{
	uint8_t *x, *y;
	size_t xs, ys;
	assert_int_equal(ow_sketch_encode(a, false, &x, &xs, NULL), 0);
	assert_int_equal(ow_sketch_encode(b, false, &y, &ys, NULL), 0);
	assert_int_equal(xs, ys);
	assert_memory_equal(x, y, xs);
	free(x);
	free(y);
}

/* Two halves merged are the whole; the whole without one half is the other. */
static void test_merge_subtract(void **state)
{
	(void)state;
	static struct stream s;
	make_stream(&s, 0, 5);
	for (unsigned kind = 1; kind <= KINDS; kind++) {
		struct ow_sketch_params params = params_of(kind);
		/* Stashes hold the first and the last records that are added, which halves have too. */
		if (kind == OW_SKETCH_FINECOMB)
			params.cells = 512;
		bool linear = kind != OW_SKETCH_BOTTOMK && kind != OW_SKETCH_MINHASH;
		struct ow_error err = {""};
		struct ow_sketch *all = sketch_of(&params, s.a, s.as), *first = sketch_of(&params, s.a, s.as / 2),
				 *rest = sketch_of(&params, s.a + s.as / 2, s.as - s.as / 2);
		struct ow_sketch *both = sketch_of(&params, s.a + s.as / 2, s.as - s.as / 2);
		assert_int_equal(ow_sketch_merge(both, first, NULL), 0);
		assert_same(both, all);
		assert_int_equal(ow_sketch_subtract(all, first, &err), linear ? 0 : -EINVAL);
		assert_same(all, linear ? rest : both);
		assert_int_equal(err.text[0] == 0, linear);
		/* More than there is. */
		assert_int_equal(ow_sketch_subtract(rest, both, NULL), -EINVAL);
		ow_sketch_reset(rest);
		struct ow_sketch *empty = create(&params);
		assert_same(rest, empty);
		ow_sketch_free(all);
		ow_sketch_free(first);
		ow_sketch_free(rest);
		ow_sketch_free(both);
		ow_sketch_free(empty);
	}
}

/* A record that was never added cannot be taken out, and nothing changes. */
static void test_subtract_missing(void **state)
{
	(void)state;
	struct ow_sketch_params params = params_of(OW_SKETCH_RDA);
	struct ow_sketch_record some[] = {{1, 10}, {2, 20}, {2, 20}}, other[] = {{2, 20}, {3, 30}};
	struct ow_sketch *a = sketch_of(&params, some, 3), *same = sketch_of(&params, some, 3),
			 *b = sketch_of(&params, other, 2);
	assert_int_equal(ow_sketch_subtract(a, b, NULL), -EINVAL);
	assert_same(a, same);
	ow_sketch_free(b);
	b = sketch_of(&params, other, 1);
	assert_int_equal(ow_sketch_subtract(a, b, NULL), 0);
	ow_sketch_free(same);
	same = sketch_of(&params, some, 2);
	assert_same(a, same);
	assert_int_equal(ow_sketch_merge(a, a, NULL), 0);
	struct ow_sketch_estimate e = estimate(a, b);
	assert_int_equal(e.sent, 4);
	ow_sketch_free(a);
	ow_sketch_free(b);
	ow_sketch_free(same);
}

static void refuse(struct ow_sketch_params params, int code, const char *text)
{
	struct ow_sketch *sketch = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_sketch_create(&params, &sketch, &err), -code);
	assert_null(sketch);
	if (!strstr(err.text, text))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, text));
}

#define REFUSE(kind, code, text, ...)                        \
	do {                                                 \
		struct ow_sketch_params p = params_of(kind); \
		__VA_ARGS__;                                 \
		refuse(p, code, text);                       \
	} while (0)

/* NOLINTNEXTLINE(readability-function-size): a list */
static void test_refuses(void **state)
{
	(void)state;
	REFUSE(OW_SKETCH_LDA, EINVAL, "size", p.size = 0);
	REFUSE(OW_SKETCH_LDA, EINVAL, "kind", p.kind = 77);
	REFUSE(OW_SKETCH_LDA, EINVAL, "records", p.records = NAN);
	REFUSE(OW_SKETCH_LDA, EINVAL, "loss", p.loss = 1);
	REFUSE(OW_SKETCH_LDA, EINVAL, "reorder", p.reorder = -1);
	REFUSE(OW_SKETCH_LDA, EINVAL, "variation", p.variation = INFINITY);
	REFUSE(OW_SKETCH_LDA, EINVAL, "error", p.error = 0);
	REFUSE(OW_SKETCH_LDA, EINVAL, "bytes of memory", p.memory = SIZE_MAX);
	REFUSE(OW_SKETCH_LDA, EINVAL, "cannot be made of 1 bytes", p.memory = 1);
	REFUSE(OW_SKETCH_LDA, EINVAL, "keep records", p.keep = OW_KEEP_RECORDS);
	REFUSE(OW_SKETCH_LDA, EINVAL, "keep records", p.keep = 9);
	REFUSE(OW_SKETCH_LDA, EINVAL, "need cells", p.banks = 2);
	REFUSE(OW_SKETCH_LDA, EINVAL, "share[1]", p.cells = 64, p.banks = 2, p.share[0] = 0.5);
	REFUSE(OW_SKETCH_LDA, EINVAL, "takes all", p.cells = 64, p.banks = 2, p.share[0] = p.share[1] = 0.5);
	REFUSE(OW_SKETCH_LDA, EINVAL, "stash", p.cells = 64, p.stash = 1);
	REFUSE(OW_SKETCH_LDA, EINVAL, "buckets", p.cells = UINT32_MAX);
	REFUSE(OW_SKETCH_LDA, EINVAL, "banks", p.cells = 64, p.banks = 9);
	/* So few records cannot give so small an error once some are lost. */
	REFUSE(OW_SKETCH_LDA, ERANGE, "no size", p.records = 1000, p.variation = 1, p.error = 0.01);
	REFUSE(OW_SKETCH_FINECOMB, EINVAL, "share[0]", p.cells = 64, p.share[0] = 2);
	REFUSE(OW_SKETCH_RDA, EINVAL, "share[0]", p.cells = 64, p.share[0] = 0.5);
	REFUSE(OW_SKETCH_RDA, ERANGE, "no size", p.records = 1e12);
	REFUSE(OW_SKETCH_SRDA, EINVAL, "no such shape", p.cells = 2);
	REFUSE(OW_SKETCH_FOLD, EINVAL, "no such shape", p.cells = 70000);
	REFUSE(OW_SKETCH_FOLD, ERANGE, "no size", p.records = 1e9);
	REFUSE(OW_SKETCH_AMS, EINVAL, "no such shape", p.cells = 1000);
	REFUSE(OW_SKETCH_AMS, ERANGE, "no size", p.error = 0.001);
	REFUSE(OW_SKETCH_BOTTOMK, ERANGE, "no size", p.error = 1e-6);
	REFUSE(OW_SKETCH_MOMENTS, ERANGE, "no size", p.error = 1e-6);
	REFUSE(OW_SKETCH_MINHASH, EINVAL, "cells or memory", p.cells = 0);
}

/* By memory: never more than that. */
static void test_memory(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind <= KINDS; kind++) {
		struct ow_sketch_params params = params_of(kind);
		params.cells = 0;
		for (params.memory = 4096; params.memory <= 1u << 22; params.memory *= 4) {
			struct ow_sketch *sketch = create(&params);
			char text[80];
			assert_true(ow_sketch_memory(sketch) <= params.memory);
			ow_sketch_describe(sketch, text, sizeof text);
			assert_non_null(strstr(text, ": "));
			ow_sketch_describe(sketch, text, 3);
			assert_int_equal(strlen(text), 2);
			ow_sketch_free(sketch);
		}
	}
}

static void test_differ(void **state)
{
	(void)state;
	struct ow_sketch_params params = params_of(OW_SKETCH_RDA), other = params;
	struct ow_sketch_estimate e = {.size = sizeof e};
	struct ow_sketch *a = create(&params), *b;
	struct ow_error err;
	other.seed++;
	b = create(&other);
	assert_int_equal(ow_sketch_estimate(a, b, &e, &err), -EINVAL);
	assert_non_null(strstr(err.text, "seed"));
	assert_int_equal(ow_sketch_merge(a, b, &err), -EINVAL);
	ow_sketch_free(b);
	other = params;
	other.keep = OW_KEEP_NOT;
	b = create(&other);
	assert_int_equal(ow_sketch_merge(a, b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "keeps records"));
	assert_int_equal(ow_sketch_estimate(a, b, &e, &err), 0);
	ow_sketch_free(b);
	other = params_of(OW_SKETCH_FOLD);
	b = create(&other);
	assert_int_equal(ow_sketch_estimate(a, b, &e, &err), -EINVAL);
	assert_int_equal(ow_sketch_estimate(b, a, &e, &err), -EINVAL);
	assert_int_equal(ow_sketch_add_near(a, true, NULL, 0, &err), -EINVAL);
	ow_sketch_free(a);
	ow_sketch_free(b);
}

/* Names that are bytes; and what FineComb gains from records next to the interval. */
static void test_bytes_and_near(void **state)
{
	(void)state;
	struct ow_sketch_params params = params_of(OW_SKETCH_FOLD);
	struct ow_sketch *a = create(&params), *b = create(&params);
	char name[16];
	for (int i = 0; i < 1000; i++) {
		int length = snprintf(name, sizeof name, "record %d", i);
		assert_int_equal(ow_sketch_add_bytes(a, name, (size_t)length, i, NULL), 0);
		if (i % 100)
			assert_int_equal(ow_sketch_add_bytes(b, name, (size_t)length, i + 500, NULL), 0);
	}
	struct ow_sketch_estimate e = estimate(a, b);
	assert_true(e.lost.value == 10 && e.mean_ns.value == 500 && e.complete);
	ow_sketch_free(a);
	ow_sketch_free(b);

	/* The last record arrives after the end of the interval: in the stash it is late, without it is lost. */
	struct ow_sketch_record sent[] = {{1, 10}, {2, 20}, {3, 990}}, late = {3, 1010};
	params = params_of(OW_SKETCH_FINECOMB);
	params.cells = 64;
	params.stash = 4;
	for (int near = 0; near < 2; near++) {
		struct ow_sketch_record received[] = {{1, 30}, {2, 40}};
		a = sketch_of(&params, sent, 3);
		b = sketch_of(&params, received, 2);
		if (near)
			assert_int_equal(ow_sketch_add_near(b, true, &late, 1, NULL), 0);
		/* Late: neither lost nor received. */
		e = (struct ow_sketch_estimate){.size = sizeof e};
		assert_int_equal(ow_sketch_estimate(a, b, &e, NULL), 0);
		assert_int_equal(e.samples, near ? 3 : 2);
		assert_true(holds(&e.lost, near ? 0 : 1));
		ow_sketch_free(a);
		ow_sketch_free(b);
	}
}

/* Cut and changed bytes: an error that says what is wrong, or a sketch that can be used. */
static void test_hostile(void **state)
{
	(void)state;
	static struct stream s;
	make_stream(&s, LOSS, 3);
	for (unsigned kind = 1; kind <= KINDS; kind++) {
		struct ow_sketch_params params = params_of(kind);
		params.cells = kind == OW_SKETCH_AMS ? 16 : 12;
		struct ow_sketch *mine = sketch_of(&params, s.a, 20);
		uint8_t *bytes;
		size_t size;
		assert_int_equal(ow_sketch_encode(mine, true, &bytes, &size, NULL), 0);
		for (size_t i = 0; i < 3 * size; i++) {
			struct ow_sketch *got = NULL;
			struct ow_sketch_estimate e = {.size = sizeof e};
			struct ow_error err = {""};
			size_t at = i % size;
			uint8_t was = bytes[at];
			size_t length = i < size ? at : size;
			/* A copy of just this length: reading beyond it is an error that the sanitizer sees. */
			uint8_t *copy = malloc(length + 1);
			assert_non_null(copy);
			bytes[at] = i < size ? was : (uint8_t)(was ^ (i < 2 * size ? 0xff : 1));
			memcpy(copy, bytes, length);
			bytes[at] = was;
			int r = ow_sketch_decode(copy, length, SEED, &got, &err);
			assert_int_equal(r < 0, got == NULL);
			assert_int_equal(r < 0, err.text[0] != 0);
			assert_true(i >= size || r == -EINVAL);
			if (got && ow_sketch_estimate(mine, got, &e, NULL) == 0)
				check_value(&e.lost);
			if (got && ow_sketch_merge(got, mine, NULL) == 0)
				ow_sketch_estimate(got, mine, &e, NULL);
			ow_sketch_free(got);
			free(copy);
		}
		free(bytes);
		ow_sketch_free(mine);
	}
}

/* What a program does, as far as memory lasts, and the packets that it finds lost. 0 or -ENOMEM. */
static int use_all(const struct ow_sketch_params *params, const struct stream *s, double *ret_lost)
{
	struct ow_sketch *a = NULL, *b = NULL, *got = NULL;
	struct ow_sketch_estimate e = {.size = sizeof e};
	struct ow_error err = {""};
	uint8_t *bytes = NULL;
	size_t size;
	int r = ow_sketch_create(params, &a, &err);
	if (r == 0)
		r = ow_sketch_create(params, &b, &err);
	if (r == 0)
		r = ow_sketch_add(a, s->a, 3000, &err);
	if (r == 0)
		r = ow_sketch_add(b, s->b, 3000, &err);
	if (r == 0)
		r = ow_sketch_encode(b, true, &bytes, &size, &err);
	if (r == 0)
		r = ow_sketch_decode(bytes, size, SEED, &got, &err);
	if (r == 0)
		r = ow_sketch_estimate(a, got, &e, &err);
	if (r == 0)
		r = ow_sketch_merge(got, b, &err);
	if (r == 0 && params->kind != OW_SKETCH_BOTTOMK && params->kind != OW_SKETCH_MINHASH)
		r = ow_sketch_subtract(got, b, &err);
	assert_int_equal(r < 0, err.text[0] != 0);
	*ret_lost = e.lost.value;
	free(bytes);
	ow_sketch_free(a);
	ow_sketch_free(b);
	ow_sketch_free(got);
	return r;
}

/* Any allocation may fail, once or from then on: that is an error or makes no difference (sorting needs no memory, only more time), but is
 * never a wrong number or a leak. */
static void test_memory_runs_out(void **state)
{
	(void)state;
	static struct stream s;
	make_stream(&s, LOSS, 8);
	for (unsigned kind = 1; kind <= KINDS; kind++) {
		struct ow_sketch_params params = params_of(kind);
		params.cells = 256;
		double usual, lost;
		assert_int_equal(use_all(&params, &s, &usual), 0);
		for (int forever = 0; forever < 2; forever++) {
			for (size_t nth = 1, failures = 1; failures; nth++) {
				scarce_from(nth, forever);
				int r = use_all(&params, &s, &lost);
				failures = scarce_failures();
				scarce_from(0, false);
				assert_true(r == 0 || (failures && r == -ENOMEM));
				assert_true(r < 0 || lost == usual || (isnan(lost) && isnan(usual)));
			}
		}
	}
}

/* A program of a newer version, with a member that this library does not know. */
struct newer_params {
	struct ow_sketch_params known;
	uint64_t member;
};

struct newer_estimate {
	struct ow_sketch_estimate known;
	uint64_t member;
};

static void test_versions(void **state)
{
	(void)state;
	struct newer_params params;
	struct ow_sketch *sketch;
	struct ow_error err;
	ow_sketch_params_init(&params.known, sizeof params, OW_SKETCH_RDA);
	assert_int_equal(params.known.size, sizeof params);
	assert_int_equal(params.member, 0);
	assert_int_equal(ow_sketch_create(&params.known, &sketch, NULL), 0);
	struct newer_estimate e = {.known.size = sizeof e, .member = 1};
	assert_int_equal(ow_sketch_estimate(sketch, sketch, &e.known, NULL), 0);
	assert_int_equal(e.known.size, sizeof e.known);
	assert_int_equal(e.member, 0);
	e.known.size = 8;
	assert_int_equal(ow_sketch_estimate(sketch, sketch, &e.known, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ow_sketch_estimate"));
	ow_sketch_free(sketch);
	params.member = 1;
	assert_int_equal(ow_sketch_create(&params.known, &sketch, &err), -E2BIG);
	assert_non_null(strstr(err.text, "does not know"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),       cmocka_unit_test(test_exact),
		cmocka_unit_test(test_identical),        cmocka_unit_test(test_merge_subtract),
		cmocka_unit_test(test_subtract_missing), cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_memory),           cmocka_unit_test(test_differ),
		cmocka_unit_test(test_bytes_and_near),   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_versions),         cmocka_unit_test(test_memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
