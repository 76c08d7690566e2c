/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines in which direction probes were lost. A reflector counts what arrives. Between the highest number of the
 * probes before a gap and the lowest of those after it, the missing numbers are those of probes of the gap (or copies
 * of probes) that arrived and whose replies were lost. The rest did not arrive.
 */
#include "active/probes_private.h"

#include <assert.h>

/* Goes from the newest probe back, and stores for each what follows it. */
static void look_ahead(struct ow_probes *p, uint64_t first)
{
	bool followed = false;
	uint32_t epoch = 0;
	int64_t low = 0;
	for (uint64_t n = p->next; n-- > first;) {
		struct ow_probes_slot *slot = ow_probes_slot(p, n);
		if (slot->answered) {
			bool same = followed && epoch == slot->epoch;
			low = same && low < slot->low ? low : slot->low;
			epoch = slot->epoch;
			followed = true;
		}
		slot->followed = followed;
		slot->next_epoch = epoch;
		slot->next_low = low;
	}
}

/* The probes without reply from n on, up to the next reply, and those of them that are decided now. */
static uint64_t gap_from(const struct ow_probes *p, uint64_t n, uint64_t end, int64_t closing_ns, uint64_t *ret_inside)
{
	uint64_t gap = 0;
	*ret_inside = 0;
	for (; n < p->next && !ow_probes_slot(p, n)->answered; n++) {
		if (ow_probes_slot(p, n)->skipped)
			continue;
		gap++;
		*ret_inside += n < end && ow_probes_slot(p, n)->sent_ns <= closing_ns;
	}
	return gap;
}

/* n: the first probe of a gap, or of its part in this interval. */
static void settle_gap(struct ow_probes *p, uint64_t n, uint64_t end, int64_t closing_ns, struct ow_probes_fate *fate)
{
	const struct ow_probes_slot *slot = ow_probes_slot(p, n);
	uint64_t inside, gap = p->left_gap + gap_from(p, n, end, closing_ns, &inside);
	int64_t missing = -1;
	if (p->stateful && p->left && slot->followed && slot->next_epoch == p->left_epoch)
		missing = slot->next_low - p->left_high - 1;
	p->left_gap += inside;
	if (missing == 0)
		fate->lost_there += inside;
	else if (missing > 0 && (uint64_t)missing == gap)
		fate->lost_back += inside;
	else if (missing > 0 && (uint64_t)missing < gap && inside == gap) {
		fate->lost_back += (uint64_t)missing;
		fate->lost_there += gap - (uint64_t)missing;
	} else {
		fate->undecided += inside;
	}
}

static void pass(struct ow_probes *p, uint64_t n, struct ow_probes_fate *fate)
{
	const struct ow_probes_slot *slot = ow_probes_slot(p, n), *next = ow_probes_slot(p, n + 1);
	fate->answered++;
	/* RFC 4737: a packet that was sent later has arrived before. */
	if (n + 1 < p->next && next->followed && next->next_epoch == slot->epoch && next->next_low < slot->low)
		fate->reordered_there++;
	if (!p->left || p->left_epoch != slot->epoch || slot->high > p->left_high)
		p->left_high = slot->high;
	p->left_epoch = slot->epoch;
	p->left = true;
	p->left_gap = 0;
}

void ow_probes_settle(struct ow_probes *p, uint64_t first, uint64_t end, int64_t closing_ns,
                      struct ow_probes_fate *ret_fate)
{
	struct ow_probes_fate *fate = ret_fate;
	*fate = (struct ow_probes_fate){0};
	look_ahead(p, first);
	bool in_gap = false;
	for (uint64_t n = first; n < end; n++) {
		const struct ow_probes_slot *slot = ow_probes_slot(p, n);
		if (slot->skipped)
			continue;
		fate->sent++;
		if (slot->answered) {
			pass(p, n, fate);
			in_gap = false;
		} else if (slot->sent_ns > closing_ns) {
			fate->undecided++;
			fate->under_way++;
		} else if (!in_gap) {
			settle_gap(p, n, end, closing_ns, fate);
			in_gap = true;
		}
	}
	assert(fate->sent == fate->answered + fate->lost_there + fate->lost_back + fate->undecided);
}
