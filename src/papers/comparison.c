/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/comparison.h"

#include <math.h>

/* The error of exact quantiles, and of the last digits of sums. */
#define EXACT_WITHIN  1e-3
#define DIGITS_WITHIN 1e-9

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
	double room = (value->status == OW_VALUE_EXACT ? EXACT_WITHIN : DIGITS_WITHIN) * fabs(truth);
	return value->low <= truth + room && truth - room <= value->high;
}
