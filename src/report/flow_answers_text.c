/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers for flows as text: what was compared, then the flows, then how many have no answer and why. Every number has
 * its 95 % interval. If a line cannot hold the numbers and the flow, the flow gets its own line, uncut, so that it can
 * be copied to --flow.
 */
#include "base/word.h"
#include "flows/flow_answers.h"

#include "base/time.h"
#include "base/format.h"
#include "base/table.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WIDTH_MIN   30
#define NUMBERS     66 /* columns of the numbers of a row; with fewer columns, the standard deviation is omitted */
#define NUMBERS_FEW 43 /* of few numbers; with fewer columns, packets are omitted */
#define REASONS_MAX 8
#define LABEL       11

struct style {
	FILE *out;
	int width;
	const char *bold, *red, *plain;
};

static void put_label(const struct style *s, const char *label)
{
	fprintf(s->out, "%-*s", LABEL, label);
}

static void put_bits(char text[OW_FORMAT], double bits)
{
	if (isfinite(bits))
		snprintf(text, OW_FORMAT, "%.*f", bits >= 9.995 ? 1 : bits >= 0.9995 ? 2 : 3, bits);
	else
		snprintf(text, OW_FORMAT, "-");
}

static void put_point(const struct style *s, const struct ow_flow_answers *a, unsigned i)
{
	const struct ow_flow_point *point = &a->point[i];
	char clean[300], epochs[OW_FORMAT], packets[OW_FORMAT], begin[OW_FORMAT], span[OW_DURATION_TEXT];
	char counters[OW_FORMAT], counts[OW_FORMAT];
	ow_format_clean(point->path, false, clean, sizeof clean);
	fprintf(s->out, "%s%c%s  %s\n", s->bold, 'A' + (int)i, s->plain, clean);
	ow_format_time(point->begin_ns, "%Y-%m-%d %H:%M:%S", begin);
	ow_duration_text((double)point->end_ns - (double)point->begin_ns, span);
	fprintf(s->out, "   %s %s from %s UTC, %s\n", ow_format_count(point->epochs, epochs),
	        ow_plural(point->epochs, "epoch", "epochs"), begin, span);
	put_bits(counters, point->counter_bits);
	put_bits(counts, point->count_bits);
	fprintf(s->out, "   %s %s; a packet takes %s bits in counters", ow_format_count(point->packets, packets),
	        ow_plural(point->packets, "packet", "packets"), counters);
	if (point->counted)
		fprintf(s->out, ", %s in flow counts", counts);
	fputc('\n', s->out);
}

/* The packets that were taken out of the counters of a leg. */
static void put_repair(const struct style *s, const struct ow_flow_leg *leg)
{
	char lost[OW_FORMAT], extra[OW_FORMAT], repaired[OW_FORMAT], text[300];
	if (!leg->lost && !leg->extra && !leg->unread)
		return;
	snprintf(text, sizeof text, "%s clean without %s lost and %s extra %s%s",
	         ow_format_count(leg->repaired, repaired), ow_format_count(leg->lost, lost),
	         ow_format_count(leg->extra, extra), ow_plural(leg->lost + leg->extra, "packet", "packets"),
	         leg->unread ? "; more differ than the recordings can tell" : "");
	put_label(s, "");
	ow_format_wrap(s->out, text, LABEL, s->width);
}

static void put_summary(const struct style *s, const struct ow_flow_answers *a)
{
	char count[OW_FORMAT], other[OW_FORMAT], share[OW_FORMAT], text[400];
	fputc('\n', s->out);
	put_label(s, "flows");
	snprintf(text, sizeof text, "%s%s, %s of them with an estimate; packet counts from %.200s",
	         ow_format_count(a->flows - a->never_arrived, count), a->grouped ? " groups" : "",
	         ow_format_count(a->estimated, other), a->counts ? a->counts : "the recordings");
	ow_format_wrap(s->out, text, LABEL, s->width);
	if (a->never_arrived) {
		put_label(s, "");
		fprintf(s->out, "%s more %s never received\n", ow_format_count(a->never_arrived, count),
		        ow_plural(a->never_arrived, "was", "were"));
	}
	for (unsigned i = 0; i < a->legs; i++) {
		const struct ow_flow_leg *leg = &a->leg[i];
		put_label(s, i ? "" : "counters");
		if (a->legs > 1)
			fprintf(s->out, "%c to %c: ", 'A' + (int)leg->from, 'A' + (int)leg->to);
		fprintf(s->out, "%s used, %s clean (%s), %s unclean\n", ow_format_count(leg->counters, count),
		        ow_format_count(leg->clean, other),
		        leg->counters ? ow_format_share(leg->clean, leg->counters, share) : "-",
		        ow_format_count(leg->counters - leg->clean, text));
		put_repair(s, leg);
	}
	if (a->offset_ns) {
		char offset[OW_DURATION_TEXT];
		ow_duration_text((double)a->offset_ns, offset);
		put_label(s, "clocks");
		fprintf(s->out, "%s added to the times of %c\n", offset, 'A' + (int)a->points - 1);
	}
}

/* The longer half of the interval. */
static void value_text(const struct ow_value *value, char text[OW_DURATION_TEXT], char error[OW_DURATION_TEXT])
{
	snprintf(text, OW_DURATION_TEXT, "-");
	snprintf(error, OW_DURATION_TEXT, "-");
	if (value->status == OW_VALUE_NONE)
		return;
	ow_duration_text(value->value, text);
	double half = fmax(value->high - value->value, value->value - value->low);
	if (value->status == OW_VALUE_EXACT)
		snprintf(error, OW_DURATION_TEXT, "exact");
	else if (isfinite(half))
		ow_duration_text(half, error);
	else
		snprintf(error, OW_DURATION_TEXT, "unknown");
}

enum { LOST, LEAST, MEAN, MEAN_ERROR, STDDEV, STDDEV_ERROR, PACKETS, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[LOST] = {"lost", 9, 6},       [LEAST] = {"at least", 10, 5}, [MEAN] = {"mean", 10, 0},
	[MEAN_ERROR] = {"+-", 10, 1},  [STDDEV] = {"stddev", 10, 3},  [STDDEV_ERROR] = {"+-", 10, 4},
	[PACKETS] = {"packets", 9, 2},
};

static void least_text(const struct ow_value *value, char text[OW_DURATION_TEXT])
{
	snprintf(text, OW_DURATION_TEXT, "-");
	if (value->status != OW_VALUE_NONE && isfinite(value->low))
		ow_duration_text(value->low, text);
}

static void put_numbers(const struct ow_table *table, const struct ow_flow_answers *a,
                        const struct ow_flow_answer *flow, unsigned leg, const char *behind)
{
	const struct ow_flow_estimate *e = &flow->estimate[leg];
	const char *by = ow_flow_estimator_name(e->estimator);
	ow_table_cells cell;
	uint64_t lost = ow_flow_answer_lost(flow);
	snprintf(cell[LOST], sizeof cell[LOST], "-");
	if (lost != UINT64_MAX)
		ow_format_short(lost, (int)columns[LOST].width, cell[LOST]);
	least_text(&e->mean_ns, cell[LEAST]);
	value_text(&e->mean_ns, cell[MEAN], cell[MEAN_ERROR]);
	value_text(&e->stddev_ns, cell[STDDEV], cell[STDDEV_ERROR]);
	ow_format_short(flow->packets, (int)columns[PACKETS].width, cell[PACKETS]);
	fputc(' ', table->out);
	ow_table_numbers(table, cell, 0);
	if (a->legs > 1)
		fprintf(table->out, " %-8s %c-%c\n", by, 'A' + (int)a->leg[leg].from, 'A' + (int)a->leg[leg].to);
	else if (behind)
		fprintf(table->out, " %-8s %s\n", by, behind);
	else
		fprintf(table->out, " %s\n", by);
}

static size_t longest_name(const struct ow_flow_answers *a, const struct ow_flow_rows *rows)
{
	char name[OW_FLOW_SELECTED_TEXT];
	size_t longest = 0;
	for (size_t i = 0; i < rows->rows; i++) {
		ow_flow_select_key_text(&a->select, &rows->row[i]->key, name);
		longest = strlen(name) > longest ? strlen(name) : longest;
	}
	return longest;
}

static void put_table(const struct style *s, const struct ow_flow_answers *a, const struct ow_flow_rows *rows)
{
	char name[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT];
	bool one_line = a->legs == 1 && NUMBERS + longest_name(a, rows) <= (size_t)s->width;
	struct ow_table table = {s->out, columns, COLUMNS, .colour = false};
	const unsigned few = 1u << MEAN | 1u << MEAN_ERROR | 1u << PACKETS,
		       deviation = 1u << STDDEV | 1u << STDDEV_ERROR;
	const unsigned first = a->lost ? 1u << LOST : a->worst ? 1u << LEAST : 0;
	table.shown = s->width >= NUMBERS ? few | (first ? first : deviation)
	              : first             ? first | 1u << MEAN | 1u << PACKETS
	                                  : few;
	if (s->width < NUMBERS_FEW)
		table.shown &= ~(1u << PACKETS);
	fputc(' ', s->out);
	ow_table_heading(&table);
	fputs(one_line ? " by       flow\n" : " by\n", s->out);
	for (size_t i = 0; i < rows->rows; i++) {
		ow_flow_select_key_text(&a->select, &rows->row[i]->key, name);
		ow_format_clean(name, false, clean, sizeof clean);
		if (!one_line)
			fprintf(s->out, "  %s\n", clean);
		for (unsigned leg = 0; leg < a->legs; leg++)
			put_numbers(&table, a, rows->row[i], leg, one_line ? clean : NULL);
	}
}

/* How often each reason was given. */
struct reasons {
	enum ow_reason reason[REASONS_MAX];
	uint64_t count[REASONS_MAX];
	unsigned reasons;
};

static void count_reason(struct reasons *r, const struct ow_value *value)
{
	unsigned i = 0;
	if (value->status != OW_VALUE_NONE)
		return;
	while (i < r->reasons && r->reason[i] != value->reason)
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == r->reasons) {
		r->reason[i] = value->reason;
		r->count[i] = 0;
		r->reasons++;
	}
	r->count[i]++;
}

static void put_reasons(const struct style *s, const char *what, const struct reasons *r)
{
	char count[OW_FORMAT], text[300];
	for (unsigned i = 0; i < r->reasons; i++) {
		snprintf(text, sizeof text, "of %s %s: %s", ow_format_count(r->count[i], count),
		         ow_plural(r->count[i], "flow", "flows"),
		         r->reason[i] ? ow_reason_text(r->reason[i]) : "no reason given");
		put_label(s, i ? "" : what);
		ow_format_wrap(s->out, text, LABEL, s->width);
	}
}

/* For all flows if all were asked for, otherwise for those shown. */
static void put_no_answers(const struct style *s, const struct ow_flow_answers *a)
{
	struct reasons mean = {0}, stddev = {0};
	for (size_t i = 0; i < a->flows; i++) {
		const struct ow_flow_estimate *e = ow_flow_answer_whole(a, &a->flow[i]);
		count_reason(&mean, &e->mean_ns);
		count_reason(&stddev, &e->stddev_ns);
	}
	if (!mean.reasons && !stddev.reasons)
		return;
	fprintf(s->out, "\n%scannot be estimated%s\n", s->bold, s->plain);
	put_reasons(s, "  mean", &mean);
	put_reasons(s, "  stddev", &stddev);
}

static void put_value(const struct style *s, const char *label, const struct ow_value *value, const char *by)
{
	char text[OW_DURATION_TEXT], low[OW_DURATION_TEXT], high[OW_DURATION_TEXT], line[400];
	if (value->status == OW_VALUE_NONE) {
		snprintf(line, sizeof line, "cannot be estimated: %.300s", ow_reason_text(value->reason));
	} else if (value->status == OW_VALUE_EXACT) {
		ow_duration_text(value->value, text);
		snprintf(line, sizeof line, "%s, exact", text);
	} else {
		ow_duration_text(value->value, text);
		ow_duration_text(value->low, low);
		ow_duration_text(value->high, high);
		snprintf(line, sizeof line, "%s, 95 %% interval %s to %s, by %s", text, low,
		         isfinite(value->high) ? high : "unknown", by);
	}
	put_label(s, label);
	ow_format_wrap(s->out, line, LABEL, s->width);
}

/* Quantiles from the sample; all that cannot be bounded have the same reason. */
static void put_spread(const struct style *s, const struct ow_flow_estimate *e)
{
	char by[OW_FORMAT], text[OW_DURATION_TEXT], label[16];
	if (!e->spread) {
		const struct ow_value none = ow_value_none(e->no_spread);
		put_value(s, "quantiles", &none, NULL);
		return;
	}
	snprintf(by, sizeof by, "%zu packets", e->spread->samples);
	ow_duration_text((double)e->spread->least_ns, text);
	put_label(s, "min");
	fprintf(s->out, "at most %s\n", text);
	for (int i = 0; i < OW_QUANTILES; i++) {
		snprintf(label, sizeof label, "p%g", 100 * ow_quantile_level[i]);
		put_value(s, label, &e->spread->quantile_ns[i], by);
	}
	ow_duration_text((double)e->spread->most_ns, text);
	put_label(s, "max");
	fprintf(s->out, "at least %s\n", text);
}

/* One flow that the user asked for, in words. */
static void put_one(const struct style *s, const struct ow_flow_answers *a, const struct ow_flow_answer *flow)
{
	char name[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT], packets[OW_FORMAT], sent[OW_FORMAT];
	ow_flow_select_key_text(&a->select, &flow->key, name);
	ow_format_clean(name, false, clean, sizeof clean);
	fprintf(s->out, "\n%s%s%s\n", s->bold, clean, s->plain);
	put_label(s, "packets");
	fprintf(s->out, "%s received", ow_format_count(flow->packets, packets));
	if (flow->sent != UINT64_MAX)
		fprintf(s->out, ", %s sent", ow_format_count(flow->sent, sent));
	fputc('\n', s->out);
	for (unsigned leg = 0; leg < a->legs; leg++) {
		const struct ow_flow_estimate *e = &flow->estimate[leg];
		const char *by = ow_flow_estimator_name(e->estimator);
		if (a->legs > 1)
			fprintf(s->out, "%c to %c\n", 'A' + (int)a->leg[leg].from, 'A' + (int)a->leg[leg].to);
		put_value(s, "mean", &e->mean_ns, by);
		put_value(s, "stddev", &e->stddev_ns, by);
		put_spread(s, e);
	}
}

static void put_flows(const struct style *s, const struct ow_flow_answers *a, const struct ow_flow_rows *rows)
{
	char shown[OW_FORMAT], count[OW_FORMAT], least[80] = "";
	const char *certain = a->worst ? ", by what is certain" : "";
	const char *first = a->lost ? "those that lost most" : "the slowest", *most = a->lost ? " that lost most" : "";
	ow_format_count(rows->rows, shown);
	ow_format_count(rows->eligible, count);
	if (rows->least > 1)
		snprintf(least, sizeof least, " of at least %" PRIu64 " packets", rows->least);
	if (a->lost && !rows->rows)
		fprintf(s->out, "\n%sof %s %s%s none is known to have lost a packet%s\n", s->bold, count,
		        a->grouped ? "groups of flows" : "flows", least, s->plain);
	else if (rows->rows == rows->eligible)
		fprintf(s->out, "\n%s%s %s%s, %s first%s%s\n", s->bold, count,
		        a->grouped ? ow_plural(rows->eligible, "group", "groups")
		                   : ow_plural(rows->eligible, "flow", "flows"),
		        least, first, certain, s->plain);
	else
		fprintf(s->out, "\n%sthe %s%s%s of %s %s%s%s%s%s\n", s->bold, a->lost ? "" : "slowest",
		        a->lost || rows->rows == 1 ? "" : " ", rows->rows == 1 && !a->lost ? "" : shown, count,
		        a->grouped ? "groups of flows" : "flows", least, certain, most, s->plain);
	if (rows->rows)
		put_table(s, a, rows);
	put_no_answers(s, a);
}

void ow_report_flow_answers_text(FILE *out, const struct ow_flow_answers *a, const struct ow_flow_rows *rows, int width,
                                 bool colour)
{
	struct style s = {out, width < WIDTH_MIN ? WIDTH_MIN : width, "", "", ""};
	char line[OW_FLOW_WARNING];
	if (colour) {
		s.bold = "\033[1m";
		s.red = "\033[31m";
		s.plain = "\033[0m";
	}
	for (unsigned i = 0; i < a->points; i++)
		put_point(&s, a, i);
	put_summary(&s, a);
	if (rows->one && rows->rows)
		put_one(&s, a, rows->row[0]);
	else
		put_flows(&s, a, rows);
	for (unsigned i = 0; ow_flow_answers_warning(a, i, line); i++) {
		fprintf(out, "%s%swarning: %s", i ? "" : "\n", s.red, s.plain);
		ow_format_wrap(out, line, 9, s.width);
	}
}

/* -- the worst flows of each interval ------------------------------------------------------------------------------ */

#define TIME_WIDTH 23
enum { WORST_LEAST, WORST_MEAN, WORST_ERROR, WORST_PACKETS, WORST_COLUMNS };

static const struct ow_table_column worst_columns[WORST_COLUMNS] = {
	[WORST_LEAST] = {"at least", 10, 0},
	[WORST_MEAN] = {"mean", 10, 1},
	[WORST_ERROR] = {"+-", 10, 2},
	[WORST_PACKETS] = {"packets", 9, 3},
};

/* Returns the columns before a flow's name. */
static size_t worst_table(FILE *out, int width, struct ow_table *ret_table)
{
	*ret_table = (struct ow_table){out, worst_columns, WORST_COLUMNS, .colour = false};
	/* A flow's name goes behind the numbers; it may be longer than a narrow line. */
	unsigned room = (unsigned)(width < WIDTH_MIN ? WIDTH_MIN : width);
	return TIME_WIDTH + ow_table_fit(ret_table, room > TIME_WIDTH + 24 ? room - TIME_WIDTH - 24 : 12) + 1;
}

static void put_time(FILE *out, int64_t time_ns)
{
	char time[OW_FORMAT];
	ow_format_time(time_ns, "%Y-%m-%d %H:%M:%S", time);
	fputs(time, out);
}

void ow_report_flow_worst_heading(FILE *out, int width)
{
	struct ow_table table;
	worst_table(out, width, &table);
	fprintf(out, "%-*s", TIME_WIDTH, "UTC");
	ow_table_heading(&table);
	fputs(" flow\n", out);
}

void ow_report_flow_worst(FILE *out, int64_t begin_ns, const struct ow_flow_answers *a, const struct ow_flow_rows *rows,
                          int width, bool cut)
{
	struct ow_table table;
	char name[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT], warning[OW_FLOW_WARNING];
	size_t front = worst_table(out, width, &table);
	bool below = cut && front + longest_name(a, rows) > (size_t)width;
	for (size_t i = 0; i < rows->rows; i++) {
		const struct ow_value *mean = &ow_flow_answer_whole(a, rows->row[i])->mean_ns;
		ow_table_cells cell;
		least_text(mean, cell[WORST_LEAST]);
		value_text(mean, cell[WORST_MEAN], cell[WORST_ERROR]);
		ow_format_short(rows->row[i]->packets, (int)worst_columns[WORST_PACKETS].width, cell[WORST_PACKETS]);
		ow_flow_select_key_text(&a->select, &rows->row[i]->key, name);
		ow_format_clean(name, false, clean, sizeof clean);
		if (i)
			fprintf(out, "%*s", TIME_WIDTH, "");
		else
			put_time(out, begin_ns);
		ow_table_numbers(&table, cell, 0);
		fprintf(out, below ? "\n  %s\n" : " %s\n", clean);
	}
	if (!rows->rows)
		ow_report_flow_worst_none(out, begin_ns, "no flow has an estimate", width);
	struct ow_flow_answers means = ow_flow_answers_of_means(a);
	for (unsigned i = 0; ow_flow_answers_warning(&means, i, warning); i++) {
		fprintf(out, "%*swarning: ", TIME_WIDTH + 1, "");
		ow_format_wrap(out, warning, TIME_WIDTH + 10, width < WIDTH_MIN ? WIDTH_MIN : width);
	}
}

void ow_report_flow_worst_none(FILE *out, int64_t begin_ns, const char *why, int width)
{
	put_time(out, begin_ns);
	fputc(' ', out);
	ow_format_wrap(out, why, TIME_WIDTH + 1, width < WIDTH_MIN ? WIDTH_MIN : width);
}
