/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/fifo.h"

#include <errno.h>
#include <stdlib.h>

#define MARKS      UINT64_C(65536) /* power of two: 1 MB */
#define PER_WINDOW 16384           /* marks of a waiting time, at each end of the path */

int ow_fifo_init(struct ow_fifo *fifo, int64_t window_ns, int64_t slack_ns)
{
	*fifo = (struct ow_fifo){
		.mark = malloc(MARKS * sizeof *fifo->mark),
		.spacing_ns = window_ns / PER_WINDOW,
		.slack_ns = slack_ns,
	};
	return fifo->mark ? 0 : -ENOMEM;
}

void ow_fifo_done(struct ow_fifo *fifo)
{
	free(fifo->mark);
	*fifo = (struct ow_fifo){0};
}

static const struct ow_fifo_mark *mark_at(const struct ow_fifo *f, uint64_t i)
{
	return &f->mark[i & (MARKS - 1)];
}

void ow_fifo_note(struct ow_fifo *f, int64_t sent_ns, int64_t received_ns)
{
	const struct ow_fifo_mark *last = mark_at(f, f->marks - 1);
	if (f->marks && (sent_ns < last->sent_ns || received_ns < last->received_ns ||
	                 (sent_ns - last->sent_ns < f->spacing_ns && received_ns - last->received_ns < f->spacing_ns)))
		return;
	f->mark[f->marks++ & (MARKS - 1)] = (struct ow_fifo_mark){sent_ns, received_ns};
}

/* The first mark that was received at time_ns or later. */
static uint64_t first_received(const struct ow_fifo *f, int64_t time_ns)
{
	uint64_t low = f->marks > MARKS ? f->marks - MARKS : 0, high = f->marks;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (mark_at(f, middle)->received_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void ow_fifo_forget(struct ow_fifo *f, int64_t received_ns)
{
	uint64_t kept = first_received(f, received_ns);
	for (uint64_t i = kept; i < f->marks; i++) {
		if (mark_at(f, i)->received_ns != received_ns)
			f->mark[kept++ & (MARKS - 1)] = *mark_at(f, i);
	}
	f->marks = kept;
}

void ow_fifo_sent(const struct ow_fifo *f, int64_t received_ns, int64_t *ret_not_before_ns, int64_t *ret_not_after_ns)
{
	uint64_t oldest = f->marks > MARKS ? f->marks - MARKS : 0;
	uint64_t behind = first_received(f, received_ns - f->slack_ns),
		 ahead = first_received(f, received_ns + f->slack_ns);
	*ret_not_before_ns = behind > oldest ? mark_at(f, behind - 1)->sent_ns - f->slack_ns : INT64_MIN;
	*ret_not_after_ns = ahead < f->marks ? mark_at(f, ahead)->sent_ns + f->slack_ns : INT64_MAX;
}
