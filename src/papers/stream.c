/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of sightings: the interval has `packets` equal parts, and one packet is sent at a random time in each. Only
 * the four numbers of FineComb's model decide in which interval B counts a packet (section 5.1 of the paper: "a
 * contiguous set of packets from the end of one interval that will drift into the next and vice-versa"), not its delay:
 * synopses do not depend on the order within an interval.
 */
#include "papers/stream.h"

#include "base/sort.h"
#include "papers/delay_sampler.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A packet needs 40 bytes of memory. */
#define PACKETS_MAX  UINT64_C(200000000)
#define INTERVAL_MAX (INT64_C(1) << 52)
#define OFFSET_MAX   (INT64_C(1) << 60)

enum drift { PRE_START, POST_START, PRE_END, POST_END };

struct maker {
	const struct ow_stream_params *params;
	struct ow_sim_delay delay;
	struct ow_delay_sampler *sampler; /* one for each path */
	struct ow_random random;
	struct ow_made_stream *out;
	double gap_ns;
	double sum, sum2; /* of the common packets' delays, each minus the first one */
	int64_t origin_ns;
};

static int64_t next_delay(struct maker *m)
{
	unsigned path = 0;
	if (m->delay.paths > 1) {
		double u = ow_random_unit(&m->random);
		while (path + 1 < m->delay.paths && u >= m->delay.path[path].weight)
			u -= m->delay.path[path++].weight;
	}
	return ow_delay_sampler_next(&m->sampler[path], &m->random) + m->params->clock_offset_ns;
}

/*
 * The sighting at A of the i-th packet of the interval. For a packet of a neighbouring interval, i is negative or
 * beyond the last.
 */
static struct ow_sighting next_sighting(struct maker *m, int64_t i)
{
	int64_t time_ns = (int64_t)floor(((double)i + ow_random_unit(&m->random)) * m->gap_ns);
	return (struct ow_sighting){ow_random_u64(&m->random), time_ns};
}

static void count_common(struct maker *m, int64_t delay_ns)
{
	struct ow_stream_truth *truth = &m->out->truth;
	if (!truth->common)
		m->origin_ns = delay_ns;
	if (m->out->delay)
		m->out->delay[truth->common] = delay_ns;
	double x = (double)(delay_ns - m->origin_ns);
	m->sum += x;
	m->sum2 += x * x;
	truth->common++;
}

static void put(struct ow_sighting *list, size_t *count, struct ow_sighting sighting, int64_t delay_ns)
{
	list[(*count)++] = (struct ow_sighting){sighting.id, sighting.time_ns + delay_ns};
}

/*
 * Makes the packets [first, end) of a neighbouring interval; the nearest `here` of them are counted in this interval.
 */
static void make_neighbour(struct maker *m, int64_t first, int64_t end, enum drift drift)
{
	struct ow_made_stream *out = m->out;
	int64_t here = (int64_t)m->params->reorder[drift];
	for (int64_t i = first; i < end; i++) {
		bool in = drift == PRE_START ? i >= end - here : i < first + here;
		struct ow_sighting sighting = next_sighting(m, i);
		int64_t delay_ns = next_delay(m);
		if (in)
			put(out->b, &out->bs, sighting, delay_ns);
		else if (drift == PRE_START)
			put(out->before, &out->befores, sighting, delay_ns);
		else
			put(out->after, &out->afters, sighting, delay_ns);
	}
}

static void make_interval(struct maker *m)
{
	const struct ow_stream_params *p = m->params;
	struct ow_made_stream *out = m->out;
	struct ow_loss loss;
	ow_loss_init(&loss, &(struct ow_sim_loss){p->loss, p->episode}, &m->random);
	for (uint64_t i = 0; i < p->packets; i++) {
		struct ow_sighting sighting = next_sighting(m, (int64_t)i);
		out->a[out->as++] = sighting;
		if (ow_loss_next(&loss, &m->random))
			continue;
		int64_t delay_ns = next_delay(m);
		if (i < p->reorder[POST_START]) {
			put(out->before, &out->befores, sighting, delay_ns);
		} else if (i >= p->packets - p->reorder[PRE_END]) {
			put(out->after, &out->afters, sighting, delay_ns);
		} else {
			put(out->b, &out->bs, sighting, delay_ns);
			count_common(m, delay_ns);
			if (p->duplicate > 0 && ow_random_unit(&m->random) < p->duplicate)
				put(out->b, &out->bs, sighting, next_delay(m));
		}
	}
}

/* -- sorting ------------------------------------------------------------------------------------------------------ */

static void sort_stamps(struct ow_sighting *list, void *spare, size_t count)
{
	ow_sort_items(list, spare, count, sizeof *list, offsetof(struct ow_sighting, time_ns));
}

static void sort_delays(int64_t *list, void *spare, size_t count)
{
	ow_sort_items(list, spare, count, sizeof *list, 0);
}

/* -- the whole ---------------------------------------------------------------------------------------------------- */

static int check(const struct ow_stream_params *p, const struct ow_sim_delay *delay, struct ow_error *err)
{
	if (!p->packets || p->packets > PACKETS_MAX)
		return ow_error_set(err, EINVAL, "stream: packets not in 1 .. %llu", (unsigned long long)PACKETS_MAX);
	if (p->interval_ns <= 0 || p->interval_ns > INTERVAL_MAX)
		return ow_error_set(err, EINVAL, "stream: an interval of %lld ns", (long long)p->interval_ns);
	if (!(p->loss >= 0 && p->loss <= 1) || !(p->duplicate >= 0 && p->duplicate <= 1) || !(p->episode >= 0))
		return ow_error_set(err, EINVAL, "stream: loss and duplicate are shares of 0 .. 1");
	if (llabs(p->clock_offset_ns) > OFFSET_MAX)
		return ow_error_set(err, EINVAL, "stream: a clock offset of %lld ns", (long long)p->clock_offset_ns);
	for (int i = 0; i < 4; i++) {
		if (p->reorder[i] > p->packets)
			return ow_error_set(err, EINVAL, "stream: more packets reordered than sent");
	}
	if (p->reorder[POST_START] + p->reorder[PRE_END] > p->packets || p->margin > p->packets)
		return ow_error_set(err, EINVAL, "stream: more packets at the edges than sent");
	for (unsigned i = 0; i < delay->paths; i++) {
		if (ow_model_is_queue(&delay->path[i]))
			return ow_error_set(err, EINVAL, "stream: a queue cannot give the delay");
	}
	return 0;
}

static int allocate(struct maker *m, struct ow_sighting **ret_spare)
{
	const struct ow_stream_params *p = m->params;
	struct ow_made_stream *out = m->out;
	size_t most = p->packets * (p->duplicate > 0 ? 2 : 1);
	most += p->reorder[PRE_START] + p->reorder[POST_END];
	out->a = malloc(p->packets * sizeof *out->a);
	out->b = malloc(most * sizeof *out->b);
	out->before = malloc((p->margin + p->reorder[POST_START] + 1) * sizeof *out->before);
	out->after = malloc((p->margin + p->reorder[PRE_END] + 1) * sizeof *out->after);
	out->delay = p->no_delays ? NULL : malloc(p->packets * sizeof *out->delay);
	*ret_spare = malloc(most * sizeof **ret_spare);
	m->sampler = malloc(m->delay.paths * sizeof *m->sampler);
	bool enough = out->a && out->b && out->before && out->after && (out->delay || p->no_delays) && *ret_spare;
	return enough && m->sampler ? 0 : -ENOMEM;
}

static void settle_truth(struct maker *m)
{
	struct ow_stream_truth *truth = &m->out->truth;
	truth->sent = m->out->as;
	truth->received = m->out->bs;
	truth->lost = truth->sent - truth->common;
	truth->extra = truth->received - truth->common;
	if (truth->common) {
		double n = (double)truth->common, mean = m->sum / n;
		truth->mean_ns = mean + (double)m->origin_ns;
		truth->stddev_ns = sqrt(fmax(0, m->sum2 / n - mean * mean));
	}
}

static void make(struct maker *m, struct ow_sighting *spare)
{
	const struct ow_stream_params *p = m->params;
	struct ow_made_stream *out = m->out;
	int64_t pre = (int64_t)(p->margin + p->reorder[PRE_START]), post = (int64_t)(p->margin + p->reorder[POST_END]);
	make_neighbour(m, -pre, 0, PRE_START);
	size_t first = out->bs;
	make_interval(m);
	sort_stamps(out->b + first, spare, out->bs - first);
	make_neighbour(m, (int64_t)p->packets, (int64_t)p->packets + post, POST_END);
	settle_truth(m);
	if (out->delay)
		sort_delays(out->delay, spare, out->truth.common);
}

int ow_stream_make(const struct ow_stream_params *params, struct ow_made_stream *ret_stream, struct ow_error *err)
{
	struct ow_made_stream out = {0};
	struct maker m = {.params = params, .out = &out};
	int r = ow_sim_delay_parse(params->delay, &m.delay, err);
	if (r == 0)
		r = check(params, &m.delay, err);
	if (r < 0)
		return r;
	struct ow_sighting *spare = NULL;
	r = allocate(&m, &spare);
	if (r == 0) {
		for (unsigned i = 0; i < m.delay.paths; i++)
			ow_delay_sampler_init(&m.sampler[i], &m.delay.path[i]);
		ow_random_seed(&m.random, params->seed);
		m.gap_ns = (double)params->interval_ns / (double)params->packets;
		make(&m, spare);
		*ret_stream = out;
	} else {
		ow_stream_done(&out);
		ow_error_set(err, -r, "stream: not enough memory for %llu packets",
		             (unsigned long long)params->packets);
	}
	free(spare);
	free(m.sampler);
	return r;
}

void ow_stream_done(struct ow_made_stream *stream)
{
	free(stream->a);
	free(stream->b);
	free(stream->before);
	free(stream->after);
	free(stream->delay);
	*stream = (struct ow_made_stream){0};
}
