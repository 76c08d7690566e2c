/* SPDX-License-Identifier: Apache-2.0 */
/* Adds stored results up, in one pass over them in the order of time. */
#include "store/stored_sum.h"

#include "base/array.h"
#include "base/text.h"
#include "base/time.h"
#include "result/fields.h"
#include "result/group_results.h"
#include "result/rollup.h"
#include "store/stored_file.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Enough for the hours of ten years; nobody reads more. */
#define SUMS_MAX (1u << 20)
/* A longer pause is not a row of missing intervals, but another run. */
#define MISSING_MAX UINT64_C(1000000000)

#define ORDER "ORDER BY start_ns, lane"

/* Columns with a special meaning; behind them are those of the fields that are added up. */
enum column {
	LANE,
	START,
	LENGTH,
	FINAL,
	STATUS,
	CAUSE,
	SHIFT,
	MEAN,
	STDDEV,
	MIN,
	MAX,
	P99,
	LOSS,
	CLOCK_FROM,
	CLOCK_TO,
	OFFSET,
	OFFSET_LOW,
	OFFSET_HIGH,
	METHOD,
	EVENT,
	ACTIVE,
	INTERVALS,
	PARTIAL,
	UNKNOWN,
	DELAYS,
	HISTOGRAM,
	COUNTS,
};
static const char own_columns[] =
	"lane, start_ns, length_ns, final, status, cause, sample_shift, mean_ns, stddev_ns, min_ns, max_ns, p99_ns, "
	"loss_ratio, clock_error_from_ns, clock_error_to_ns";

/* Those of later versions of the schema. */
static const struct {
	int since;
	const char *columns, *before; /* and what earlier ones have instead */
} later_columns[] = {
	{5, ", clock_offset_ns, clock_offset_low_ns, clock_offset_high_ns, clock_method, clock_event",
         ", NULL, NULL, NULL, NULL, NULL"},
	{3, ", active", ", 0"},
	{OW_STORED_PERIODS_SINCE, ", intervals, intervals_partial, intervals_unknown, delay_packets, delay_histogram",
         ", 0, 0, 0, 0, NULL"},
};

/* The next field that is added up; NULL if there are no more. Begins with *at = 0. */
static const struct ow_field *next_count(size_t *at)
{
	while (*at < ow_field_count) {
		const struct ow_field *field = &ow_fields[(*at)++];
		if (field->sum == OW_SUM_ADD)
			return field;
	}
	return NULL;
}

static char *columns_of(const struct ow_stored *stored)
{
	struct ow_text text;
	size_t at = 0;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	fputs(own_columns, out);
	for (size_t i = 0; i < sizeof later_columns / sizeof *later_columns; i++)
		fputs(stored->source.version >= later_columns[i].since ? later_columns[i].columns
		                                                       : later_columns[i].before,
		      out);
	for (const struct ow_field *field; (field = next_count(&at));)
		fprintf(out, ", %s", field->since <= stored->source.version ? field->columns : "NULL");
	return ow_text_close(&text);
}

char *ow_stored_sum_sql(const struct ow_stored *stored)
{
	char *columns = columns_of(stored), *query = columns ? ow_stored_query(stored, columns, ORDER) : NULL;
	free(columns);
	return query;
}

/* The sum that rows of a lane were added to last: its histogram is encoded when rows of another one come. */
struct open_sum {
	size_t sum;
	struct ow_delay_histogram_sum delays;
};
/* One takes some kB. */
#define OPEN_MAX 4096

/* A pass over the results. */
struct pass {
	struct ow_stored *stored;
	struct ow_stored_sum_options options;
	struct ow_stored_sums *sums;
	size_t *current;          /* sum of each lane, SIZE_MAX: none yet */
	int64_t *end;             /* end of each lane's last interval */
	bool *twice;              /* packets of each lane are those of others as well */
	bool *left_out;           /* each lane is the round trip of others, and not added to them */
	struct open_sum *open;    /* of each lane; NULL: there are too many lanes */
	int64_t from_ns, till_ns; /* the hour or day that was computed last */
	bool no_memory;           /* a sum is not complete */
	bool gaps;                /* absent intervals are missing, not excluded by the filter */
};

/* -- groups ------------------------------------------------------------------------------------------------------- */

/* Another program may have written the file: its times may be at the limits of the type. */
static int64_t ns_of(int64_t second)
{
	return second > INT64_MAX / OW_NS_PER_S   ? INT64_MAX
	       : second < INT64_MIN / OW_NS_PER_S ? INT64_MIN
	                                          : second * OW_NS_PER_S;
}

/* The local day of a time; there are days of 23 and of 25 hours. */
static void find_day(struct pass *p, int64_t ns)
{
	time_t second = (time_t)ow_floor_div(ns, OW_NS_PER_S);
	struct tm tm;
	if (!localtime_r(&second, &tm)) {
		p->from_ns = ns;
		p->till_ns = ow_time_later(ns, 1);
		return;
	}
	tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
	tm.tm_isdst = -1;
	struct tm next = tm;
	next.tm_mday++;
	p->from_ns = ns_of((int64_t)mktime(&tm));
	p->till_ns = ns_of((int64_t)mktime(&next));
}

static void find_hour(struct pass *p, int64_t ns)
{
	time_t second = (time_t)ow_floor_div(ns, OW_NS_PER_S);
	struct tm tm = {0};
	localtime_r(&second, &tm);
	int64_t into = (second + tm.tm_gmtoff) % 3600;
	p->from_ns = ns_of(second - (into < 0 ? into + 3600 : into));
	p->till_ns = ow_time_later(p->from_ns, 3600 * OW_NS_PER_S);
}

static void find_bin(struct pass *p, int64_t ns)
{
	int64_t width = p->options.bin_ns, into = ns % width;
	p->from_ns = ow_time_later(ns, -(into < 0 ? into + width : into));
	p->till_ns = ow_time_later(p->from_ns, width);
}

/* The hour, day or bin of this time. */
static void find_part(struct pass *p, int64_t ns)
{
	if (ns >= p->from_ns && ns < p->till_ns)
		return;
	if (p->options.group == OW_STORED_DAY)
		find_day(p, ns);
	else if (p->options.group == OW_STORED_HOUR)
		find_hour(p, ns);
	else
		find_bin(p, ns);
}

static int add_sum(struct pass *p, size_t lane, struct ow_error *err)
{
	struct ow_stored_sums *sums = p->sums;
	if (sums->count == SUMS_MAX)
		return ow_error_set(err, E2BIG, "too many groups; ask for a shorter time or fewer lanes");
	if (OW_GROW(sums->sum, sums->room, sums->count + 1) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory for more than %zu groups", sums->count);
	sums->sum[sums->count] = (struct ow_stored_sum){.lane = lane, .clock_error_ns = -1};
	p->current[lane] = sums->count++;
	return 0;
}

/* The lanes of a segment have one sum. */
static size_t segment_sum(const struct pass *p, size_t lane)
{
	const struct ow_stored *stored = p->stored;
	for (size_t i = 0; i < stored->lanes; i++) {
		if (p->current[i] != SIZE_MAX && strcmp(stored->lane[i].segment, stored->lane[lane].segment) == 0)
			return p->current[i];
	}
	return SIZE_MAX;
}

/* The sum that an interval of the lane belongs to. */
static int find_sum(struct pass *p, size_t lane, int64_t start_ns, struct ow_stored_sum **ret_sum, struct ow_error *err)
{
	size_t *current = &p->current[lane];
	bool timed = p->options.group >= OW_STORED_HOUR;
	if (timed)
		find_part(p, start_ns);
	if (*current == SIZE_MAX && p->options.group == OW_STORED_SEGMENT)
		*current = segment_sum(p, lane);
	if (*current == SIZE_MAX || (timed && p->sums->sum[*current].start_ns != p->from_ns)) {
		int r = add_sum(p, lane, err);
		if (r < 0)
			return r;
		p->sums->sum[*current].start_ns = timed ? p->from_ns : start_ns;
		p->sums->sum[*current].end_ns = timed ? p->till_ns : start_ns;
	}
	*ret_sum = &p->sums->sum[*current];
	return 0;
}

/* -- adding ------------------------------------------------------------------------------------------------------- */

static uint64_t count_at(struct ow_statement *row, int column)
{
	int64_t value = ow_column_integer(row, column);
	return value > 0 ? (uint64_t)value : 0;
}

static bool real_at(struct ow_statement *row, enum column column, double *ret_value)
{
	double value = ow_column_real(row, column);
	if (isnan(value))
		return false;
	*ret_value = value;
	return true;
}

static void note_extreme(struct ow_stored_extreme *e, double value, int64_t start_ns)
{
	if (!e->count || value < e->low) {
		e->low = value;
		e->low_ns = start_ns;
	}
	if (!e->count || value > e->high) {
		e->high = value;
		e->high_ns = start_ns;
	}
	e->count++;
}

/* Combines two sets of delays: the update of Chan, Golub and LeVeque, exact except for rounding. */
static void pool(struct ow_stored_sum *sum, double weight, double mean, double stddev)
{
	double both = sum->weight + weight, apart = mean - sum->mean_ns;
	sum->m2 += weight * stddev * stddev + apart * apart * (sum->weight / both) * weight;
	sum->mean_ns += apart * (weight / both);
	sum->weight = both;
}

static void close_sum(struct pass *p, struct open_sum *open)
{
	struct ow_delay_histogram delays;
	ow_delay_histogram_sum_take(&open->delays, &delays);
	if (delays.packets)
		ow_delay_histogram_merge(&p->sums->sum[open->sum].delays, &delays);
}

static void add_histogram(struct pass *p, size_t lane, struct ow_stored_sum *sum, struct ow_statement *row)
{
	size_t size = 0, at = (size_t)(sum - p->sums->sum);
	const void *bytes = ow_column_bytes(row, HISTOGRAM, &size);
	struct open_sum *open = p->open ? &p->open[lane] : NULL;
	struct ow_delay_histogram delays;
	if (!bytes)
		return;
	if (!open) {
		if (ow_delay_histogram_decode(bytes, size, &delays, NULL) == 0)
			ow_delay_histogram_merge(&sum->delays, &delays);
		return;
	}
	if (open->sum != at) {
		close_sum(p, open);
		open->sum = at;
	}
	p->no_memory |= ow_delay_histogram_sum_add(&open->delays, bytes, size) == -ENOMEM;
}

/* Whether its delays are no delays, see ow_result_clock_known. */
static bool is_without_clock(struct ow_statement *row)
{
	const char *method = ow_column_text(row, METHOD);
	return method && strcmp(method, "none") == 0;
}

/* counts: of this row, of packets. */
static void add_delays(struct pass *p, size_t lane, struct ow_stored_sum *sum, struct ow_statement *row,
                       int64_t start_ns, const struct ow_interval_result *counts)
{
	double mean, stddev = NAN /* one that is not known, makes that of the sum unknown */, value;
	/* Packets whose delay is known; a method that samples has fewer delays than its numbers stand for. */
	uint64_t there = counts->matched + counts->late;
	uint64_t packets = there > counts->ambiguous ? there - counts->ambiguous : counts->samples;
	if (count_at(row, INTERVALS))
		packets = count_at(row, DELAYS);
	if (real_at(row, MEAN, &mean) && packets > 0) {
		real_at(row, STDDEV, &stddev);
		pool(sum, (double)packets, mean, stddev);
		sum->samples += packets;
		sum->rows++;
		note_extreme(&sum->mean, mean, start_ns);
		add_histogram(p, lane, sum, row);
	}
	if (real_at(row, MIN, &value))
		note_extreme(&sum->min_ns, value, start_ns);
	if (real_at(row, MAX, &value))
		note_extreme(&sum->max_ns, value, start_ns);
	if (real_at(row, P99, &value)) {
		note_extreme(&sum->p99_ns, value, start_ns);
		sum->above_p99 += value > (double)p->options.p99_limit_ns;
	}
}

static void add_loss(struct ow_stored_sum *sum, struct ow_statement *row, int64_t start_ns,
                     const struct ow_interval_result *counts)
{
	double value;
	/* What one of several peers did not get is not known to be lost: such a lane has no loss. */
	if (!real_at(row, LOSS, &value))
		return;
	note_extreme(&sum->loss, value, start_ns);
	sum->decided += counts->sent > counts->pending ? (double)(counts->sent - counts->pending) : 0;
	sum->decided_lost += (double)counts->lost;
}

/* As in a result: of the offset that was taken off, else what both clocks state together. NAN: not known. */
static double clock_error(struct ow_statement *row)
{
	double from, to, offset, low, high;
	if (real_at(row, OFFSET, &offset) && real_at(row, OFFSET_LOW, &low) && real_at(row, OFFSET_HIGH, &high))
		return fmax(high - offset, offset - low);
	return real_at(row, CLOCK_FROM, &from) && real_at(row, CLOCK_TO, &to) ? from + to : NAN;
}

static void add_clocks(struct ow_stored_sum *sum, struct ow_statement *row)
{
	double error_ns = clock_error(row);
	if (isnan(error_ns))
		sum->clock_unknown++;
	else if (error_ns >= 0 && error_ns < 0x1p62 && (int64_t)error_ns > sum->clock_error_ns)
		sum->clock_error_ns = (int64_t)error_ns;
	const char *method = ow_column_text(row, METHOD);
	if (method)
		snprintf(sum->clock_method, sizeof sum->clock_method, "%s", method);
}

/* Rows of earlier versions of the schema have delays instead. counts: those of the fields before. */
static uint64_t without_clock(struct ow_statement *row, const struct ow_interval_result *counts)
{
	uint64_t arrived = counts->matched + counts->late;
	if (!is_without_clock(row))
		return 0;
	if (count_at(row, INTERVALS))
		return count_at(row, DELAYS);
	return arrived > counts->ambiguous ? arrived - counts->ambiguous : 0;
}

/* *ret_counts: of this interval. */
static void add_counts(struct ow_stored_sum *sum, struct ow_statement *row, struct ow_interval_result *ret_counts)
{
	size_t at = 0, k = 0;
	/* Minutes, hours and days have counts of packets. */
	unsigned shift = count_at(row, INTERVALS) ? 0 : (unsigned)(count_at(row, SHIFT) & 63);
	for (const struct ow_field *field; (field = next_count(&at)) && k < OW_STORED_COUNTS; k++) {
		int column = COUNTS + (int)k;
		uint64_t count = count_at(row, column);
		if (field->flags & OW_FIELD_OF_SAMPLE)
			count = count > UINT64_MAX >> shift ? UINT64_MAX : count << shift;
		if (field->offset == offsetof(struct ow_interval_result, without_clock) && !count)
			count = without_clock(row, ret_counts);
		if (field->flags & OW_FIELD_NOT_COUNTED && ow_column_is_null(row, column))
			count = OW_RESULT_NOT_COUNTED;
		*(uint64_t *)ow_field_at(field, ret_counts) = count;
		ow_field_add_count(field, &sum->count[k], count);
	}
	sum->sampled += count_at(row, SHIFT) > 0;
}

/* Whether the packets of this lane are also those of another one of the segment, to several peers. */
static bool is_counted_twice(const struct ow_stored *stored, const struct ow_stored_lane *lane)
{
	for (size_t i = 0; i < stored->lanes; i++) {
		const struct ow_stored_lane *other = &stored->lane[i];
		if (other->chosen && ow_group_has(other->to, lane->to) && strcmp(other->segment, lane->segment) == 0 &&
		    strcmp(other->class_name, lane->class_name) == 0 && strcmp(other->from, lane->from) == 0)
			return true;
	}
	return false;
}

/* Whether the lane is the round trip of probes, and the way there or back is one of those that are added up. */
static bool is_round_trip(const struct ow_stored *stored, const struct ow_stored_lane *lane)
{
	if (strcmp(lane->from, lane->to) != 0)
		return false;
	for (size_t i = 0; i < stored->lanes; i++) {
		const struct ow_stored_lane *other = &stored->lane[i];
		if (other->chosen && strcmp(other->segment, lane->segment) == 0 && strcmp(other->from, other->to) != 0)
			return true;
	}
	return false;
}

/* Finds both kinds of lanes. A fleet has very many, and most have none. */
static void find_twice(struct pass *p)
{
	const struct ow_stored *stored = p->stored;
	bool any = false;
	for (size_t i = 0; i < stored->lanes && !any; i++)
		any = strchr(stored->lane[i].to, '+');
	for (size_t i = 0; i < stored->lanes; i++) {
		bool together = p->options.group == OW_STORED_SEGMENT;
		p->twice[i] = any && together && is_counted_twice(stored, &stored->lane[i]);
		p->left_out[i] = together && is_round_trip(stored, &stored->lane[i]);
	}
}

/* Replaces numbers in causes, so that equal causes can be grouped. Digits after a letter belong to a name: eth0. */
static void without_numbers(const char *text, char ret_text[OW_RESULT_CAUSE])
{
	size_t used = 0;
	bool name = false;
	for (; *text && used < OW_RESULT_CAUSE - 1; text++) {
		bool digit = isdigit((unsigned char)*text);
		name = *text != ' ' && (name || isalpha((unsigned char)*text));
		if (!digit || name)
			ret_text[used++] = *text;
		else if (!used || ret_text[used - 1] != 'N')
			ret_text[used++] = 'N';
	}
	ret_text[used] = 0;
}

static void add_cause(struct ow_stored_sums *sums, enum ow_result_status status, const char *text, int64_t start_ns,
                      uint64_t intervals)
{
	char cause[OW_RESULT_CAUSE];
	size_t i = 0;
	without_numbers(text && *text ? text : "no cause known", cause);
	while (i < sums->causes && (sums->cause[i].status != status || strcmp(sums->cause[i].text, cause) != 0))
		i++;
	struct ow_stored_cause *c = &sums->cause[i < OW_STORED_CAUSES ? i : OW_STORED_CAUSES];
	if (i == sums->causes && i <= OW_STORED_CAUSES) {
		sums->causes++;
		*c = (struct ow_stored_cause){.status = status, .first_ns = start_ns};
		snprintf(c->text, sizeof c->text, "%s", i < OW_STORED_CAUSES ? cause : "other causes");
	}
	c->intervals += intervals;
	c->last_ns = start_ns;
}

/* Missing intervals between the lane's last row and this one; each belongs to the sum of its time. intervals: of a row. */
static void add_missing(struct pass *p, struct ow_stored_sum *before, struct ow_stored_sum *sum, int64_t end_ns,
                        int64_t start_ns, int64_t length_ns, uint64_t intervals)
{
	if (!p->gaps || length_ns <= 0 || end_ns >= start_ns)
		return;
	uint64_t missing = ((uint64_t)start_ns - (uint64_t)end_ns) / (uint64_t)length_ns;
	if (missing > MISSING_MAX)
		return;
	if (before == sum) {
		sum->missing += missing * intervals;
		return;
	}
	/* Intervals in hours without any result belong to no sum. */
	if (before->end_ns > end_ns)
		before->missing += (uint64_t)(before->end_ns - end_ns) / (uint64_t)length_ns * intervals;
	if (start_ns > sum->start_ns)
		sum->missing += (uint64_t)(start_ns - sum->start_ns) / (uint64_t)length_ns * intervals;
}

/* The intervals of a row: one of a result. */
static struct ow_rollup_intervals intervals_of(struct ow_statement *row, enum ow_result_status status)
{
	const struct ow_interval_result r = {.intervals = count_at(row, INTERVALS),
	                                     .intervals_partial = count_at(row, PARTIAL),
	                                     .intervals_unknown = count_at(row, UNKNOWN),
	                                     .status = status};
	return ow_rollup_intervals(&r);
}

static void add_status(struct pass *p, struct ow_stored_sum *sum, struct ow_statement *row,
                       const struct ow_rollup_intervals *n, enum ow_result_status status)
{
	p->sums->intervals += n->all;
	sum->intervals += n->all;
	sum->partial += n->partial;
	sum->unknown += n->unknown;
	sum->measured += n->all - n->partial - n->unknown;
	/* An hour that is not over has final results only. */
	sum->provisional += !ow_column_integer(row, FINAL) && p->stored->filter.period == OW_PERIOD_INTERVAL;
	if (status != OW_RESULT_MEASURED)
		add_cause(p->sums, status, ow_column_text(row, CAUSE), ow_column_integer(row, START),
		          n->partial + n->unknown);
}

static void tell(const struct pass *p, struct ow_statement *row, size_t lane, const struct ow_rollup_intervals *n,
                 enum ow_result_status status)
{
	const char *cause = ow_column_text(row, CAUSE), *event = ow_column_text(row, EVENT);
	int64_t start_ns = ow_column_integer(row, START);
	const struct ow_stored_notice notice = {
		.lane = lane,
		.status = status,
		.cause = cause ? cause : "",
		.clock_event = event ? event : "",
		.start_ns = start_ns,
		.end_ns = ow_time_later(start_ns, ow_column_integer(row, LENGTH)),
		.intervals = n->partial + n->unknown,
	};
	if (status != OW_RESULT_MEASURED || *notice.clock_event)
		p->options.on_notice(p->options.arg, &notice);
}

static int add_row(struct pass *p, struct ow_statement *row, struct ow_error *err)
{
	const struct ow_stored_lane *found = ow_stored_lane(p->stored, ow_column_integer(row, LANE));
	int64_t start = ow_column_integer(row, START), length = ow_column_integer(row, LENGTH);
	/* A lane that was added after the list of lanes was read. */
	if (!found)
		return 0;
	size_t lane = (size_t)(found - p->stored->lane), before = p->current[lane];
	if (p->left_out[lane])
		return 0;
	int named = ow_result_status_of(ow_column_text(row, STATUS));
	enum ow_result_status status = named < 0 ? OW_RESULT_UNKNOWN : (enum ow_result_status)named;
	struct ow_rollup_intervals n = intervals_of(row, status);
	struct ow_stored_sum *sum;
	int r = find_sum(p, lane, start, &sum, err);
	if (r < 0)
		return r;
	if (before != SIZE_MAX && p->end[lane] != INT64_MIN)
		add_missing(p, &p->sums->sum[before], sum, p->end[lane], start, length, n.all);
	p->end[lane] = length > 0 && start < INT64_MAX - length ? start + length : start;
	if (p->options.group < OW_STORED_HOUR && p->end[lane] > sum->end_ns)
		sum->end_ns = p->end[lane];
	sum->first_ns = sum->intervals ? sum->first_ns : start;
	sum->last_ns = sum->intervals && sum->last_ns > p->end[lane] ? sum->last_ns : p->end[lane];
	add_status(p, sum, row, &n, status);
	if (p->options.on_notice)
		tell(p, row, lane, &n, status);
	if (status == OW_RESULT_UNKNOWN || p->options.notices_only)
		return 0;
	struct ow_interval_result counts = {0};
	struct ow_stored_sum aside = {0};
	sum->active |= ow_column_integer(row, ACTIVE) != 0;
	add_counts(p->twice[lane] ? &aside : sum, row, &counts);
	add_loss(sum, row, start, &counts);
	if (!is_without_clock(row)) {
		add_delays(p, lane, sum, row, start, &counts);
		add_clocks(sum, row);
	}
	return p->no_memory ? ow_error_set(err, ENOMEM, "%s: out of memory", p->stored->source.name) : 0;
}

static int make_room(struct pass *p, struct ow_error *err)
{
	size_t lanes = p->stored->lanes;
	p->current = reallocarray(NULL, lanes + 1, sizeof *p->current);
	p->end = reallocarray(NULL, lanes + 1, sizeof *p->end);
	p->twice = reallocarray(NULL, lanes + 1, sizeof *p->twice);
	p->left_out = reallocarray(NULL, lanes + 1, sizeof *p->left_out);
	if (!p->current || !p->end || !p->twice || !p->left_out)
		return ow_error_set(err, ENOMEM, "not enough memory for %zu lanes", lanes);
	find_twice(p);
	p->open = lanes <= OPEN_MAX ? calloc(lanes + 1, sizeof *p->open) : NULL;
	for (size_t i = 0; i < lanes; i++) {
		p->current[i] = SIZE_MAX;
		p->end[i] = INT64_MIN;
	}
	return 0;
}

/* The rows that on_notice is called for. */
static const char *with_notice(const struct pass *p)
{
	if (!p->options.notices_only)
		return "";
	return p->stored->source.version >= later_columns[0].since ? "AND (status <> 'measured' OR clock_event <> '') "
	                                                           : "AND status <> 'measured' ";
}

/* Adds the rows of the selected time and period. */
static int read_rows(struct pass *p, const char *tail, struct ow_error *err)
{
	struct ow_statement *statement;
	char *columns = columns_of(p->stored);
	int code = OW_STEP_DONE, r = columns ? ow_stored_prepare(p->stored, columns, tail, &statement, err)
	                                     : ow_error_set(err, ENOMEM, "%s: out of memory", p->stored->source.name);
	free(columns);
	if (r < 0)
		return r;
	while (r == 0 && (code = ow_step(statement)) == OW_STEP_ROW)
		r = add_row(p, statement, err);
	if (r == 0 && code != OW_STEP_DONE)
		r = ow_stored_source_fail(&p->stored->source, err);
	ow_statement_free(statement);
	return r;
}

static int read_part(struct pass *p, const struct ow_stored_part *part, struct ow_error *err)
{
	char tail[160], lane[40] = "";
	struct ow_stored_filter *filter = &p->stored->filter;
	filter->period = part->period;
	filter->since_ns = part->since_ns;
	filter->until_ns = part->until_ns;
	if (part->lane)
		snprintf(lane, sizeof lane, "AND lane = %" PRId64 " ", part->lane);
	snprintf(tail, sizeof tail, "%s%s" ORDER, lane, with_notice(p));
	return read_rows(p, tail, err);
}

static int run(struct pass *p, struct ow_error *err)
{
	const struct ow_stored_division *division = p->options.division;
	struct ow_stored_filter keep = p->stored->filter;
	int r = make_room(p, err);
	if (r < 0)
		return r;
	if (!division) {
		const struct ow_stored_part all = {
			.period = keep.period, .since_ns = keep.since_ns, .until_ns = keep.until_ns};
		return read_part(p, &all, err);
	}
	for (size_t i = 0; r == 0 && i < division->count; i++)
		r = read_part(p, &division->part[i], err);
	p->stored->filter = keep;
	p->stored->filter.period = division->longest;
	return r;
}

int ow_stored_summarise(struct ow_stored *stored, const struct ow_stored_sum_options *options,
                        struct ow_stored_sums *ret_sums, struct ow_error *err)
{
	struct ow_stored_sums sums = {0};
	struct pass p = {.stored = stored, .options = *options, .sums = &sums, .gaps = !stored->filter.statuses};
	if (options->group == OW_STORED_BIN && options->bin_ns <= 0)
		return ow_error_set(err, EINVAL, "bins need a width");
	int r = run(&p, err);
	for (size_t i = 0; p.open && i < stored->lanes; i++) {
		if (r == 0)
			close_sum(&p, &p.open[i]);
		ow_delay_histogram_sum_done(&p.open[i].delays);
	}
	free(p.open);
	free(p.current);
	free(p.twice);
	free(p.left_out);
	free(p.end);
	if (r < 0)
		ow_stored_sums_done(&sums);
	else
		*ret_sums = sums;
	return r;
}

/* Points send minutes to a server, and intervals of few lanes: then minutes are the finest. */
static int find_finest(struct ow_stored *stored, enum ow_period *ret_least, struct ow_error *err)
{
	struct ow_stored_filter keep = stored->filter;
	*ret_least = ow_stored_finest(stored);
	if (*ret_least != OW_PERIOD_MINUTE || stored->chosen != 1)
		return 0;
	stored->filter.period = OW_PERIOD_INTERVAL;
	int r = ow_stored_choose_period(stored, OW_PERIOD_INTERVAL, err);
	*ret_least = stored->filter.period;
	stored->filter = keep;
	return r;
}

int ow_stored_summarise_any(struct ow_stored *stored, const struct ow_stored_sum_options *options, enum ow_period most,
                            struct ow_stored_sums *ret_sums, struct ow_error *err)
{
	struct ow_stored_division division = {0};
	struct ow_stored_sum_options o = *options;
	enum ow_period least = OW_PERIOD_INTERVAL;
	int r = find_finest(stored, &least, err);
	if (r == 0)
		r = ow_stored_divide(stored, least, most > least ? most : least, &division, err);
	if (r < 0)
		return r;
	o.division = &division;
	r = ow_stored_summarise(stored, &o, ret_sums, err);
	ow_stored_division_done(&division);
	return r;
}

void ow_stored_sums_done(struct ow_stored_sums *sums)
{
	free(sums->sum);
	*sums = (struct ow_stored_sums){0};
}

/* -- what follows from them --------------------------------------------------------------------------------------- */

void ow_stored_sum_counts(const struct ow_stored_sum *sum, struct ow_interval_result *result)
{
	size_t at = 0, k = 0;
	for (const struct ow_field *field; (field = next_count(&at)) && k < OW_STORED_COUNTS; k++)
		*(uint64_t *)ow_field_at(field, result) = sum->count[k];
	result->samples = sum->samples;
}

double ow_stored_sum_loss(const struct ow_stored_sum *sum)
{
	return sum->decided > 0 ? sum->decided_lost / sum->decided : NAN;
}

double ow_stored_sum_mean(const struct ow_stored_sum *sum)
{
	return sum->weight > 0 ? sum->mean_ns : NAN;
}

double ow_stored_sum_stddev(const struct ow_stored_sum *sum)
{
	return sum->weight > 0 ? sqrt(sum->m2 / sum->weight) : NAN;
}

/* Whether the histogram has every packet with a delay, each with its own. */
static bool has_all_delays(const struct ow_stored_sum *sum)
{
	return sum->delays.weight == 1 && !sum->active && (double)sum->delays.packets >= sum->weight;
}

double ow_stored_sum_min(const struct ow_stored_sum *sum)
{
	if (sum->rows && sum->min_ns.count >= sum->rows)
		return sum->min_ns.low;
	return has_all_delays(sum) ? (double)sum->delays.min_ns : NAN;
}

double ow_stored_sum_max(const struct ow_stored_sum *sum)
{
	if (sum->rows && sum->max_ns.count >= sum->rows)
		return sum->max_ns.high;
	return has_all_delays(sum) ? (double)sum->delays.max_ns : NAN;
}

struct ow_value ow_stored_sum_quantile(const struct ow_stored_sum *sum, double q)
{
	uint64_t packets = ow_packets_of(sum->weight);
	struct ow_delay_histogram delays = sum->delays;
	/* Probes are a sample of what the network did. */
	if (sum->active && delays.weight == 1)
		delays.weight = 2;
	return ow_delay_histogram_quantile(&delays, q, packets > delays.packets ? packets - delays.packets : 0);
}

double ow_stored_sum_availability(const struct ow_stored_sum *sum)
{
	double all = (double)sum->intervals + (double)sum->missing;
	return all > 0 ? (double)sum->measured / all : NAN;
}
