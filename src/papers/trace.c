/* SPDX-License-Identifier: Apache-2.0 */
/* Traces for figures: delays that stay the same while losses change. */
#include "papers/trace.h"

#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK 4096
/* Ids of packets of the neighbouring intervals are made with another key. */
#define NEIGHBOUR UINT64_C(0x6e65696768626f75)

int ow_trace_make(struct ow_trace *trace, const struct ow_sim_model *model, size_t packets, int64_t gap_ns,
                  uint64_t seed)
{
	ow_delay_sampler_init(&trace->sampler, model);
	trace->packets = packets;
	trace->gap_ns = gap_ns;
	trace->seed = ow_mix64(seed);
	trace->delay_ns = malloc(packets * sizeof *trace->delay_ns);
	if (!trace->delay_ns)
		return -ENOMEM;
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < packets; i++) {
		int64_t d = ow_delay_sampler_next(&trace->sampler, &random);
		trace->delay_ns[i] = d < INT32_MAX ? (int32_t)d : INT32_MAX;
	}
	return 0;
}

void ow_trace_done(struct ow_trace *trace)
{
	free(trace->delay_ns);
	trace->delay_ns = NULL;
}

/* Packets of a neighbouring interval that arrive within the interval: at its very start or end. */
static void drift_in(const struct ow_trace *t, uint64_t count, bool end, struct ow_random *random,
                     const struct ow_trace_watcher *w)
{
	struct ow_sighting b[BLOCK];
	int64_t last = (int64_t)t->packets * t->gap_ns;
	for (uint64_t first = 0; first < count; first += BLOCK) {
		size_t bs = count - first < BLOCK ? (size_t)(count - first) : BLOCK;
		for (size_t i = 0; i < bs; i++) {
			int64_t delay = ow_delay_sampler_next(&t->sampler, random);
			b[i] = (struct ow_sighting){ow_mix64((t->seed ^ NEIGHBOUR) + 2 * (first + i) + end),
			                            (end ? last : 0) + delay};
		}
		w->received(w->arg, b, bs);
	}
}

struct passing {
	const struct ow_trace *trace;
	struct ow_random random;
	struct ow_loss loss;
	bool counted;
	uint64_t lose, left; /* with an exact number: packets still to lose, of how many still to come */
	uint8_t *missing;
	uint64_t common;
	double sum, squares;
};

/*
 * With an exact number to lose, each packet is lost with probability (packets to lose) / (packets left) (Knuth 3.4.2,
 * algorithm S).
 */
static bool next_lost(struct passing *p)
{
	if (!p->counted)
		return ow_loss_next(&p->loss, &p->random);
	bool lost = ow_random_below(&p->random, p->left--) < p->lose;
	p->lose -= lost;
	return lost;
}

/* Imposes loss and drift on one block of packets; returns the number of packets in b. */
static size_t impose(struct passing *s, size_t first, size_t count, struct ow_sighting *a, struct ow_sighting *b)
{
	const struct ow_trace *t = s->trace;
	size_t bs = 0;
	for (size_t i = 0; i < count; i++) {
		int32_t delay = t->delay_ns[first + i];
		a[i] = (struct ow_sighting){ow_mix64(t->seed + first + i), (int64_t)(first + i) * t->gap_ns};
		bool lost = next_lost(s);
		if (s->missing)
			s->missing[first + i] = lost;
		if (lost)
			continue;
		b[bs++] = (struct ow_sighting){a[i].id, a[i].time_ns + delay};
		s->sum += delay;
		s->squares += (double)delay * delay;
	}
	s->common += bs;
	return bs;
}

void ow_trace_pass(const struct ow_trace *trace, const struct ow_trace_faults *faults, uint64_t seed,
                   const struct ow_trace_watcher *watcher, struct ow_trace_truth *ret_truth)
{
	struct ow_sighting a[BLOCK], b[BLOCK];
	struct passing p = {.trace = trace,
	                    .counted = faults->lost > 0,
	                    .lose = faults->lost,
	                    .left = trace->packets,
	                    .missing = watcher->missing};
	ow_random_seed(&p.random, seed);
	ow_loss_init(&p.loss, &faults->loss, &p.random);
	drift_in(trace, faults->start, false, &p.random, watcher);
	for (size_t first = 0; first < trace->packets; first += BLOCK) {
		size_t as = trace->packets - first < BLOCK ? trace->packets - first : BLOCK;
		size_t bs = impose(&p, first, as, a, b);
		watcher->sent(watcher->arg, a, as);
		watcher->received(watcher->arg, b, bs);
	}
	drift_in(trace, faults->end, true, &p.random, watcher);
	double n = (double)p.common, mean = p.sum / n;
	*ret_truth = (struct ow_trace_truth){p.common, trace->packets - p.common, faults->start + faults->end, mean,
	                                     sqrt(fmax(0, p.squares / n - mean * mean))};
}
