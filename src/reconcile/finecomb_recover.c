/* SPDX-License-Identifier: Apache-2.0 */
/* Stash recovery by elimination over GF(2). */
#include "reconcile/finecomb_recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Dependent entries whose combinations are tried to fit the count: at most 2^8. */
#define FREE_MAX 8

/* -- the linear system --------------------------------------------------------------------------------------------- */

struct basis {
	uint64_t vector[64];     /* by the highest bit set; 0 = none */
	uint64_t mask[64];       /* entries whose XOR it is */
	uint64_t null[FREE_MAX]; /* sets of entries whose XOR is 0 */
	unsigned nulls;
};

/* What remains of the vector after the reduction by the basis, and which entries were used. */
static uint64_t reduce(const struct basis *b, uint64_t vector, uint64_t *mask)
{
	while (vector) {
		int top = 63 - __builtin_clzll(vector);
		if (!b->vector[top])
			break;
		vector ^= b->vector[top];
		*mask ^= b->mask[top];
	}
	return vector;
}

static int64_t signed_count(const int8_t *signs, uint64_t mask)
{
	int64_t count = 0;
	for (; mask; mask &= mask - 1)
		count += signs[__builtin_ctzll(mask)];
	return count;
}

bool ow_recover_subset(const uint64_t *digests, const int8_t *signs, unsigned entries, uint64_t digest, int64_t count,
                       uint64_t *ret_mask)
{
	struct basis b = {0};
	for (unsigned i = 0; i < entries; i++) {
		uint64_t mask = UINT64_C(1) << i, rest = reduce(&b, digests[i], &mask);
		if (rest) {
			int top = 63 - __builtin_clzll(rest);
			b.vector[top] = rest;
			b.mask[top] = mask;
		} else if (b.nulls < FREE_MAX) {
			b.null[b.nulls++] = mask;
		}
	}
	uint64_t found = 0;
	if (reduce(&b, digest, &found))
		return false;
	for (unsigned choice = 0; choice < 1u << b.nulls; choice++) {
		uint64_t mask = found;
		for (unsigned i = 0; i < b.nulls; i++)
			mask ^= choice >> i & 1 ? b.null[i] : 0;
		if (signed_count(signs, mask) == count) {
			*ret_mask = mask;
			return true;
		}
	}
	return false;
}

/* -- buckets ------------------------------------------------------------------------------------------------------- */

/* B's stash by bucket: the entries of bucket i are candidate[start[i]] .. candidate[start[i + 1] - 1]. */
struct candidate {
	uint64_t time, digest;
	int8_t sign; /* +1 to add back, -1 to take out */
};

struct candidates {
	uint32_t *start;
	struct candidate *candidate;
};

static const int8_t side_sign[OW_STASHES] = {1, -1, -1, 1};

/* The i-th entry of a stash, 0 the nearest to the boundary. */
static const struct ow_finecomb_entry *nearest(const struct ow_finecomb_stash *s, int side, uint32_t i)
{
	bool last = side == OW_STASH_PRE_START || side == OW_STASH_PRE_END;
	return ow_finecomb_entry(s, last ? s->count - 1 - i : i);
}

/* Round by round over the banks' stashes, so that those of a bucket are in the order of their distance. */
static void fill(const struct ow_finecomb *b, struct candidates *c, uint32_t *next)
{
	for (uint32_t bank = 0; bank < b->params.banks; bank++)
		for (uint32_t i = 0; i < b->params.bank[bank].stash; i++)
			for (int side = 0; side < OW_STASHES; side++) {
				const struct ow_finecomb_stash *s = &b->stash[bank][side];
				if (i >= s->count)
					continue;
				const struct ow_finecomb_entry *e = nearest(s, side, i);
				c->candidate[next[e->bucket]++] =
					(struct candidate){e->time, e->digest, side_sign[side]};
			}
}

static void candidates_done(struct candidates *c)
{
	free(c->start);
	free(c->candidate);
}

static int candidates_make(const struct ow_finecomb *b, uint32_t buckets, struct candidates *c)
{
	size_t entries = 0;
	c->start = calloc((size_t)buckets + 1, sizeof *c->start);
	uint32_t *next = calloc((size_t)buckets + 1, sizeof *next);
	for (uint32_t bank = 0; bank < b->params.banks; bank++)
		for (int side = 0; side < OW_STASHES; side++)
			entries += b->stash[bank][side].count;
	c->candidate = malloc((entries + 1) * sizeof *c->candidate);
	if (!c->start || !next || !c->candidate) {
		candidates_done(c);
		free(next);
		return -ENOMEM;
	}
	for (uint32_t bank = 0; bank < b->params.banks; bank++)
		for (int side = 0; side < OW_STASHES; side++)
			for (uint32_t i = 0; i < b->stash[bank][side].count; i++)
				c->start[ow_finecomb_entry(&b->stash[bank][side], i)->bucket + 1]++;
	for (uint32_t i = 0; i < buckets; i++)
		c->start[i + 1] += c->start[i];
	memcpy(next, c->start, ((size_t)buckets + 1) * sizeof *next);
	fill(b, c, next);
	free(next);
	return 0;
}

/*
 * Whether the entry is there already: in a short interval the same packet is in the post-start and the pre-end stash.
 */
static bool seen(const struct candidate *c, const struct candidate *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i].time == c->time && list[i].digest == c->digest && list[i].sign == c->sign)
			return true;
	return false;
}

static void repair(const struct candidate *first, const struct candidate *end, uint64_t digest,
                   struct ow_recovered_bucket *bucket)
{
	struct candidate list[OW_RECOVER_ENTRIES_MAX];
	uint64_t digests[OW_RECOVER_ENTRIES_MAX], mask;
	int8_t signs[OW_RECOVER_ENTRIES_MAX];
	unsigned n = 0;
	for (; first < end && n < OW_RECOVER_ENTRIES_MAX; first++)
		if (!seen(first, list, n)) {
			list[n] = *first;
			digests[n] = first->digest;
			signs[n++] = first->sign;
		}
	if (!ow_recover_subset(digests, signs, n, digest, bucket->difference, &mask))
		return;
	uint64_t delay = (uint64_t)bucket->delay_ns;
	for (; mask; mask &= mask - 1) {
		const struct candidate *c = &list[__builtin_ctzll(mask)];
		if (c->sign > 0) {
			delay += c->time;
			bucket->back++;
		} else {
			delay -= c->time;
			bucket->out++;
		}
	}
	bucket->delay_ns = (int64_t)delay;
	bucket->difference = 0;
	bucket->clean = true;
}

void ow_recovery_done(struct ow_recovery *recovery)
{
	free(recovery->bucket);
	*recovery = (struct ow_recovery){0};
}

int ow_finecomb_recover(const struct ow_finecomb *a, const struct ow_finecomb *b, bool stash,
                        struct ow_recovery *ret_recovery)
{
	uint32_t buckets = a->first[a->params.banks];
	struct candidates c = {0};
	struct ow_recovered_bucket *bucket = calloc(buckets, sizeof *bucket);
	int r = bucket ? 0 : -ENOMEM;
	if (!r && stash)
		r = candidates_make(b, buckets, &c);
	if (r < 0) {
		free(bucket);
		return r;
	}
	for (uint32_t i = 0; i < buckets; i++) {
		const struct ow_finecomb_bucket *x = &a->bucket[i], *y = &b->bucket[i];
		bucket[i].packets = x->packets;
		bucket[i].difference = (int64_t)(x->packets - y->packets);
		bucket[i].delay_ns = (int64_t)(y->time - x->time);
		bucket[i].clean = !bucket[i].difference && x->digest == y->digest;
		if (!bucket[i].clean && stash && c.start[i] < c.start[i + 1])
			repair(c.candidate + c.start[i], c.candidate + c.start[i + 1], x->digest ^ y->digest,
			       &bucket[i]);
	}
	if (stash)
		candidates_done(&c);
	*ret_recovery = (struct ow_recovery){buckets, bucket};
	return 0;
}
