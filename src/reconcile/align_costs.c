/* SPDX-License-Identifier: Apache-2.0 */
/* The costs of assignments of identical packets. Prices are approximately negative logarithms of probabilities. */
#include "reconcile/align_private.h"

#include <math.h>

#define UNUSUAL     0.3 /* a delay outside of the usual ones */
#define FASTER      4.0 /* a delay that is shorter than the smallest of the others by a fraction of it */
#define FASTER_PART 64
/* a delay that is twice as long as the usual ones and FAR_NS; the same again for each further factor of two */
#define FAR_OCTAVE    3.0
#define FAR_NS        1e6
#define ACAUSAL       9.0  /* a delay below 0 */
#define NEGATIVE      2.0  /* the same if it is allowed, when choosing */
#define OUTSIDE       4.0  /* an arrival from before or after the capture: more than the usual price of one inside */
#define BEFORE_CHOICE 8.0  /* an arrival from before the capture, when choosing */
#define OUTSIDE_ANY   2.0  /* the same if delays may be below 0 */
#define OVERTAKES     4.0  /* a packet that was sent after one of the same path, and arrived before it */
#define COPY_NS       1e6  /* a copy costs 1 more for each of these that it is later than the previous one */
#define FEW_SIGMA     3.0  /* changes of the delay that are usual */
#define SLACK_NS      2000 /* two ticks of a microsecond clock */

uint32_t ow_align_below(const double *time, uint32_t count, double limit)
{
	uint32_t low = 0;
	while (low < count) {
		uint32_t middle = low + (count - low) / 2;
		if (time[middle] < limit)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

double ow_align_offset(const struct ow_aligner *a, int64_t time_ns)
{
	if (time_ns == INT64_MIN || time_ns == INT64_MAX)
		return time_ns < 0 ? -INFINITY : INFINITY;
	return ow_align_since_base(a, time_ns);
}

/* The price of the delay itself. */
static double delay_cost(const struct ow_align_model *model, const struct ow_align_view *v, double turned_delay)
{
	double d = turned_delay * v->sign, cost = 0, least = model->ranged ? (double)model->least_ns : 0;
	if (model->ranged && d > (double)model->high_ns)
		cost += fmax(UNUSUAL, FAR_OCTAVE * log2(d / ((double)model->high_ns + FAR_NS)));
	else if (model->ranged && least > 0 && d < least)
		cost += FASTER * fmin(1, (least - d) / (least / FASTER_PART + SLACK_NS));
	if (model->causal && d < -SLACK_NS)
		cost += ACAUSAL;
	if (v->shortest > 0 && !model->ranged && d < -SLACK_NS)
		cost += NEGATIVE;
	/* This grows slowly: a long delay is preferred to a loss. */
	return v->shortest > 0 ? cost + log1p(v->shortest * fabs(d - v->usual)) / 2 : cost;
}

double ow_align_pair_cost(const struct ow_align_model *model, const struct ow_align_view *v, uint32_t i, uint32_t j)
{
	bool overtakes = v->sent[i] < v->not_before[j] || v->sent[i] > v->not_after[j];
	return delay_cost(model, v, v->received[j] - v->sent[i]) + (overtakes ? OVERTAKES : 0);
}

/* An arrival from before or after the sender's capture. If delays may be below 0, it is as likely as a pair. */
static double outside_cost(const struct ow_align_model *model)
{
	return model->causal ? OUTSIDE : OUTSIDE_ANY;
}

/* The same for those before it, when choosing: if both captures start before the traffic, they show all of it. */
static double before_cost(const struct ow_align_model *model, const struct ow_align_view *v)
{
	return v->shortest > 0 ? BEFORE_CHOICE : outside_cost(model);
}

/*
 * Leading arrivals: those that were sent before the capture started are outside of it, and nobody sent the others. With
 * the delay d of the first pair; or with another one, at the price of its change: a little longer, or any.
 */
static double leading_arrivals(const struct ow_align_model *model, const struct ow_align_view *v, uint32_t j, double d)
{
	double longest = v->sign > 0 ? (double)model->window_ns : -(double)model->soonest_ns;
	const double delay[] = {d, fmin(d + FEW_SIGMA * model->sigma_ns, longest), longest};
	const double price[] = {0, FEW_SIGMA, model->jump};
	double least = INFINITY;
	for (int k = 0; k < 3; k++) {
		uint32_t outside = ow_align_below(v->received, j, v->sent_from + delay[k]);
		/* The last of those outside took at least this long. */
		double took = outside ? fmax(d, v->received[outside - 1] - v->sent_from) : d;
		double each = before_cost(model, v) + delay_cost(model, v, took);
		/* Others that were sent while the capture ran arrived before these. */
		uint32_t inside = outside - ow_align_below(v->not_before, outside, nextafter(v->sent_from, INFINITY));
		double cost = v->skip[j] - v->skip[outside] + outside * each + inside * OVERTAKES + price[k];
		/*
		 * If packets are copied, an arrival shortly before the first one that counts is probably the same
		 * packet.
		 */
		if (v->sign > 0 && j && outside == j && model->copy < OW_ALIGN_NO_COPIES &&
		    v->received[j] - v->received[j - 1] < COPY_NS)
			cost += model->copy;
		least = fmin(least, cost);
	}
	return least;
}

/* Leading packets are lost, as far as the receiver's capture covers them. */
double ow_align_lead(const struct ow_align_model *model, const struct ow_align_view *v, uint32_t i, uint32_t j)
{
	double d = v->received[j] - v->sent[i];
	uint32_t lost = i - ow_align_below(v->sent, i, v->received_from - d);
	return model->loss * lost + (j ? leading_arrivals(model, v, j, d) : 0);
}

/* Arrivals before it that were certainly sent while the sender's capture ran have to be skipped. */
bool ow_align_may_start(const struct ow_aligner *a, const struct ow_align_view *v, uint32_t j)
{
	if (!v->starts)
		return false;
	uint32_t outside = ow_align_below(v->received, j, v->sent_from + (double)a->model.window_ns);
	return v->skip[j] - v->skip[outside] < OW_ALIGN_BEAM;
}

/* The arrivals after j, if those that are later than the end of the sender's capture by d are outside of it. */
static double last_arrivals(const struct ow_aligner *a, const struct ow_align_view *v, uint32_t j, double d)
{
	uint32_t rest = a->receiveds - j - 1;
	double sent_to = ow_align_offset(a, a->model.sent_to_ns);
	uint32_t unsent = ow_align_below(a->received + j + 1, rest, nextafter(sent_to + d, INFINITY));
	double cost = a->skip[j + 1 + unsent] - a->skip[j + 1];
	if (unsent == rest)
		return cost;
	/* The first of those outside took at most this long. */
	double took = fmin(d, a->received[j + 1 + unsent] - sent_to);
	/* Others that were sent while the capture ran arrived after these. */
	uint32_t inside = ow_align_below(a->not_after + j + 1 + unsent, rest - unsent, sent_to);
	return cost + inside * OVERTAKES +
	       (rest - unsent) * (outside_cost(&a->model) + (v ? delay_cost(&a->model, v, took) : 0));
}

/* As in ow_align_lead, but for the end. */
double ow_align_tail(const struct ow_aligner *a, const struct ow_align_view *v, uint32_t i, uint32_t j)
{
	const struct ow_align_model *model = &a->model;
	double d = a->received[j] - a->sent[i], soonest = (double)model->soonest_ns;
	double sent_until = nextafter(ow_align_offset(a, model->received_to_ns) - d, INFINITY);
	uint32_t lost = model->ends ? ow_align_below(a->sent + i + 1, a->sents - i - 1, sent_until) : 0;
	double arrivals = last_arrivals(a, v, j, d);
	if (model->sent_to_ns != INT64_MAX) {
		double shorter = fmax(d - FEW_SIGMA * model->sigma_ns, soonest);
		arrivals = fmin(arrivals, last_arrivals(a, v, j, shorter) + FEW_SIGMA);
		arrivals = fmin(arrivals, last_arrivals(a, v, j, soonest) + model->jump);
	}
	return model->loss * lost + arrivals;
}

double ow_align_least_tail(const struct ow_aligner *a, uint32_t j)
{
	return last_arrivals(a, NULL, j, (double)a->model.soonest_ns);
}

/* If there are very many copies, arrivals that are close together are no evidence of copies. */
double ow_align_skip_cost(const struct ow_aligner *a, double since_last)
{
	double cost = a->width == OW_ALIGN_WIDTH ? a->model.copy + since_last / COPY_NS : OW_ALIGN_EXTRA;
	return cost < OW_ALIGN_EXTRA ? cost : OW_ALIGN_EXTRA;
}

bool ow_align_start_together(const struct ow_aligner *a)
{
	double apart = a->receiveds && a->sents ? a->received[0] - a->sent[0] : -1;
	return apart >= 0 && apart < (double)a->model.window_ns / 2;
}
