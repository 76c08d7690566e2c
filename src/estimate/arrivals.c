/* SPDX-License-Identifier: Apache-2.0 */
/* The order of arrival: arrivals.h. */
#include "estimate/arrivals.h"

#include "base/hash.h"
#include <stdlib.h>

static int by_arrival(const void *a, const void *b)
{
	const struct ow_arrival *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? 1 : -1;
	return (x->place > y->place) - (x->place < y->place);
}

void ow_arrivals_sort(struct ow_arrival *arrival, size_t count)
{
	if (count)
		qsort(arrival, count, sizeof *arrival, by_arrival);
}

uint64_t ow_arrivals_check(const struct ow_arrival *arrival, size_t count)
{
	uint64_t check = 0;
	for (size_t i = 0; i < count; i++)
		check = ow_mix64(check + arrival[i].number);
	return check;
}

void ow_arrivals_next(struct ow_arrivals_newest *newest, int64_t sent_ns, uint32_t place)
{
	if (sent_ns < newest->sent_ns || (sent_ns == newest->sent_ns && place < newest->place)) {
		newest->reordered++;
	} else {
		newest->sent_ns = sent_ns;
		newest->place = place;
	}
}
