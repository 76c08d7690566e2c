/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of intervals in order, provisional and final. reconcile/carry decides what is late; here each interval that
 * is still open keeps its result and its delays, as a histogram where all are known (an array of every packet's delay
 * would take megabytes an interval), else as the sample that it came with and a histogram of the late ones.
 */
#include "point/settle.h"

#include "estimate/pool.h"
#include "estimate/sample.h"
#include "point/settle_total.h"
#include "reconcile/carry.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where clock errors are not known, a packet may seem to arrive this much before it was sent. */
#define EARLY_UNKNOWN_NS INT64_C(50000000)
/* Drops of a ring are counted up to this much after they happened, so perhaps in the next interval. */
#define DROPS_LAG_NS INT64_C(50000000)

static_assert(OW_SETTLE_NO_TIME == OW_CARRY_NO_TIME, "handed on");

enum doubt { DOUBT_NONE, DOUBT_UNKNOWN, DOUBT_DROPS, DOUBT_SAMPLED, DOUBT_BEGUN, DOUBT_ENDED };

struct open_interval {
	struct ow_live_result result;
	struct ow_live_result *estimate; /* stands instead of it; or NULL */
	bool quiet, unknown;
	bool full;       /* all delays are in the histogram; else the late ones, and */
	int64_t *sample; /* a sample of the others */
	size_t samples;
	struct ow_delays *delays; /* kept when the slot of the ring is used again */
	uint64_t late, late_received;
	uint64_t unplaced;  /* received, and may have been sent in an interval before that is unknown */
	bool coarser;       /* than the interval before */
	uint64_t alike;     /* late, but whose delay it is cannot be told */
	uint64_t reordered; /* late, and sent before packets that had arrived */
};

struct ow_settle {
	uint32_t horizon;
	ow_settle_sink sink;
	void *arg;
	struct ow_carry *carry;
	struct open_interval *open; /* ring of horizon + 1, by number */
	uint64_t first, next;       /* numbers as carry counts them: from 1, without gaps */
	bool started;
	int64_t last_interval, end_ns;       /* of the newest */
	uint64_t blind;                      /* open intervals that may have missed arrivals, */
	uint64_t coarser;                    /* and those with a larger shift than the one before */
	unsigned last_shift, before_shift;   /* of the newest interval, of the last that was closed */
	int64_t newest_ns;                   /* sending time of the latest packet that has arrived; INT64_MIN = none */
	int64_t reach_ns;                    /* within this a packet should arrive; -1 = not known yet */
	int64_t ahead_ns;                    /* so much before it was sent a packet may arrive; -1 = not known yet */
	int64_t shown_ns;                    /* the same where packets contradict the clocks; else 0 */
	enum doubt before;                   /* why arrivals may have been missed before the oldest open interval */
	const struct ow_settle_input *input; /* during a step */
	int64_t unplaced_ns; /* then: what arrived until now may be of an unknown interval; since its start */
	enum doubt doubt;    /* why packets of the interval that is settled right now stay undecided, */
	int64_t doubted;     /* and the interval that is to blame */
	struct ow_pool *scratch;
	struct ow_settle_total *total;
};

static struct open_interval *open_of(const struct ow_settle *settle, uint64_t number)
{
	return settle->open + number % (settle->horizon + 1);
}

static void raise_ahead(struct ow_settle *settle, int64_t delay_ns)
{
	int64_t ahead = delay_ns < 0 ? 2 * -(delay_ns > -INT64_MAX / 4 ? delay_ns : -INT64_MAX / 4) : 0;
	if (ahead > settle->ahead_ns)
		settle->ahead_ns = ahead;
}

/*
 * Clocks that are apart by more than they say: then many delays are negative. A quarter of them, as a few also come
 * from identical packets that were taken for each other.
 */
static void learn_shown(struct ow_settle *settle, const struct ow_settle_input *in)
{
	int64_t least = 0;
	size_t negative = 0;
	for (size_t i = 0; i < in->delays; i++) {
		least = in->delay_ns[i] < least ? in->delay_ns[i] : least;
		negative += in->delay_ns[i] < 0;
	}
	if (!in->delays && in->result.mean_ns.status != OW_VALUE_NONE && in->result.mean_ns.value < 0)
		least = (int64_t)fmax(in->result.mean_ns.value, -1e18);
	else if (negative < in->delays / 4 + 1)
		return;
	int64_t shown = least > -INT64_MAX / 4 ? 2 * -least : INT64_MAX / 2;
	settle->shown_ns = shown > settle->shown_ns ? shown : settle->shown_ns;
}

static void raise_reach(struct ow_settle *settle, int64_t delay_ns)
{
	int64_t size = delay_ns < 0 ? -(delay_ns + 1) : delay_ns;
	int64_t reach = size > INT64_MAX / 4 ? INT64_MAX / 2 : 2 * size;
	if (reach > settle->reach_ns)
		settle->reach_ns = reach;
	raise_ahead(settle, delay_ns);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* May it have been sent in an interval before this one that is unknown? */
static bool is_unplaced(const struct ow_settle *settle, const struct ow_stamp *arrival)
{
	return settle->unplaced_ns > 0 &&
	       (arrival->time_ns == OW_SETTLE_NO_TIME || arrival->time_ns < settle->unplaced_ns);
}

/* A packet found its arrival in another interval. */
static void on_late(void *arg, const struct ow_carry_late *late)
{
	struct ow_settle *settle = arg;
	uint64_t newest = settle->next - 1;
	struct open_interval *sender = open_of(settle, newest - late->age);
	sender->late++;
	struct open_interval *receiver = open_of(settle, newest - late->arrived);
	receiver->late_received++;
	if (!late->arrived && is_unplaced(settle, settle->input->only_b + late->place))
		receiver->unplaced--;
	if (late->alike) {
		sender->alike++;
		return;
	}
	ow_delays_add(sender->delays, late->delay_ns, 1);
	raise_reach(settle, late->delay_ns);
	const struct ow_settle_input *in = settle->input;
	if (late->arrived || !in->newest_ns)
		return;
	if (in->newest_ns[late->place] != INT64_MIN)
		settle->newest_ns = later(settle->newest_ns, in->result.start_ns + in->newest_ns[late->place]);
	sender->reordered += late->sent_ns < settle->newest_ns;
	settle->newest_ns = later(settle->newest_ns, late->sent_ns);
}

static bool is_blind(const struct open_interval *open)
{
	return open->unknown || open->result.ring_drops_to;
}

/* Why a packet of the oldest interval may not have been seen though it arrived in this one. */
static enum doubt doubt_of(const struct open_interval *open, const struct open_interval *own)
{
	return open->unknown                                          ? DOUBT_UNKNOWN
	       : open->result.ring_drops_to                           ? DOUBT_DROPS
	       : open->result.sample_shift > own->result.sample_shift ? DOUBT_SAMPLED
	                                                              : DOUBT_NONE;
}

/* How much the clocks can make a packet arrive before it was sent: what they say of themselves, and where packets show
 * more, that. */
static int64_t early_of(const struct ow_settle *settle, const struct ow_live_result *r)
{
	int64_t most = r->length_ns / 2, early = EARLY_UNKNOWN_NS;
	if (r->clock_from.error_ns < most && r->clock_to.error_ns < most)
		early = r->clock_from.error_ns + r->clock_to.error_ns;
	early = early < most ? early : most;
	if (settle->shown_ns > early)
		early = settle->shown_ns < r->length_ns ? settle->shown_ns : r->length_ns;
	return early;
}

/* Could it have arrived before its own interval, the oldest one, where nobody looked? */
static bool missed_before(const struct ow_settle *settle, int64_t sent_ns)
{
	const struct ow_live_result *own = &open_of(settle, settle->first)->result;
	int64_t early = early_of(settle, own);
	/* Where no packet has ever arrived, they do not arrive. */
	if (settle->ahead_ns < early && (settle->ahead_ns >= 0 || settle->before == DOUBT_BEGUN))
		early = settle->ahead_ns;
	return sent_ns - own->start_ns < early;
}

/* Should the packet have arrived where nobody looked? */
static bool on_undecided(void *arg, int64_t sent_ns)
{
	struct ow_settle *settle = arg;
	const struct open_interval *own = open_of(settle, settle->first);
	int64_t wait = (int64_t)settle->horizon * own->result.length_ns;
	int64_t last_ns = sent_ns + (settle->reach_ns >= 0 && settle->reach_ns < wait ? settle->reach_ns : wait);
	for (uint64_t n = settle->first; settle->blind + settle->coarser && n < settle->next; n++) {
		const struct open_interval *open = open_of(settle, n);
		const struct ow_live_result *r = &open->result;
		enum doubt doubt = doubt_of(open, own);
		int64_t start_ns = r->start_ns - (doubt == DOUBT_DROPS ? DROPS_LAG_NS : 0);
		if (!doubt || last_ns < start_ns || sent_ns >= r->start_ns + r->length_ns)
			continue;
		settle->doubt = doubt;
		settle->doubted = r->interval;
		return true;
	}
	enum doubt before = settle->before;
	if (!before && settle->before_shift > own->result.sample_shift)
		before = DOUBT_SAMPLED;
	if (before && missed_before(settle, sent_ns)) {
		settle->doubt = before;
		settle->doubted = own->result.interval - 1;
		return true;
	}
	/* Only at the end, and where the end splits an interval, has it been waited for less than the waiting time. */
	if (last_ns < settle->end_ns)
		return false;
	settle->doubt = DOUBT_ENDED;
	return true;
}

int ow_settle_create(uint32_t horizon, ow_settle_sink sink, void *arg, struct ow_settle **ret_settle)
{
	struct ow_settle *settle = calloc(1, sizeof *settle);
	if (!settle)
		return -ENOMEM;
	*settle = (struct ow_settle){.horizon = horizon,
	                             .sink = sink,
	                             .arg = arg,
	                             .first = 1,
	                             .next = 1,
	                             .newest_ns = INT64_MIN,
	                             .reach_ns = -1,
	                             .ahead_ns = -1,
	                             .before = DOUBT_BEGUN};
	int r = ow_carry_create(horizon, &settle->carry);
	if (r == 0)
		r = ow_pool_create(&settle->scratch);
	if (r == 0)
		r = ow_settle_total_create(&settle->total);
	if (r == 0) {
		settle->open = calloc((size_t)horizon + 1, sizeof *settle->open);
		r = settle->open ? 0 : -ENOMEM;
	}
	if (r < 0) {
		ow_settle_free(settle);
		return r;
	}
	ow_carry_listen(settle->carry, &(struct ow_carry_calls){on_late, on_undecided, settle});
	*ret_settle = settle;
	return 0;
}

void ow_settle_free(struct ow_settle *settle)
{
	if (!settle)
		return;
	for (uint32_t i = 0; settle->open && i <= settle->horizon; i++) {
		free(settle->open[i].sample);
		free(settle->open[i].estimate);
		ow_delays_free(settle->open[i].delays);
	}
	free(settle->open);
	ow_carry_free(settle->carry);
	ow_pool_free(settle->scratch);
	ow_settle_total_free(settle->total);
	free(settle);
}

size_t ow_settle_waits(const struct ow_settle *settle, uint64_t name)
{
	return ow_carry_waits(settle->carry, name);
}

size_t ow_settle_waiting(const struct ow_settle *settle)
{
	return ow_carry_waiting(settle->carry);
}

/* Mean, standard deviation and quantiles of the packets sent in the interval, as far as they have arrived. */
static void fill_delays(struct ow_settle *settle, const struct open_interval *open, struct ow_live_result *result)
{
	uint64_t known = ow_delays_samples(open->delays);
	if (open->full && known && !result->sample_shift) {
		ow_settle_exact(open->delays, result);
		result->samples = ow_delays_samples(open->delays);
		return;
	}
	result->min_ns = result->max_ns =
		ow_value_none(known && open->full ? "packets were sampled" : "not all delays are known");
	if (!open->full && !known)
		return; /* as it came */
	ow_pool_reset(settle->scratch);
	if (open->full) {
		ow_pool_add_delays(settle->scratch, open->delays, exp2(result->sample_shift));
		result->samples = known;
	} else {
		struct ow_pool_group matched = {(double)(result->matched - open->result.ambiguous),
		                                open->result.mean_ns, open->result.stddev_ns, open->sample,
		                                open->samples};
		ow_pool_add(settle->scratch, &matched);
		ow_pool_add_delays(settle->scratch, open->delays, 1);
		result->samples = open->result.samples + known;
	}
	ow_pool_values(settle->scratch, &result->mean_ns, &result->stddev_ns, result->quantile_ns);
}

static void add_slot(void *arg, double delay_ns, uint64_t samples)
{
	ow_buckets_add(arg, delay_ns, samples);
}

static void fill_buckets(const struct open_interval *open, struct ow_live_result *result)
{
	uint64_t matched = open->full ? 0 : open->result.matched - open->result.ambiguous;
	/* Late ones alone would tell of long delays only. */
	if (matched && !open->samples)
		return;
	ow_delays_each(open->delays, add_slot, result->delay_bucket);
	ow_buckets_sample(result->delay_bucket, open->sample, open->samples, matched);
}

static void fill_loss(struct ow_live_result *result)
{
	uint64_t decided = result->sent - result->pending;
	struct ow_estimate estimate;
	result->coverage = result->status == OW_LIVE_UNKNOWN ? 0 : 1;
	if (result->total_sent || result->sent) {
		double all = fmax((double)result->total_sent, (double)result->sent);
		result->coverage = (double)decided / all;
	}
	if (!decided) {
		result->loss_ratio = ow_value_none("the fate of no packet is known");
	} else if (!result->sample_shift) {
		result->loss_ratio = ow_value_exact((double)result->lost / (double)decided);
	} else {
		ow_sample_loss(result->lost, decided, fmax((double)result->total_sent, (double)decided), NAN,
		               &estimate);
		result->loss_ratio = estimate.loss_ratio;
	}
}

static void add_cause(struct ow_live_result *result, const char *text)
{
	size_t used = strnlen(result->cause, sizeof result->cause - 1);
	int n = snprintf(result->cause + used, sizeof result->cause - used, "%s%s", used ? "; " : "", text);
	/* Cut short, it still says that there is more. */
	if (n >= (int)(sizeof result->cause - used))
		memcpy(result->cause + sizeof result->cause - 4, "...", 4);
	if (result->status == OW_LIVE_MEASURED)
		result->status = OW_LIVE_PARTIAL;
}

static void explain_drops(struct ow_live_result *result)
{
	char text[OW_LIVE_CAUSE];
	if (result->ring_drops_from) {
		snprintf(text, sizeof text, "%s missed %" PRIu64 " frames (ring full): extra packets may be its",
		         result->from, result->ring_drops_from);
		add_cause(result, text);
	}
	if (result->ring_drops_to) {
		snprintf(text, sizeof text, "%s missed %" PRIu64 " frames (ring full)", result->to,
		         result->ring_drops_to);
		add_cause(result, text);
	}
}

static void explain_undecided(const struct ow_settle *settle, struct ow_live_result *result)
{
	static const char *const why[] = {[DOUBT_UNKNOWN] = "is unknown",
	                                  [DOUBT_DROPS] = "missed frames at the receiving point",
	                                  [DOUBT_SAMPLED] = "has a smaller sample"};
	char text[OW_LIVE_CAUSE];
	if (!result->pending)
		return;
	if (settle->doubt == DOUBT_ENDED)
		snprintf(text, sizeof text, "%" PRIu64 " packets undecided: the run ended before they could arrive",
		         result->pending);
	else if (settle->doubt == DOUBT_BEGUN)
		snprintf(text, sizeof text,
		         "%" PRIu64 " packets undecided: by the clocks they may have arrived before the run",
		         result->pending);
	else
		snprintf(text, sizeof text, "%" PRIu64 " packets undecided: interval %" PRId64 " %s", result->pending,
		         settle->doubted, why[settle->doubt]);
	add_cause(result, text);
}

static void check(const struct ow_live_result *r)
{
	assert(r->sent == r->matched + r->late + r->lost + r->pending);
	assert(r->received == r->matched + r->late_received + r->extra);
	assert(r->duplicated <= r->extra && r->ambiguous <= r->matched + r->late);
}

/* The result of an interval as it stands. What waits is pending unless account says otherwise (NULL = nothing yet). */
static void make_result(struct ow_settle *settle, const struct open_interval *open,
                        const struct ow_carry_account *account, struct ow_live_result *ret_result)
{
	struct ow_live_result *r = ret_result;
	*r = open->result;
	r->final = account != NULL;
	r->late = open->late;
	r->late_received = open->late_received;
	r->lost = account ? account->lost : 0;
	r->pending = r->sent - r->matched - r->late - r->lost;
	r->extra = r->received - r->matched - r->late_received;
	if (account)
		assert(r->late_received == account->late_received && r->extra == account->extra);
	if (r->duplicated > r->extra)
		r->duplicated = r->extra;
	/* Not extra, as far as anybody knows: what the unknown interval sent arrives somewhere. Copies are known. */
	uint64_t strange = r->extra - r->duplicated, unplaced = open->unplaced < strange ? open->unplaced : strange;
	r->late_received += unplaced;
	r->extra -= unplaced;
	r->ambiguous += open->alike;
	if (r->reordered != OW_LIVE_NOT_COUNTED)
		r->reordered += open->reordered;
	if (account) {
		assert(r->late == account->late && r->pending == account->pending);
	}
	if (!open->unknown) {
		fill_delays(settle, open, r);
		if (r->final)
			fill_buckets(open, r);
	}
	fill_loss(r);
	check(r);
}

/* An estimate as it is: the mean is that of late packets, too. */
static void tell_estimate(struct ow_settle *settle, const struct open_interval *open, bool final)
{
	struct ow_live_result result = *open->estimate;
	result.final = final;
	if (final)
		ow_settle_total_add(settle->total, &result, &result, false, NULL, 0, open->delays);
	settle->sink(settle->arg, &result);
}

static void close_oldest(struct ow_settle *settle, const struct ow_carry_account *account)
{
	struct open_interval *open = open_of(settle, settle->first++);
	struct ow_live_result result;
	if (open->estimate) {
		tell_estimate(settle, open, true);
	} else if (!open->quiet) {
		make_result(settle, open, account, &result);
		explain_undecided(settle, &result);
		ow_settle_total_add(settle->total, &open->result, &result, open->full, open->sample, open->samples,
		                    open->delays);
		settle->sink(settle->arg, &result);
	}
	settle->blind -= is_blind(open);
	settle->coarser -= open->coarser;
	settle->before_shift = open->result.sample_shift;
	settle->before = open->unknown ? DOUBT_UNKNOWN : is_blind(open) ? DOUBT_DROPS : DOUBT_NONE;
	free(open->sample);
	free(open->estimate);
	struct ow_delays *delays = open->delays;
	ow_delays_reset(delays);
	*open = (struct open_interval){.delays = delays};
}

static void keep_delays(struct ow_settle *settle, struct open_interval *open, const struct ow_settle_input *in)
{
	int64_t least = 0, most = 0;
	for (size_t i = 0; i < in->delays; i++) {
		least = in->delay_ns[i] < least ? in->delay_ns[i] : least;
		most = in->delay_ns[i] > most ? in->delay_ns[i] : most;
	}
	if (in->delays) {
		raise_reach(settle, least);
		raise_reach(settle, most);
	} else if (in->result.mean_ns.status != OW_VALUE_NONE) {
		const struct ow_live_result *r = &in->result;
		double spread = r->stddev_ns.status == OW_VALUE_NONE ? 0 : r->stddev_ns.value;
		raise_ahead(settle, (int64_t)fmin(fmax(r->mean_ns.value - 3 * spread, -1e18), 0));
	}
	if (open->full)
		ow_delays_add_many(open->delays, in->delay_ns, in->delays);
}

/* Until when, since its start, an interval receives what an unknown one before it has sent; 0 = none is. */
static int64_t unplaced_until(const struct ow_settle *settle, const struct ow_live_result *next)
{
	int64_t wait = (int64_t)settle->horizon * next->length_ns;
	int64_t reach = settle->reach_ns >= 0 && settle->reach_ns < wait ? settle->reach_ns : wait;
	/* After a gap the last one stands for all that nobody told of. */
	int64_t end_ns = next->start_ns;
	for (uint64_t n = settle->next; n-- > settle->first; end_ns -= next->length_ns) {
		if (open_of(settle, n)->unknown)
			return end_ns + reach > next->start_ns ? end_ns + reach - next->start_ns : 0;
	}
	return 0;
}

/* Takes the next interval in, closes the oldest one if its time is over, and tells of both. estimate: becomes its own,
 * or NULL. */
static int step(struct ow_settle *settle, const struct ow_settle_input *in, bool unknown,
                struct ow_live_result *estimate)
{
	struct open_interval *open = open_of(settle, settle->next);
	bool full = in->delays == in->result.matched - in->result.ambiguous;
	int64_t *sample = NULL;
	if (!open->delays && ow_delays_create(&open->delays) < 0)
		return -ENOMEM;
	if (!full && in->delays) {
		sample = malloc(in->delays * sizeof *sample);
		if (!sample)
			return -ENOMEM;
		memcpy(sample, in->delay_ns, in->delays * sizeof *sample);
	}
	struct open_interval before = *open;
	*open = (struct open_interval){
		.result = in->result,
		.quiet = in->quiet,
		.unknown = unknown,
		.estimate = estimate,
		.full = full,
		.sample = sample,
		.samples = full ? 0 : in->delays,
		.delays = before.delays,
	};
	if (!full && in->result.sample_shift)
		ow_sample_widen((double)(in->result.matched - in->result.ambiguous),
		                exp2(-(double)in->result.sample_shift), &open->result.mean_ns, &open->result.stddev_ns);
	learn_shown(settle, in);
	struct ow_carry_interval interval = {
		in->result.start_ns, in->result.sent, in->result.received, in->only_a,
		in->only_b,          in->only_as,     in->only_bs,         early_of(settle, &in->result)};
	struct ow_carry_account account;
	settle->unplaced_ns = unplaced_until(settle, &in->result);
	for (size_t i = 0; settle->unplaced_ns && i < in->only_bs; i++)
		open->unplaced += is_unplaced(settle, in->only_b + i);
	settle->next++;
	open->coarser = settle->started && in->result.sample_shift > settle->last_shift;
	settle->blind += is_blind(open);
	settle->coarser += open->coarser;
	settle->input = in;
	settle->doubt = DOUBT_NONE;
	settle->end_ns = in->result.start_ns + in->result.length_ns;
	int r = ow_carry_step(settle->carry, &interval, &account);
	settle->input = NULL;
	if (r < 0) {
		settle->next--;
		settle->blind -= is_blind(open);
		settle->coarser -= open->coarser;
		free(sample);
		*open = before;
		return r;
	}
	keep_delays(settle, open, in);
	if (in->newest_ns && in->newest_at_end_ns != INT64_MIN)
		settle->newest_ns = later(settle->newest_ns, in->result.start_ns + in->newest_at_end_ns);
	settle->started = true;
	settle->last_interval = in->result.interval;
	settle->last_shift = in->result.sample_shift;
	if (r == 1)
		close_oldest(settle, &account);
	if (open->estimate) {
		tell_estimate(settle, open, false);
	} else if (!in->quiet) {
		struct ow_live_result result;
		make_result(settle, open, NULL, &result);
		settle->sink(settle->arg, &result);
	}
	return 0;
}

static void make_unknown(struct ow_settle_input *input)
{
	struct ow_live_result *r = &input->result;
	r->status = OW_LIVE_UNKNOWN;
	r->sent = r->received = r->matched = r->duplicated = r->ambiguous = r->samples = 0;
	r->reordered = OW_LIVE_NOT_COUNTED;
	r->exact = false;
	r->mean_ns = r->stddev_ns = r->min_ns = r->max_ns = ow_value_none("the interval is unknown");
	for (int i = 0; i < OW_QUANTILES; i++)
		r->quantile_ns[i] = r->mean_ns;
	input->only_as = input->only_bs = input->delays = 0;
	input->newest_ns = NULL;
}

/* Intervals of which nobody told: as many as something can still wait for. */
static int bridge(struct ow_settle *settle, const struct ow_live_result *next)
{
	if (!settle->started)
		return 0;
	if (next->interval <= settle->last_interval)
		return -EINVAL;
	uint64_t missing = (uint64_t)next->interval - (uint64_t)settle->last_interval - 1;
	uint64_t steps = missing <= settle->horizon ? missing : settle->horizon + UINT64_C(1);
	for (uint64_t i = 0; i < steps; i++) {
		struct ow_settle_input gap = {.result = *next, .quiet = true};
		gap.result.interval = settle->last_interval + 1;
		gap.result.start_ns = settle->end_ns;
		make_unknown(&gap);
		int r = step(settle, &gap, true, NULL);
		if (r < 0)
			return r;
	}
	ow_settle_total_gap(settle->total, missing);
	return 0;
}

int ow_settle_step(struct ow_settle *settle, const struct ow_settle_input *input)
{
	struct ow_settle_input in = *input;
	if (in.result.ambiguous > in.result.matched || in.delays > in.result.matched - in.result.ambiguous)
		return -EINVAL;
	int r = bridge(settle, &in.result);
	if (r < 0)
		return r;
	explain_drops(&in.result);
	r = step(settle, &in, false, NULL);
	if (r != -ENOSPC)
		return r;
	char text[OW_LIVE_CAUSE];
	snprintf(text, sizeof text, "more than %u packets are at one point only", OW_CARRY_PENDING_MAX);
	add_cause(&in.result, text);
	return ow_settle_unknown(settle, &in.result);
}

int ow_settle_unknown(struct ow_settle *settle, const struct ow_live_result *result)
{
	struct ow_settle_input in = {.result = *result};
	int r = bridge(settle, result);
	if (r < 0)
		return r;
	make_unknown(&in);
	return step(settle, &in, true, NULL);
}

int ow_settle_estimated(struct ow_settle *settle, const struct ow_live_result *result)
{
	struct ow_settle_input in = {.result = *result};
	int r = bridge(settle, result);
	if (r < 0)
		return r;
	struct ow_live_result *estimate = malloc(sizeof *estimate);
	if (!estimate)
		return -ENOMEM;
	*estimate = *result;
	make_unknown(&in);
	r = step(settle, &in, true, estimate);
	if (r < 0)
		free(estimate);
	return r;
}

int ow_settle_finish(struct ow_settle *settle)
{
	struct ow_carry_account account;
	settle->doubt = DOUBT_NONE;
	while (ow_carry_flush(settle->carry, &account) == 1) {
		close_oldest(settle, &account);
		settle->doubt = DOUBT_NONE;
	}
	/* More may come after all, of another clock. */
	settle->newest_ns = INT64_MIN;
	return 0;
}

void ow_settle_total(const struct ow_settle *settle, struct ow_live_result *ret_total)
{
	ow_settle_total_result(settle->total, ret_total);
}
