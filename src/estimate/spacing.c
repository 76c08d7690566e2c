/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/spacing.h"

#include <math.h>

uint64_t ow_spacing_closer(const struct ow_spacing *spacing, int64_t reach_ns)
{
	uint64_t packets = 0;
	for (unsigned i = 0; i < OW_SPACING_BINS - 1 && INT64_C(1) << i < reach_ns; i++)
		packets += spacing->count[i];
	return packets;
}

double ow_spacing_overtaken(const struct ow_spacing *spacing, int64_t reach_ns)
{
	double packets = 0;
	for (unsigned i = 0; i < OW_SPACING_BINS - 1; i++)
		packets += (double)spacing->count[i] * fmax(0, 1 - ldexp(2, (int)i) / (double)reach_ns);
	return packets;
}
