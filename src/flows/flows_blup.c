/* SPDX-License-Identifier: Apache-2.0 */
/* Best linear unbiased prediction of each flow from one of its counters (formulas 3.8). */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int ow_flows_blup(const struct ow_flow_system *system, const struct ow_flow_prior *prior, struct ow_flow_mean *ret)
{
	double *residual = calloc(system->rows + 1, sizeof *residual);
	double *variance = calloc(system->rows + 1, sizeof *variance);
	if (!residual || !variance) {
		free(residual);
		free(variance);
		return -ENOMEM;
	}
	ow_flow_residuals(system, prior, residual, variance);
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		double v = prior->var[f], best = 0;
		ret[f] = (struct ow_flow_mean){prior->mean[f], v};
		/* Of several banks, uses the counter of which the flow has the largest share. */
		for (uint32_t j = 0; j < system->slots; j++) {
			double n = e[j].load, s = variance[e[j].row];
			if (!(n > 0) || !(s > 0) || n * n * v / s <= best)
				continue;
			best = n * n * v / s;
			ret[f].mean = prior->mean[f] + v * n * residual[e[j].row] / s;
			ret[f].var = v * fmax(1 - best, 0);
		}
	}
	free(residual);
	free(variance);
	return 0;
}
