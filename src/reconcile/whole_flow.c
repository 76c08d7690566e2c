/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/whole_flow.h"

#include <math.h>

#define ABSENT_MIN 1e-5
#define LOSS_MIN   1e-6
#define LOSS_MAX   .95

double ow_usual_loss(double lost, double sent)
{
	return fmin(fmax((lost + .1) / (sent + 100), LOSS_MIN), LOSS_MAX);
}

double ow_absent_usual(double absent, double flows)
{
	return fmax(absent / (flows + 20), ABSENT_MIN);
}

double ow_absent_share(const struct ow_flow_share *network, double wider)
{
	if (!network)
		return wider;
	return fmax(((double)network->absent + 4 * wider) / ((double)network->flows + 4), ABSENT_MIN);
}

double ow_absent_chance(double share, double log_like)
{
	return share / (share + (1 - share) * exp(log_like));
}
