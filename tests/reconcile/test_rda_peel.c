/* SPDX-License-Identifier: Apache-2.0 */
/* Peeling of RDA and sRDA against sets of packets; that it always ends; repair with the caches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "reconcile/rda_peel.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 77

/* k cells of a packet; srda: flat. */
struct shape {
	bool srda;
	uint32_t k, cells;
};

static struct ow_synopsis *make(struct shape shape, bool checked, uint64_t seed)
{
	struct ow_synopsis *s;
	if (shape.srda)
		assert_int_equal(ow_srda_create(&(struct ow_srda_params){shape.k, shape.cells}, seed, &s), 0);
	else
		assert_int_equal(ow_rda_create(&(struct ow_rda_params){shape.k, shape.cells, checked}, seed, &s), 0);
	return s;
}

static uint64_t id_in(const struct ow_synopsis *s, uint64_t id)
{
	return s->ops->kind == OW_SYNOPSIS_RDA ? ow_rda_id(ow_rda_of(s), id) : id;
}

/* Cells of an id, over all banks. */
static void places(const struct ow_synopsis *s, uint64_t id, uint32_t *ret_place)
{
	if (s->ops->kind == OW_SYNOPSIS_SRDA) {
		ow_srda_places(ow_srda_of(s), id, ret_place);
		return;
	}
	const struct ow_rda *rda = ow_rda_of(s);
	for (uint32_t b = 0; b < rda->params.banks; b++)
		ret_place[b] = b * rda->params.cells + ow_rda_place(rda, ow_rda_id(rda, id), b);
}

/* What can be decoded, found with the packets in hand: those alone in a cell go, as long as there are such. */
static unsigned decodable(uint32_t (*place)[OW_RDA_BANKS_MAX], uint32_t k, unsigned differences, unsigned packets)
{
	unsigned left = differences;
	for (bool changed = true; changed;) {
		changed = false;
		for (unsigned i = 0; i < packets; i++) {
			bool alone = false;
			for (uint32_t x = 0; x < k && left >> i & 1; x++) {
				bool others = false;
				for (unsigned j = 0; j < packets; j++)
					for (uint32_t y = 0; y < k; y++)
						others |= j != i && left >> j & 1 && place[i][x] == place[j][y];
				alone |= !others;
			}
			if (alone) {
				left &= ~(1u << i);
				changed = true;
			}
		}
	}
	return differences & ~left;
}

static unsigned mask_of(const uint64_t *ids, size_t count, const struct ow_synopsis *s, const struct ow_sighting *p,
                        unsigned n)
{
	unsigned mask = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned j = 0;
		while (j < n && id_in(s, p[j].id) != ids[i])
			j++;
		assert_true(j < n); /* an id that nobody has */
		assert_false(mask >> j & 1);
		mask |= 1u << j;
	}
	return mask;
}

/* Every way in which 7 packets can be common, lost or extra, in tiny tables of all kinds. */
static void test_exhaustive(void **state)
{
	(void)state;
	enum { N = 7, WAYS = 2187 };
	static const struct shape shapes[] = {{false, 1, 6}, {false, 2, 3}, {false, 2, 5}, {false, 3, 3}, {false, 4, 2},
	                                      {false, 8, 3}, {true, 1, 7},  {true, 2, 6},  {true, 3, 8},  {true, 4, 9}};
	for (size_t v = 0; v < sizeof shapes / sizeof *shapes; v++) {
		struct ow_sighting p[N];
		uint32_t place[N][OW_RDA_BANKS_MAX];
		struct ow_random random;
		ow_random_seed(&random, SEED + v);
		struct ow_synopsis *a = make(shapes[v], true, SEED), *b = make(shapes[v], true, SEED);
		for (unsigned i = 0; i < N; i++) {
			p[i] = (struct ow_sighting){ow_random_u64(&random), i};
			places(a, p[i].id, place[i]);
		}
		for (unsigned way = 0; way < WAYS; way++) {
			unsigned lost = 0, extra = 0;
			a->ops->reset(a);
			b->ops->reset(b);
			for (unsigned i = 0, w = way; i < N; i++, w /= 3) {
				lost |= (w % 3 == 1) << i;
				extra |= (w % 3 == 2) << i;
				if (w % 3 != 2)
					a->ops->add(a, p + i, 1);
				if (w % 3 != 1)
					b->ops->add(b, p + i, 1);
			}
			struct ow_rda_peel peel;
			assert_int_equal(ow_rda_peel(a, b, NULL, &peel), 0);
			unsigned can = decodable(place, shapes[v].k, lost | extra, N);
			assert_int_equal(mask_of(peel.lost, peel.losts, a, p, N), lost & can);
			assert_int_equal(mask_of(peel.extra, peel.extras, a, p, N), extra & can);
			assert_int_equal(peel.complete, can == (lost | extra));
			assert_false(peel.capped);
			int net = 0;
			for (unsigned i = 0; i < N; i++)
				net += (int)((extra & ~can) >> i & 1) - (int)((lost & ~can) >> i & 1);
			assert_int_equal(peel.net, net);
			ow_rda_peel_done(&peel);
		}
		ow_synopsis_free(a);
		ow_synopsis_free(b);
	}
}

static int by_id(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
	return (a > b) - (a < b);
}

static void assert_set(const struct ow_synopsis *s, uint64_t *found, size_t founds, const struct ow_sighting *p,
                       size_t count)
{
	assert_int_equal(founds, count);
	uint64_t *truth = malloc((count + 1) * sizeof *truth);
	for (size_t i = 0; i < count; i++)
		truth[i] = id_in(s, p[i].id);
	qsort(truth, count, sizeof *truth, by_id);
	qsort(found, count, sizeof *found, by_id);
	assert_memory_equal(truth, found, count * sizeof *truth);
	free(truth);
}

/* Adds `common` packets to both, `lost` to A, `extra` to B, from one array in this order. */
static struct ow_sighting *fill(struct ow_synopsis *a, struct ow_synopsis *b, size_t common, size_t lost, size_t extra,
                                uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	struct ow_sighting *p = malloc((common + lost + extra + 1) * sizeof *p);
	for (size_t i = 0; i < common + lost + extra; i++)
		p[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)i};
	a->ops->add(a, p, common + lost);
	b->ops->add(b, p, common);
	b->ops->add(b, p + common + lost, extra);
	return p;
}

/* Random sets that are decoded completely give exactly these sets, whatever else both points saw. */
static void test_oracle(void **state)
{
	(void)state;
	static const struct shape shapes[] = {{false, 2, 2000}, {false, 3, 250}, {false, 4, 190},
	                                      {true, 3, 750},   {true, 4, 760},  {false, 4, 40000}};
	for (size_t v = 0; v < sizeof shapes / sizeof *shapes; v++) {
		unsigned complete = 0, runs = 40;
		for (unsigned run = 0; run < runs; run++) {
			uint64_t seed = SEED * 1000 + run;
			struct ow_synopsis *a = make(shapes[v], true, seed), *b = make(shapes[v], true, seed);
			size_t losts = 400 * (run % 3) / 2, extras = 400 - losts;
			struct ow_sighting *p = fill(a, b, 3000, losts, extras, seed);
			struct ow_rda_peel peel;
			assert_int_equal(ow_rda_peel(a, b, NULL, &peel), 0);
			complete += peel.complete;
			if (peel.complete) {
				assert_set(a, peel.lost, peel.losts, p + 3000, losts);
				assert_set(a, peel.extra, peel.extras, p + 3000 + losts, extras);
				assert_true(peel.dirty == 0 && peel.net == 0);
			} else {
				assert_true(peel.dirty > 0);
			}
			ow_rda_peel_done(&peel);
			free(p);
			ow_synopsis_free(a);
			ow_synopsis_free(b);
		}
		/* 98 % and more are complete: 2 banks of 2000 fail in 1 - sqrt(1 - 0.2^2) = 2 %, the others less. */
		assert_true(complete >= runs - 3);
	}
}

/* formulas.md, section 1: 2 banks of 2d cells fail in 1 - sqrt(1 - (d/m)^2) = 13.4 % of cases, whatever d. */
static void test_two_banks(void **state)
{
	(void)state;
	for (size_t d = 10; d <= 1000; d *= 10) {
		unsigned failed = 0, runs = 1500;
		for (unsigned run = 0; run < runs; run++) {
			struct shape shape = {false, 2, (uint32_t)(2 * d)};
			struct ow_synopsis *a = make(shape, true, run), *b = make(shape, true, run);
			free(fill(a, b, 0, d / 2, d - d / 2, run + 1000000));
			struct ow_rda_peel peel;
			assert_int_equal(ow_rda_peel(a, b, NULL, &peel), 0);
			failed += !peel.complete;
			ow_rda_peel_done(&peel);
			ow_synopsis_free(a);
			ow_synopsis_free(b);
		}
		/* Standard deviation 0.9 %; at d = 10 the value itself is 1.5 % lower. */
		double share = (double)failed / runs;
		assert_true(share > 0.09 && share < 0.17);
	}
}

/* As published, decoding runs in circles; here it stops. Checked ids decode the same differences. */
static void test_published(void **state)
{
	(void)state;
	unsigned circles = 0, failed = 0, runs = 300;
	for (unsigned run = 0; run < runs; run++) {
		struct shape shape = {false, 3, 333};
		struct ow_synopsis *a = make(shape, false, run), *b = make(shape, false, run);
		struct ow_synopsis *c = make(shape, true, run), *d = make(shape, true, run);
		free(fill(a, b, 0, 350, 350, run));
		free(fill(c, d, 0, 350, 350, run));
		struct ow_rda_peel peel;
		assert_int_equal(
			ow_rda_peel(a, b, &(struct ow_rda_peel_options){.published = true, .steps = 2900}, &peel), 0);
		circles += peel.capped;
		assert_true(peel.steps <= 2900 && !(peel.capped && peel.complete));
		ow_rda_peel_done(&peel);
		assert_int_equal(ow_rda_peel(c, d, NULL, &peel), 0);
		failed += !peel.complete;
		ow_rda_peel_done(&peel);
		ow_synopsis_free(a);
		ow_synopsis_free(b);
		ow_synopsis_free(c);
		ow_synopsis_free(d);
	}
	/* 42 % and 1.5 % (formulas.md); six standard deviations. */
	assert_in_range(circles, runs * 25 / 100, runs * 60 / 100);
	assert_in_range(failed, 0, runs * 6 / 100);
}

/* Whatever a peer sends: it ends within its steps, and says complete only if all cells are empty. */
static void test_garbage(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (unsigned run = 0; run < 400; run++) {
		struct shape shape = {run % 2, 1 + run % 4, 4 + run % 30};
		struct ow_synopsis *a = make(shape, run % 3, run), *b = make(shape, run % 3, run);
		size_t bytes = b->ops->memory(b);
		uint8_t *cell =
			shape.srda ? (uint8_t *)((struct ow_srda *)b)->cell : (uint8_t *)((struct ow_rda *)b)->cell;
		/* Single packets, wrongly placed or doubled, are harder than noise. */
		for (unsigned i = 0; i < 40; i++) {
			struct ow_sighting p = {ow_random_below(&random, 8), 1};
			b->ops->add(b, &p, 1);
			if (run % 5 == 0)
				cell[ow_random_below(&random, bytes)] ^= 1;
			if (run % 7 == 0)
				cell[ow_random_below(&random, bytes)] = (uint8_t)ow_random_u64(&random);
		}
		for (int published = 0; published < 2; published++) {
			struct ow_rda_peel peel;
			assert_int_equal(
				ow_rda_peel(a, b, &(struct ow_rda_peel_options){.published = published}, &peel), 0);
			assert_true(peel.steps <= 4 * peel.cells + 100);
			assert_int_equal(peel.complete, peel.dirty == 0);
			ow_rda_peel_done(&peel);
		}
		ow_synopsis_free(a);
		ow_synopsis_free(b);
	}
}

/* Erasing what was decoded leaves the tables of what both saw. */
static void test_repair(void **state)
{
	(void)state;
	for (unsigned srda = 0; srda < 2; srda++) {
		struct shape shape = {srda, 4, srda ? 400 : 100};
		struct ow_synopsis *a = make(shape, true, 5), *b = make(shape, true, 5), *common = make(shape, true, 5),
				   *copy;
		struct ow_sighting *p = fill(a, b, 1000, 100, 100, 9);
		common->ops->add(common, p, 1000);
		struct ow_rda_peel peel;
		assert_int_equal(ow_rda_peel(a, b, NULL, &peel), 0);
		assert_true(peel.complete);
		size_t erased;
		assert_int_equal(ow_rda_copy(a, &copy), 0);
		assert_int_equal(ow_rda_erase(copy, peel.lost, peel.losts, p, 1100, &erased), 0);
		assert_int_equal(erased, 100);
		assert_int_equal(copy->ops->subtract(copy, common), 0);
		struct ow_synopsis *none = make(shape, true, 5);
		size_t bytes = none->ops->encoded_size(none);
		uint8_t *x = malloc(bytes), *y = malloc(bytes);
		copy->ops->encode(copy, x);
		none->ops->encode(none, y);
		assert_memory_equal(x, y, bytes);
		/* A cache that lacks some of them erases the others. */
		assert_int_equal(ow_rda_erase(b, peel.extra, peel.extras, p + 1100, 40, &erased), 0);
		assert_int_equal(erased, 40);
		assert_int_equal(ow_rda_erase(b, peel.extra, 0, NULL, 0, &erased), 0);
		assert_int_equal(erased, 0);
		free(x);
		free(y);
		ow_rda_peel_done(&peel);
		free(p);
		ow_synopsis_free(a);
		ow_synopsis_free(b);
		ow_synopsis_free(common);
		ow_synopsis_free(copy);
		ow_synopsis_free(none);
	}
}

static void test_refused(void **state)
{
	(void)state;
	struct ow_synopsis *a = make((struct shape){false, 2, 5}, true, 1),
			   *b = make((struct shape){false, 2, 6}, true, 1);
	struct ow_synopsis *c = make((struct shape){true, 2, 5}, true, 1);
	struct ow_rda_peel peel;
	assert_int_equal(ow_rda_peel(a, b, NULL, &peel), -EINVAL);
	assert_int_equal(ow_rda_peel(a, c, NULL, &peel), -EINVAL);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_synopsis_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_oracle),  cmocka_unit_test(test_two_banks),
		cmocka_unit_test(test_published),  cmocka_unit_test(test_garbage), cmocka_unit_test(test_repair),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
