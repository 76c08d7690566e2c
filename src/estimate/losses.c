/* SPDX-License-Identifier: Apache-2.0 */
/* Lost and extra packets from counters. */
#include "estimate/losses.h"

#include "estimate/distribution.h"
#include <math.h>

void ow_losses_add_bank(struct ow_losses *losses, const int64_t *difference, size_t buckets, double share)
{
	double m = (double)buckets, net = 0, scatter = 0;
	for (size_t i = 0; i < buckets; i++) {
		losses->surplus = losses->surplus || difference[i] < 0;
		net += (double)difference[i];
	}
	losses->sampled += share;
	losses->buckets += m;
	if (buckets < 2)
		return;
	for (size_t i = 0; i < buckets; i++)
		scatter += pow((double)difference[i] - net / m, 2);
	double v = scatter / (m - 1), extra = (m * v - net) / 2;
	/* Without differences the variance would be 0; assume that one packet was seen. */
	double variance = fmax(1, m * v * v / 2 + fmax(0, extra)) / (share * share);
	losses->weight += 1 / variance;
	losses->weighted += extra / share / variance;
}

/*
 * The largest number of packets that may stay undetected: P(a packet is not sampled, or meets one of the other kind) =
 * 1 - p + p/m; solved for 5 %.
 */
static double unseen(const struct ow_losses *l)
{
	double hidden = 1 - fmin(1, l->sampled) + fmin(1, l->sampled) / fmax(l->buckets, 1);
	return hidden >= 1 ? INFINITY : floor(log(0.05) / log(hidden));
}

double ow_losses_mixed(double lost_per_bucket, double extra_per_bucket)
{
	/* P(l = x) = e^-(l+x) I0(2 sqrt(l x)), of which e^-(l+x) are empty: 1 - 1/I0. I0 by its series. */
	double z = fmax(0, lost_per_bucket * extra_per_bucket), term = 1, bessel = 1;
	for (int n = 1; n < 1000 && term > 1e-12 * bessel && bessel < 1e12; n++) {
		term *= z / ((double)n * n);
		bessel += term;
	}
	return 1 - 1 / bessel;
}

double ow_losses_extra(const struct ow_losses *l, double *ret_variance)
{
	*ret_variance = l->weight > 0 ? 1 / l->weight : INFINITY;
	return l->weight > 0 ? l->weighted / l->weight : 0;
}

bool ow_losses_disordered(const struct ow_losses *l, double sent, double received)
{
	if (l->surplus && l->known <= 0)
		return true;
	double low = l->weight > 0 ? l->weighted / l->weight - OW_NORMAL_975 / sqrt(l->weight) : 0;
	return low - l->known > fmax(0, received - sent);
}

void ow_losses_values(const struct ow_losses *l, double sent, double received, struct ow_estimate *estimate)
{
	double net = sent - received, least = fmax(0, -net), most = received;
	double extra = l->weight > 0 ? l->weighted / l->weight - l->known : 0;
	double error = l->weight > 0 ? OW_NORMAL_975 / sqrt(l->weight) : INFINITY;
	double low = fmax(least, extra - error), high = fmax(extra, 0) + error;
	/* Without evidence of extra packets there are only those that the difference shows. */
	if (!ow_losses_disordered(l, sent, received)) {
		extra = least;
		if (l->weight > 0 && net == 0)
			high = unseen(l); /* all counters agree */
	}
	extra = fmin(most, fmax(extra, least));
	low = fmin(low, extra);
	high = fmin(most, fmax(high, extra));
	estimate->extra = (struct ow_value){OW_VALUE_ESTIMATED, extra, low, high, OW_NO_REASON};
	estimate->lost = (struct ow_value){OW_VALUE_ESTIMATED, fmax(0, net + extra), fmax(0, net + low),
	                                   fmax(0, net + high), OW_NO_REASON};
	if (sent > 0)
		estimate->loss_ratio =
			(struct ow_value){OW_VALUE_ESTIMATED, estimate->lost.value / sent, estimate->lost.low / sent,
		                          estimate->lost.high / sent, OW_NO_REASON};
	else
		estimate->loss_ratio = (struct ow_value){.reason = OW_REASON_NO_PACKET_SENT};
}
