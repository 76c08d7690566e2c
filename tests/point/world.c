/* SPDX-License-Identifier: Apache-2.0 */
/* Random traffic with its truth: world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE INT64_MIN
#define MS   INT64_C(1000000)

static int64_t pick(struct ow_random *random, const int64_t *from, size_t count)
{
	return from[ow_random_below(random, count)];
}

void world_random_options(struct world_options *o, uint64_t seed)
{
	static const int64_t lengths[] = {MS, 10 * MS, 100 * MS, 1000 * MS};
	static const int64_t packets[] = {0, 1, 3, 30, 300, 1500};
	static const int64_t loss[] = {0, 0, 1, 10, 100};
	struct ow_random random;
	ow_random_seed(&random, seed);
	*o = (struct world_options){.seed = seed};
	o->length_ns = pick(&random, lengths, 4);
	o->horizon = 1 + (uint32_t)ow_random_below(&random, 4);
	o->intervals = 5 + (unsigned)ow_random_below(&random, 10);
	o->tail = o->horizon + 1;
	o->packets = (double)pick(&random, packets, 6) + 0.3;
	o->bursts = ow_random_below(&random, 3) == 0;
	o->boundaries = ow_random_below(&random, 3) == 0;
	/* From microseconds to the waiting time; what is longer is lost by definition. */
	int64_t most = (int64_t)o->horizon * o->length_ns;
	o->wide = ow_random_below(&random, 2);
	o->delay_ns = (int64_t)(1000 * pow((double)most / 4000, ow_random_unit(&random)));
	o->jitter_ns = (int64_t)((double)o->delay_ns * (o->wide ? 1 : 0.2));
	o->loss = (double)pick(&random, loss, 5) / 1000;
	o->duplicate = ow_random_below(&random, 3) == 0 ? 0.02 : 0;
	o->identical = (enum world_identical)ow_random_below(&random, 3);
	o->identical_lost = ow_random_below(&random, 2);
	int64_t offset = o->length_ns / 2;
	if (ow_random_below(&random, 2))
		offset = 20000;
	if (ow_random_below(&random, 2))
		o->offset_ns = (int64_t)ow_random_below(&random, 2 * (uint64_t)offset) - offset;
	o->under_way = ow_random_below(&random, 3) == 0;
}

void world_print(const struct world_options *o, FILE *file)
{
	fprintf(file,
	        "seed %llu: %u + %u intervals of %lld us, horizon %u, %.1f packets%s%s, delay %lld + %lld us%s, loss "
	        "%.3f, "
	        "duplicates %.3f, identical %d%s, offset %lld us%s, stamps %zu %zu, drops %.2f %.2f\n",
	        (unsigned long long)o->seed, o->intervals, o->tail, (long long)o->length_ns / 1000, o->horizon,
	        o->packets, o->bursts ? " in bursts" : "", o->boundaries ? " on boundaries" : "",
	        (long long)o->delay_ns / 1000, (long long)o->jitter_ns / 1000, o->wide ? " uniform" : "", o->loss,
	        o->duplicate, o->identical, o->identical_lost ? " (lost)" : "", (long long)o->offset_ns / 1000,
	        o->under_way ? ", under way at both ends" : "", o->sightings_max[0], o->sightings_max[1], o->drops[0],
	        o->drops[1]);
}

/* -- packets ------------------------------------------------------------------------------------------------------ */

static int by_sending(const void *a, const void *b)
{
	const struct world_packet *x = a, *y = b;
	return (x->sent_ns > y->sent_ns) - (x->sent_ns < y->sent_ns);
}

int64_t world_interval(const struct world *w, int64_t time_ns)
{
	return time_ns < 0 ? -1 : time_ns / w->o.length_ns;
}

static void add(struct world *w, uint64_t id, int64_t sent_ns, bool alike)
{
	if ((w->packets & (w->packets - 1)) == 0) {
		w->packet = realloc(w->packet, (2 * w->packets + 1) * sizeof *w->packet);
		assert_non_null(w->packet);
	}
	w->packet[w->packets++] = (struct world_packet){.id = id, .sent_ns = sent_ns, .alike = alike, .again_ns = NONE};
}

static int64_t some_time(struct world *w, int64_t interval)
{
	struct ow_random *random = &w->random;
	int64_t length = w->o.length_ns, at = (int64_t)ow_random_below(random, (uint64_t)length);
	if (w->o.boundaries && ow_random_below(random, 4) == 0)
		at = ow_random_below(random, 2) ? 0 : length - 1;
	if (w->o.bursts)
		at = at / (length / 4) * (length / 4) + (int64_t)ow_random_below(random, 1000);
	return interval * length + (at < length ? at : length - 1);
}

static void send_all(struct world *w)
{
	const struct world_options *o = &w->o;
	struct ow_random *random = &w->random;
	int64_t first = o->under_way ? -1 : 0;
	for (int64_t i = first; i < o->intervals; i++) {
		double count = o->packets * (0.5 + ow_random_unit(random));
		for (double k = ow_random_unit(random); k < count; k++) {
			uint64_t id = ow_random_u64(random);
			int64_t at = some_time(w, i);
			bool alike = o->identical == WORLD_ALIKE && ow_random_below(random, 10) == 0;
			add(w, id, at, alike);
			for (uint64_t n = alike ? 1 + ow_random_below(random, 4) : 0; n > 0; n--)
				add(w, id,
				    some_time(w, ow_random_below(random, 2) ? i
				                 : i + 1 < o->intervals     ? i + 1
				                                            : i),
				    true);
		}
	}
	/* Polls with a period near the length of an interval. */
	for (unsigned flow = 0; flow < 3 && o->identical == WORLD_PERIODIC; flow++) {
		uint64_t id = ow_random_u64(random);
		double period = (double)o->length_ns * (0.95 + 0.1 * ow_random_unit(random)) / (double)(1 + flow);
		for (double t = ow_random_unit(random) * period; t < (double)(o->intervals * o->length_ns); t += period)
			add(w, id, (int64_t)t, true);
	}
	qsort(w->packet, w->packets, sizeof *w->packet, by_sending);
}

static void travel(struct world *w, struct world_packet *p)
{
	const struct world_options *o = &w->o;
	struct ow_random *random = &w->random;
	double share = ow_random_unit(random), jitter = o->wide ? share : fmin(5, -log(1 - share));
	int64_t delay = o->delay_ns + (int64_t)(jitter * (double)o->jitter_ns);
	int64_t most = (int64_t)o->horizon * o->length_ns - (o->offset_ns > 0 ? o->offset_ns : 0);
	p->lost = (!p->alike || o->identical_lost) && ow_random_unit(random) < o->loss;
	p->arrived_ns = p->sent_ns + (delay < most ? delay : most) + o->offset_ns;
	if (!p->alike && o->offset_ns >= 0 && ow_random_unit(random) < o->duplicate)
		p->again_ns = p->arrived_ns + (int64_t)ow_random_below(random, (uint64_t)o->length_ns / 4);
}

/* Identical packets keep their order, because nobody could know otherwise. */
static void keep_order(struct world *w)
{
	for (size_t i = 0; i < w->packets; i++) {
		struct world_packet *p = &w->packet[i];
		for (size_t k = i; p->alike && k-- > 0 && p->sent_ns - w->packet[k].sent_ns < 8 * w->o.length_ns;) {
			const struct world_packet *q = &w->packet[k];
			if (q->id == p->id && q->arrived_ns > p->arrived_ns)
				p->arrived_ns = q->arrived_ns;
		}
	}
}

/* Rings drop some packets; what is before the start or after the end is not seen. */
static void look(struct world *w)
{
	for (size_t i = 0; i < w->packets; i++) {
		struct world_packet *p = &w->packet[i];
		int64_t at[3] = {p->sent_ns, p->arrived_ns, p->again_ns};
		for (int k = 0; k < 3; k++) {
			int64_t interval = world_interval(w, at[k]);
			p->seen[k] = at[k] != NONE && interval >= 0 && interval < w->intervals && !(k && p->lost);
			uint64_t *dropped = p->seen[k] ? &w->dropped[k > 0][interval] : NULL;
			if (dropped && *dropped && ow_random_below(&w->random, 10) == 0) {
				p->seen[k] = false;
				++*dropped;
			}
		}
		/* Nobody could know that what arrives is the second one. */
		p->seen[2] &= p->seen[1];
	}
}

void world_make(struct world *w, const struct world_options *o)
{
	*w = (struct world){.o = *o, .identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX}};
	ow_random_seed(&w->random, o->seed + 1);
	ow_identity_seed(&w->identity, o->seed + 2);
	w->intervals = o->intervals + (o->under_way ? 0 : o->tail);
	w->end_ns = (int64_t)w->intervals * o->length_ns;
	for (int side = 0; side < 2; side++) {
		w->dropped[side] = calloc(w->intervals, sizeof *w->dropped[side]);
		for (unsigned i = 0; i < w->intervals; i++)
			w->dropped[side][i] = ow_random_unit(&w->random) < o->drops[side];
	}
	send_all(w);
	for (size_t i = 0; i < w->packets; i++)
		travel(w, &w->packet[i]);
	keep_order(w);
	look(w);
}

void world_done(struct world *w)
{
	free(w->packet);
	free(w->dropped[0]);
	free(w->dropped[1]);
}

/* -- truth -------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void count_sent(struct world_truth *t, const struct world_packet *p, bool same)
{
	t->sent++;
	t->alike += p->alike;
	t->lost += p->lost;
	if (p->lost)
		return;
	if (!p->seen[1]) {
		++*(p->arrived_ns >= 0 ? &t->unseen : &t->under_way);
		return;
	}
	t->matched += same;
	t->late += !same;
	int64_t delay = p->arrived_ns - p->sent_ns;
	t->sum += (double)delay;
	t->delay_ns[t->delays++] = delay;
}

void world_truth(const struct world *w, int64_t interval, unsigned shift, struct world_truth *ret_truth)
{
	struct world_truth t = {.delay_ns = malloc((w->packets + 1) * sizeof *t.delay_ns)};
	for (size_t i = 0; i < w->packets; i++) {
		const struct world_packet *p = &w->packet[i];
		if (!ow_sampled(ow_sample_rank(&w->identity, p->id), shift))
			continue;
		int64_t from = p->seen[0] ? world_interval(w, p->sent_ns) : -1,
			to = p->seen[1] ? world_interval(w, p->arrived_ns) : -1,
			again = p->seen[2] ? world_interval(w, p->again_ns) : -1;
		if (from >= 0 && (interval < 0 || from == interval))
			count_sent(&t, p, interval < 0 || to == from);
		if (p->arrived_ns >= w->end_ns && from >= 0 && !p->lost && (interval < 0 || from == interval)) {
			t.unseen--;
			t.under_way++;
		}
		bool here = to >= 0 && (interval < 0 || to == interval);
		t.received += here + (again >= 0 && (interval < 0 || again == interval));
		t.late_received += here && interval >= 0 && from >= 0 && from != to;
		bool here_again = again >= 0 && to >= 0 && (interval < 0 || again == interval);
		t.duplicated += here_again && (again == to + 1 || (again == to && from >= 0));
		t.doubled += here_again && from == to && again == to;
	}
	qsort(t.delay_ns, t.delays, sizeof *t.delay_ns, by_value);
	double mean = t.delays ? t.sum / (double)t.delays : 0;
	for (size_t i = 0; i < t.delays; i++)
		t.sum2 += ((double)t.delay_ns[i] - mean) * ((double)t.delay_ns[i] - mean);
	if (t.delays) {
		t.min_ns = t.delay_ns[0];
		t.max_ns = t.delay_ns[t.delays - 1];
	}
	*ret_truth = t;
}

void world_truth_done(struct world_truth *t)
{
	free(t->delay_ns);
}

/* -- pages -------------------------------------------------------------------------------------------------------- */

struct ow_interval_log *world_ledger(const struct world *w, int side)
{
	struct ow_interval_log *ledger;
	size_t most = w->o.sightings_max[side];
	struct ow_interval_log_options options = {w->identity, WORLD_T0, w->o.length_ns, most ? most : SIZE_MAX / 64,
	                                          8};
	assert_int_equal(ow_interval_log_create(&options, &ledger), 0);
	return ledger;
}

static int by_arrival(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* What a side sees in an interval, in order. */
static size_t list_stamps(const struct world *w, int side, int64_t interval, struct ow_sighting *stamps)
{
	size_t count = 0;
	for (size_t i = 0; i < w->packets; i++) {
		const struct world_packet *p = &w->packet[i];
		int64_t at[3] = {p->sent_ns, p->arrived_ns, p->again_ns};
		for (int k = side; k < (side ? 3 : 1); k++) {
			if (p->seen[k] && world_interval(w, at[k]) == interval)
				stamps[count++] = (struct ow_sighting){p->id, at[k] - interval * w->o.length_ns};
		}
	}
	/* Stable: packets of one time stay in the order in which they were sent. */
	for (size_t i = 1; i < count && side; i++) {
		struct ow_sighting moved = stamps[i];
		size_t to = i;
		for (; to > 0 && by_arrival(&stamps[to - 1], &moved) > 0; to--)
			stamps[to] = stamps[to - 1];
		stamps[to] = moved;
	}
	return count;
}

/* Threads share packets by id, so that identical ones stay in order; the chunks of threads come in any order. */
#define THREADS 3
void world_record(struct world *w, struct ow_interval_log *ledger, int side, int64_t interval, unsigned shift)
{
	struct ow_sighting *stamps = malloc((2 * w->packets + 1) * sizeof *stamps);
	size_t count = list_stamps(w, side, interval, stamps), at[THREADS] = {0};
	unsigned left = THREADS;
	/* Threads take turns by chance, but in the same way in each run: packets of one time keep their order. */
	struct ow_random random;
	ow_random_seed(&random, w->o.seed + 2 * (uint64_t)interval + (uint64_t)side);
	while (left && count) {
		unsigned thread = (unsigned)ow_random_below(&random, THREADS);
		size_t most = 1 + ow_random_below(&random, 64);
		if (at[thread] == count)
			continue;
		struct ow_chunk *chunk = calloc(1, sizeof *chunk + most * sizeof *chunk->sighting);
		chunk->interval = interval;
		chunk->session = true;
		chunk->sample_shift = shift;
		for (; at[thread] < count && chunk->count < most; at[thread]++) {
			const struct ow_sighting *stamp = &stamps[at[thread]];
			if (stamp->id % THREADS != thread)
				continue;
			chunk->packets++;
			chunk->bytes += 100;
			if (ow_sampled(ow_sample_rank(&w->identity, stamp->id), shift))
				chunk->sighting[chunk->count++] = *stamp;
		}
		if (chunk->packets)
			assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
		free(chunk);
		left -= at[thread] == count;
	}
	free(stamps);
	/* The first of the ones that the world counts stands for the event. */
	int64_t start_ns = WORLD_T0 + interval * w->o.length_ns;
	struct ow_drops drops = {w->dropped[side][interval], start_ns, start_ns};
	ow_interval_log_drops(ledger, &drops);
}
