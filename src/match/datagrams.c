/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagrams of a capture are kept as a Bloom filter of their ids, and counted by length. False positives of the
 * filter do no harm: it is only used to choose among sizes by the number of segments found. If it is full, at some 100
 * million datagrams, the size with the most bytes wins.
 */
#include "match/datagrams.h"

#include "base/bloom.h"

#include <stdlib.h>
#include <string.h>

#define FILTER_BITS   (UINT64_C(1) << 26) /* 8 MB; with 10 million datagrams 7 % of other ids are false positives */
#define LENGTHS       65536u
#define HEADERS       28u   /* IPv4 and UDP */
#define PLAIN_PAYLOAD 1472u /* fills a usual Ethernet frame */
#define JUMBO_LEAST   (8900u - HEADERS)
#define JUMBO_MOST    (9216u - HEADERS)

struct ow_datagrams {
	uint32_t longest;
	uint32_t count[LENGTHS]; /* by bytes of payload */
	uint64_t filter[FILTER_BITS / 64];
};

struct ow_datagrams *ow_datagrams_create(void)
{
	return calloc(1, sizeof(struct ow_datagrams));
}

void ow_datagrams_free(struct ow_datagrams *datagrams)
{
	free(datagrams);
}

void ow_datagrams_reset(struct ow_datagrams *datagrams)
{
	memset(datagrams, 0, sizeof *datagrams);
}

void ow_datagrams_note(struct ow_datagrams *datagrams, uint64_t id, uint32_t len)
{
	ow_bloom_add(datagrams->filter, FILTER_BITS, id);
	if (len >= LENGTHS)
		return;
	datagrams->count[len]++;
	if (len > datagrams->longest)
		datagrams->longest = len;
}

static bool has(const struct ow_datagrams *d, uint64_t id)
{
	return ow_bloom_has(d->filter, FILTER_BITS, id);
}

/* The longest datagram of a capture without superframes; otherwise the usual payload of Ethernet. */
static uint32_t wire_limit(const struct ow_datagrams *a, const struct ow_datagrams *b)
{
	uint32_t least = a->longest < b->longest ? a->longest : b->longest;
	return least <= PLAIN_PAYLOAD || (least >= JUMBO_LEAST && least <= JUMBO_MOST) ? least : PLAIN_PAYLOAD;
}

/*
 * Both captures count, so that both are cut in the same way if both show only superframes. Full datagrams have nearly
 * all bytes of a bulk transfer, whatever the number of short ones.
 */
void ow_cutter_init(struct ow_cutter *cutter, const struct ow_datagrams *here, const struct ow_datagrams *there)
{
	uint64_t weight[OW_CUTTER_SIZES] = {0};
	*cutter = (struct ow_cutter){.there = there, .limit = wire_limit(here, there)};
	for (uint32_t len = 1; len <= cutter->limit; len++) {
		uint64_t bytes = ((uint64_t)here->count[len] + there->count[len]) * len;
		unsigned i = cutter->sizes;
		if (!bytes || (i == OW_CUTTER_SIZES && bytes <= weight[i - 1]))
			continue;
		if (i == OW_CUTTER_SIZES)
			i--;
		else
			cutter->sizes++;
		for (; i > 0 && weight[i - 1] < bytes; i--) {
			weight[i] = weight[i - 1];
			cutter->size[i] = cutter->size[i - 1];
		}
		weight[i] = bytes;
		cutter->size[i] = len;
	}
}

/* Cuts to this size, and counts the segments that the other capture has. */
static unsigned cut_to(const struct ow_cutter *c, const struct ow_identity *identity,
                       const struct ow_datagram *datagram, uint32_t size, struct ow_cut *ret_cut)
{
	unsigned found = 0;
	ret_cut->len = datagram->len;
	ret_cut->size = size;
	ret_cut->count = 0;
	for (uint32_t at = 0; at < datagram->len; at += size) {
		uint32_t len = datagram->len - at < size ? datagram->len - at : size;
		uint64_t id = ow_identity_of_part(identity, datagram, at, len);
		found += has(c->there, id);
		ret_cut->id[ret_cut->count++] = id;
	}
	return found;
}

/*
 * Whether the other capture shows the first segment; or, for a certain superframe, the second, because one of them may
 * be lost.
 */
static bool begins_with(const struct ow_cutter *c, const struct ow_identity *identity,
                        const struct ow_datagram *datagram, uint32_t size)
{
	uint32_t left = datagram->len - size;
	return has(c->there, ow_identity_of_part(identity, datagram, 0, size)) ||
	       (datagram->len > c->limit &&
	        has(c->there, ow_identity_of_part(identity, datagram, size, left < size ? left : size)));
}

/*
 * The size of a superframe of none of the usual sizes: GRO also joins the last two datagrams of a transfer. 0 = no size
 * in the other capture has half of its segments there.
 */
static uint32_t seldom_size(const struct ow_cutter *c, const struct ow_identity *identity,
                            const struct ow_datagram *datagram, struct ow_cut *cut)
{
	uint32_t best = 0, longest = datagram->len - 1 < c->limit ? datagram->len - 1 : c->limit;
	double most = 0.5;
	for (uint32_t size = (datagram->len - 1) / OW_CUTS_MAX + 1; size <= longest && most < 1; size++) {
		if (!c->there->count[size] || !begins_with(c, identity, datagram, size))
			continue;
		double found = (double)cut_to(c, identity, datagram, size, cut) / cut->count;
		if (found > most || (found == most && !best)) {
			most = found;
			best = size;
		}
	}
	return best;
}

/* Tries the usual sizes. False: none of them has half of its segments there; *ret_best is the one with most. */
static bool cut_usually(struct ow_cutter *cutter, const struct ow_identity *identity,
                        const struct ow_datagram *datagram, struct ow_cut *ret_cut, uint32_t *ret_best)
{
	unsigned most = 0;
	*ret_best = 0;
	for (unsigned i = 0; i < cutter->sizes; i++) {
		unsigned which = (cutter->first + i) % cutter->sizes;
		uint32_t size = cutter->size[which];
		if (size >= datagram->len || (datagram->len - 1) / size >= OW_CUTS_MAX)
			continue;
		unsigned found = cut_to(cutter, identity, datagram, size, ret_cut);
		if (2 * found >= ret_cut->count) {
			cutter->first = which;
			return true;
		}
		if (!*ret_best || found > most) {
			*ret_best = size;
			most = found;
		}
	}
	return false;
}

void ow_cutter_cut(struct ow_cutter *cutter, const struct ow_identity *identity, const struct ow_datagram *datagram,
                   struct ow_cut *ret_cut)
{
	uint64_t whole = ow_identity_of_part(identity, datagram, 0, datagram->len);
	bool super = datagram->len > cutter->limit;
	uint32_t best = 0;
	if (cutter->there && (datagram->len > cutter->there->longest || !has(cutter->there, whole))) {
		if (cut_usually(cutter, identity, datagram, ret_cut, &best))
			return;
		uint32_t seldom = seldom_size(cutter, identity, datagram, ret_cut);
		/* Otherwise all or most of it is lost, or the other capture shows superframes as well. */
		if (seldom || (super && best)) {
			cut_to(cutter, identity, datagram, seldom ? seldom : best, ret_cut);
			return;
		}
	}
	ret_cut->count = 1;
	ret_cut->len = ret_cut->size = datagram->len;
	ret_cut->id[0] = whole;
}
