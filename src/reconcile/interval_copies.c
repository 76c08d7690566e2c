/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/interval_copies.h"

#include "base/array.h"
#include "reconcile/late_packets.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COPIES_MAX   4096  /* of one packet that are sent, and that arrive; with more there is no alignment */
#define ALIGNED_MAX  16384 /* arrivals of an interval */
#define PACKETS_MAX  4096  /* whose pairs are kept */
#define PAIRS        8     /* of a packet */
#define PLAUSIBLE    6.0 /* price above the best from which on an assignment is no reason to call an interval partial */
#define SLACK_NS     2000 /* two ticks of a microsecond clock */
#define CLOSE_LEAST  8    /* arrivals that show by themselves how much delays differ */
#define SPREAD_TIMES 2    /* delays may differ this many times as much as those of the others, which are a sample */
/* Arrivals are close if they are this part of the mean time between two packets apart; those that were sent so close, or
 * closer, may arrive like that. */
#define CLOSE_ARRIVALS 64
#define CLOSE_SENDS    16
#define APART_PART     4 /* of the time between two, by which delays may differ from those of others */
#define DELAY_MOST_NS  (INT64_MAX / 8)
#define CALM_INTERVALS 60 /* without clear duplicates, after which none is expected */
#define NONE           UINT32_MAX

/* The last pairs of a packet: a ring. */
struct ow_copies_pairs {
	uint64_t id;
	size_t count; /* of all */
	int64_t sent_ns[PAIRS], received_ns[PAIRS];
};

int ow_interval_copies_create(struct ow_interval_copies **ret_copies)
{
	struct ow_interval_copies *copies = calloc(1, sizeof *copies);
	if (!copies || ow_aligner_create(&copies->aligner) < 0) {
		free(copies);
		return -ENOMEM;
	}
	ow_plausible_init(&copies->plausible);
	copies->calm = CALM_INTERVALS - 2; /* the first interval shows whether there are */
	*ret_copies = copies;
	return 0;
}

void ow_interval_copies_free(struct ow_interval_copies *copies)
{
	if (!copies)
		return;
	ow_aligner_free(copies->aligner);
	for (int k = 0; k < 2; k++) {
		free(copies->pairs[k]);
		ow_id_map_done(&copies->by_id[k]);
	}
	ow_sent_lately_done(&copies->lately);
	ow_sent_lately_done(&copies->repeated);
	free(copies->sent_ns);
	free(copies->received_ns);
	free(copies->place);
	free(copies->arrival);
	free(copies);
}

void ow_interval_copies_begin(struct ow_interval_copies *copies)
{
	struct ow_copies_pairs *pairs = copies->pairs[1];
	size_t room = copies->room[1];
	struct ow_id_map by_id = copies->by_id[1];
	copies->pairs[1] = copies->pairs[0];
	copies->room[1] = copies->room[0];
	copies->count[1] = copies->count[0];
	copies->by_id[1] = copies->by_id[0];
	copies->pairs[0] = pairs;
	copies->room[0] = room;
	copies->count[0] = 0;
	copies->by_id[0] = by_id;
	ow_id_map_clear(&copies->by_id[0]);
	copies->aligned = 0;
	copies->calm += copies->calm < CALM_INTERVALS;
	ow_plausible_init(&copies->plausible);
	copies->others_ns = 0;
	copies->others_wait = false;
}

void ow_interval_copies_forget(struct ow_interval_copies *copies)
{
	copies->count[1] = 0;
	ow_id_map_clear(&copies->by_id[1]);
}

void ow_interval_copies_learn(struct ow_interval_copies *copies, int64_t delay_ns)
{
	ow_plausible_add(&copies->plausible, delay_ns);
	copies->others_ns += (double)delay_ns;
}

#define LEAD_STEP_NS (INT64_C(1) << 20)

int64_t ow_interval_copies_lead(double least_ns)
{
	return least_ns < 0 && least_ns > -1e18 ? ((int64_t)-least_ns / LEAD_STEP_NS + 1) * LEAD_STEP_NS : 0;
}

void ow_interval_copies_learned(struct ow_interval_copies *copies)
{
	if (copies->plausible.samples)
		ow_plausible_update(&copies->plausible);
}

static struct ow_copies_pairs *pairs_of(const struct ow_interval_copies *copies, int when, uint64_t id)
{
	uint32_t at = copies->count[when] ? OW_ID_MAP_FIND(&copies->by_id[when], id, i, copies->pairs[when][i].id == id)
	                                  : OW_ID_MAP_NONE;
	return at == OW_ID_MAP_NONE ? NULL : copies->pairs[when] + at;
}

/* Pairs of this interval, in order. Without memory they do not help. */
static void note(struct ow_interval_copies *copies, uint64_t id, int64_t sent_ns, int64_t received_ns)
{
	struct ow_copies_pairs *pairs = pairs_of(copies, 0, id);
	if (!pairs) {
		size_t n = copies->count[0];
		if (n == PACKETS_MAX || OW_GROW(copies->pairs[0], copies->room[0], n + 1) < 0 ||
		    ow_id_map_add(&copies->by_id[0], id, (uint32_t)n) < 0)
			return;
		pairs = &copies->pairs[0][copies->count[0]++];
		*pairs = (struct ow_copies_pairs){.id = id};
	}
	pairs->sent_ns[pairs->count % PAIRS] = sent_ns;
	pairs->received_ns[pairs->count++ % PAIRS] = received_ns;
}

/* Whether so many copies of a packet are aligned: further ones of an interval would take too long. */
static bool fits(const struct ow_interval_copies *copies, const struct ow_copy_times *of)
{
	return of->sents && of->receiveds && of->sents <= COPIES_MAX && of->receiveds <= COPIES_MAX &&
	       copies->aligned + of->receiveds <= ALIGNED_MAX;
}

/* -- what is aligned: the last pairs of the interval before, and the copies ----------------------------------------- */

struct input {
	const struct ow_copy_times *of;
	uint32_t sents, receiveds, pairs; /* with `pairs` from before */
};

static int make_room(struct ow_interval_copies *c, size_t sents, size_t receiveds)
{
	if (OW_GROW(c->sent_ns, c->sent_room, sents) < 0 || OW_GROW(c->place, c->place_room, sents) < 0 ||
	    OW_GROW(c->received_ns, c->received_room, receiveds) < 0 ||
	    OW_GROW(c->arrival, c->arrival_room, receiveds) < 0)
		return -ENOMEM;
	return 0;
}

/* Merges the times of sending; place: the index in `of`, or NONE. Times ascend, also if captures are out of order. before: the
 * pairs, or NULL. */
static int collect(struct ow_interval_copies *c, const struct ow_copy_times *of, const struct ow_copies_pairs *before,
                   struct input *ret_input)
{
	size_t pairs = !before ? 0 : before->count < PAIRS ? before->count : PAIRS, k = 0, n = 0;
	size_t first = before && before->count > PAIRS ? before->count % PAIRS : 0;
	if (make_room(c, of->sents + pairs, of->receiveds + pairs) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < of->sents || k < pairs;) {
		size_t at = (first + k) % PAIRS;
		bool old = k < pairs && (i == of->sents || before->sent_ns[at] <= of->sent_ns[i]);
		c->place[n] = old ? NONE : (uint32_t)i;
		int64_t time_ns = old ? before->sent_ns[at] : of->sent_ns[i];
		c->sent_ns[n] = n && c->sent_ns[n - 1] > time_ns ? c->sent_ns[n - 1] : time_ns;
		n++;
		k += old;
		i += !old;
	}
	for (size_t j = 0; j < of->receiveds + pairs; j++) {
		int64_t time_ns = j < pairs ? before->received_ns[(first + j) % PAIRS] : of->received_ns[j - pairs];
		c->received_ns[j] = j && c->received_ns[j - 1] > time_ns ? c->received_ns[j - 1] : time_ns;
	}
	*ret_input = (struct input){of, (uint32_t)n, (uint32_t)(of->receiveds + pairs), (uint32_t)pairs};
	return 0;
}

/* -- the alignment ------------------------------------------------------------------------------------------------ */

static struct ow_align_model model_of(const struct ow_interval_copies *c, const struct input *in, double copy)
{
	const struct ow_plausible *p = &c->plausible;
	const struct ow_copy_times *of = in->of;
	const int64_t *received = c->received_ns;
	uint32_t n = in->receiveds, sents = 0;
	while (sents < of->sents && of->sent_ns[of->sents - 1 - sents] >= of->start_ns)
		sents++;
	int64_t first = c->sent_ns[0] < received[0] ? c->sent_ns[0] : received[0];
	return (struct ow_align_model){
		.window_ns = received[n - 1] - first + SLACK_NS,
		.soonest_ns = -SLACK_NS,
		.sigma_ns =
			fmax(n > 1 ? (double)(received[n - 1] - received[0]) / (n - 1) : 1e6, OW_ALIGN_SIGMA_LEAST_NS),
		.jump = OW_ALIGN_JUMP,
		.loss = ow_align_loss(sents > of->receiveds ? sents - of->receiveds : 0, sents),
		.copy = copy,
		.ranged = p->known,
		.least_ns = p->least_ns,
		.low_ns = p->low_ns,
		.high_ns = p->high_ns,
		.causal = true,
		.plausible = PLAUSIBLE,
		.sent_from_ns = INT64_MIN,
		.sent_to_ns = INT64_MAX,
		/* What was sent long before, and has not arrived, does not count as loss once more. */
		.received_from_ns = in->pairs ? received[0] : of->start_ns,
		.received_to_ns = INT64_MAX,
	};
}

struct verdict {
	const struct ow_align_arrival *arrival; /* valid until the next call */
	bool sure; /* no plausible assignment takes a packet of the interval for one from before, or the reverse */
	int64_t since_ns; /* none that was sent before this has plausibly arrived now */
	uint64_t duplicated, close;
	bool shifted; /* there are such: pairs may be those of other packets */
};

/* How far back the arrival may have been sent, and whether that is on the other side of the start of the interval. */
static void judge(const struct ow_copy_times *of, const struct ow_align_arrival *arrival, struct verdict *verdict)
{
	int64_t first = of->sent_ns[0], last = of->sent_ns[of->sents - 1], from = last, to = last;
	if (arrival->sent != NONE) {
		int64_t sent = of->sent_ns[arrival->sent];
		from = arrival->more_ns < sent - first ? sent - arrival->more_ns : first;
		to = arrival->less_ns < last - sent ? sent + arrival->less_ns : last;
	}
	verdict->sure &= (from >= of->start_ns) == (to >= of->start_ns);
	verdict->since_ns = from < verdict->since_ns ? from : verdict->since_ns;
}

/* The arrivals of this interval, with the packets as `of` numbers them. False if the pairs of the last one were not found
 * again. */
static bool translate(struct ow_interval_copies *c, const struct input *in)
{
	bool same = true;
	for (uint32_t j = 0; j < in->receiveds; j++) {
		struct ow_align_arrival *arrival = &c->arrival[j];
		uint32_t sent = arrival->sent;
		bool old = sent != NONE && c->place[sent] == NONE;
		arrival->sent = sent == NONE ? NONE : c->place[sent];
		same &= old == (j < in->pairs);
	}
	return same;
}

/* Whether other packets take less time than passes between two copies. If not, and if there are no pairs to continue from,
 * all delays may be longer by that time. */
static bool is_sparse(const struct ow_interval_copies *c, const struct ow_copy_times *of)
{
	uint32_t first = of->sents > 1 ? of->sents - 2 : 0;
	while (first > 0 && of->sent_ns[first - 1] >= of->start_ns)
		first--;
	int64_t gap_ns =
		of->sents > 1 ? (of->sent_ns[of->sents - 1] - of->sent_ns[first]) / (of->sents - 1 - first) : INT64_MAX;
	return c->plausible.known && c->plausible.high_ns < gap_ns / 2;
}

/* Returns 1 if everything was aligned as it should be, 0 if not. copy: the price of a duplicate. */
static int align(struct ow_interval_copies *c, const struct ow_copy_times *of, const struct ow_copies_pairs *before,
                 double copy, struct input *ret_input)
{
	bool crowded = false;
	int r = collect(c, of, before, ret_input);
	if (r < 0)
		return r;
	struct ow_align_model model = model_of(c, ret_input, copy);
	uint32_t sents = ret_input->sents, receiveds = ret_input->receiveds;
	r = ow_align_fit(c->aligner, &model, NULL, c->sent_ns, sents, c->received_ns, receiveds, &crowded);
	if (r == 0)
		r = ow_align(c->aligner, &model, NULL, c->sent_ns, sents, c->received_ns, receiveds, c->arrival,
		             &crowded);
	c->aligned += of->receiveds;
	return r < 0 ? r : translate(c, ret_input) && !crowded;
}

/* Adds up, for times in order, how many follow the one before within this time, and how many others within half of the
 * gap. */
static void count_gaps(const int64_t *time_ns, uint32_t count, int64_t close_ns, int64_t gap_ns, int sign,
                       int ret_gaps[2])
{
	for (uint32_t i = 1; i < count; i++) {
		int64_t apart_ns = time_ns[i] - time_ns[i - 1];
		if (apart_ns < gap_ns / 2)
			ret_gaps[apart_ns > close_ns] += sign;
	}
}

/* The mean time between two packets of this interval, or 0. */
static int64_t mean_gap(const struct ow_copy_times *of)
{
	uint32_t sents = of->sents - of->waiting;
	const int64_t *sent_ns = of->sent_ns + of->waiting;
	return sents > 1 ? (sent_ns[sents - 1] - sent_ns[0]) / (sents - 1) : 0;
}

/*
 * Whether arrivals that are much closer together than this time between two packets show something. If other packets show
 * that delays differ by more, late ones arrive together as well, and nothing can be said. That delays are at most so long
 * does not show that they differ.
 */
static bool is_telling(const struct ow_interval_copies *c, const struct ow_copy_times *of, int64_t gap_ns)
{
	const struct ow_plausible *p = &c->plausible;
	bool few = of->receiveds < CLOSE_LEAST, alone = !p->samples || !p->known;
	/* Of few packets one that is late by chance looks like the rule. */
	int64_t spread_ns = few ? p->high_ns - p->low_ns : SPREAD_TIMES * (p->most_ns - p->least_ns);
	return gap_ns && !(alone ? few : spread_ns >= gap_ns);
}

/*
 * How many arrive much closer to the one before than they were sent: duplicates, or late packets. *ret_clear: they are
 * duplicates, because hardly any others are closer together than they were sent.
 */
static uint32_t count_close(const struct ow_copy_times *of, int64_t gap_ns, bool *ret_clear)
{
	int more[2] = {0};
	count_gaps(of->received_ns, of->receiveds, gap_ns / CLOSE_ARRIVALS, gap_ns, 1, more);
	count_gaps(of->sent_ns + of->waiting, of->sents - of->waiting, gap_ns / CLOSE_SENDS, gap_ns, -1, more);
	*ret_clear = more[0] > 0 && more[0] > 2 * more[1];
	return more[0] > 0 ? (uint32_t)more[0] : 0;
}

/* All that arrive much closer to the one before than packets are sent. */
static uint32_t count_together(const struct ow_copy_times *of, int64_t gap_ns)
{
	uint32_t together = 0;
	for (uint32_t j = 1; j < of->receiveds; j++)
		together += of->received_ns[j] - of->received_ns[j - 1] <= gap_ns / CLOSE_ARRIVALS;
	return together;
}

/* The same by the pairs, where the sender's own bursts do not hide it. */
static uint32_t count_joined(const struct ow_copy_times *of, int64_t gap_ns, const struct ow_align_arrival *arrival)
{
	uint32_t joined = 0, last = NONE;
	for (uint32_t j = 0; j < of->receiveds; j++) {
		uint32_t sent = arrival[j].sent;
		if (sent != NONE && last != NONE &&
		    of->received_ns[j] - of->received_ns[j - 1] <= gap_ns / CLOSE_ARRIVALS &&
		    of->sent_ns[sent] - of->sent_ns[last] > gap_ns / CLOSE_SENDS)
			joined++;
		last = sent;
	}
	return joined;
}

/*
 * Whether there are duplicates, or arrivals that look like them: then each arrival that is close to the one before may be
 * one. A burst of the sender hides duplicates, and so do delays that differ, if there were some lately.
 */
static void note_close(struct ow_interval_copies *c, const struct ow_copy_times *of, int64_t gap_ns, bool telling,
                       struct verdict *verdict)
{
	uint32_t together = count_together(of, gap_ns);
	bool lately = c->calm < CALM_INTERVALS, seen = c->calm < CALM_INTERVALS - 1;
	/* Where none or one was sent, bursts do not show: all have arrived only if there are no duplicates. */
	bool blind = !gap_ns && c->plausible.samples && (seen || of->sents != of->receiveds);
	verdict->shifted = verdict->close || verdict->duplicated || (!telling && lately && together) || blind;
	if (verdict->shifted && together > verdict->close)
		verdict->close = together;
}

static int align_all(struct ow_interval_copies *c, const struct ow_copy_times *of, struct verdict *ret_verdict)
{
	struct input in;
	const struct ow_copies_pairs *before = pairs_of(c, 1, of->id);
	int64_t gap_ns = mean_gap(of);
	bool clear = false, telling = is_telling(c, of, gap_ns);
	uint32_t close = telling ? count_close(of, gap_ns, &clear) : 0;
	double copy = of->receiveds > of->sents || clear ? OW_ALIGN_COPY : OW_ALIGN_NO_COPIES;
	int r = align(c, of, before, copy, &in);
	if (r == 0 && before)
		r = align(c, of, NULL, copy, &in);
	if (r < 0)
		return r;
	c->calm = clear ? 0 : c->calm;
	bool known = in.pairs || is_sparse(c, of) || of->sent_ns[0] >= of->start_ns;
	uint32_t joined = telling && r > 0 ? count_joined(of, gap_ns, c->arrival + in.pairs) : 0;
	*ret_verdict = (struct verdict){.arrival = c->arrival + in.pairs,
	                                .sure = r > 0 && known,
	                                .since_ns = of->sent_ns[0],
	                                .close = joined > close ? joined : close};
	for (uint32_t j = 0; r > 0 && j < of->receiveds; j++)
		ret_verdict->duplicated += ret_verdict->arrival[j].sent == NONE;
	note_close(c, of, gap_ns, telling, ret_verdict);
	if (!ret_verdict->sure)
		return 0;
	ret_verdict->since_ns = INT64_MAX;
	for (uint32_t j = 0; j < of->receiveds; j++)
		judge(of, &ret_verdict->arrival[j], ret_verdict);
	return 0;
}

/* -- pairs -------------------------------------------------------------------------------------------------------- */

/* The packet that was sent first arrives first. out: so many of those that wait have not arrived now; since_ns: none that
 * was sent before this has. Returns the number of duplicates. */
static uint64_t pair_in_turn(const struct ow_copy_times *of, uint32_t out, int64_t since_ns, struct ow_copy_fate *fate)
{
	uint32_t waiting = of->waiting - out, sents = of->sents - of->waiting;
	const int64_t *sent_ns = of->sent_ns + of->waiting;
	struct ow_late_packets_turns turns = ow_late_packets_turns(waiting, sents, of->receiveds);
	bool equal = waiting + sents == of->receiveds;
	for (uint32_t j = 0; j < of->receiveds; j++) {
		uint32_t i = j - (uint32_t)turns.late;
		if (j < turns.late) /* or one of those that were sent just now */
			fate[j] = (struct ow_copy_fate){OW_ALIGN_NONE, equal ? of->sent_ns[out + j] : since_ns,
			                                sents && !equal && sent_ns[0] <= of->received_ns[j]};
		else if (i < turns.pairs)
			fate[j] =
				(struct ow_copy_fate){i, OW_LATE_PACKETS_ANY,
			                              !equal && i + 1 < sents && sent_ns[i + 1] <= of->received_ns[j]};
		else
			fate[j] = (struct ow_copy_fate){OW_ALIGN_NONE, OW_LATE_PACKETS_ANY, false};
	}
	return sents + waiting ? of->receiveds - turns.late - turns.pairs : 0;
}

/* How long packets may take: as others do, which are a sample; or else as little as nothing. */
static void limit_delays(const struct ow_plausible *p, int64_t *ret_least_ns, int64_t *ret_most_ns)
{
	*ret_least_ns = 0;
	*ret_most_ns = p->known ? p->high_ns : INT64_MAX;
	if (!p->samples)
		return;
	int64_t least_ns = p->min_ns > -DELAY_MOST_NS ? p->min_ns : -DELAY_MOST_NS;
	int64_t most_ns = p->max_ns < DELAY_MOST_NS ? p->max_ns : DELAY_MOST_NS;
	int64_t spread_ns = (SPREAD_TIMES - 1) * (most_ns - least_ns) + SLACK_NS;
	*ret_least_ns = least_ns - spread_ns;
	*ret_most_ns = most_ns + spread_ns;
}

/* As the alignment says. */
static void pair_aligned(const struct ow_copy_times *of, const struct verdict *verdict, struct ow_copy_fate *fate)
{
	const struct ow_align_arrival *arrival = verdict->arrival;
	for (uint32_t j = 0; j < of->receiveds; j++) {
		uint32_t sent = arrival[j].sent;
		bool unsure = arrival[j].less_ns || arrival[j].more_ns;
		fate[j] = (struct ow_copy_fate){OW_ALIGN_NONE, OW_LATE_PACKETS_NOBODY, sent != NONE && unsure};
		if (sent == NONE)
			continue;
		if (sent >= of->waiting)
			fate[j].sent = sent - of->waiting;
		else
			fate[j].waited_ns = of->sent_ns[sent];
	}
}

/* In turn, without those that wait and have not plausibly arrived now. If there are duplicates, none has a known delay. */
static uint64_t pair_since(const struct ow_copy_times *of, const struct verdict *verdict, struct ow_copy_fate *fate)
{
	uint32_t out = 0, sents = of->sents - of->waiting, surplus = of->receiveds > sents ? of->receiveds - sents : 0;
	while (of->waiting > out + surplus && of->sent_ns[out] < verdict->since_ns)
		out++;
	uint64_t duplicated = pair_in_turn(of, out, out < of->waiting ? of->sent_ns[out] : OW_LATE_PACKETS_ANY, fate);
	for (uint32_t j = 0; j < of->receiveds; j++)
		fate[j].doubtful |= fate[j].sent == OW_ALIGN_NONE || verdict->duplicated;
	return duplicated;
}

/* When the packet of an arrival was sent, also of one that is late; OW_LATE_PACKETS_NOBODY: not known. */
static int64_t sent_when(const struct ow_copy_times *of, const struct ow_copy_fate *fate)
{
	if (fate->sent != OW_ALIGN_NONE)
		return of->sent_ns[of->waiting + fate->sent];
	return fate->waited_ns > OW_LATE_PACKETS_OLDEST ? fate->waited_ns : OW_LATE_PACKETS_NOBODY;
}

/*
 * By how long packets may take: doubts those that take another time, and, if pairs may be shifted, those of which another
 * packet may have arrived. What is left helps in the next interval: as far as the alignment is sure, or if only one packet
 * is possible.
 */
static void doubt_others(struct ow_interval_copies *c, const struct ow_copy_times *of, const struct verdict *verdict,
                         struct ow_copy_fate *fate)
{
	int64_t least_ns, most_ns;
	uint32_t first = 0, end = 0;
	limit_delays(&c->plausible, &least_ns, &most_ns);
	/* The packet before, or after, would take so much more or less. */
	if (of->apart_ns && c->plausible.samples) {
		least_ns -= of->apart_ns / APART_PART;
		most_ns += of->apart_ns / APART_PART;
	}
	for (uint32_t j = 0; j < of->receiveds; j++) {
		int64_t received_ns = of->received_ns[j], sent_ns = sent_when(of, &fate[j]);
		while (end < of->sents && received_ns - of->sent_ns[end] >= least_ns)
			end++;
		while (first < end && received_ns - of->sent_ns[first] > most_ns)
			first++;
		if (sent_ns == OW_LATE_PACKETS_NOBODY)
			continue;
		int64_t delay_ns = received_ns - sent_ns;
		bool outside = c->plausible.samples && (delay_ns < least_ns || delay_ns > most_ns);
		bool alone = c->plausible.samples && end - first == 1;
		fate[j].doubtful |= outside || (verdict->shifted && end - first > 1);
		if (!fate[j].doubtful && (verdict->sure || alone))
			note(c, of->id, sent_ns, received_ns);
	}
}

/* The mean delay of pairs that an earlier interval has left. */
static double mean_before(const struct ow_copies_pairs *before)
{
	size_t pairs = before->count < PAIRS ? before->count : PAIRS;
	double sum_ns = 0;
	for (size_t i = 0; i < pairs; i++)
		sum_ns += (double)(before->received_ns[i] - before->sent_ns[i]);
	return sum_ns / (double)pairs;
}

/*
 * Whether the n-th arrival is not that of the n-th packet, but of one next to it: then delays are longer or shorter by the
 * time between two packets, and fit neither those of the interval before nor those of other packets. A few show nothing, nor
 * does the mean of many if delays differ by far more than that time.
 */
static bool is_shifted(const struct ow_interval_copies *c, const struct ow_copy_times *of,
                       const struct ow_copy_fate *fate)
{
	const struct ow_copies_pairs *before = pairs_of(c, 1, of->id);
	/* With one in an interval, there are never many. */
	double gap_ns = (double)(of->apart_ns ? of->apart_ns : mean_gap(of)), sum_ns = 0;
	uint32_t pairs = 0;
	for (uint32_t j = 0; j < of->receiveds; j++) {
		int64_t sent_ns = sent_when(of, &fate[j]);
		if (sent_ns == OW_LATE_PACKETS_NOBODY || (!of->apart_ns && fate[j].sent == OW_ALIGN_NONE) ||
		    fate[j].doubtful)
			continue;
		sum_ns += (double)(of->received_ns[j] - sent_ns);
		pairs++;
	}
	const struct ow_plausible *p = &c->plausible;
	if (pairs < (of->apart_ns ? 1 : CLOSE_LEAST) || !p->samples ||
	    (double)(p->max_ns - p->min_ns) >= gap_ns * sqrt(pairs))
		return false;
	double mean_ns = sum_ns / pairs;
	if (before && fabs(mean_ns - mean_before(before)) <= gap_ns / 2)
		return false;
	return fabs(mean_ns - c->others_ns / (double)p->samples) > gap_ns / 2;
}

/* Whether most pairs take as long as other packets. If not, some were sent before the first interval. One that takes much
 * less is another's, also of those that are late. */
static bool check_pairs(const struct ow_interval_copies *c, const struct ow_copy_times *of, struct ow_copy_fate *fate)
{
	uint32_t pairs = 0, within = 0;
	for (uint32_t j = 0; c && c->plausible.known && j < of->receiveds; j++) {
		bool paired = fate[j].sent != OW_ALIGN_NONE;
		int64_t sent_ns = paired ? of->sent_ns[of->waiting + fate[j].sent] : fate[j].waited_ns;
		if (!paired && (sent_ns <= OW_LATE_PACKETS_OLDEST || sent_ns == OW_LATE_PACKETS_NOBODY))
			continue;
		int64_t delay_ns = of->received_ns[j] - sent_ns;
		bool fast = delay_ns < c->plausible.low_ns;
		within += paired && !fast && delay_ns <= c->plausible.high_ns;
		fate[j].doubtful |= fast;
		pairs += paired;
	}
	return 2 * within >= pairs && !(c && is_shifted(c, of, fate));
}

/*
 * How many arrive sooner after the first packet than others take: they were sent before the first interval. Each of them
 * shifts the others by one.
 */
static uint32_t count_early(const struct ow_interval_copies *c, const struct ow_copy_times *of)
{
	uint32_t early = 0;
	int64_t gap_ns = mean_gap(of);
	while (c->plausible.samples && early < of->receiveds &&
	       of->received_ns[early] - of->sent_ns[0] + gap_ns / 2 < c->plausible.min_ns)
		early++;
	return early ? early + 1 : 0;
}

static int pair_unequal(struct ow_interval_copies *c, const struct ow_copy_times *of, struct ow_copy_fate *fate,
                        struct ow_copy_counts *ret_counts)
{
	struct verdict verdict;
	int r = align_all(c, of, &verdict);
	if (r < 0)
		return r;
	uint64_t surplus = of->receiveds > of->sents ? of->receiveds - of->sents : 0;
	uint64_t close = verdict.duplicated > verdict.close ? verdict.duplicated : verdict.close;
	ret_counts->duplicated = verdict.duplicated;
	ret_counts->close = (close > surplus ? close - surplus : 0) + count_early(c, of);
	if (verdict.sure)
		pair_aligned(of, &verdict, fate);
	else if (of->sents == of->receiveds) /* all have arrived */
		ret_counts->duplicated = pair_in_turn(of, 0, OW_LATE_PACKETS_ANY, fate);
	else
		ret_counts->duplicated = pair_since(of, &verdict, fate);
	doubt_others(c, of, &verdict, fate);
	return 0;
}

/* Whether as many may be lost as there are duplicates. */
static bool may_be_twice(const struct ow_interval_copies *c, const struct ow_copy_times *of)
{
	bool clear;
	int64_t gap_ns = mean_gap(of);
	return is_telling(c, of, gap_ns) && count_close(of, gap_ns, &clear);
}

int ow_interval_copies_pair(struct ow_interval_copies *c, const struct ow_copy_times *of, struct ow_copy_fate *ret_fate,
                            struct ow_copy_counts *ret_counts)
{
	bool equal = !of->receiveds || (!of->waiting && of->sents == of->receiveds), fit = c && fits(c, of);
	bool known = !c || pairs_of(c, 1, of->id);
	int r = 0;
	*ret_counts = (struct ow_copy_counts){0};
	equal = equal && !(fit && may_be_twice(c, of));
	if (equal || !fit) {
		ret_counts->duplicated =
			pair_in_turn(of, 0, equal ? OW_LATE_PACKETS_ANY : OW_LATE_PACKETS_OLDEST, ret_fate);
		ret_counts->odd = !check_pairs(c, of, ret_fate);
	}
	if (fit && (!equal || ret_counts->odd)) {
		r = pair_unequal(c, of, ret_fate, ret_counts);
		ret_counts->odd = r == 0 && !check_pairs(c, of, ret_fate);
		equal = false;
	}
	ret_counts->odd |= !known && c->others_wait && !c->plausible.samples;
	for (uint32_t j = 0; r == 0 && ret_counts->odd && j < of->receiveds; j++)
		ret_fate[j].doubtful = true;
	for (uint32_t j = 0; equal && c && !ret_counts->odd && j < of->receiveds; j++)
		note(c, of->id, of->sent_ns[j], of->received_ns[j]);
	return r;
}
