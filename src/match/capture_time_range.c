/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the time range of a capture, and whether its frames are in the order of time. */
#include "match/capture_time_range.h"

#include "base/time.h"
#include "capture/file/reader.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH     256
#define TIME_TEXT 40

void ow_order_init(struct ow_order *order, int64_t tolerance_ns)
{
	*order = (struct ow_order){.tolerance_ns = tolerance_ns, .block_ns = INT64_MAX, .level_ns = INT64_MIN};
}

void ow_order_add(struct ow_order *order, const struct ow_frame *frame)
{
	int64_t time_ns = frame->time_ns;
	if (time_ns == 0)
		return;
	if (order->level_ns != INT64_MIN && order->level_ns - time_ns > order->tolerance_ns && order->late++ == 0) {
		order->late_ns = time_ns;
		order->late_number = frame->number;
		order->late_level_ns = order->level_ns;
		order->late_level_number = order->level_number;
	}
	if (order->in_block == 0)
		order->block_first = frame->number;
	order->block_ns = time_ns < order->block_ns ? time_ns : order->block_ns;
	if (++order->in_block < OW_ORDER_BLOCK)
		return;
	if (order->block_ns > order->level_ns) {
		order->level_ns = order->block_ns;
		order->level_number = order->block_first;
	}
	order->in_block = 0;
	order->block_ns = INT64_MAX;
}

static const char *time_text(int64_t time_ns, char text[TIME_TEXT])
{
	int64_t s = ow_floor_div(time_ns, OW_NS_PER_S);
	time_t seconds = (time_t)s;
	struct tm tm;
	char day[TIME_TEXT - 10];
	if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		day[0] = 0;
	snprintf(text, TIME_TEXT, "%s.%03dZ", day, (int)((time_ns - s * OW_NS_PER_S) / OW_NS_PER_MS));
	return text;
}

int ow_order_check(const struct ow_order *order, const char *path, struct ow_error *err)
{
	char late[TIME_TEXT], level[TIME_TEXT];
	if (order->late < OW_ORDER_BLOCK)
		return 0;
	return ow_error_set(
		err, EINVAL,
		"%.200s: not in the order of time: packet %llu is of %s, packet %llu of %s; %llu packets come too "
		"late: sort it first (reordercap FILE OUT)",
		path, (unsigned long long)order->late_level_number, time_text(order->late_level_ns, level),
		(unsigned long long)order->late_number, time_text(order->late_ns, late),
		(unsigned long long)order->late);
}

static void add_frame(struct ow_capture_time_range *span, const struct ow_frame *frame, int64_t *previous_ns)
{
	int64_t time_ns = frame->time_ns;
	if (time_ns == 0) {
		span->untimed++;
		return;
	}
	if (*previous_ns != INT64_MIN && llabs(time_ns - *previous_ns) > llabs(span->gap_ns)) {
		span->gap_ns = time_ns - *previous_ns;
		span->gap_number = frame->number;
	}
	*previous_ns = time_ns;
	span->first_ns = time_ns < span->first_ns ? time_ns : span->first_ns;
	span->last_ns = time_ns > span->last_ns ? time_ns : span->last_ns;
}

static int read_all(struct ow_reader *reader, struct ow_capture_time_range *span, struct ow_order *order,
                    struct ow_error *err)
{
	struct ow_frame frames[BATCH];
	int64_t previous_ns = INT64_MIN;
	int r;
	while ((r = ow_reader_read(reader, frames, BATCH, err)) > 0) {
		for (int i = 0; i < r; i++) {
			add_frame(span, &frames[i], &previous_ns);
			ow_order_add(order, &frames[i]);
		}
	}
	return r;
}

int ow_capture_time_range_of_file(const char *path, int64_t tolerance_ns, struct ow_capture_time_range *ret_span,
                                  struct ow_error *err)
{
	struct ow_reader *reader;
	struct ow_capture_time_range span = {.first_ns = INT64_MAX, .last_ns = INT64_MIN};
	struct ow_order order;
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	ow_order_init(&order, tolerance_ns);
	r = read_all(reader, &span, &order, err);
	ow_reader_close(reader);
	if (r == 0)
		r = ow_order_check(&order, path, err);
	if (r < 0)
		return r;
	if (span.first_ns > span.last_ns)
		return ow_error_set(err, ENODATA, "%.200s: no packets%s", path,
		                    span.untimed ? " with a time (all are 0, or impossible)" : "");
	*ret_span = span;
	return 0;
}
