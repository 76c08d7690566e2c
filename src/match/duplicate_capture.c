/* SPDX-License-Identifier: Apache-2.0 */
#include "match/duplicate_capture.h"

#include "base/hash.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE_MAX 262144u /* sightings */
#define GROUP_MAX  4u      /* sightings of a packet at one side; with more it is not known which belong together */
#define SPREAD     6u      /* similar lags are within this many classes: a factor of 2.8 */
#define ALIKE_NS   8000    /* lags up to this are similar */
#define GAP        4u      /* classes between the lags of one kind of copies: an octave */
#define EVIDENCE   8u      /* copies that are needed for a verdict */
#define CLEARLY    3.0     /* this many times as many as loss explains */
#define ARRIVALS   0.8     /* share of the lags that are similar */
#define EVERYWHERE 0.5     /* share of the packets that occur twice at both points */
#define NEARLY_ALL 0.9     /* share of the packets that a capture shows equally often */
#define SINGLES    20u     /* packets that occur once, for the loss ratio */
#define LOSS_MOST  0.8

struct ow_duplicate_capture_sample {
	struct ow_frame_sighting sighting[SAMPLE_MAX];
	size_t count;
	unsigned halvings; /* packets whose mixed id ends in this many zeros are sampled */
};

/* What one capture shows of packets that it sends, or of those that it receives. */
struct counts {
	uint32_t excess[OW_LAG_CLASSES]; /* copies of packets that the other capture shows once, by lag */
	uint32_t equal[OW_LAG_CLASSES];  /* of packets that the other one shows as often */
	/* packets with so many further copies, that the other capture shows once, by the lag of the last copy */
	uint32_t copies[GROUP_MAX][OW_LAG_CLASSES];
	uint64_t singles, missing; /* packets without copies; those that the other one does not show */
	uint64_t doubles, gone;    /* packets with copies; those that the other one does not show */
	uint64_t both;             /* packets that both captures show more than once */
};

struct ow_duplicate_capture_sample *ow_duplicate_capture_sample_create(void)
{
	return calloc(1, sizeof(struct ow_duplicate_capture_sample));
}

void ow_duplicate_capture_sample_free(struct ow_duplicate_capture_sample *sample)
{
	free(sample);
}

static bool is_sampled(const struct ow_duplicate_capture_sample *sample, uint64_t id)
{
	return (ow_mix64(id) & ((UINT64_C(1) << sample->halvings) - 1)) == 0;
}

static int by_packet(const void *a, const void *b)
{
	const struct ow_frame_sighting *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Makes room: packets with many copies give no information, and half of the others are enough. */
static void thin_out(struct ow_duplicate_capture_sample *sample)
{
	struct ow_frame_sighting *s = sample->sighting;
	size_t kept = 0, count = sample->count;
	qsort(s, count, sizeof *s, by_packet);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i; next < count && s[next].id == s[i].id;)
			next++;
		for (size_t j = i; j < next && next - i <= OW_SIDES * GROUP_MAX; j++)
			s[kept++] = s[j];
	}
	sample->count = kept;
	sample->halvings += kept > SAMPLE_MAX / 2;
	for (size_t i = kept = 0; i < sample->count; i++) {
		if (is_sampled(sample, s[i].id))
			s[kept++] = s[i];
	}
	sample->count = kept;
}

void ow_duplicate_capture_sample_add(struct ow_duplicate_capture_sample *sample,
                                     const struct ow_frame_sighting *sighting)
{
	if (sample->count == SAMPLE_MAX)
		thin_out(sample);
	if (is_sampled(sample, sighting->id) && sample->count < SAMPLE_MAX)
		sample->sighting[sample->count++] = *sighting;
}

/* -- counting ----------------------------------------------------------------------------------------------------- */

static int64_t lag_of(const struct ow_frame_sighting *first, const struct ow_frame_sighting *copy)
{
	int64_t lag;
	return __builtin_sub_overflow(copy->time_ns, first->time_ns, &lag) ? INT64_MAX : lag;
}

/* The sightings of one packet at one side, of which the other side has `others`. */
static void count_group(struct counts *c, const struct ow_frame_sighting *s, size_t count, size_t others, bool covered)
{
	bool apart = false;
	for (size_t i = 1; i < count; i++)
		apart |= lag_of(&s[0], &s[i]) > OW_LAG_MOST_NS;
	if (count > GROUP_MAX || others > GROUP_MAX || apart)
		return;
	if (count == 1) {
		c->singles += others || covered;
		c->missing += !others && covered;
		return;
	}
	c->doubles += others || covered;
	c->gone += !others && covered;
	c->both += others > 1;
	if (others == 1)
		c->copies[count - 1][ow_lag_class(lag_of(&s[0], &s[count - 1]))]++;
	for (size_t i = 1; i < count && others; i++) {
		unsigned class = ow_lag_class(lag_of(&s[0], &s[i]));
		if (others == 1)
			c->excess[class]++;
		else if (others >= count)
			c->equal[class]++;
	}
}

static bool is_covered(const struct ow_duplicate_capture_facts *facts, const struct ow_frame_sighting *s)
{
	return s->time_ns >= facts->first_ns[!s->side] && s->time_ns <= facts->last_ns[!s->side];
}

/* counts[side][sends] */
static void count_all(struct ow_duplicate_capture_sample *sample, const struct ow_duplicate_capture_facts *facts,
                      struct counts counts[OW_SIDES][2])
{
	const struct ow_frame_sighting *s = sample->sighting, *end = s + sample->count;
	qsort(sample->sighting, sample->count, sizeof *s, by_packet);
	while (s < end) {
		size_t count[OW_SIDES] = {0, 0};
		const struct ow_frame_sighting *start[OW_SIDES] = {s, s}, *next = s;
		for (; next < end && next->id == s->id; next++) {
			if (!count[next->side]++)
				start[next->side] = next;
		}
		uint8_t direction = start[OW_SIDE_A]->direction;
		if (direction == OW_DIRECTIONS)
			direction = start[OW_SIDE_B]->direction;
		/* the clocks show the direction */
		if (direction == OW_DIRECTIONS && count[OW_SIDE_A] && count[OW_SIDE_B])
			direction = start[OW_SIDE_A]->time_ns <= start[OW_SIDE_B]->time_ns ? OW_A_TO_B : OW_B_TO_A;
		for (unsigned side = 0; side < OW_SIDES; side++) {
			if (!count[side] || direction == OW_DIRECTIONS)
				continue;
			bool sends = (direction == OW_A_TO_B) == (side == OW_SIDE_A);
			count_group(&counts[side][sends], start[side], count[side], count[!side],
			            is_covered(facts, start[side]));
		}
		s = next;
	}
}

/* -- judging ------------------------------------------------------------------------------------------------------ */

/* The loss ratio of what a side sends, plus this many standard deviations. `most`: an upper limit. */
static double loss_ratio(const struct counts *c, double deviations, double most)
{
	double missing = (double)c->missing;
	double p = c->singles >= SINGLES
	                   ? (missing + deviations * sqrt(missing) + 1) / (double)c->singles
	                   : sqrt((double)(c->gone + 1) / (double)(c->doubles + 1)); /* both are lost: p^2 */
	p = p < most ? p : most;
	return p < LOSS_MOST ? p : LOSS_MOST;
}

/*
 * Packets that were sent twice and arrived once, for each that was sent twice and arrived twice, if both really were
 * sent.
 */
static double loss_factor(double p)
{
	return 2 * p / (1 - p);
}

static uint64_t sum(const uint32_t *count, unsigned from, unsigned to)
{
	uint64_t all = 0;
	for (unsigned i = from; i < to && i < OW_LAG_CLASSES; i++)
		all += count[i];
	return all;
}

/* The end of the classes from this one on that are similar. Up to some microseconds all are. */
static unsigned alike_end(unsigned from)
{
	unsigned end = from + SPREAD, least = ow_lag_class(ALIKE_NS) + 1;
	return end > least ? end : least;
}

/* Where most of the similar lags are. */
static unsigned densest(const uint32_t *count)
{
	unsigned best = 0;
	for (unsigned i = 1; i + SPREAD <= OW_LAG_CLASSES; i++) {
		if (sum(count, i, alike_end(i)) > sum(count, best, alike_end(best)))
			best = i;
	}
	return best;
}

/*
 * Whether the lag may be that of a packet that is sent again because the first one was lost. Then loss explains them
 * all, and the second ones are lost as often:
 *
 *     lost both times / packets  =  (sent twice / packets)^2
 */
static bool may_react(const struct ow_duplicate_capture_facts *facts, unsigned from, const struct counts counts[2])
{
	const struct counts *sent = &counts[1], *received = &counts[0];
	unsigned to = alike_end(from);
	double gone = (double)sent->doubles * (double)sent->doubles / (double)(sent->singles + sent->doubles + 1);
	return ow_lag_class_end(to - 1) > facts->round_trip_ns && sum(received->excess, from, to) < EVIDENCE / 2 &&
	       (gone < EVIDENCE || CLEARLY * (double)sent->gone > gone);
}

/* Whether more packets are shown twice and arrive once than loss and chance explain. */
static bool unexplained(const struct counts *sent, double p, unsigned from, unsigned to)
{
	double excess = (double)sum(sent->excess, from, to), all = excess + (double)sum(sent->equal, from, to);
	double share = 2 * p / (1 + p);
	return excess > all * share + 2 * sqrt(all * share * (1 - share));
}

/* How many further copies the capture shows of a packet. */
static uint32_t most_copies(const struct counts *sent)
{
	uint32_t most = 1;
	for (uint32_t k = 1; k < GROUP_MAX; k++)
		most = sum(sent->copies[k], 0, OW_LAG_CLASSES) >= EVIDENCE / 2 ? k : most;
	return most;
}

/*
 * The highest class of lags, if the capture shows nearly all packets equally often: then the last of that many copies
 * is late, however late. A packet that is sent again has more, because each sending has its copies.
 */
static unsigned latest_copy(const struct counts *sent, unsigned high)
{
	for (unsigned k = 1; k < GROUP_MAX; k++) {
		const uint32_t *last = sent->copies[k];
		bool usual =
			(double)sum(last, 0, OW_LAG_CLASSES) >= NEARLY_ALL * (double)(sent->singles + sent->doubles);
		for (unsigned i = high + 1; i < OW_LAG_CLASSES && usual; i++)
			high = last[i] ? i : high;
	}
	return high;
}

/*
 * Adds the lags around the densest ones to the rule, as long as more copies have them than loss explains. Returns the
 * first class after them.
 */
static unsigned make_rule(const struct counts *sent, double factor, unsigned from, struct ow_copy_rule *rule)
{
	unsigned low = from, high = from;
	for (unsigned i = from; i < alike_end(from); i++)
		high = sent->excess[i] ? i : high;
	while (!sent->excess[low])
		low++;
	for (unsigned i = high + 1, gap = 0; i < OW_LAG_CLASSES && gap < GAP; i++) {
		bool copies = (double)sent->excess[i] > CLEARLY * factor * sent->equal[i];
		high = copies ? i : high;
		gap = copies ? 0 : gap + 1;
	}
	for (unsigned i = low, gap = 0; i-- > 0 && gap < GAP;) {
		bool copies = (double)sent->excess[i] > CLEARLY * factor * sent->equal[i];
		low = copies ? i : low;
		gap = copies ? 0 : gap + 1;
	}
	rule->most = most_copies(sent);
	high = latest_copy(sent, high);
	for (unsigned i = low ? low - 1 : 0; i <= high + 1 && i < OW_LAG_CLASSES; i++)
		rule->lag[i] = true;
	return high + 2;
}

/* Whether either capture shows most packets of this direction more than once. */
static bool is_everywhere(const struct counts *c)
{
	return c->both >= EVIDENCE && (double)c->both > EVERYWHERE * (double)(c->singles + c->doubles);
}

static void judge_side(const struct ow_duplicate_capture_facts *facts, double most_lost, const struct counts counts[2],
                       struct ow_duplicate_capture_verdict *verdict)
{
	const struct counts *sent = &counts[1], *received = &counts[0];
	double factor = loss_factor(loss_ratio(sent, 2, most_lost)), p = loss_ratio(sent, 0, most_lost);
	unsigned from = densest(sent->excess);
	uint64_t excess = sum(sent->excess, from, alike_end(from)), equal = sum(sent->equal, from, alike_end(from));
	bool reacts = may_react(facts, from, counts);
	*verdict = (struct ow_duplicate_capture_verdict){.rule = {.within_ns = -1, .most = 1}};
	verdict->twice = excess >= EVIDENCE && (double)excess > CLEARLY * factor * (double)equal && !reacts;
	unsigned after = verdict->twice ? make_rule(sent, factor, from, &verdict->rule) : 0;
	verdict->unsure = unexplained(sent, p, after, OW_LAG_CLASSES) ||
	                  (!verdict->twice && unexplained(sent, p, from, alike_end(from)));
	from = densest(received->excess);
	uint64_t alike = sum(received->excess, from, alike_end(from));
	verdict->arrivals = !verdict->twice && alike >= EVIDENCE &&
	                    (double)alike > ARRIVALS * (double)sum(received->excess, 0, OW_LAG_CLASSES);
	verdict->everywhere = is_everywhere(sent) || is_everywhere(received);
}

void ow_duplicate_capture_judge(struct ow_duplicate_capture_sample *sample,
                                const struct ow_duplicate_capture_facts *facts,
                                struct ow_duplicate_capture_verdict ret_verdict[OW_SIDES])
{
	struct counts counts[OW_SIDES][2] = {0};
	count_all(sample, facts, counts);
	for (unsigned side = 0; side < OW_SIDES; side++)
		judge_side(facts, facts->most_lost[side], counts[side], &ret_verdict[side]);
}
