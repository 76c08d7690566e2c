/* SPDX-License-Identifier: Apache-2.0 */
/* When a recording has epochs: flow_cover.h. */
#include "flows/flow_cover.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
	const struct ow_flow_cover_span *x = a, *y = b;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

int ow_flow_cover_init(const struct ow_epochs *epochs, struct ow_flow_cover *ret_cover)
{
	size_t count = ow_epochs_count(epochs), kept = 0;
	struct ow_flow_cover_span *span = malloc((count + 1) * sizeof *span);
	if (!span)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct ow_epochs_span of = ow_epochs_span(epochs, i);
		span[i] = (struct ow_flow_cover_span){of.begin_ns, of.end_ns};
	}
	qsort(span, count, sizeof *span, by_begin);
	for (size_t i = 0; i < count; i++) {
		if (!kept || span[i].begin_ns > span[kept - 1].end_ns)
			span[kept++] = span[i];
		else if (span[i].end_ns > span[kept - 1].end_ns)
			span[kept - 1].end_ns = span[i].end_ns;
	}
	*ret_cover = (struct ow_flow_cover){span, kept};
	return 0;
}

void ow_flow_cover_done(struct ow_flow_cover *cover)
{
	free(cover->span);
	*cover = (struct ow_flow_cover){0};
}

/* How much of the time from begin to end is covered. */
static double covered(const struct ow_flow_cover *cover, double begin, double end)
{
	size_t low = 0, high = cover->spans;
	double sum = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((double)cover->span[middle].end_ns <= begin)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < cover->spans && (double)cover->span[low].begin_ns < end; low++)
		sum += fmin(end, (double)cover->span[low].end_ns) - fmax(begin, (double)cover->span[low].begin_ns);
	return sum;
}

double ow_flow_cover_unmet(const struct ow_flow_cover *cover, const struct ow_epochs *epochs, int64_t since_ns,
                           int64_t until_ns, double shift_ns, bool ends)
{
	double sum = 0;
	for (size_t i = 0; cover->spans && i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span of = ow_epochs_span(epochs, i);
		if (of.end_ns <= since_ns || of.begin_ns >= until_ns)
			continue;
		double begin = (double)of.begin_ns + shift_ns, end = (double)of.end_ns + shift_ns, length = end - begin;
		if (!ends) {
			begin = fmax(begin, (double)cover->span[0].begin_ns);
			end = fmin(end, (double)cover->span[cover->spans - 1].end_ns);
		}
		if (begin < end)
			sum += (double)of.packets * (end - begin - covered(cover, begin, end)) / length;
	}
	return sum;
}
