/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of waiting, for the files of the matcher. */
#include "reconcile/matching.h"

#include "reconcile/byte_range_index.h"
#include <errno.h>

int ow_matching_wait(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	bool copy = ow_recent_has(m->recent, ow_matching_copy_id(record), record->time_ns, m->window_ns);
	if (record->len && !m->waiting.node && ow_byte_range_index_room(&m->waiting, m->waiting.entries) < 0)
		return -ENOMEM;
	uint32_t i = ow_matching_new_waiter(m, side, record, copy);
	if (i == OW_NOBODY)
		return -ENOMEM;
	if (q == OW_NOBODY)
		q = ow_waiting_new_queue(&m->waiting, record->id);
	if (q == OW_NOBODY) {
		ow_waiting_release(&m->waiting, i);
		return -ENOMEM;
	}
	ow_waiting_enqueue(&m->waiting, q, i);
	ow_waiting_start(&m->waiting, i);
	return 0;
}

/* No identical packet waits. */
static void give_up_alone(struct ow_matcher *m, uint32_t i)
{
	struct ow_waiter *e = &m->waiting.entry[i];
	*ow_waiting_alone(&m->waiting, e->record.id) = e->next;
	ow_waiting_stop(&m->waiting, i);
	ow_matching_calls(m)->unmatched(m->calls.arg, (enum ow_side)e->side, &e->record, false);
	ow_waiting_release(&m->waiting, i);
}

void ow_matching_give_up(struct ow_matcher *m, uint32_t i)
{
	struct ow_waiter *e = &m->waiting.entry[i];
	uint32_t q = e->queue;
	if (q == OW_NOBODY) {
		give_up_alone(m, i);
		return;
	}
	ow_waiting_stop(&m->waiting, i);
	ow_waiting_dequeue(&m->waiting, i);
	ow_matching_calls(m)->unmatched(m->calls.arg, (enum ow_side)e->side, &e->record, e->copy);
	ow_waiting_release(&m->waiting, i);
	ow_matching_leave(m, q);
}
