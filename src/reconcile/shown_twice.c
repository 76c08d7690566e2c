/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/shown_twice.h"

#include "base/time.h"

#include <stdbool.h>

#define TIMES        3u   /* so many times what loss explains is no accident */
#define OTHERS_LEAST 100u /* so many other packets show what is lost */
#define CLOSE_NS     OW_NS_PER_MS

void ow_shown_twice_note(struct ow_shown_twice *twice, int64_t first_ns, int64_t second_ns, uint64_t arrived)
{
	int64_t lag_ns = second_ns - first_ns;
	twice->close[arrived] += -CLOSE_NS <= lag_ns && lag_ns <= CLOSE_NS;
	twice->all[arrived]++;
}

/*
 * Of two packets one is lost with probability 2 p (1 - p) if p of the packets is lost. If no others show p, the pairs do: one
 * of two is lost more often than none only if p > 1/2, and then both are lost, too.
 */
uint64_t ow_shown_twice_doubtful(const struct ow_shown_twice *t)
{
	bool most = t->all[0] + t->all[1] + t->all[2] > t->others;
	uint64_t none = most ? t->all[0] : t->close[0], once = most ? t->all[1] : t->close[1],
		 both = most ? t->all[2] : t->close[2];
	if (once < OW_SHOWN_TWICE_LEAST)
		return 0;
	if (t->others < OTHERS_LEAST)
		return once > TIMES * both && once > none ? once + t->again : 0;
	double lost = (double)t->missing / (double)t->others, pairs = (double)(none + once + both);
	return (double)once > TIMES * 2 * lost * (1 - lost) * pairs ? once + t->again : 0;
}
