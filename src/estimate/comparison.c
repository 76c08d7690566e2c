/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/comparison.h"

#include <math.h>

#define EXACT_WITHIN 1e-3

double ow_compare_error(const struct ow_value *value, double truth)
{
	if (value->status == OW_VALUE_NONE)
		return NAN;
	if (value->value == truth)
		return 0;
	return truth != 0 ? (value->value - truth) / fabs(truth) : NAN;
}

bool ow_compare_covers(const struct ow_value *value, double truth)
{
	double room = EXACT_WITHIN * fabs(truth);
	return value->low <= truth + room && truth - room <= value->high;
}
