/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/shown_twice.h"

#define TIMES        3u   /* so many times what loss explains is no accident */
#define OTHERS_LEAST 100u /* so many other packets show what is lost */

/*
 * Of two packets one is lost with probability 2 p (1 - p) if p of the packets is lost. If no others show p, the pairs do: one
 * of two is lost more often than none only if p > 1/2, and then both are lost, too.
 */
uint64_t ow_shown_twice_doubtful(const struct ow_shown_twice *t)
{
	if (t->once < OW_SHOWN_TWICE_LEAST)
		return 0;
	if (t->others < OTHERS_LEAST)
		return t->once > TIMES * t->both && t->once > t->none ? t->once : 0;
	double lost = (double)t->missing / (double)t->others, pairs = (double)(t->none + t->once + t->both);
	return (double)t->once > TIMES * 2 * lost * (1 - lost) * pairs ? t->once : 0;
}
