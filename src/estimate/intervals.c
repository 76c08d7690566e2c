/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/intervals.h"

#include "base/time.h"
#include "estimate/tally.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* The delays of an open interval; after it is closed, only the result remains. */
struct open_interval {
	struct ow_interval result;
	int64_t *delay[OW_DIRECTIONS];
	uint32_t count[OW_DIRECTIONS], room[OW_DIRECTIONS];
	struct ow_interval_delay *uncertain[OW_DIRECTIONS];
	uint32_t uncertains[OW_DIRECTIONS], uncertain_room[OW_DIRECTIONS];
};

struct ow_intervals {
	int64_t length_ns, window_ns, first; /* first: number of interval 0, counted from the epoch */
	struct open_interval *interval;
	struct ow_interval *finished;
	const double *percent;            /* of the caller */
	unsigned percentiles;             /* of each direction */
	struct ow_percentile *percentile; /* of all intervals: intervals * OW_DIRECTIONS * percentiles */
	size_t percentile_room, lead;     /* lead: the first one that has packets */
	size_t intervals, room, closed;   /* intervals before `closed` have no delays any more */
	struct ow_delays *delays;         /* one accumulator, used for one interval after another */
	struct ow_delays *uncertain[OW_UNCERTAINS];
};

int ow_intervals_create(int64_t length_ns, int64_t window_ns, int64_t start_ns, struct ow_intervals **ret_intervals)
{
	struct ow_intervals *s = calloc(1, sizeof *s);
	if (!s || ow_delays_create(&s->delays) < 0) {
		free(s);
		return -ENOMEM;
	}
	s->length_ns = length_ns;
	s->window_ns = window_ns;
	s->first = ow_floor_div(start_ns, length_ns);
	*ret_intervals = s;
	return 0;
}

int ow_intervals_want(struct ow_intervals *s, const double *percent, unsigned count)
{
	s->percent = percent;
	s->percentiles = count;
	return count ? OW_GROW(s->percentile, s->percentile_room, OW_DIRECTIONS * count) : 0;
}

void ow_intervals_free(struct ow_intervals *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->intervals; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			free(s->interval[i].delay[d]);
			free(s->interval[i].uncertain[d]);
		}
	}
	free(s->interval);
	free(s->finished);
	free(s->percentile);
	ow_delays_free(s->delays);
	for (int i = 0; i < OW_UNCERTAINS; i++)
		ow_delays_free(s->uncertain[i]);
	free(s);
}

/* The percentiles of a direction of an interval. */
static struct ow_percentile *percentiles_of(const struct ow_intervals *s, size_t interval, unsigned d)
{
	return &s->percentile[(interval * OW_DIRECTIONS + d) * s->percentiles];
}

static int grow(struct ow_intervals *s, size_t count)
{
	size_t percentiles = count * OW_DIRECTIONS * s->percentiles;
	if (count > OW_INTERVALS_MAX)
		return -ERANGE;
	if (count && OW_GROW(s->interval, s->room, count) < 0)
		return -ENOMEM;
	if (percentiles && OW_GROW(s->percentile, s->percentile_room, percentiles) < 0)
		return -ENOMEM;
	for (size_t i = s->intervals * OW_DIRECTIONS * s->percentiles; i < percentiles; i++)
		s->percentile[i] = (struct ow_percentile){.percent = s->percent[i % s->percentiles]};
	for (; s->intervals < count; s->intervals++) {
		struct open_interval *o = &s->interval[s->intervals];
		*o = (struct open_interval){.result.start_ns = (s->first + (int64_t)s->intervals) * s->length_ns};
		o->result.direction[OW_A_TO_B].exact = o->result.direction[OW_B_TO_A].exact = true;
	}
	return 0;
}

/* Collects the uncertain delays of an interval in s->uncertain. */
static int gather_uncertain(struct ow_intervals *s, const struct open_interval *o, unsigned d)
{
	for (int i = 0; i < OW_UNCERTAINS; i++) {
		if (!s->uncertain[i] && ow_delays_create(&s->uncertain[i]) < 0)
			return -ENOMEM;
		ow_delays_reset(s->uncertain[i]);
	}
	for (uint32_t i = 0; i < o->uncertains[d]; i++) {
		const struct ow_interval_delay *delay = &o->uncertain[d][i];
		ow_delays_add(s->uncertain[OW_UNCERTAIN_ESTIMATE], delay->delay_ns, 1);
		ow_delays_add(s->uncertain[OW_UNCERTAIN_LEAST], delay->delay_ns - delay->less_ns, 1);
		ow_delays_add(s->uncertain[OW_UNCERTAIN_MOST], delay->delay_ns + delay->more_ns, 1);
	}
	return 0;
}

static int sum_up(struct ow_intervals *s, struct open_interval *o)
{
	static struct ow_delays *const none[OW_UNCERTAINS];
	const size_t number = (size_t)(o - s->interval);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (!o->count[d] && !o->uncertains[d])
			continue;
		ow_delays_reset(s->delays);
		for (uint32_t i = 0; i < o->count[d]; i++)
			ow_delays_add(s->delays, o->delay[d][i], 1);
		int r = o->uncertains[d] ? gather_uncertain(s, o, d) : 0;
		if (r == 0)
			r = ow_delays_bounded(s->delays, o->uncertains[d] ? s->uncertain : none,
			                      &o->result.direction[d].delay);
		if (r == 0 && s->percentiles)
			r = ow_delays_percentiles(s->delays, o->uncertains[d] ? s->uncertain : none,
			                          percentiles_of(s, number, d), s->percentiles);
		if (r < 0)
			return r;
		free(o->delay[d]);
		free(o->uncertain[d]);
		o->delay[d] = NULL;
		o->uncertain[d] = NULL;
		o->count[d] = o->room[d] = o->uncertains[d] = o->uncertain_room[d] = 0;
	}
	return 0;
}

static int find(struct ow_intervals *s, int64_t time_ns, struct open_interval **ret)
{
	int64_t i = ow_floor_div(time_ns, s->length_ns) - s->first;
	if (i < 0)
		i = 0; /* packets out of order at the start, or without a time */
	if (i >= (int64_t)OW_INTERVALS_MAX)
		return -ERANGE;
	int r = grow(s, (size_t)i + 1);
	if (r < 0)
		return r;
	*ret = &s->interval[i];
	/* Identical packets are reported after up to three waiting times; one more is a margin for disorder. */
	while (s->closed < (size_t)i && r == 0 && (i - (int64_t)s->closed - 1) > 4 * (s->window_ns / s->length_ns + 1))
		r = sum_up(s, &s->interval[s->closed++]);
	return r;
}

static int add_delay(struct open_interval *o, unsigned d, int64_t delay_ns)
{
	if (OW_GROW(o->delay[d], o->room[d], o->count[d] + 1) < 0)
		return -ENOMEM;
	o->delay[d][o->count[d]++] = delay_ns;
	return 0;
}

int ow_intervals_match(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns, uint32_t packets,
                       bool reordered)
{
	struct open_interval *o;
	int r = find(intervals, sent_ns, &o);
	if (r < 0)
		return r;
	struct ow_result *result = &o->result.direction[direction];
	result->matched += packets;
	result->sent += packets;
	result->received += packets;
	result->reordered += reordered ? packets : 0;
	return 0;
}

static int add_uncertain(struct open_interval *o, unsigned d, const struct ow_interval_delay *delay)
{
	if (OW_GROW(o->uncertain[d], o->uncertain_room[d], o->uncertains[d] + 1) < 0)
		return -ENOMEM;
	o->uncertain[d][o->uncertains[d]++] = *delay;
	return 0;
}

int ow_intervals_delay(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns,
                       const struct ow_interval_delay *delay, uint32_t packets)
{
	struct open_interval *o;
	int r = find(intervals, sent_ns, &o);
	if (r < 0)
		return r;
	/* Identical packets that were assigned only after their interval was closed give no sample. */
	bool known = delay && (size_t)(o - intervals->interval) >= intervals->closed;
	bool uncertain = !known || delay->less_ns || delay->more_ns;
	o->result.direction[direction].ambiguous += uncertain ? packets : 0;
	for (uint32_t i = 0; known && i < packets && r == 0; i++)
		r = uncertain ? add_uncertain(o, direction, delay) : add_delay(o, direction, delay->delay_ns);
	return r;
}

int ow_intervals_lost(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns, uint32_t packets)
{
	struct open_interval *o;
	int r = find(intervals, sent_ns, &o);
	if (r < 0)
		return r;
	o->result.direction[direction].lost += packets;
	o->result.direction[direction].sent += packets;
	return 0;
}

int ow_intervals_extra(struct ow_intervals *intervals, enum ow_direction direction, int64_t received_ns,
                       uint32_t packets, bool duplicated)
{
	struct open_interval *o;
	int r = find(intervals, received_ns, &o);
	if (r < 0)
		return r;
	o->result.direction[direction].extra += packets;
	o->result.direction[direction].received += packets;
	o->result.direction[direction].duplicated += duplicated ? packets : 0;
	return 0;
}

static bool empty(const struct ow_interval *interval)
{
	const struct ow_result *ab = &interval->direction[OW_A_TO_B], *ba = &interval->direction[OW_B_TO_A];
	return !(ab->sent | ab->received | ba->sent | ba->received);
}

int ow_intervals_finish(struct ow_intervals *s, const struct ow_interval **ret_interval, size_t *ret_count)
{
	free(s->finished);
	s->finished = malloc((s->intervals + 1) * sizeof *s->finished);
	if (!s->finished)
		return -ENOMEM;
	size_t lead = 0;
	while (lead < s->intervals && empty(&s->interval[lead].result))
		lead++;
	for (size_t i = lead; i < s->intervals; i++) {
		int r = sum_up(s, &s->interval[i]);
		if (r < 0)
			return r;
		s->finished[i - lead] = s->interval[i].result;
	}
	s->lead = lead;
	*ret_interval = s->finished;
	*ret_count = s->intervals - lead;
	return 0;
}

const struct ow_percentile *ow_intervals_percentiles(const struct ow_intervals *s)
{
	return s->percentiles ? percentiles_of(s, s->lead, 0) : NULL;
}
