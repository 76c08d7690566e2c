/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/baseline.h"

#include "base/hash.h"
#include "base/id_map.h"
#include "base/random.h"
#include "estimate/sample.h"
#include "synopsis/copies.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int index_ids(const struct ow_sighting *list, size_t count, struct ow_id_map *ret_index)
{
	int r = ow_id_map_reserve(ret_index, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = ow_id_map_add(ret_index, list[i].id, (uint32_t)i);
	return r;
}

/* The position of an id in the indexed list, or OW_ID_MAP_NONE. */
static uint32_t find(const struct ow_id_map *index, const struct ow_sighting *list, uint64_t id)
{
	return OW_ID_MAP_FIND(index, id, i, list[i].id == id);
}

static int64_t delay_between(const struct ow_sighting *sent, const struct ow_sighting *arrived)
{
	return (int64_t)((uint64_t)arrived->time_ns - (uint64_t)sent->time_ns);
}

int ow_fates_find(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs,
                  struct ow_fates *ret_fates)
{
	struct ow_id_map index_a = {0}, index_b = {0};
	int64_t *delay = calloc(as + 1, sizeof *delay);
	bool *uneven =
		calloc(as + 1, sizeof *uneven); /* from this copy on, the two points have different numbers of copies */
	int r = delay && uneven ? index_ids(a, as, &index_a) : -ENOMEM;
	if (r == 0)
		r = index_ids(b, bs, &index_b);
	/* Backwards: whether a copy is ambiguous depends on the next copy, which comes later. */
	for (size_t i = r == 0 ? as : 0; i-- > 0;) {
		uint64_t next = ow_copy_next(a[i].id);
		uint32_t at = find(&index_b, b, a[i].id), next_a = find(&index_a, a, next);
		bool arrived = at != OW_ID_MAP_NONE, again = next_a != OW_ID_MAP_NONE;
		if (arrived && again && uneven[next_a]) {
			uneven[i] = true;
			delay[i] = OW_FATE_AMBIGUOUS;
			if (delay[next_a] != OW_FATE_NONE)
				delay[next_a] = OW_FATE_AMBIGUOUS;
		} else {
			uneven[i] = !arrived || (!again && find(&index_b, b, next) != OW_ID_MAP_NONE);
			delay[i] = arrived ? delay_between(a + i, b + at) : OW_FATE_NONE;
		}
	}
	ow_id_map_done(&index_a);
	ow_id_map_done(&index_b);
	free(uneven);
	if (r < 0) {
		free(delay);
		return r;
	}
	*ret_fates = (struct ow_fates){a, as, delay, bs};
	return 0;
}

void ow_fates_done(struct ow_fates *fates)
{
	free(fates->delay_ns);
	*fates = (struct ow_fates){0};
}

/* The packets that a baseline has seen: their number, and the delays of those that arrived. */
struct looked {
	int64_t *delay;
	size_t delays;
	uint64_t trials, ambiguous;
};

static int looked_init(struct looked *looked, size_t room)
{
	*looked = (struct looked){.delay = malloc((room + 1) * sizeof *looked->delay)};
	return looked->delay ? 0 : -ENOMEM;
}

static void look(struct looked *looked, int64_t delay_ns)
{
	looked->trials++;
	if (delay_ns == OW_FATE_AMBIGUOUS)
		looked->ambiguous++;
	else if (delay_ns != OW_FATE_NONE)
		looked->delay[looked->delays++] = delay_ns;
}

static void conclude(struct looked *looked, const struct ow_fates *fates, double received,
                     struct ow_estimate *ret_estimate)
{
	double sent = (double)fates->count;
	struct ow_estimate e;
	ow_estimate_none(&e, OW_REASON_NO_PACKET_SENT);
	if (fates->count) {
		double arrived = (double)looked->delays + (double)looked->ambiguous;
		ow_sample_loss(looked->trials - looked->delays - looked->ambiguous, looked->trials, sent, received, &e);
		bool all = looked->trials >= fates->count;
		double common = all ? arrived : fmax(sent - e.lost.value, arrived + 1);
		ow_sample_delays(looked->delay, looked->delays, common, &e);
		e.complete = all;
	}
	*ret_estimate = e;
	free(looked->delay);
}

int ow_baseline_direct(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                       struct ow_baseline_cost *ret_cost)
{
	(void)memory;
	(void)seed;
	struct looked looked;
	int r = looked_init(&looked, fates->count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < fates->count; i++)
		look(&looked, fates->delay_ns[i]);
	conclude(&looked, fates, (double)fates->received, ret_estimate);
	uint64_t bytes =
		OW_BASELINE_RECORD * (uint64_t)(fates->received > fates->count ? fates->received : fates->count);
	*ret_cost = (struct ow_baseline_cost){bytes, OW_BASELINE_RECORD * fates->received, "all records"};
	return 0;
}

int ow_baseline_sampled(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                        struct ow_baseline_cost *ret_cost)
{
	/* The number of samples is binomial: 4 standard deviations are kept free. */
	double room = floor((double)memory / OW_BASELINE_RECORD), wanted = fmax(0, room - 4 * sqrt(room));
	double share = fates->count ? fmin(1, wanted / (double)fates->count) : 1;
	uint64_t limit = share >= 1 ? UINT64_MAX : (uint64_t)(share * 0x1p64), key = ow_mix64(seed ^ 0x73616d706c65);
	struct looked looked;
	int r = looked_init(&looked, fates->count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < fates->count; i++) {
		if (ow_mix64(fates->sent[i].id ^ key) <= limit)
			look(&looked, fates->delay_ns[i]);
	}
	uint64_t records = looked.trials;
	conclude(&looked, fates, (double)fates->received, ret_estimate);
	*ret_cost = (struct ow_baseline_cost){memory, OW_BASELINE_RECORD * records, ""};
	snprintf(ret_cost->params, sizeof ret_cost->params, "p %.3g", share);
	return 0;
}

int ow_baseline_probes(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
                       struct ow_baseline_cost *ret_cost)
{
	uint64_t probes = memory / OW_BASELINE_PROBE;
	if (probes > fates->count)
		probes = fates->count;
	struct looked looked;
	int r = looked_init(&looked, fates->count);
	if (r < 0)
		return r;
	struct ow_random random;
	ow_random_seed(&random, seed);
	int64_t from = fates->count ? fates->sent[0].time_ns : 0;
	double span = fates->count ? (double)(fates->sent[fates->count - 1].time_ns - from) : 0;
	/*
	 * Probes follow a Poisson process from the first packet on. If several probes fall on the same packet, only the
	 * first counts. The process has no memory: the next probe comes one random gap after the packet.
	 */
	double gap = probes ? span / (double)probes : 0, due = -gap * log1p(-ow_random_unit(&random));
	for (size_t i = 0; i < fates->count && gap > 0; i++) {
		double at = (double)(fates->sent[i].time_ns - from);
		if (at < due)
			continue;
		look(&looked, fates->delay_ns[i]);
		due = at - gap * log1p(-ow_random_unit(&random));
	}
	uint64_t sent = looked.trials;
	conclude(&looked, fates, NAN, ret_estimate);
	*ret_cost = (struct ow_baseline_cost){0, OW_BASELINE_PROBE * sent, ""};
	snprintf(ret_cost->params, sizeof ret_cost->params, "%" PRIu64 " probes", sent);
	return 0;
}
