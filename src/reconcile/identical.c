/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical packets. The copies of one packet that come within the waiting time of each other are a group: they wait in
 * the queue of their id until no further copy can change the fate of the oldest, then they are aligned (align.h) and
 * the oldest are reported. The part of the alignment that concerns the younger ones is kept for the next one.
 *
 * A unique packet with an implausible delay is counted at once as matched, and waits as a group of two, to see whether
 * there are identical packets; so do the first pairs of the captures, because the counterpart of a copy that was sent
 * before a capture started looks like that of the next copy.
 */
#include "base/array.h"
#include "base/side.h"
#include "base/sort.h"
#include "reconcile/align.h"
#include "reconcile/matching.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROWS_MAX    4096u /* arrivals that are aligned at a time */
#define ROWS_YOUNG  512u  /* arrivals that are not reported yet, but help to align those before them */
#define ROWS_TRIED  512u  /* arrivals that are used to find the direction */
#define ROWS_KNOWN  1024u /* with more arrivals the usual change of the delay is taken from the last alignment */
#define SENTS_AHEAD (4 * ROWS_MAX) /* packets later than the usual delays allow that are compared */
#define ROWS_EARLY  (2 * ROWS_MAX) /* waiting arrivals from which on the oldest are reported before their time */
/* if one packet in this many is too early, the clocks are the cause, not identical packets */
#define CLOCK_STEP_SHARE 20
#define DIRECTION_FROM   32u           /* copies at each side that are enough to find their direction */
#define MORE_PAIRS       1.3           /* more than a loss of 20 % explains */
#define FIT_CLEAR        3.0           /* the product of mean delay and mean change is clearly less */
#define SKEW_CLEAR       0.1           /* of the usual change of the delay */
#define UNKNOWN          INT64_MAX     /* in less_ns: the delay is not known at all */
#define SLACK_NS         2000          /* two ticks of a microsecond clock */
#define GROUP_SMALL      100u          /* packets */
#define COPY_COST        OW_ALIGN_COPY /* of a copy, and -log of the share of unique packets that arrive twice; .. */
#define COPY_KNOWN       3.0           /* the same in a large group, if there are .. */
#define COPIES_MANY      8             /* .. this many; */

/* What an alignment works on. */
struct ow_group_scratch {
	int64_t *time_ns[OW_SIDES];
	uint32_t *entry[OW_SIDES];
	uint32_t count[OW_SIDES], room[OW_SIDES];
	struct ow_align_arrival arrival[ROWS_MAX];
	double delay[ROWS_MAX];
	int64_t not_before_ns[ROWS_MAX],
		not_after_ns[ROWS_MAX]; /* times when the arrivals were sent, if the path keeps order */
	bool doubtful;                  /* it is not certain which of the copies that are reported now arrived */
};

/* -- when to look at a group -------------------------------------------------------------------------------------- */

static void note_first_due(struct ow_matcher *m)
{
	m->due_ns = m->dues ? m->due[m->due_first].time_ns : INT64_MAX;
}

/* The queue is checked one waiting time from now. */
static int add_due(struct ow_matcher *m, uint64_t id, int64_t now_ns)
{
	if (m->dues == m->due_room) {
		uint32_t room = m->due_room ? m->due_room * 2 : 64;
		struct ow_due *grown = malloc(room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		for (uint32_t i = 0; i < m->dues; i++)
			grown[i] = m->due[(m->due_first + i) & (m->due_room - 1)];
		free(m->due);
		m->due = grown;
		m->due_room = room;
		m->due_first = 0;
	}
	m->due[(m->due_first + m->dues++) & (m->due_room - 1)] = (struct ow_due){id, ow_matching_until(m, now_ns)};
	note_first_due(m);
	return 0;
}

/* -- telling ------------------------------------------------------------------------------------------------------ */

/* Takes a copy out of its queue. */
static void take_out(struct ow_matcher *m, uint32_t i)
{
	ow_waiting_dequeue(&m->waiting, i);
	ow_waiting_release(&m->waiting, i);
}

/* Further packets of this id are copies, from the later of the two on. */
static void remember_pair(struct ow_matcher *m, const struct ow_pair *pair)
{
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	ow_recent_add(m->recent, a->id, a->time_ns > b->time_ns ? a->time_ns : b->time_ns);
}

static void tell_pair(struct ow_matcher *m, uint32_t q, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	queue->met = true;
	remember_pair(m, pair);
	if (queue->told) {
		queue->told--;
		ow_matching_calls(m)->settled(m->calls.arg, pair, certainty);
	} else {
		ow_matching_calls(m)->matched(m->calls.arg, pair, certainty);
	}
}

static void tell_single(struct ow_matcher *m, uint32_t i, bool copy)
{
	const struct ow_waiter *e = &m->waiting.entry[i];
	ow_matching_calls(m)->unmatched(m->calls.arg, (enum ow_side)e->side, &e->record, copy);
	take_out(m, i);
}

/*
 * Received long before it was sent, while hardly any other was: not the same packet. If many are, the clock was set; if
 * by less than the usual delay, timestamps are inaccurate.
 */
static bool acausal(const struct ow_matcher *m, const struct ow_pair *pair, enum ow_direction way)
{
	int64_t d = way == OW_A_TO_B ? ow_matching_delay(pair) : -ow_matching_delay(pair);
	return ow_matching_timed(pair) && m->plausible[way].known && d < -m->plausible[way].high_ns &&
	       m->early[way] * CLOCK_STEP_SHARE < m->plausible[way].samples;
}

/* No identical packet came: the two are the same packet, whatever the delay. */
static void tell_only_pair(struct ow_matcher *m, uint32_t q)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	uint32_t a = queue->head[OW_SIDE_A], b = queue->head[OW_SIDE_B];
	struct ow_pair pair = {.record = {&m->waiting.entry[a].record, &m->waiting.entry[b].record}};
	enum ow_direction way = ow_matching_way(m, &pair);
	bool impossible = acausal(m, &pair, way);
	if (!impossible)
		ow_matching_learn(m, &pair, way);
	m->impossible[way] += impossible;
	pair.alike = impossible;
	tell_pair(m, q, &pair, impossible ? OW_AMBIGUOUS : OW_CERTAIN);
	take_out(m, a);
	take_out(m, b);
}

/* -- aligning ----------------------------------------------------------------------------------------------------- */

/* The direction of the flow of the oldest, as far as it is known. */
static enum ow_direction known_way(struct ow_matcher *m, uint32_t q)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t i = m->waiting.queue[q].head[side];
		if (i == OW_NOBODY)
			continue;
		enum ow_direction way =
			ow_matching_calls(m)->direction(m->calls.arg, side, m->waiting.entry[i].record.flow);
		if (way != OW_DIRECTIONS)
			return way;
	}
	return OW_DIRECTIONS;
}

static int add_time(struct ow_group_scratch *x, unsigned side, uint32_t entry, int64_t time_ns)
{
	size_t times = x->room[side], entries = x->room[side], needed = (size_t)x->count[side] + 1;
	if (OW_GROW(x->time_ns[side], times, needed) < 0 || OW_GROW(x->entry[side], entries, needed) < 0)
		return -ENOMEM;
	x->room[side] = (uint32_t)times;
	/* Captures may be out of order. */
	if (x->count[side] && x->time_ns[side][x->count[side] - 1] > time_ns)
		time_ns = x->time_ns[side][x->count[side] - 1];
	x->time_ns[side][x->count[side]] = time_ns;
	x->entry[side][x->count[side]++] = entry;
	return 0;
}

/* The shortest delay that is plausible, and that is possible. */
static int64_t usual_soonest(const struct ow_matcher *m, enum ow_direction way)
{
	const struct ow_plausible *p = &m->plausible[way];
	return p->known && p->low_ns < -SLACK_NS ? p->low_ns : -SLACK_NS;
}

static int64_t soonest(const struct ow_matcher *m, enum ow_direction way)
{
	return m->one_way ? -m->window_ns : usual_soonest(m, way);
}

/* The time at which a packet was sent, if it took this long. */
static int64_t sent_at(int64_t received_ns, int64_t delay_ns)
{
	int64_t sent_ns;
	return __builtin_sub_overflow(received_ns, delay_ns, &sent_ns) ? INT64_MAX : sent_ns;
}

/*
 * The oldest arrivals, at most `rows`, of which ROWS_YOUNG came after until_ns, and the packets that they may be. If
 * delays may be below 0, these are all that are sent within the waiting time: SENTS_AHEAD of them are enough, because of
 * so many only those near the usual delay are compared. *ret_all is true if no copy is omitted.
 */
static int collect(struct ow_matcher *m, uint32_t q, enum ow_direction way, uint32_t rows, int64_t until_ns,
                   bool *ret_all)
{
	struct ow_group_scratch *x = m->scratch;
	const struct ow_waiting *w = &m->waiting;
	enum ow_side from = ow_sender_of(way);
	int r = 0;
	x->count[OW_SIDE_A] = x->count[OW_SIDE_B] = 0;
	uint32_t i = w->queue[q].head[!from], young = 0;
	for (; i != OW_NOBODY && x->count[!from] < rows && young < ROWS_YOUNG && r == 0; i = w->entry[i].next) {
		r = add_time(x, !from, i, w->entry[i].record.time_ns);
		young += w->entry[i].record.time_ns >= until_ns;
	}
	*ret_all = i == OW_NOBODY;
	int64_t last_ns = INT64_MAX, usual_ns = INT64_MAX;
	if (r == 0 && !*ret_all) {
		int64_t newest_ns = x->time_ns[!from][x->count[!from] - 1];
		last_ns = sent_at(newest_ns, soonest(m, way));
		usual_ns = sent_at(newest_ns, usual_soonest(m, way));
	}
	uint32_t ahead = 0;
	for (i = w->queue[q].head[from];
	     i != OW_NOBODY && w->entry[i].record.time_ns <= last_ns && ahead < SENTS_AHEAD && r == 0;
	     i = w->entry[i].next) {
		r = add_time(x, from, i, w->entry[i].record.time_ns);
		ahead += w->entry[i].record.time_ns > usual_ns;
	}
	m->collected += x->count[OW_SIDE_A] + x->count[OW_SIDE_B];
	*ret_all &= i == OW_NOBODY;
	return r;
}

/*
 * -log of the share of packets without an arrival, of those that were sent until the last arrival. A small group gives
 * little information: then the share of all groups so far is used.
 */
static double loss_cost(const struct ow_matcher *m, enum ow_direction way)
{
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	uint32_t sents = x->count[from], receiveds = x->count[!from];
	while (sents && receiveds && x->time_ns[from][sents - 1] > x->time_ns[!from][receiveds - 1])
		sents--;
	double lost = sents > receiveds ? sents - receiveds : 0, sent = sents;
	if (sents < GROUP_SMALL) {
		lost += (double)m->group_lost[way];
		sent += (double)m->group_sent[way];
	}
	return ow_align_loss(lost, sent);
}

/*
 * A path that copies packets also copies unique ones. In a small group a slow packet is likelier than a loss and a
 * copy.
 */
static double copy_cost(const struct ow_matcher *m, enum ow_direction way)
{
	bool known = m->copies[way] >= COPIES_MANY && m->scratch->count[!ow_sender_of(way)] >= GROUP_SMALL;
	if (!m->copies[way])
		return OW_ALIGN_NO_COPIES;
	double share = (double)m->copies[way] / ((double)m->copies[way] + (double)m->plausible[way].samples);
	return (known ? COPY_KNOWN : COPY_COST) - log(share);
}

/* The usual change of the delay, before it is known from the group itself. */
static double first_sigma(const struct ow_matcher *m, enum ow_direction way)
{
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side to = !ow_sender_of(way);
	uint32_t n = x->count[to];
	if (n <= 4 && m->sigma_ns[way] > 0)
		return m->sigma_ns[way];
	const struct ow_plausible *p = &m->plausible[way];
	double sigma = n > 1 ? (double)((__int128)x->time_ns[to][n - 1] - x->time_ns[to][0]) / (n - 1) : 1e6;
	if (n <= 4 && p->known && (double)(p->high_ns - p->low_ns) / 4 < sigma)
		sigma = (double)(p->high_ns - p->low_ns) / 4;
	return sigma > OW_ALIGN_SIGMA_LEAST_NS ? sigma : OW_ALIGN_SIGMA_LEAST_NS;
}

/* The smallest delay. Delays that vary do not show it: then nearly half of their smallest. */
static int64_t least_delay(const struct ow_matcher *m, enum ow_direction way)
{
	const struct ow_plausible *p = &m->plausible[way];
	if (m->least_ns[way])
		return m->least_ns[way];
	bool steady = p->high_ns / 2 <= p->least_ns + p->least_ns / 4;
	return steady ? p->least_ns : p->low_ns;
}

/* The times when the collected arrivals were sent. */
static void note_order(struct ow_matcher *m, enum ow_direction way)
{
	struct ow_group_scratch *x = m->scratch;
	enum ow_side to = !ow_sender_of(way);
	for (uint32_t j = 0; j < x->count[to] && m->fifo[way].mark; j++)
		ow_fifo_sent(&m->fifo[way], x->time_ns[to][j], &x->not_before_ns[j], &x->not_after_ns[j]);
}

static struct ow_align_model model_of(const struct ow_matcher *m, enum ow_direction way, bool ends)
{
	const struct ow_plausible *p = &m->plausible[way];
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	/*
	 * A single packet gives no information about others before the captures started, unless one arrived before it
	 * was sent.
	 */
	bool single = x->count[from] == 1 &&
	              (!x->count[!from] || x->time_ns[!from][0] >= x->time_ns[from][0] + soonest(m, way));
	return (struct ow_align_model){
		.window_ns = m->window_ns,
		.soonest_ns = soonest(m, way),
		.sigma_ns = first_sigma(m, way),
		.jump = OW_ALIGN_JUMP,
		.loss = loss_cost(m, way),
		.copy = copy_cost(m, way),
		.ranged = p->known,
		.least_ns = least_delay(m, way),
		.low_ns = p->low_ns,
		.high_ns = p->high_ns,
		.causal = !m->one_way,
		.reorder_ns = m->reorder_ns[way],
		.sent_from_ns = single ? INT64_MIN : m->start_ns[from],
		.sent_to_ns = m->ended[from] ? m->last_ns[from] : INT64_MAX,
		.received_from_ns = single ? INT64_MIN : m->start_ns[!from],
		.received_to_ns = m->ended[!from] ? m->last_ns[!from] : INT64_MAX,
		.ends = ends,
		.not_before_ns = m->fifo[way].mark ? x->not_before_ns : NULL,
		.not_after_ns = m->fifo[way].mark ? x->not_after_ns : NULL,
	};
}

/* Aligns what was collected. The result gives the usual change of the delay, with which it is repeated. */
static int align(struct ow_matcher *m, uint32_t q, enum ow_direction way, bool ends, bool *ret_crowded)
{
	struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	struct ow_align_model model = model_of(m, way, ends);
	ow_matching_tell_met(m);
	note_order(m, way);
	bool known = x->count[!from] >= ROWS_KNOWN && m->sigma_ns[way] > 0;
	if (known)
		model.sigma_ns = m->sigma_ns[way];
	int r = known ? 0
	              : ow_align_fit(m->aligner, &model, m->waiting.queue[q].carry, x->time_ns[from], x->count[from],
	                             x->time_ns[!from], x->count[!from], ret_crowded);
	if (r < 0)
		return r;
	if (!known && ow_align_sigma(m->aligner) >= 0)
		m->sigma_ns[way] = model.sigma_ns;
	r = ow_align(m->aligner, &model, m->waiting.queue[q].carry, x->time_ns[from], x->count[from], x->time_ns[!from],
	             x->count[!from], x->arrival, ret_crowded);
	double sigma = r == 0 ? ow_align_sigma(m->aligner) : -1;
	if (known && sigma >= 0)
		m->sigma_ns[way] = fmax(sigma, OW_ALIGN_SIGMA_LEAST_NS);
	return r;
}

/* How well an alignment fits. */
struct fit {
	uint32_t pairs;
	double change_ns, delay_ns; /* means: of the delay's change between neighbours, and of its size */
	double skew_ns;             /* mean minus median */
};

static struct fit fit_of(const struct ow_matcher *m, enum ow_direction way)
{
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	double *delay = m->scratch->delay, sum = 0;
	struct fit fit = {.change_ns = fmax(ow_align_sigma(m->aligner), OW_ALIGN_SIGMA_LEAST_NS)};
	for (uint32_t j = 0; j < x->count[!from]; j++) {
		uint32_t sent = x->arrival[j].sent;
		if (sent == OW_ALIGN_NONE || x->arrival[j].forced)
			continue;
		delay[fit.pairs] = (double)((__int128)x->time_ns[!from][j] - x->time_ns[from][sent]);
		sum += delay[fit.pairs];
		fit.delay_ns += fabs(delay[fit.pairs++]);
	}
	if (!fit.pairs)
		return fit;
	fit.delay_ns /= fit.pairs;
	ow_sort_doubles(delay, fit.pairs);
	fit.skew_ns = sum / fit.pairs - delay[fit.pairs / 2];
	return fit;
}

/*
 * Many more pairs are a better fit. Otherwise much steadier and shorter delays are. Otherwise queues make packets
 * slower, never faster: in the right direction the mean is above the median.
 */
static bool fits_better(const struct fit *a, const struct fit *b)
{
	if (MORE_PAIRS * a->pairs < b->pairs || MORE_PAIRS * b->pairs < a->pairs)
		return a->pairs > b->pairs;
	double mine = a->change_ns * a->delay_ns, other = b->change_ns * b->delay_ns;
	bool close = mine < FIT_CLEAR * other && other < FIT_CLEAR * mine;
	if (close && a->skew_ns > SKEW_CLEAR * a->change_ns && b->skew_ns < -SKEW_CLEAR * b->change_ns)
		return true;
	if (close && b->skew_ns > SKEW_CLEAR * b->change_ns && a->skew_ns < -SKEW_CLEAR * a->change_ns)
		return false;
	return mine < other;
}

/* The direction is not known: uses the one with the better alignment. */
static int try_both_ways(struct ow_matcher *m, uint32_t q, enum ow_direction *ret_way)
{
	struct fit fit[OW_DIRECTIONS];
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		bool all, crowded;
		int r = collect(m, q, way, ROWS_TRIED, INT64_MAX, &all);
		if (r == 0)
			r = align(m, q, way, false, &crowded);
		if (r < 0)
			return r;
		fit[way] = fit_of(m, way);
	}
	*ret_way = fits_better(&fit[OW_B_TO_A], &fit[OW_A_TO_B]) ? OW_B_TO_A : OW_A_TO_B;
	return 0;
}

/* -- what is decided ---------------------------------------------------------------------------------------------- */

/* How long before or after this packet another one was sent; 0 = there is none. */
static int64_t nearest(const struct ow_group_scratch *x, enum ow_side from, uint32_t i)
{
	const int64_t *t = x->time_ns[from];
	int64_t before = i > 0 ? t[i] - t[i - 1] : INT64_MAX,
		after = i + 1 < x->count[from] ? t[i + 1] - t[i] : INT64_MAX;
	int64_t near = before < after ? before : after;
	return near == INT64_MAX ? 0 : near + (near == 0);
}

static void tell_arrival(struct ow_matcher *m, uint32_t q, enum ow_direction way, uint32_t j, bool crowded)
{
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	const struct ow_align_arrival *arrival = &x->arrival[j];
	uint32_t to_entry = x->entry[!from][j], from_entry = x->entry[from][arrival->sent];
	struct ow_pair pair =
		ow_matching_pair(from, &m->waiting.entry[from_entry].record, &m->waiting.entry[to_entry].record);
	bool uncertain = arrival->less_ns > 0 || arrival->more_ns > 0;
	enum ow_certainty certainty = arrival->less_ns == UNKNOWN ? OW_AMBIGUOUS
	                              : uncertain                 ? OW_UNCERTAIN
	                                                          : OW_CERTAIN;
	pair.alike = pair.repeated = true;
	pair.near_ns = nearest(x, from, arrival->sent);
	if (certainty == OW_UNCERTAIN) {
		pair.less_ns = arrival->less_ns;
		pair.more_ns = arrival->more_ns;
		pair.step_ns = arrival->step_ns;
	}
	m->crowded[way] += crowded;
	tell_pair(m, q, &pair, certainty);
	take_out(m, from_entry);
	take_out(m, to_entry);
}

/* Whether a packet without an arrival is a further copy that its own point shows: much closer to another than usual. */
static bool shown_twice(const struct ow_group_scratch *x, enum ow_side from, uint32_t i)
{
	const int64_t *t = x->time_ns[from];
	uint32_t n = x->count[from];
	if (n <= 3)
		return true;
	int64_t usual = (int64_t)(((__int128)t[n - 1] - t[0]) / (n - 1));
	return nearest(x, from, i) < usual / 4;
}

/*
 * From which packet on it is not certain which of the copies arrived, so that one that is missing may be a later one.
 * UINT32_MAX: there is none.
 */
static uint32_t uncertain_from(const struct ow_group_scratch *x, uint32_t receiveds)
{
	uint32_t from = UINT32_MAX;
	for (uint32_t j = receiveds; j-- > 0;) {
		const struct ow_align_arrival *arrival = &x->arrival[j];
		if (arrival->sent == OW_ALIGN_NONE)
			continue;
		if (arrival->more_ns == 0)
			return from ? from : arrival->sent + 1;
		from = 0;
	}
	return from;
}

/* Whether a packet that was sent then may arrive after the end of the receiver's capture. */
static bool may_fly(const struct ow_matcher *m, enum ow_direction way, int64_t sent_ns)
{
	const struct ow_plausible *p = &m->plausible[way];
	int64_t longest = m->flight_ns[way] ? m->flight_ns[way] : p->known ? p->high_ns : 0;
	return m->ended[!ow_sender_of(way)] && sent_ns + longest > m->last_ns[!ow_sender_of(way)];
}

static void tell_sent(struct ow_matcher *m, uint32_t q, enum ow_side from, uint32_t index, bool flying)
{
	uint32_t i = m->scratch->entry[from][index];
	bool copy = m->waiting.entry[i].copy || m->waiting.queue[q].met;
	m->waiting.entry[i].record.flying = flying;
	m->waiting.entry[i].record.doubtful = m->scratch->doubtful;
	tell_single(m, i, copy && shown_twice(m->scratch, from, index));
}

/*
 * Reports the packets from first to end - 1, which have no arrival. *missing: how many of the `sents` packets have none,
 * from the first of these on. The last of the copies may be missing in their place.
 */
static void tell_missing(struct ow_matcher *m, uint32_t q, enum ow_direction way, uint32_t first, uint32_t end,
                         uint32_t sents, uint32_t uncertain, uint32_t *missing)
{
	enum ow_side from = ow_sender_of(way);
	for (uint32_t i = first; i < end; i++) {
		int64_t last_ns = m->scratch->time_ns[from][sents - (*missing)--];
		tell_sent(m, q, from, i, i >= uncertain && may_fly(m, way, last_ns));
	}
}

/* Reports the first `receiveds` arrivals, and the first `sents` packets. */
static void tell_decided(struct ow_matcher *m, uint32_t q, enum ow_direction way, uint32_t sents, uint32_t receiveds,
                         bool crowded)
{
	const struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	uint32_t next = 0, pairs = 0, uncertain = uncertain_from(x, receiveds);
	m->scratch->doubtful = false;
	for (uint32_t j = 0; j < receiveds; j++) {
		pairs += x->arrival[j].sent != OW_ALIGN_NONE;
		m->scratch->doubtful |=
			x->arrival[j].sent != OW_ALIGN_NONE && (x->arrival[j].less_ns || x->arrival[j].more_ns);
	}
	uint32_t missing = sents - pairs;
	m->waiting.queue[q].met |= pairs > 0;
	if (m->waiting.queue[q].met) {
		m->group_sent[way] += sents;
		m->group_lost[way] += sents - pairs;
	}
	for (uint32_t j = 0; j < receiveds; j++) {
		uint32_t sent = x->arrival[j].sent;
		if (sent == OW_ALIGN_NONE) {
			uint32_t i = x->entry[!from][j];
			m->copies[way] += x->count[from] == 0 && m->waiting.entry[i].copy;
			tell_single(m, i, x->arrival[j].copy || (m->waiting.entry[i].copy && !m->waiting.queue[q].met));
			continue;
		}
		tell_missing(m, q, way, next, sent, sents, uncertain, &missing);
		next = sent + 1;
		tell_arrival(m, q, way, j, crowded);
	}
	tell_missing(m, q, way, next, sents, sents, uncertain, &missing);
}

/*
 * How many packets are decided with the first `receiveds` arrivals: up to the last of theirs, and those after it that
 * waited in vain.
 */
static uint32_t decided_sents(const struct ow_group_scratch *x, enum ow_side from, uint32_t receiveds, int64_t until_ns)
{
	uint32_t sents = 0, next = UINT32_MAX;
	for (uint32_t j = 0; j < x->count[!from]; j++) {
		uint32_t sent = x->arrival[j].sent;
		if (sent == OW_ALIGN_NONE)
			continue;
		if (j < receiveds)
			sents = sent + 1;
		else if (sent < next)
			next = sent;
	}
	while (sents < x->count[from] && sents < next && x->time_ns[from][sents] < until_ns)
		sents++;
	return sents;
}

/*
 * Pairs the first copies that may be the same packet, at most `most`, with delays from least_ns to the waiting time,
 * all of which are plausible. A delay below 0 is not known.
 */
static uint32_t pair_first(const struct ow_matcher *m, enum ow_direction way, uint32_t sents, uint32_t receiveds,
                           uint32_t most, int64_t least_ns)
{
	struct ow_group_scratch *x = m->scratch;
	enum ow_side from = ow_sender_of(way);
	uint32_t pairs = 0, next = 0;
	for (uint32_t j = 0; j < receiveds; j++) {
		struct ow_align_arrival *out = &x->arrival[j];
		*out = (struct ow_align_arrival){.sent = OW_ALIGN_NONE};
		int64_t received_ns = x->time_ns[!from][j];
		while (next < sents && ow_matching_until(m, x->time_ns[from][next]) < received_ns)
			next++;
		if (pairs == most || next == sents || received_ns - x->time_ns[from][next] < least_ns)
			continue;
		int64_t d = received_ns - x->time_ns[from][next], soonest_ns = soonest(m, way);
		out->less_ns = d < soonest_ns ? UNKNOWN : d - soonest_ns;
		out->more_ns = m->window_ns - d;
		out->sent = next++;
		pairs++;
	}
	return pairs;
}

/*
 * Pairs that were counted as matched before they were aligned must stay pairs. If the alignment has fewer, the first
 * possible ones are paired. False: there are too few copies yet.
 */
static bool keep_word(const struct ow_matcher *m, uint32_t q, enum ow_direction way, uint32_t sents, uint32_t receiveds)
{
	uint32_t pairs = 0, told = m->waiting.queue[q].told;
	for (uint32_t j = 0; j < receiveds; j++)
		pairs += m->scratch->arrival[j].sent != OW_ALIGN_NONE;
	return told <= pairs || pair_first(m, way, sents, receiveds, told, soonest(m, way)) == told ||
	       pair_first(m, way, sents, receiveds, told, -m->window_ns) == told;
}

static bool is_empty(const struct ow_matcher *m, uint32_t q)
{
	const struct ow_waiting_queue *queue = &m->waiting.queue[q];
	return queue->head[OW_SIDE_A] == OW_NOBODY && queue->head[OW_SIDE_B] == OW_NOBODY;
}

void ow_matching_leave(struct ow_matcher *m, uint32_t q)
{
	if (!is_empty(m, q))
		return;
	ow_align_carry_free(m->waiting.queue[q].carry);
	ow_waiting_release_queue(&m->waiting, q);
}

/*
 * Aligns a group and reports what came before until_ns; or, if `early`, the older three quarters of the arrivals.
 * Returns 1 if there is more to report, 0 if not, or -ENOMEM.
 */
static int decide(struct ow_matcher *m, uint32_t q, int64_t until_ns, bool early)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	struct ow_group_scratch *x = m->scratch;
	enum ow_direction way = (enum ow_direction)queue->way;
	bool all, crowded;
	int r = collect(m, q, way, ROWS_MAX, early ? INT64_MAX : until_ns, &all);
	if (r < 0)
		return r;
	enum ow_side from = ow_sender_of(way);
	uint32_t rows = x->count[!from], sents = x->count[from];
	bool ends = all && !early && (!rows || x->time_ns[!from][rows - 1] < until_ns) &&
	            (!sents || x->time_ns[from][sents - 1] < until_ns);
	r = align(m, q, way, ends, &crowded);
	if (r < 0)
		return r;
	uint32_t told = 0;
	while (told < rows && (ends || early || x->time_ns[!from][told] < until_ns))
		told++;
	bool more = !all && !early && told == rows;
	if (early || more)
		told = rows - rows / 4;
	if (!ends)
		sents = decided_sents(x, from, told, until_ns);
	if ((!told && !sents) || !keep_word(m, q, way, sents, told))
		return 0;
	if (!ends) {
		r = ow_align_decide(m->aligner, sents, told, &m->waiting.queue[q].carry);
		if (r < 0)
			return r;
	}
	tell_decided(m, q, way, sents, told, crowded);
	return more;
}

/*
 * Before the direction is known: reports copies that can have no counterpart at the other side. True if the remaining
 * ones are enough to find the direction, or have to be.
 */
static bool tell_lonely(struct ow_matcher *m, uint32_t q, int64_t until_ns)
{
	const struct ow_waiting *w = &m->waiting;
	bool young = false;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t other = w->queue[q].head[!side];
		int64_t from_ns = other == OW_NOBODY ? INT64_MAX : w->entry[other].record.time_ns;
		for (uint32_t i = w->queue[q].head[side], next; i != OW_NOBODY; i = next) {
			int64_t time_ns = w->entry[i].record.time_ns;
			next = w->entry[i].next;
			if (time_ns >= until_ns || ow_matching_until(m, time_ns) >= from_ns)
				break;
			if (!w->queue[q].told)
				tell_single(m, i, w->entry[i].copy);
		}
		uint32_t last = w->queue[q].tail[side];
		young |= last != OW_NOBODY && w->entry[last].record.time_ns >= until_ns;
	}
	return !young ||
	       (w->queue[q].waits[OW_SIDE_A] >= DIRECTION_FROM && w->queue[q].waits[OW_SIDE_B] >= DIRECTION_FROM);
}

static int process(struct ow_matcher *m, uint32_t q, int64_t until_ns, bool early)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	if (!early && queue->told && queue->waits[OW_SIDE_A] == 1 && queue->waits[OW_SIDE_B] == 1 && !queue->carry &&
	    m->waiting.entry[queue->head[OW_SIDE_A]].record.time_ns < until_ns &&
	    m->waiting.entry[queue->head[OW_SIDE_B]].record.time_ns < until_ns) {
		tell_only_pair(m, q);
		return 0;
	}
	if (queue->way == OW_DIRECTIONS)
		queue->way = (uint8_t)known_way(m, q);
	int r = 0;
	if (queue->way == OW_DIRECTIONS) {
		enum ow_direction way = OW_A_TO_B;
		if (!tell_lonely(m, q, until_ns) || is_empty(m, q))
			return 0;
		r = try_both_ways(m, q, &way);
		m->waiting.queue[q].way = (uint8_t)way;
	}
	if (r == 0)
		r = 1;
	while (r > 0)
		r = decide(m, q, until_ns, early);
	return r;
}

/* -- what comes --------------------------------------------------------------------------------------------------- */

/* Puts a record into the queue of its id. */
static int add_copy(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q, bool copy)
{
	uint32_t i = ow_waiting_new(&m->waiting);
	if (i == OW_NOBODY)
		return -ENOMEM;
	struct ow_waiter *e = &m->waiting.entry[i];
	e->record = *record;
	e->side = (uint8_t)side;
	e->copy = copy;
	ow_waiting_enqueue(&m->waiting, q, i);
	return 0;
}

/* Makes room to align groups. */
static int make_scratch(struct ow_matcher *m)
{
	if (!m->scratch)
		m->scratch = calloc(1, sizeof *m->scratch);
	if (!m->scratch)
		return -ENOMEM;
	return m->aligner ? 0 : ow_aligner_create(&m->aligner);
}

/* The queue of an id, or a new one. OW_NOBODY when out of memory. */
static uint32_t group_of(struct ow_matcher *m, uint64_t id, int64_t now_ns)
{
	uint32_t q = ow_waiting_find(&m->waiting, id);
	if (q != OW_NOBODY)
		return q;
	if (make_scratch(m) < 0 || add_due(m, id, now_ns) < 0)
		return OW_NOBODY;
	return ow_waiting_new_queue(&m->waiting, id);
}

/* If addresses do not count, packets of both directions may be identical: each direction has its own queue. */
static uint64_t group_id(struct ow_matcher *m, enum ow_side side, const struct ow_record *record)
{
	uint32_t q = ow_waiting_find(&m->waiting, record->id);
	if (q == OW_NOBODY || m->waiting.queue[q].way == OW_DIRECTIONS)
		return record->id;
	enum ow_direction way = ow_matching_calls(m)->direction(m->calls.arg, side, record->flow);
	return way == OW_DIRECTIONS || way == m->waiting.queue[q].way ? record->id : ow_mix64(~record->id);
}

/*
 * The first ones of an id at either side are counted at once as a pair, if they may be one; which ones they are is
 * reported later.
 */
static void tell_unsettled(struct ow_matcher *m, uint32_t q)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	const struct ow_waiter *a = &m->waiting.entry[queue->head[OW_SIDE_A]],
			       *b = &m->waiting.entry[queue->head[OW_SIDE_B]];
	struct ow_pair pair = {.record = {&a->record, &b->record}};
	if (ow_matching_until(m, a->record.time_ns) < b->record.time_ns ||
	    ow_matching_until(m, b->record.time_ns) < a->record.time_ns)
		return;
	if ((a->copy || b->copy) && ow_matching_judge(m, &pair, ow_matching_way(m, &pair)) != OW_FEASIBLE)
		return;
	queue->told++;
	remember_pair(m, &pair);
	ow_matching_calls(m)->matched(m->calls.arg, &pair, OW_UNSETTLED);
}

/* A further copy comes: the pair that was delayed is not unique. */
static void unmark_pair(struct ow_matcher *m, uint32_t q)
{
	const struct ow_waiting_queue *queue = &m->waiting.queue[q];
	if (m->in_order && queue->waits[OW_SIDE_A] == 1 && queue->waits[OW_SIDE_B] == 1)
		ow_matching_unmark(m, m->waiting.entry[queue->head[OW_SIDE_A]].record.time_ns,
		                   m->waiting.entry[queue->head[OW_SIDE_B]].record.time_ns);
}

int ow_matching_push_identical(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t *link)
{
	bool copy = ow_recent_has(m->recent, record->id, record->time_ns, m->window_ns);
	uint32_t q = group_of(m, group_id(m, side, record), record->time_ns);
	if (q == OW_NOBODY)
		return -ENOMEM;
	if (*link != OW_NOBODY) { /* it was alone until now */
		uint32_t i = *link;
		*link = m->waiting.entry[i].next;
		ow_waiting_stop(&m->waiting, i);
		ow_waiting_enqueue(&m->waiting, q, i);
	}
	unmark_pair(m, q);
	int r = add_copy(m, side, record, q, copy);
	if (r < 0)
		return r;
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	if (queue->waits[OW_SIDE_A] == 1 && queue->waits[OW_SIDE_B] == 1 && !queue->carry && !queue->told)
		tell_unsettled(m, q);
	bool early = queue->way == OW_DIRECTIONS
	                     ? queue->waits[side] == ROWS_EARLY && queue->waits[!side] >= ROWS_EARLY
	                     : queue->waits[!ow_sender_of((enum ow_direction)queue->way)] >= ROWS_EARLY;
	return early && !m->one_way ? process(m, q, record->time_ns, true) : 0;
}

int ow_matching_look(struct ow_matcher *m, int64_t now_ns)
{
	int64_t until_ns;
	if (now_ns == INT64_MAX || __builtin_sub_overflow(now_ns, m->window_ns, &until_ns))
		until_ns = now_ns == INT64_MAX ? INT64_MAX : INT64_MIN;
	int r = 0;
	while (m->dues && (m->due_ns < now_ns || now_ns == INT64_MAX) && r == 0) {
		uint64_t id = m->due[m->due_first].id;
		m->due_first = (m->due_first + 1) & (m->due_room - 1);
		m->dues--;
		note_first_due(m);
		uint32_t q = ow_waiting_find(&m->waiting, id);
		if (q == OW_NOBODY)
			continue;
		r = process(m, q, until_ns, false);
		if (r == 0 && !is_empty(m, q))
			r = add_due(m, id, now_ns);
		else if (r == 0)
			ow_matching_leave(m, q);
	}
	return r;
}

void ow_matching_free_groups(struct ow_matcher *m)
{
	for (uint32_t b = 0; b < m->waiting.heads; b++) {
		for (uint32_t q = m->waiting.head[b]; q != OW_NOBODY; q = m->waiting.queue[q].hash_next)
			ow_align_carry_free(m->waiting.queue[q].carry);
	}
	if (m->scratch) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			free(m->scratch->time_ns[side]);
			free(m->scratch->entry[side]);
		}
	}
	free(m->scratch);
	ow_aligner_free(m->aligner);
	free(m->due);
}
