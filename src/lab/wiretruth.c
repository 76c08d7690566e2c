/* SPDX-License-Identifier: Apache-2.0 */
/* The truth by interval. A copy that leaves after its interval was reported counts in the oldest open one. */
#include "lab/wiretruth.h"

#include "base/time.h"
#include "estimate/tally.h"
#include <errno.h>
#include <stdlib.h>

/* Open intervals: enough for 10 ms of length and packets that take 10 s. Beyond, packets count in the last. */
#define OPEN_MAX 1024

struct slot {
	struct ow_tally tally;
	uint64_t pending, bytes, queue_full;
};

struct ow_wiretruth {
	int64_t length_ns;
	int64_t first;               /* number of the oldest open interval */
	struct slot *open[OPEN_MAX]; /* interval i is at i % OPEN_MAX; NULL = no packets */
	struct slot *spare;
	struct slot total;
	int64_t first_ns, last_ns;
	uint64_t newest; /* highest number that went out */
};

static struct slot *slot_create(void)
{
	struct slot *slot = calloc(1, sizeof *slot);
	if (slot && ow_tally_init(&slot->tally) < 0) {
		free(slot);
		return NULL;
	}
	return slot;
}

static void slot_free(struct slot *slot)
{
	if (slot)
		ow_tally_done(&slot->tally);
	free(slot);
}

int ow_wiretruth_create(int64_t interval_ns, int64_t start_ns, struct ow_wiretruth **ret_truth)
{
	struct ow_wiretruth *truth = calloc(1, sizeof *truth);
	if (!truth)
		return -ENOMEM;
	truth->length_ns = interval_ns;
	truth->first = ow_floor_div(start_ns, interval_ns);
	if (ow_tally_init(&truth->total.tally) < 0) {
		free(truth);
		return -ENOMEM;
	}
	*ret_truth = truth;
	return 0;
}

void ow_wiretruth_free(struct ow_wiretruth *truth)
{
	if (!truth)
		return;
	for (size_t i = 0; i < OPEN_MAX; i++)
		slot_free(truth->open[i]);
	slot_free(truth->spare);
	ow_tally_done(&truth->total.tally);
	free(truth);
}

static struct slot **place(struct ow_wiretruth *truth, int64_t interval)
{
	return &truth->open[interval % OPEN_MAX];
}

int ow_wiretruth_in(struct ow_wiretruth *truth, int64_t in_ns, uint32_t bytes, int64_t *ret_interval)
{
	int64_t i = ow_floor_div(in_ns, truth->length_ns);
	if (i < truth->first)
		i = truth->first;
	if (i - truth->first >= OPEN_MAX)
		i = truth->first + OPEN_MAX - 1;
	struct slot **at = place(truth, i);
	if (!*at) {
		*at = truth->spare ? truth->spare : slot_create();
		truth->spare = NULL;
		if (!*at)
			return -ENOMEM;
	}
	(*at)->pending++;
	(*at)->bytes += bytes;
	if (!truth->total.bytes)
		truth->first_ns = in_ns;
	truth->last_ns = in_ns;
	truth->total.pending++;
	truth->total.bytes += bytes;
	*ret_interval = i;
	return 0;
}

static void arrive(struct slot *slot, int64_t in_ns, int64_t out_ns, bool reordered)
{
	slot->pending--;
	ow_tally_match(&slot->tally, OW_TALLY_UNPLACED, in_ns, out_ns, 1);
	ow_tally_sample(&slot->tally, out_ns - in_ns, 1);
	slot->tally.reordered += reordered;
}

void ow_wiretruth_out(struct ow_wiretruth *truth, int64_t interval, uint64_t number, int64_t in_ns, int64_t out_ns)
{
	/* Across intervals: a packet of this one may be overtaken by one of the next (RFC 4737). */
	bool reordered = number < truth->newest;
	if (!reordered)
		truth->newest = number;
	arrive(*place(truth, interval), in_ns, out_ns, reordered);
	arrive(&truth->total, in_ns, out_ns, reordered);
}

static void lose(struct slot *slot, bool queue_full)
{
	slot->pending--;
	slot->tally.lost++;
	slot->queue_full += queue_full;
}

void ow_wiretruth_lost(struct ow_wiretruth *truth, int64_t interval, bool queue_full)
{
	lose(*place(truth, interval), queue_full);
	lose(&truth->total, queue_full);
}

void ow_wiretruth_copy(struct ow_wiretruth *truth, int64_t interval)
{
	struct slot *slot = *place(truth, interval < truth->first ? truth->first : interval);
	if (slot) {
		slot->tally.extra++;
		slot->tally.duplicated++;
	}
	truth->total.tally.extra++;
	truth->total.tally.duplicated++;
}

static void report(struct slot *slot, int64_t start_ns, int64_t length_ns, struct ow_wiretruth_report *ret_report)
{
	*ret_report = (struct ow_wiretruth_report){.start_ns = start_ns, .length_ns = length_ns};
	ret_report->result.exact = true;
	if (!slot)
		return;
	ow_tally_flush(&slot->tally);
	ow_tally_result(&slot->tally, &ret_report->result);
	ret_report->bytes = slot->bytes;
	ret_report->queue_full = slot->queue_full;
}

bool ow_wiretruth_next(struct ow_wiretruth *truth, int64_t passed_ns, struct ow_wiretruth_report *ret_report)
{
	struct slot **at = place(truth, truth->first), *slot = *at;
	if ((truth->first + 1) * truth->length_ns > passed_ns || (slot && slot->pending))
		return false;
	report(slot, truth->first * truth->length_ns, truth->length_ns, ret_report);
	*at = NULL;
	truth->first++;
	if (slot && !truth->spare) {
		ow_tally_reset(&slot->tally);
		slot->bytes = slot->queue_full = 0;
		truth->spare = slot;
	} else {
		slot_free(slot);
	}
	return true;
}

void ow_wiretruth_total(struct ow_wiretruth *truth, struct ow_wiretruth_report *ret_report)
{
	report(&truth->total, truth->first_ns, truth->last_ns - truth->first_ns, ret_report);
}
