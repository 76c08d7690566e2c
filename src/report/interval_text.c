/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live results as lines of text, and the summary of a run, similar to owping's. A line has as many columns as the
 * terminal has room for: the loss and the mean delay are always there.
 */
#include "base/word.h"
#include "report/interval_render.h"

#include "base/time.h"
#include "estimate/clock_words.h"
#include "estimate/delay.h"
#include "base/format.h"
#include "base/table.h"
#include "result/fields.h"
#include "result/result_clock.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A screen of 24 lines always shows a heading. */
#define HEADING_EVERY 22
#define LANE_MIN      8 /* on a narrow terminal */
#define LANE_USUAL    12
#define LANE_WIDE     24
#define LANE_MAX      40
/* Without a terminal: lines have no limit, but columns are aligned. */
#define LANE_FILE 28
/* From this width on, times have milliseconds. */
#define WIDTH_MS   60
#define WIDTH_WIDE 100
/* Printed behind the lane's name, if there is room. */
#define PROBES " probes"

enum { SENT, UNSHARED, ABSENT, LOST, WHOLE, LOSS, LATE, PENDING, MEAN, BOUND, P50, P99, MAX, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[SENT] = {"sent", 9, 2},     [LOST] = {"lost", 7, 5},        [LOSS] = {"loss", 8, 0},
	[LATE] = {"late", 6, 7},     [PENDING] = {"pending", 7, 12}, [MEAN] = {"mean", 9, 1},
	[BOUND] = {"+-95%", 9, 11},  [P50] = {"p50", 9, 9},          [P99] = {"p99", 9, 4},
	[MAX] = {"max", 9, 10},      [WHOLE] = {"whole", 7, 3},      [UNSHARED] = {"unshared", 9, 6},
	[ABSENT] = {"absent", 7, 8},
};
/* Shown once one of them is not 0. */
#define SCOPE_COLUMNS (1u << UNSHARED | 1u << ABSENT | 1u << WHOLE)

static unsigned scope_columns(const struct ow_interval_result *r)
{
	if (r->status == OW_RESULT_UNKNOWN)
		return 0;
	return (r->unshared_sent ? 1u << UNSHARED : 0) | (r->absent ? 1u << ABSENT : 0) |
	       (r->lost_whole_flows ? 1u << WHOLE : 0);
}

/* How the columns of a line are divided. */
struct layout {
	unsigned time, lane, shown;
	size_t cause; /* columns for the cause of an interval without numbers */
};

/* longest: columns that the longest lane needs. Loss and mean have priority over the lane, the other numbers do not.
 * hidden: columns that are not needed. */
static struct layout layout_of(unsigned width, unsigned longest, unsigned hidden)
{
	struct layout layout = {.time = 12,
	                        .lane = longest < LANE_FILE  ? LANE_FILE
	                                : longest < LANE_MAX ? longest
	                                                     : LANE_MAX,
	                        .shown = ((1u << COLUMNS) - 1) & ~hidden,
	                        .cause = OW_RESULT_CAUSE};
	if (!width)
		return layout;
	struct ow_table table = {.column = columns, .count = COLUMNS, .hidden = hidden};
	layout.time = width < WIDTH_MS ? 8 : 12;
	unsigned fixed = layout.time + 1,
		 least = width < WIDTH_MS     ? LANE_MIN
	                 : width < WIDTH_WIDE ? LANE_USUAL
	                                      : LANE_WIDE,
		 needed = fixed + 2 + columns[LOSS].width + columns[MEAN].width, lane = 0;
	/* The narrowest line has time, loss and mean, and no lane if it does not fit. */
	if (width >= needed + 1 + least) {
		unsigned most = width - needed - 1 < LANE_WIDE ? width - needed - 1 : LANE_WIDE;
		least = longest <= least ? least : longest < most ? longest : most;
		lane = 1 + least;
	}
	unsigned used = ow_table_fit(&table, width > fixed + lane ? width - fixed - lane : 0);
	layout.shown = table.shown;
	unsigned rest = width > fixed + lane + used ? width - fixed - lane - used : 0;
	layout.lane = !lane ? 0 : rest > LANE_MAX - least ? LANE_MAX : least + rest;
	unsigned head = fixed + (lane ? 1 + layout.lane : 0) + 1;
	layout.cause = width > head ? width - head : 0;
	return layout;
}

/* Joins the parts that exist. */
static size_t join_lane(char part[4][OW_RESULT_NAME], char text[OW_RENDER_LANE])
{
	int length = snprintf(text, OW_RENDER_LANE, "%s%s%s%s", part[0], *part[0] && *part[1] ? "/" : "", part[1],
	                      *part[0] || *part[1] ? " " : "");
	snprintf(text + length, OW_RENDER_LANE - (size_t)length, "%s>%s", part[2], part[3]);
	return ow_format_columns(text);
}

size_t ow_render_lane(const struct ow_interval_result *result, size_t room, bool ascii, char text[OW_RENDER_LANE])
{
	char part[4][OW_RESULT_NAME], repeated[2][2 * OW_RESULT_NAME];
	const char *name[4] = {result->segment, result->class_name, result->from, result->to};
	for (int i = 0; i < 4; i++)
		ow_format_clean(name[i], ascii, part[i], sizeof part[i]);
	snprintf(repeated[0], sizeof repeated[0], "%s-%s", part[2], part[3]);
	snprintf(repeated[1], sizeof repeated[1], "%s-%s", part[3], part[2]);
	if (strcmp(part[0], repeated[0]) == 0 || strcmp(part[0], repeated[1]) == 0)
		*part[0] = 0;
	size_t used = join_lane(part, text);
	if (used > room && strcmp(part[1], "all") == 0) {
		*part[1] = 0;
		used = join_lane(part, text);
	}
	/* The lane must stay recognisable: the longest part is shortened first, in its middle. */
	while (used > room) {
		int longest = 0;
		for (int i = 1; i < 4; i++) {
			if (ow_format_columns(part[i]) > ow_format_columns(part[longest]))
				longest = i;
		}
		size_t have = ow_format_columns(part[longest]), less = have > 3 ? have - 1 : have > 1 ? 1 : 0;
		if (!have)
			break;
		ow_format_clean(name[longest], ascii, part[longest], sizeof part[longest]);
		ow_format_cut(part[longest], less);
		used = join_lane(part, text);
	}
	if (used > room)
		ow_format_cut(text, room);
	else if (result->active && used + strlen(PROBES) <= room && strlen(text) + strlen(PROBES) < OW_RENDER_LANE)
		memcpy(text + strlen(text), PROBES, sizeof PROBES);
	return ow_format_columns(text);
}

static void duration_cell(const struct ow_value *value, char cell[OW_TABLE_CELL])
{
	ow_duration_cell(value->status == OW_VALUE_NONE ? NAN : value->value, cell);
}

/* Half of the 95 % interval. */
static void bound_text(const struct ow_value *value, char text[OW_DURATION_TEXT])
{
	double half = fmax(value->high - value->value, value->value - value->low);
	if (value->status == OW_VALUE_NONE)
		snprintf(text, OW_DURATION_TEXT, "-");
	else if (value->status == OW_VALUE_EXACT)
		snprintf(text, OW_DURATION_TEXT, "exact");
	else if (!isfinite(half))
		snprintf(text, OW_DURATION_TEXT, "inf");
	else
		ow_duration_text(half, text);
}

/* Packets that did not arrive may have gone to another peer: none of them counts as lost, and 0 would be read as such. */
static bool loss_is_elsewhere(const struct ow_interval_result *r)
{
	return r->sent && !r->pending && !r->lost && r->loss_ratio.status == OW_VALUE_NONE;
}

static void lost_cell(const struct ow_interval_result *r, char cell[OW_TABLE_CELL])
{
	char low[OW_FORMAT], high[OW_FORMAT];
	if (loss_is_elsewhere(r))
		snprintf(cell, OW_TABLE_CELL, "-");
	else if (!r->pending)
		snprintf(cell, OW_TABLE_CELL, "%s", ow_format_short(r->lost, (int)columns[LOST].width, low));
	else if (snprintf(cell, OW_TABLE_CELL, "%" PRIu64 "-%" PRIu64, r->lost, r->lost + r->pending) >
	         (int)columns[LOST].width)
		snprintf(cell, OW_TABLE_CELL, "<=%s", ow_format_short(r->lost + r->pending, 5, high));
}

static void loss_cell(const struct ow_interval_result *r, char cell[OW_TABLE_CELL])
{
	char text[OW_FORMAT];
	if (r->sent && r->pending)
		snprintf(cell, OW_TABLE_CELL, "<=%s",
		         ow_format_percent((double)(r->lost + r->pending) / (double)r->sent, text));
	else if (r->loss_ratio.status != OW_VALUE_NONE && isfinite(r->loss_ratio.value))
		snprintf(cell, OW_TABLE_CELL, "%s", ow_format_percent(r->loss_ratio.value, text));
	else
		snprintf(cell, OW_TABLE_CELL, "-");
}

static void count_cell(uint64_t count, int column, char cell[OW_TABLE_CELL])
{
	char text[OW_FORMAT];
	snprintf(cell, OW_TABLE_CELL, "%s", ow_format_short(count, (int)columns[column].width, text));
}

static void cells_of(const struct ow_interval_result *r, ow_table_cells cell)
{
	char bound[OW_DURATION_TEXT];
	count_cell(r->sent, SENT, cell[SENT]);
	lost_cell(r, cell[LOST]);
	loss_cell(r, cell[LOSS]);
	count_cell(r->unshared_sent, UNSHARED, cell[UNSHARED]);
	count_cell(r->absent, ABSENT, cell[ABSENT]);
	count_cell(r->lost_whole_flows, WHOLE, cell[WHOLE]);
	count_cell(r->late, LATE, cell[LATE]);
	count_cell(r->pending, PENDING, cell[PENDING]);
	duration_cell(&r->mean_ns, cell[MEAN]);
	bound_text(&r->mean_ns, bound);
	snprintf(cell[BOUND], OW_TABLE_CELL, "%s", bound);
	duration_cell(&r->quantile_ns[OW_Q50], cell[P50]);
	duration_cell(&r->quantile_ns[OW_Q99], cell[P99]);
	duration_cell(&r->max_ns, cell[MAX]);
}

static struct ow_table table_of(const struct ow_render_text *text, const struct layout *layout)
{
	return (struct ow_table){text->out, columns, COLUMNS, text->colour, .shown = layout->shown};
}

static void put_heading(const struct ow_render_text *text, const struct ow_interval_result *r,
                        const struct layout *layout)
{
	char zone[OW_FORMAT] = "UTC";
	if (text->local)
		ow_format_local(r->start_ns, "%Z", zone);
	struct ow_table table = table_of(text, layout);
	ow_table_bold(&table);
	fprintf(text->out, "%-*.*s ", (int)layout->time, (int)layout->time, zone);
	if (layout->lane)
		fprintf(text->out, " %-*s", (int)layout->lane, "lane");
	ow_table_titles(&table);
}

/* Time, mark and lane. */
static void put_head(const struct ow_render_text *text, const struct ow_interval_result *r, const struct layout *layout)
{
	char start[OW_FORMAT], lane[OW_RENDER_LANE];
	char mark = r->status == OW_RESULT_UNKNOWN ? '?' : r->status == OW_RESULT_PARTIAL ? '!' : r->final ? ' ' : '~';
	bool red = text->colour && r->status != OW_RESULT_MEASURED;
	if (text->local)
		ow_format_local(r->start_ns, "%H:%M:%S", start);
	else
		ow_format_time(r->start_ns, "%H:%M:%S", start);
	fprintf(text->out, "%.*s%s%c%s", (int)layout->time, start, red ? "\033[31m" : "", mark, red ? "\033[0m" : "");
	if (!layout->lane)
		return;
	/* Without a terminal there is no limit: a very long name shifts the rest of its line. */
	size_t used = ow_render_lane(r, text->width ? layout->lane : OW_RENDER_LANE, false, lane);
	fprintf(text->out, " %s%*s", lane, used < layout->lane ? (int)(layout->lane - used) : 0, "");
}

static void put_numbers(const struct ow_render_text *text, const struct ow_interval_result *r,
                        const struct layout *layout)
{
	struct ow_table table = table_of(text, layout);
	ow_table_cells cell;
	cells_of(r, cell);
	ow_table_numbers(&table, cell, r->lost ? 1u << LOST | 1u << LOSS : 0);
}

/* Cut at its end, because the important part comes first. */
static void put_cause(FILE *out, const char *before, const char *cause, size_t room)
{
	char line[OW_RESULT_CAUSE + 32], clean[OW_RESULT_CAUSE + 32];
	snprintf(line, sizeof line, "%s%s", before, cause);
	ow_format_clean(line, false, clean, sizeof clean);
	size_t end = 0, column = 0;
	while (clean[end] && (column < room || ((unsigned char)clean[end] & 0xc0) == 0x80))
		column += ((unsigned char)clean[end++] & 0xc0) != 0x80;
	fprintf(out, "%.*s", (int)end, clean);
}

void ow_render_text(struct ow_render_text *text, const struct ow_interval_result *r)
{
	char day[OW_FORMAT], lane[OW_RENDER_LANE];
	unsigned wanted = (unsigned)ow_render_lane(r, OW_RENDER_LANE, false, lane);
	if (wanted > text->lane)
		text->lane = wanted;
	text->scope |= scope_columns(r);
	struct layout layout = layout_of(text->width, text->lane, SCOPE_COLUMNS & ~text->scope);
	/* A longer lane or another column needs a new heading. */
	if ((text->shown != layout.shown || text->lane_width != layout.lane) && text->lines)
		text->lines = 0;
	text->shown = layout.shown;
	text->lane_width = layout.lane;
	if (text->local && strncmp(ow_format_local(r->start_ns, "%Y-%m-%d", day), text->day, sizeof text->day) != 0) {
		snprintf(text->day, sizeof text->day, "%.15s", day);
		fprintf(text->out, "%s\n", text->day);
		text->lines += text->lines % HEADING_EVERY != 0;
	}
	if (text->lines++ % HEADING_EVERY == 0) {
		put_heading(text, r, &layout);
		*text->cause = 0;
	}
	put_head(text, r, &layout);
	if (r->status == OW_RESULT_UNKNOWN) {
		fputc(' ', text->out);
		put_cause(text->out, "no result: ", *r->cause ? r->cause : "no cause known", layout.cause);
		fputc('\n', text->out);
		return;
	}
	put_numbers(text, r, &layout);
	/* If a cause repeats, it is printed once per screen. */
	bool told = strcmp(text->cause, r->cause) == 0;
	if (r->status == OW_RESULT_PARTIAL && *r->cause && (!text->width || !told)) {
		fputs(text->width ? "\n" : "  ", text->out);
		put_cause(text->out, text->width ? "  ! " : "! ", r->cause,
		          text->width ? text->width : sizeof r->cause);
		text->lines += text->width && text->lines % HEADING_EVERY != 0;
		snprintf(text->cause, sizeof text->cause, "%s", r->cause);
	}
	fputc('\n', text->out);
}

/* -- events ------------------------------------------------------------------------------------------------------- */

void ow_render_event_text(const struct ow_flow_event *event, char text[OW_RENDER_EVENT])
{
	char sentence[OW_FLOW_EVENT_TEXT], name[OW_RESULT_NAME];
	ow_format_clean(event->class_name, false, name, sizeof name);
	bool all = strcmp(name, "all") == 0;
	snprintf(text, OW_RENDER_EVENT, "%s%s%s", all ? "" : name, all ? "" : ": ",
	         ow_flow_event_text(event, sentence));
}

void ow_render_event(struct ow_render_text *text, const struct ow_flow_event *event)
{
	char sentence[OW_RENDER_EVENT];
	ow_render_event_text(event, sentence);
	fputs("  * ", text->out);
	ow_format_wrap(text->out, sentence, 4, text->width ? (int)text->width : OW_RENDER_EVENT);
	text->lines += text->lines % HEADING_EVERY != 0;
}

void ow_render_stored_event(FILE *out, unsigned width, const struct ow_flow_event *event)
{
	struct ow_interval_result names = {.length_ns = 0};
	char time[OW_FORMAT], lane[OW_RENDER_LANE], what[OW_FLOW_EVENT_TEXT];
	snprintf(names.segment, sizeof names.segment, "%s", event->segment);
	snprintf(names.class_name, sizeof names.class_name, "%s", event->class_name);
	snprintf(names.from, sizeof names.from, "%s", event->from);
	snprintf(names.to, sizeof names.to, "%s", event->to);
	ow_render_lane(&names, width ? LANE_WIDE : OW_RENDER_LANE, false, lane);
	char line[OW_FORMAT + OW_RENDER_LANE + OW_FLOW_EVENT_TEXT];
	snprintf(line, sizeof line, "%s  %s: %s", ow_format_local(event->start_ns, "%Y-%m-%d %T", time), lane,
	         ow_flow_event_what(event, what));
	/* Further lines are indented. */
	size_t first = width ? ow_format_break(line, strlen(line), width) : strlen(line);
	fprintf(out, "%.*s\n", (int)(first ? first : strlen(line)), line);
	if (first && line[first]) {
		fputs("  ", out);
		ow_format_wrap(out, line + first, 2, (int)width);
	}
}

/* -- summary ------------------------------------------------------------------------------------------------------ */

void ow_render_counts(FILE *out, const struct ow_interval_result *r)
{
	char text[OW_FORMAT];
	for (size_t i = 0; i < ow_field_count; i++) {
		const uint64_t *count = ow_field_of(&ow_fields[i], r);
		if (ow_fields[i].words && *count && *count != OW_RESULT_NOT_COUNTED)
			fprintf(out, "%s %s\n", ow_format_count(*count, text), ow_fields[i].words);
	}
}

static void put_sums(FILE *out, const struct ow_interval_result *r)
{
	char sent[OW_FORMAT], received[OW_FORMAT], lost[OW_FORMAT], copies[OW_FORMAT], share[OW_FORMAT];
	char from[OW_RESULT_NAME];
	uint64_t decided = r->sent - r->pending;
	ow_format_clean(r->from, false, from, sizeof from);
	fprintf(out, "%s sent, %s received, ", ow_format_count(r->sent, sent), ow_format_count(r->received, received));
	if (loss_is_elsewhere(r))
		fputs("loss not known", out);
	else
		fprintf(out, "%s lost", ow_format_count(r->lost, lost));
	if (decided && !loss_is_elsewhere(r))
		fprintf(out, " (%s%s)", ow_format_share(r->lost, decided, share),
		        r->pending ? " of those decided" : "");
	fprintf(out, ", %s duplicate%s\n", ow_format_count(r->duplicated, copies), ow_plural(r->duplicated, "", "s"));
	if (loss_is_elsewhere(r) && r->loss_ratio.reason)
		fprintf(out, "loss: %s\n", ow_reason_text(r->loss_ratio.reason));
	if (r->pending)
		fprintf(out, "%s undecided: %s\n", ow_format_count(r->pending, sent),
		        r->active ? "it is not known in which direction they were lost, or they were in flight"
		                  : "it is not known whether they arrived");
	if (r->extra > r->duplicated)
		fprintf(out, "%s extra: not seen at %s\n", ow_format_count(r->extra - r->duplicated, sent), from);
	ow_render_counts(out, r);
}

static const char *value_text(const struct ow_value *value, char text[OW_DURATION_TEXT])
{
	snprintf(text, OW_DURATION_TEXT, "?");
	if (value->status != OW_VALUE_NONE && isfinite(value->value))
		ow_duration_text(value->value, text);
	return text;
}

/* A packet that returns to its sender has travelled in both directions. */
static const char *way_of(const struct ow_interval_result *r)
{
	return r->active && strcmp(r->from, r->to) == 0 ? "round-trip" : "one-way";
}

/* With its error, unless that is too small to matter. */
static void put_jitter(FILE *out, const char *way, double median, double q95)
{
	char jitter[OW_DURATION_TEXT], error[OW_DURATION_TEXT];
	double error_ns = ow_delay_jitter_error(median, q95);
	bool rough = error_ns > 0.01 * (q95 - median);
	ow_duration_text(q95 - median, jitter);
	ow_duration_text(error_ns, error);
	fprintf(out, "%s jitter = %s%s%s (P95-P50)\n", way, jitter, rough ? " +- " : "", rough ? error : "");
}

static void put_delays(FILE *out, const struct ow_interval_result *r)
{
	char text[3][OW_DURATION_TEXT], bound[OW_DURATION_TEXT], samples[OW_FORMAT];
	const struct ow_value *q = r->quantile_ns;
	if (r->mean_ns.status == OW_VALUE_NONE) {
		fprintf(out, "no delay: %s\n",
		        r->mean_ns.reason ? ow_reason_text(r->mean_ns.reason) : "nothing arrived");
		return;
	}
	if (r->min_ns.status != OW_VALUE_NONE)
		fprintf(out, "%s delay min/median/max = %s / %s / %s\n", way_of(r), value_text(&r->min_ns, text[0]),
		        value_text(&q[OW_Q50], text[1]), value_text(&r->max_ns, text[2]));
	else if (q[OW_Q50].status == OW_VALUE_NONE)
		fprintf(out, "%s delay quantiles unknown%s%s\n", way_of(r), q[OW_Q50].reason ? ": " : "",
		        ow_reason_text(q[OW_Q50].reason));
	else
		fprintf(out, "%s delay median/p99/p99.9 = %s / %s / %s\n", way_of(r), value_text(&q[OW_Q50], text[0]),
		        value_text(&q[OW_Q99], text[1]), value_text(&q[OW_Q999], text[2]));
	bound_text(&r->mean_ns, bound);
	fprintf(out, "%s delay mean/stddev = %s / %s", way_of(r), value_text(&r->mean_ns, text[0]),
	        value_text(&r->stddev_ns, text[1]));
	if (r->mean_ns.status == OW_VALUE_EXACT)
		fputs(", exact", out);
	else
		fprintf(out, ", mean within +- %s (95 %%)", bound);
	fprintf(out, ", of %s %s\n", ow_format_count(r->samples, samples), ow_plural(r->samples, "packet", "packets"));
	if (q[OW_Q50].status != OW_VALUE_NONE && q[OW_Q95].status != OW_VALUE_NONE) {
		put_jitter(out, way_of(r), q[OW_Q50].value, q[OW_Q95].value);
	}
}

static void put_order(FILE *out, const struct ow_interval_result *r)
{
	char count[OW_FORMAT], share[OW_FORMAT];
	if (r->reordered == OW_RESULT_NOT_COUNTED)
		fputs("reordering not counted: the method does not see order\n", out);
	else if (r->reordered && r->received)
		fprintf(out, "%s reordered (%s)\n", ow_format_count(r->reordered, count),
		        ow_format_share(r->reordered, r->received, share));
	else
		fputs("no reordering\n", out);
	if (r->ambiguous)
		fprintf(out, "%s identical %s, whose delay is uncertain\n", ow_format_count(r->ambiguous, count),
		        ow_plural(r->ambiguous, "packet", "packets"));
}

static void put_clocks(FILE *out, const struct ow_interval_result *r)
{
	char text[OW_DURATION_TEXT], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	const struct ow_clock_state *a = &r->clock_from, *b = &r->clock_to;
	ow_format_clean(r->from, false, from, sizeof from);
	ow_format_clean(r->to, false, to, sizeof to);
	bool known_a = a->synchronised && a->error_ns != OW_CLOCK_UNKNOWN,
	     known_b = b->synchronised && b->error_ns != OW_CLOCK_UNKNOWN;
	char note[OW_RESULT_CLOCK_NOTE];
	ow_result_clock_note(r, to, note);
	if (*note)
		fprintf(out, "%s\n", note);
	if (ow_result_clock_error_ns(r) == 0) {
		fputs("both points have the same clock\n", out);
	} else if (strcmp(r->clock_method, "relative") == 0) {
		/* The error bounds of the clocks themselves are not used. */
	} else if (known_a && known_b) {
		ow_duration_text((double)a->error_ns + (double)b->error_ns, text);
		if (a->error_ns || b->error_ns)
			fprintf(out, "clock error: at most %s in each delay\n", text);
		else
			fputs("both points have the same clock\n", out);
	} else if (!known_a && !known_b) {
		fprintf(out, "clock error unknown: neither %s nor %s has a synchronised clock\n", from, to);
	} else {
		fprintf(out, "clock error unknown: the clock of %s is not synchronised\n", known_a ? to : from);
	}
	struct ow_clock_words words;
	ow_result_clock_words(r, to, &words);
	if (*words.beyond)
		fprintf(out, "%s\n", words.beyond);
	if (*words.negative)
		fprintf(out, "%s\n", words.negative);
}

static void put_trust(FILE *out, const struct ow_interval_result *r)
{
	char from[OW_FORMAT], to[OW_FORMAT];
	fprintf(out, "coverage %s of the packets",
	        r->coverage >= 1 ? "100%" : ow_format_percent(fmax(r->coverage, 0), from));
	if (r->sample_shift)
		fprintf(out, ", sampled 1 in %.0f of %s", ldexp(1, (int)r->sample_shift),
		        ow_format_count(r->total_sent, to));
	fputc('\n', out);
	if (r->ring_drops_from || r->ring_drops_to)
		fprintf(out, "the points' own rings lost frames: %s sending, %s receiving\n",
		        ow_format_count(r->ring_drops_from, from), ow_format_count(r->ring_drops_to, to));
	if (r->unreadable)
		fprintf(out, "%s %s could not be identified\n", ow_format_count(r->unreadable, from),
		        ow_plural(r->unreadable, "frame", "frames"));
}

void ow_render_summary(FILE *out, const struct ow_interval_result *r)
{
	char lane[OW_RENDER_LANE], length[OW_DURATION_TEXT], start[OW_FORMAT];
	ow_render_lane(r, 72, false, lane);
	ow_duration_text((double)r->length_ns, length);
	fprintf(out, "--- %s ---\n", lane);
	fprintf(out, "%" PRId64 " interval%s, %s from %s UTC\n", r->interval, ow_plural((uint64_t)r->interval, "", "s"),
	        length, ow_format_time(r->start_ns, "%Y-%m-%d %H:%M:%S", start));
	if (r->status != OW_RESULT_MEASURED) {
		fputs(r->status == OW_RESULT_PARTIAL ? "partial: " : "no result: ", out);
		put_cause(out, "", *r->cause ? r->cause : "no cause known", OW_RESULT_CAUSE);
		fputc('\n', out);
	}
	if (r->status == OW_RESULT_UNKNOWN)
		return;
	if (r->active)
		fputs("active: measured with probes, not with the network's traffic\n", out);
	put_sums(out, r);
	put_delays(out, r);
	put_order(out, r);
	put_trust(out, r);
	if (r->mean_ns.reason != OW_REASON_EACH_PEER)
		put_clocks(out, r);
}
