/* SPDX-License-Identifier: Apache-2.0 */
#include "match/coverage.h"

#include <math.h>
#include <stdlib.h>

#define TO_LEAST        10                  /* packets that were sent to this point: fewer are a burst of losses, .. */
#define TO_SAID         2                   /* .. but are worth a warning from here on */
#define OUTAGE_LEAST_NS INT64_C(1000000000) /* missing for this long: not a burst of losses of a working path */
#define RATIO_FLOOR     1e-4                /* the loss ratio is never assumed to be lower than this */
/* largest probability that this many packets in a row are missing anywhere, if losses are independent */
#define CHANCE_MOST 1e-9
#define CHANCE_SAID 1e-2 /* the same, below which a warning is given */

void ow_silences_init(struct ow_silences *silences)
{
	silences->count = 0;
	silences->least_ns = OW_SILENCE_LEAST_NS;
}

static int64_t length(const struct ow_silence *s)
{
	return s->to_ns - s->from_ns;
}

static bool shorter(const struct ow_silences *s, unsigned a, unsigned b)
{
	return length(&s->silence[a]) < length(&s->silence[b]);
}

static void swap(struct ow_silences *s, unsigned a, unsigned b)
{
	struct ow_silence kept = s->silence[a];
	s->silence[a] = s->silence[b];
	s->silence[b] = kept;
}

static void sift_up(struct ow_silences *s, unsigned i)
{
	for (; i && shorter(s, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(s, i, (i - 1) / 2);
}

static void sift_down(struct ow_silences *s)
{
	for (unsigned i = 0, child; (child = 2 * i + 1) < s->count; i = child) {
		if (child + 1 < s->count && shorter(s, child + 1, child))
			child++;
		if (!shorter(s, child, i))
			return;
		swap(s, i, child);
	}
}

static void keep(struct ow_silences *s, const struct ow_silence *silence)
{
	if (s->count < OW_SILENCES_MAX) {
		s->silence[s->count] = *silence;
		sift_up(s, s->count++);
	} else if (length(silence) > length(&s->silence[0])) {
		s->silence[0] = *silence;
		sift_down(s);
	}
	if (s->count == OW_SILENCES_MAX && length(&s->silence[0]) > s->least_ns)
		s->least_ns = length(&s->silence[0]);
}

void ow_silences_note(struct ow_silences *s, int64_t from_ns, int64_t to_ns)
{
	if (to_ns - from_ns > s->least_ns)
		keep(s, &(struct ow_silence){from_ns, to_ns, false});
}

void ow_silences_note_files(struct ow_silences *s, int64_t from_ns, int64_t to_ns)
{
	keep(s, &(struct ow_silence){from_ns, to_ns, true});
}

static int by_time(const void *a, const void *b)
{
	const struct ow_silence *x = a, *y = b;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

void ow_silences_sort(struct ow_silences *s)
{
	qsort(s->silence, s->count, sizeof *s->silence, by_time);
}

unsigned ow_gaps_after(const struct ow_gap *gap, unsigned count, int64_t time_ns)
{
	unsigned low = 0, high = count;
	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		if (gap[middle].silence.to_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ow_gap_init(struct ow_gap *gap, struct ow_silence silence, enum ow_hole_verdict verdict)
{
	*gap = (struct ow_gap){.silence = silence, .verdict = verdict};
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		gap->before_ns[d] = INT64_MIN;
		gap->after_ns[d] = INT64_MAX;
	}
}

void ow_gaps_note(struct ow_gap *gap, unsigned count, enum ow_direction direction, int64_t here_ns, int64_t there_ns)
{
	unsigned next = ow_gaps_after(gap, count, here_ns);
	if (next < count && there_ns > gap[next].before_ns[direction])
		gap[next].before_ns[direction] = there_ns;
	if (next && there_ns < gap[next - 1].after_ns[direction])
		gap[next - 1].after_ns[direction] = there_ns;
}

bool ow_gap_between(const struct ow_gap *gap, enum ow_direction direction, int64_t there_ns, int64_t latest_ns)
{
	int64_t before = gap->before_ns[direction], after = gap->after_ns[direction];
	bool over = after != INT64_MAX || latest_ns <= gap->silence.to_ns;
	return before != INT64_MIN && there_ns > before && there_ns < after && over;
}

void ow_missed_note(struct ow_missed *m, int64_t time_ns, uint32_t packets)
{
	if (!m->packets || time_ns < m->first_ns)
		m->first_ns = time_ns;
	if (!m->packets || time_ns > m->last_ns)
		m->last_ns = time_ns;
	m->packets += packets;
}

static double log_share(double ratio)
{
	return log(fmax(ratio, RATIO_FLOOR));
}

/*
 * Whether this many packets in a row could be missing by chance, at any place. here: logarithm of the probability that
 * they are missing here.
 */
static bool by_chance(double here, uint64_t packets, double most)
{
	return log((double)packets + 1) + here > log(most);
}

/* How long packets of either kind were missing. */
static int64_t missing_for(const struct ow_missed *from, const struct ow_missed *to)
{
	if (!from->packets || !to->packets)
		return from->packets ? from->last_ns - from->first_ns : to->last_ns - to->first_ns;
	return (from->last_ns > to->last_ns ? from->last_ns : to->last_ns) -
	       (from->first_ns < to->first_ns ? from->first_ns : to->first_ns);
}

/* Between two files packets are missing because a file is, unless hardly more are than loss explains. */
static enum ow_hole_verdict judge_between_files(const struct ow_gap *gap, double chance, uint64_t packets)
{
	if (gap->from.packets + gap->to.packets == 0 || by_chance(chance, packets, CHANCE_SAID))
		return OW_NO_HOLE;
	return gap->from.packets ? OW_HOLE : OW_HOLE_OR_OUTAGE;
}

enum ow_hole_verdict ow_gap_judge(const struct ow_gap *gap, double extra_ratio, double loss_ratio, uint64_t packets)
{
	const struct ow_missed *from = &gap->from, *to = &gap->to;
	double unsent = (double)from->packets * log_share(extra_ratio),
	       lost = (double)to->packets * log_share(loss_ratio);
	enum ow_hole_verdict missing_file =
		gap->silence.between_files ? judge_between_files(gap, unsent + lost, packets) : OW_NO_HOLE;
	if (missing_file != OW_NO_HOLE)
		return missing_file;
	bool long_enough = missing_for(from, to) >= OW_SILENCE_LEAST_NS / 2;
	/* Networks lose packets, but do not create them: a packet from here was missed by this capture. */
	if (from->packets && long_enough && !by_chance(unsent + lost, packets, CHANCE_MOST))
		return OW_HOLE;
	if (from->packets && !by_chance(unsent + lost, packets, CHANCE_SAID))
		return OW_HOLE_SHORT;
	/* A single one is worth a warning if none is missing elsewhere. */
	if ((from->packets && extra_ratio <= 0) ||
	    (to->packets && loss_ratio <= 0 && gap->unusual && to->packets < TO_LEAST))
		return OW_HOLE_SHORT;
	if (to->packets < TO_LEAST)
		return to->packets >= TO_SAID && !by_chance(lost, packets, CHANCE_SAID) ? OW_HOLE_SHORT : OW_NO_HOLE;
	if (by_chance(lost, packets, CHANCE_MOST))
		return OW_NO_HOLE;
	int64_t lasts_ns = to->last_ns - to->first_ns;
	return lasts_ns >= OUTAGE_LEAST_NS           ? OW_HOLE_OR_OUTAGE
	       : lasts_ns >= OW_SILENCE_LEAST_NS / 2 ? OW_HOLE_SHORT
	                                             : OW_NO_HOLE;
}
