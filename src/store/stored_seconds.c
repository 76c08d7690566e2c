/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored_seconds.h"

#include "base/time.h"
#include "store/stored_file.h"
#include <inttypes.h>
#include <stdio.h>

#define MINUTE_NS (60 * OW_NS_PER_S)
/* Minutes of the lane in the time that have more intervals than there are results. */
#define SHORT                                                                                                         \
	"lane = %" PRId64 " AND start_ns >= %" PRId64 " AND start_ns < %" PRId64 " AND intervals > (SELECT count(*) " \
	"FROM result WHERE result.lane = minute.lane AND result.final AND result.start_ns >= minute.start_ns AND "    \
	"result.start_ns < minute.start_ns + minute.length_ns)"

static int ask(const struct ow_stored *stored, const char *sql, int64_t *ret_value, struct ow_error *err)
{
	return ow_stored_source_ask(&stored->source, sql, ret_value, err);
}

int ow_stored_count(const struct ow_stored *stored, const struct ow_stored_lane *lane, int64_t since_ns,
                    int64_t until_ns, uint64_t *ret_rows, struct ow_error *err)
{
	char sql[200];
	int64_t rows = 0;
	snprintf(sql, sizeof sql,
	         "SELECT count(*) FROM result WHERE lane = %" PRId64 " AND start_ns >= %" PRId64
	         " AND start_ns < %" PRId64 " AND final",
	         lane->id, since_ns, until_ns);
	int r = ask(stored, sql, &rows, err);
	*ret_rows = (uint64_t)rows;
	return r;
}

int ow_stored_lack(const struct ow_stored *stored, const struct ow_stored_lane *lane, int64_t since_ns,
                   int64_t until_ns, struct ow_stored_lack *ret_lack, struct ow_error *err)
{
	char sql[500];
	int64_t first = 0, last = 0, newest = 0;
	if (!ow_stored_has_periods(stored))
		return 0;
	since_ns = ow_floor_div(since_ns, MINUTE_NS) * MINUTE_NS;
	snprintf(sql, sizeof sql, "SELECT coalesce(min(start_ns), 0) FROM minute WHERE " SHORT, lane->id, since_ns,
	         until_ns);
	int r = ask(stored, sql, &first, err);
	snprintf(sql, sizeof sql, "SELECT coalesce(max(start_ns + length_ns), 0) FROM minute WHERE " SHORT, lane->id,
	         since_ns, until_ns);
	if (r == 0 && first)
		r = ask(stored, sql, &last, err);
	snprintf(sql, sizeof sql, "SELECT coalesce(max(start_ns + length_ns), 0) FROM minute WHERE lane = %" PRId64,
	         lane->id);
	if (r == 0)
		r = ask(stored, sql, &newest, err);
	if (r < 0 || (!first && newest >= until_ns))
		return r;
	*ret_lack = (struct ow_stored_lack){.since_ns = first, .until_ns = last, .certain = first != 0};
	if (!first)
		ret_lack->since_ns = newest > since_ns ? newest : since_ns;
	if (newest < until_ns)
		ret_lack->until_ns = until_ns;
	return 1;
}
