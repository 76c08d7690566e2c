/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what rows say besides numbers. */
#include "web/notices.h"

#include "base/array.h"
#include "base/sort.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The start of the first of the newest `limit` ones; *ret_more: how many that start before or with it are to go. */
static int find_first(const struct ow_notices *n, int64_t *ret_first_ns, size_t *ret_more)
{
	size_t omitted = n->count - n->limit, before = 0;
	int64_t *start = reallocarray(NULL, n->count, sizeof *start);
	if (!start)
		return -ENOMEM;
	for (size_t i = 0; i < n->count; i++)
		start[i] = n->notice[i].start_ns;
	ow_sort_times(start, n->count);
	*ret_first_ns = start[omitted];
	while (start[before] < start[omitted])
		before++;
	*ret_more = omitted - before;
	free(start);
	return 0;
}

static void note_last(struct ow_notices *n, size_t at)
{
	if (!n->notice[at].of_clock)
		n->last[n->notice[at].lane] = at + 1;
}

void ow_notices_end(struct ow_notices *n)
{
	int64_t first_ns;
	size_t more, kept = 0;
	if (n->count <= n->limit)
		return;
	if (find_first(n, &first_ns, &more) < 0) {
		n->no_memory = true;
		return;
	}
	n->omitted += n->count - n->limit;
	memset(n->last, 0, n->lanes * sizeof *n->last);
	for (size_t i = 0; i < n->count; i++) {
		int64_t start_ns = n->notice[i].start_ns;
		if (start_ns < first_ns)
			continue;
		if (start_ns == first_ns && more) {
			more--;
			continue;
		}
		n->notice[kept] = n->notice[i];
		note_last(n, kept++);
	}
	n->count = kept;
}

static int make_room(struct ow_notices *n, size_t lane)
{
	int r = OW_GROW_ZEROED(n->last, n->lanes, lane + 1);
	return r < 0 ? r : OW_GROW(n->notice, n->room, n->count + 1);
}

static void add(struct ow_notices *n, const struct ow_notice *notice)
{
	if (make_room(n, notice->lane) < 0) {
		n->no_memory = true;
		return;
	}
	size_t at = notice->of_clock ? 0 : n->last[notice->lane];
	struct ow_notice *before = at ? &n->notice[at - 1] : NULL;
	if (before && before->status == notice->status && strcmp(before->text, notice->text) == 0 &&
	    notice->start_ns <= before->end_ns) {
		before->end_ns = notice->end_ns;
		before->intervals += notice->intervals;
		return;
	}
	n->notice[n->count++] = *notice;
	note_last(n, n->count - 1);
	/* Seldom, so that it costs little for each. */
	if (n->count >= 2 * n->limit + 16)
		ow_notices_end(n);
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
	free(notices->last);
	*notices = (struct ow_notices){0};
}
