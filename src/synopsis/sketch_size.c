/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a synopsis of the right size from the parameters of a program. */
#include "synopsis/sketch_size.h"

#include "base/versioned.h"
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
#include <math.h>
#include <string.h>

#define Z95 1.96 /* standard deviations of a relative error that holds in 95 % of cases */
/* The largest number of differences: a fold needs 1.725 d + 30 cells in all banks, and there are 65536 in each of 4. */
#define FOLD_DIFFERENCES_MAX ((4.0 * OW_FOLD_CELLS - 30) / 1.725)

/* NOLINTNEXTLINE(misc-redundant-expression) */
_Static_assert(OW_SKETCH_MEMORY_MAX == OW_SYNOPSIS_BYTES_MAX, "the public limit is ours");
/* NOLINTNEXTLINE(misc-redundant-expression) */
_Static_assert(OW_SKETCH_BANKS_MAX == OW_LDA_BANKS_MAX && OW_SKETCH_BANKS_MAX == OW_FINECOMB_BANKS_MAX, "likewise");

void ow_sketch_params_init(struct ow_sketch_params *ret_params, size_t size, enum ow_sketch_kind kind)
{
	struct ow_sketch_params params = {.kind = kind, .records = 1e6, .loss = 0.01, .variation = 1, .error = 0.05};
	params.size = sizeof params;
	ow_versioned_init(ret_params, size);
	memcpy(ret_params, &params, size < sizeof params ? size : sizeof params);
	if (size >= sizeof params.size)
		ret_params->size = size;
}

/* -- by shape ------------------------------------------------------------------------------------------------------ */

static uint32_t banks_of(const struct ow_sketch_params *p, uint32_t usual)
{
	return p->banks ? p->banks : usual;
}

/* The limit of a bank of an LDA or a FineComb. */
static int bank_limit(const struct ow_sketch_params *p, uint32_t bank, uint32_t *ret_limit, struct ow_error *err)
{
	double share = banks_of(p, 1) == 1 && p->share[0] == 0 ? 1 : p->share[bank];
	if (!(share > 0 && share <= 1))
		return ow_error_set(err, EINVAL, "sketch: share[%u] is %g, not above 0 to 1", bank, share);
	*ret_limit = ow_lda_limit(share);
	return 0;
}

static int lda_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	struct ow_lda_params params = {.banks = banks_of(p, 1)};
	struct ow_lda *lda = NULL;
	int r = 0;
	for (uint32_t i = 0; i < params.banks && r == 0; i++) {
		params.bank[i].buckets = p->cells;
		r = bank_limit(p, i, &params.bank[i].limit, err);
	}
	if (r == 0)
		r = ow_lda_create(&params, p->seed, &lda, err);
	if (r == 0)
		*ret_synopsis = &lda->base;
	return r;
}

static int finecomb_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	struct ow_finecomb_params params = {.banks = banks_of(p, 1)};
	struct ow_finecomb *finecomb = NULL;
	int r = 0;
	for (uint32_t i = 0; i < params.banks && r == 0; i++) {
		params.bank[i].buckets = p->cells;
		params.bank[i].stash = p->stash;
		r = bank_limit(p, i, &params.bank[i].limit, err);
	}
	if (r == 0)
		r = ow_finecomb_create(&params, p->seed, &finecomb, err);
	if (r == 0)
		*ret_synopsis = &finecomb->base;
	return r;
}

static int srda_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	(void)err;
	return ow_srda_create(&(struct ow_srda_params){banks_of(p, 4), p->cells}, p->seed, ret_synopsis);
}

static int rda_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	(void)err;
	return ow_rda_create(&(struct ow_rda_params){banks_of(p, 4), p->cells, true}, p->seed, ret_synopsis);
}

static int fold_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	struct ow_fold_params params = {.banks = banks_of(p, 4), .cells = p->cells, .estimator = true};
	(void)err;
	return ow_fold_create(&params, p->seed, ret_synopsis);
}

static int ams_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	(void)err;
	return ow_ams_create(p->cells, p->seed, ret_synopsis);
}

static int bottomk_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	(void)err;
	return ow_bottomk_create(p->cells, p->seed, ret_synopsis);
}

static int moments_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	struct ow_moments *moments = NULL;
	int r = ow_moments_create(p->cells, p->seed, &moments, err);
	if (r == 0)
		*ret_synopsis = &moments->base;
	return r;
}

static int minhash_of_shape(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	(void)err;
	return ow_minhash_create(p->cells, p->seed, ret_synopsis);
}

/*
 * -- by error: bytes of memory, or INFINITY if no size reaches it ---------------------------------------------------
 */

static double lda_for_error(const struct ow_sketch_params *p)
{
	uint32_t buckets = ow_lda_buckets(p->records, p->loss, p->variation, p->error);
	return buckets < OW_LDA_BUCKETS_MAX ? (double)buckets * sizeof(struct ow_lda_bucket) : INFINITY;
}

static double finecomb_for_error(const struct ow_sketch_params *p)
{
	double most = OW_SYNOPSIS_BYTES_MAX / sizeof(struct ow_finecomb_bucket) - 64;
	double storage = ow_finecomb_storage(p->records, p->loss, p->reorder, p->variation, p->error);
	return storage < most ? storage * sizeof(struct ow_finecomb_bucket) : INFINITY;
}

/* The cells that decode all differences and give the standard deviation within the error. */
static double rda_cells(const struct ow_sketch_params *p)
{
	double sigma = p->error / Z95, differences = p->records * (p->loss + 2 * p->reorder);
	return ceil(fmax(ow_rda_cells_for(differences, 4), 4 + 0.5 / (sigma * sigma)) / 4) * 4;
}

static double srda_for_error(const struct ow_sketch_params *p)
{
	return rda_cells(p) * sizeof(struct ow_srda_cell);
}

static double rda_for_error(const struct ow_sketch_params *p)
{
	return rda_cells(p) * sizeof(struct ow_rda_cell);
}

static double fold_for_error(const struct ow_sketch_params *p)
{
	bool fits = p->records * (p->loss + p->reorder) <= FOLD_DIFFERENCES_MAX;
	return fits ? 4.0 * OW_FOLD_CELLS * sizeof(uint64_t) + OW_AMS_COUNTERS * sizeof(uint32_t) : INFINITY;
}

static double bottomk_for_error(const struct ow_sketch_params *p)
{
	uint32_t k = ow_bottomk_size(0.5, p->error);
	return k < OW_BOTTOMK_MAX ? (double)k * sizeof(struct ow_bottomk_entry) : INFINITY;
}

static double moments_for_error(const struct ow_sketch_params *p)
{
	uint32_t buckets = ow_moments_buckets(p->error);
	return buckets < OW_MOMENTS_BUCKETS_MAX ? (double)buckets * sizeof(uint64_t) : INFINITY;
}

/* -- the kinds ------------------------------------------------------------------------------------------------------
 */

/* One line for each kind. AMS and MINHASH have no memory for an error: see by_error. */
/* clang-format off */
static const struct method {
	enum ow_sketch_kind kind;
	const char *name;
	uint32_t banks; /* at most */
	bool records, shares, stash; /* whether the kind uses them */
	int (*of_shape)(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err);
	int (*of_memory)(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);
	double (*for_error)(const struct ow_sketch_params *p);
} methods[] = {
	{OW_SKETCH_LDA, "lda", 8, false, true, false, lda_of_shape, ow_lda_create_for, lda_for_error},
	{OW_SKETCH_FINECOMB, "finecomb", 8, false, true, true, finecomb_of_shape, ow_finecomb_create_for, finecomb_for_error},
	{OW_SKETCH_SRDA, "srda", 4, true, false, false, srda_of_shape, ow_srda_create_for, srda_for_error},
	{OW_SKETCH_RDA, "rda", 8, true, false, false, rda_of_shape, ow_rda_create_for, rda_for_error},
	{OW_SKETCH_FOLD, "fold", 4, true, false, false, fold_of_shape, ow_fold_create_for, fold_for_error},
	{OW_SKETCH_AMS, "ams", 1, false, false, false, ams_of_shape, ow_ams_create_for, NULL},
	{OW_SKETCH_BOTTOMK, "bottomk", 1, false, false, false, bottomk_of_shape, ow_bottomk_create_for, bottomk_for_error},
	{OW_SKETCH_MOMENTS, "moments", 1, true, false, false, moments_of_shape, ow_moments_create_for, moments_for_error},
	{OW_SKETCH_MINHASH, "minhash", 1, false, false, false, minhash_of_shape, ow_minhash_create_for, NULL},
};
/* clang-format on */

_Static_assert((int)OW_SKETCH_LDA == (int)OW_SYNOPSIS_LDA && (int)OW_SKETCH_MINHASH == (int)OW_SYNOPSIS_MINHASH,
               "the kinds of the interface are ours");

static const struct method *method_of(int kind)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if ((int)methods[i].kind == kind)
			return &methods[i];
	}
	return NULL;
}

bool ow_sketch_uses_records(enum ow_synopsis_kind kind)
{
	const struct method *method = method_of((int)kind);
	return method && method->records;
}

static int by_shape(const struct method *method, const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis,
                    struct ow_error *err)
{
	struct ow_error why = {""};
	if (p->banks > method->banks)
		return ow_error_set(err, EINVAL, "%s: %u banks, at most %u", method->name, p->banks, method->banks);
	if (p->stash && !method->stash)
		return ow_error_set(err, EINVAL, "%s: has no stash", method->name);
	for (unsigned i = 0; i < OW_SKETCH_BANKS_MAX; i++) {
		if (p->share[i] != 0 && (!method->shares || i >= banks_of(p, 1)))
			return ow_error_set(err, EINVAL, "%s: there is no bank for share[%u]", method->name, i);
	}
	int r = method->of_shape(p, ret_synopsis, &why);
	if (r < 0 && why.text[0])
		return ow_error_set(err, -r, "%s", why.text);
	if (r < 0)
		return ow_error_set(err, -r, "%s: %s for %u cells in %u banks", method->name,
		                    r == -ENOMEM ? "out of memory" : "no such shape", p->cells, p->banks);
	return 0;
}

static int check_expected(const struct method *method, const struct ow_sketch_params *p, struct ow_error *err)
{
	const struct {
		const char *name;
		double value, least, most;
	} range[] = {
		{"records", p->records, 1, OW_SKETCH_EXPECTED_MAX},
		{"loss", p->loss, 0, 0.99},
		{"reorder", p->reorder, 0, 1},
		{"variation", p->variation, 1e-9, 1000},
		{"error", p->error, p->memory ? 0 : 1e-9, 1 - 1e-9},
	};
	for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
		/* The negated condition also rejects NaN. */
		if (!(range[i].value >= range[i].least && range[i].value <= range[i].most))
			return ow_error_set(err, EINVAL, "%s: %s is %g, not %g to %g", method->name, range[i].name,
			                    range[i].value, range[i].least, range[i].most);
	}
	if (p->memory > OW_SKETCH_MEMORY_MAX)
		return ow_error_set(err, EINVAL, "%s: %zu bytes of memory, at most %u", method->name, p->memory,
		                    OW_SKETCH_MEMORY_MAX);
	if (p->banks || p->stash || p->share[0] != 0)
		return ow_error_set(err, EINVAL, "%s: banks, stash and share need cells", method->name);
	return 0;
}

static int by_memory(const struct method *method, const struct ow_sketch_params *p, size_t memory,
                     struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	struct ow_sizing sizing = {p->records, p->loss, p->reorder};
	int r = method->of_memory(memory, &sizing, p->seed, ret_synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "%s: %s %zu bytes", method->name,
		                    r == -ENOMEM ? "out of memory for" : "cannot be made of", memory);
	return 0;
}

static int by_error(const struct method *method, const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis,
                    struct ow_error *err)
{
	if (method->kind == OW_SKETCH_MINHASH)
		return ow_error_set(err, EINVAL, "%s: cannot be sized by its error; give cells or memory",
		                    method->name);
	if (method->kind == OW_SKETCH_AMS && p->error >= Z95 * sqrt(2.0 / OW_AMS_COUNTERS_MAX)) {
		int r = ow_ams_create(ow_ams_size(p->error), p->seed, ret_synopsis);
		return r < 0 ? ow_error_set(err, -r, "%s: out of memory", method->name) : 0;
	}
	double bytes = method->for_error ? method->for_error(p) : INFINITY;
	if (bytes > OW_SKETCH_MEMORY_MAX)
		return ow_error_set(err, ERANGE,
		                    "%s: no size within %u bytes serves %g records, loss %g, reorder %g, error %g",
		                    method->name, OW_SKETCH_MEMORY_MAX, p->records, p->loss, p->reorder, p->error);
	return by_memory(method, p, (size_t)bytes, ret_synopsis, err);
}

int ow_sketch_synopsis(const struct ow_sketch_params *p, struct ow_synopsis **ret_synopsis, struct ow_error *err)
{
	const struct method *method = method_of((int)p->kind);
	if (!method)
		return ow_error_set(err, EINVAL, "sketch: unknown kind %d", (int)p->kind);
	if ((int)p->keep < OW_KEEP_AUTO || p->keep > OW_KEEP_RECORDS ||
	    (p->keep == OW_KEEP_RECORDS && !method->records))
		return ow_error_set(err, EINVAL, "%s: cannot keep records", method->name);
	if (p->cells)
		return by_shape(method, p, ret_synopsis, err);
	int r = check_expected(method, p, err);
	if (r < 0)
		return r;
	return p->memory ? by_memory(method, p, p->memory, ret_synopsis, err) : by_error(method, p, ret_synopsis, err);
}
