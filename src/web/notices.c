/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what rows say besides numbers. */
#include "web/notices.h"

#include "base/array.h"
#include <stdlib.h>
#include <string.h>

/* So many notices are looked through for the one before of the same lane. */
#define BACK 512

static struct ow_notice *last_of(struct ow_notices *n, const struct ow_notice *notice)
{
	for (size_t i = n->count; i > 0 && n->count - i < BACK; i--) {
		struct ow_notice *before = &n->notice[i - 1];
		if (before->lane == notice->lane && before->of_clock == notice->of_clock)
			return before;
	}
	return NULL;
}

static void add(struct ow_notices *n, const struct ow_notice *notice)
{
	struct ow_notice *before = notice->of_clock ? NULL : last_of(n, notice);
	if (before && before->status == notice->status && strcmp(before->text, notice->text) == 0 &&
	    notice->start_ns <= before->end_ns) {
		before->end_ns = notice->end_ns;
		before->intervals += notice->intervals;
	} else if (n->count == n->limit) {
		n->omitted++;
	} else if (OW_GROW(n->notice, n->room, n->count + 1) < 0) {
		n->no_memory = true;
	} else {
		n->notice[n->count++] = *notice;
	}
}

void ow_notices_add(void *arg, const struct ow_stored_notice *row)
{
	struct ow_notices *n = arg;
	struct ow_notice notice = {.lane = row->lane,
	                           .status = row->status,
	                           .start_ns = row->start_ns,
	                           .end_ns = row->end_ns,
	                           .intervals = row->intervals};
	if (row->status != OW_RESULT_MEASURED) {
		snprintf(notice.text, sizeof notice.text, "%s", row->cause);
		add(n, &notice);
	}
	if (n->clocks && *row->clock_event) {
		notice.of_clock = true;
		snprintf(notice.text, sizeof notice.text, "%s", row->clock_event);
		add(n, &notice);
	}
}

void ow_notices_done(struct ow_notices *notices)
{
	free(notices->notice);
	*notices = (struct ow_notices){0};
}
