/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of all lanes that is redrawn in place. Each line is erased before it is written again, so that nothing
 * flickers. A resized terminal has wrapped the old lines again, so the cursor goes up by the lines that they take now.
 */
#include "report/interval_render.h"

#include "base/time.h"
#include "base/utf8.h"
#include "base/format.h"
#include "base/table.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY   64 /* intervals of a lane: the largest width of a sparkline */
#define LANES_MAX 4096
#define LANE_MIN  10
#define LANE_GOOD 16
#define LANE_MAX  36
#define SPARK_MIN 8
#define STATUS    8
#define EVENTS    3 /* the newest ones are shown */
/* No terminal is wider or higher than this. */
#define SCREEN_MAX 1000
/* Bytes of one line: four for each column, and escapes. */
#define LINE_BYTES (4 * SCREEN_MAX + 200)

enum { PACKETS, BITS, UNSHARED, LOSS, MEAN, P99, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[PACKETS] = {"packets", 10, 3}, [BITS] = {"traffic", 10, 4}, [LOSS] = {"loss", 7, 0},
	[MEAN] = {"mean", 9, 1},        [P99] = {"p99", 9, 2},       [UNSHARED] = {"unshared", 8, 5},
};

struct lane {
	struct ow_interval_result newest;
	struct ow_interval_result settled; /* the newest final one */
	bool is_settled;
	double mean_ns[HISTORY]; /* by interval, modulo; NAN: none */
};

struct ow_render_table {
	FILE *out;
	bool utf8, colour;
	struct lane *lane;
	size_t lanes, room;
	size_t next;   /* index where the lane of the next result probably is */
	bool unshared; /* a lane had unshared packets */
	char event[EVENTS][OW_RENDER_EVENT];
	size_t events; /* of all times; the newest is at (events - 1) % EVENTS */
	/* The columns of the lines on the screen. */
	unsigned drawn[SCREEN_MAX];
	unsigned lines;
};

int ow_render_table_create(FILE *out, struct ow_render_table **ret_table)
{
	struct ow_render_table *table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	table->out = out;
	*ret_table = table;
	return 0;
}

void ow_render_table_free(struct ow_render_table *table)
{
	if (!table)
		return;
	free(table->lane);
	free(table);
}

void ow_render_table_style(struct ow_render_table *table, bool utf8, bool colour)
{
	table->utf8 = utf8;
	table->colour = colour;
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

/* Results usually come in the same order of lanes. */
static struct lane *find_lane(struct ow_render_table *table, const struct ow_interval_result *r)
{
	for (size_t i = 0; i < table->lanes; i++) {
		size_t k = (table->next + i) % table->lanes;
		if (ow_result_is_lane(&table->lane[k].newest, r)) {
			table->next = k + 1;
			return &table->lane[k];
		}
	}
	return NULL;
}

static struct lane *new_lane(struct ow_render_table *table, const struct ow_interval_result *r)
{
	if (table->lanes == LANES_MAX)
		return NULL;
	if (OW_GROW(table->lane, table->room, table->lanes + 1) < 0)
		return NULL;
	struct lane *lane = &table->lane[table->lanes++];
	*lane = (struct lane){.newest = *r};
	for (int i = 0; i < HISTORY; i++)
		lane->mean_ns[i] = NAN;
	return lane;
}

static size_t slot_of(int64_t interval)
{
	return (uint64_t)interval % HISTORY;
}

int ow_render_table_add(struct ow_render_table *table, const struct ow_interval_result *r)
{
	struct lane *lane = find_lane(table, r);
	if (!lane && !(lane = new_lane(table, r)))
		return -ENOMEM;
	/* If the numbers start again, there is a new session. */
	int64_t last = lane->newest.interval;
	bool known = r->status != OW_RESULT_UNKNOWN && r->mean_ns.status != OW_VALUE_NONE;
	if (r->interval < last && (uint64_t)last - (uint64_t)r->interval >= HISTORY) {
		for (int i = 0; i < HISTORY; i++)
			lane->mean_ns[i] = NAN;
		lane->newest = *r;
	} else if (r->interval >= last) {
		uint64_t ahead = (uint64_t)r->interval - (uint64_t)last;
		for (uint64_t i = 1; i <= ahead && i <= HISTORY; i++)
			lane->mean_ns[slot_of((int64_t)((uint64_t)last + i))] = NAN;
		lane->newest = *r;
	}
	lane->mean_ns[slot_of(r->interval)] = known ? r->mean_ns.value : NAN;
	if (r->final && r->status != OW_RESULT_UNKNOWN) {
		lane->settled = *r;
		lane->is_settled = true;
		table->unshared |= r->unshared_sent > 0;
	}
	return 0;
}

void ow_render_table_event(struct ow_render_table *table, const struct ow_flow_event *event)
{
	ow_render_event_text(event, table->event[table->events++ % EVENTS]);
}

/* -- lines -------------------------------------------------------------------------------------------------------- */

/* A line under construction; columns are counted, escapes are not. */
struct line {
	char text[LINE_BYTES];
	size_t used;
	unsigned columns, width;
};

static void put_bytes(struct line *line, const char *text)
{
	size_t length = strlen(text);
	if (length < sizeof line->text - line->used) {
		memcpy(line->text + line->used, text, length + 1);
		line->used += length;
	}
}

/* Clean text, cut at the width of the terminal. */
static void put_text(struct line *line, const char *text)
{
	while (*text && line->columns < line->width) {
		uint32_t code;
		size_t length = ow_utf8_next(text, &code);
		char one[8] = "";
		memcpy(one, text, length ? length : 1);
		put_bytes(line, one);
		text += length ? length : 1;
		line->columns++;
	}
}

__attribute__((format(printf, 2, 3))) static void put_format(struct line *line, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	put_text(line, text);
}

static void put_padded(struct line *line, const char *text, size_t room)
{
	put_text(line, text);
	for (size_t i = ow_format_columns(text); i < room; i++)
		put_text(line, " ");
}

/* How the columns of a line are divided: lane, numbers, sparkline, status. */
struct layout {
	unsigned lane, shown, spark, status;
};

static struct layout layout_of(const struct ow_render_table *table, unsigned width)
{
	unsigned longest = LANE_MIN;
	char name[OW_RENDER_LANE];
	for (size_t i = 0; i < table->lanes; i++) {
		size_t length = ow_render_lane(&table->lane[i].newest, LANE_MAX, !table->utf8, name);
		longest = length > longest ? (unsigned)length : longest;
	}
	struct layout layout = {.lane = LANE_MIN};
	/* The mark behind the lane and a space take two columns. */
	unsigned rest = width > LANE_MIN + 2 ? width - LANE_MIN - 2 : 0;
	struct ow_table numbers = {.column = columns, .count = COLUMNS, .hidden = table->unshared ? 0 : 1u << UNSHARED};
	rest -= ow_table_fit(&numbers, rest);
	layout.shown = numbers.shown;
	/* A readable name has priority over the sparkline, a long one does not. */
	unsigned wanted = longest < LANE_GOOD ? longest : LANE_GOOD;
	unsigned more = rest < wanted - LANE_MIN ? rest : wanted - LANE_MIN;
	layout.lane += more;
	rest -= more;
	if (rest > SPARK_MIN) {
		layout.spark = SPARK_MIN;
		rest -= SPARK_MIN + 1;
	}
	more = rest < longest - layout.lane ? rest : longest - layout.lane;
	layout.lane += more;
	rest -= more;
	if (rest > STATUS) {
		layout.status = STATUS;
		rest -= STATUS + 1;
	}
	if (layout.spark) {
		more = rest < HISTORY - SPARK_MIN ? rest : HISTORY - SPARK_MIN;
		/* A third of the rest is for the status, if there is a problem. */
		more = layout.status ? more * 2 / 3 : more;
		layout.spark += more;
		layout.status += layout.status ? rest - more : 0;
	}
	return layout;
}

static void put_spark(struct line *line, const struct lane *lane, const struct layout *layout, bool utf8)
{
	static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
	double low = INFINITY, high = -INFINITY;
	uint64_t last = (uint64_t)lane->newest.interval;
	for (unsigned i = 0; i < layout->spark; i++) {
		double mean = lane->mean_ns[slot_of((int64_t)(last - i))];
		if (!isnan(mean)) {
			low = fmin(low, mean);
			high = fmax(high, mean);
		}
	}
	put_text(line, " ");
	for (unsigned i = layout->spark; i-- > 0;) {
		double mean = lane->mean_ns[slot_of((int64_t)(last - i))];
		/* A change of less than half a nanosecond is drawn as no change. */
		double part = high - low > 0.5 ? (mean - low) / (high - low) : 0.4;
		put_text(line, isnan(mean) ? " " : (utf8 ? block : plain)[(int)fmin(8 * part, 7)]);
	}
}

/* Prints the status in at most `room` columns, after a space. */
static void put_status(struct line *line, const struct ow_interval_result *r, unsigned room, bool ascii)
{
	char text[OW_RESULT_CAUSE + 20] = "", clean[OW_RESULT_CAUSE + 20];
	if (r->status == OW_RESULT_UNKNOWN)
		snprintf(text, sizeof text, "no result: %s", r->cause);
	else if (r->status == OW_RESULT_PARTIAL)
		snprintf(text, sizeof text, "partial: %s", r->cause);
	else if (r->lost_whole_flows)
		snprintf(text, sizeof text, "whole flows lost");
	else
		snprintf(text, sizeof text, r->exact ? "exact" : "measured");
	ow_format_clean(text, ascii, clean, sizeof clean);
	unsigned width = line->width;
	line->width = line->columns + room < width ? line->columns + room : width;
	put_text(line, " ");
	put_text(line, clean);
	line->width = width;
}

static double seconds_of(const struct ow_interval_result *r)
{
	return r->length_ns > 0 ? (double)r->length_ns / 1e9 : 1;
}

static void put_cell(struct line *line, int column, const char *text)
{
	put_format(line, " %*s", (int)columns[column].width, text);
}

/* NAN: not known. */
static void put_rates(struct line *line, const struct layout *layout, double packets, double bits)
{
	char text[OW_FORMAT];
	if (layout->shown & 1u << PACKETS)
		put_cell(line, PACKETS, isnan(packets) ? "-" : ow_format_rate(packets, "pps", text));
	if (layout->shown & 1u << BITS)
		put_cell(line, BITS, isnan(bits) ? "-" : ow_format_rate(bits, "b/s", text));
}

/* For sampled packets the totals are also known. */
static uint64_t all_sent(const struct ow_interval_result *r)
{
	return r->total_sent > r->sent ? r->total_sent : r->sent;
}

/* As a share of all packets sent. */
static void put_unshared(struct line *line, const struct layout *layout, uint64_t unshared, uint64_t sent)
{
	char text[OW_FORMAT] = "-";
	double all = (double)unshared + (double)sent;
	if (!(layout->shown & 1u << UNSHARED))
		return;
	if (all > 0)
		ow_format_percent((double)unshared / all, text);
	put_cell(line, UNSHARED, text);
}

static void put_loss(struct line *line, const struct layout *layout, uint64_t lost, uint64_t sent, bool colour)
{
	char text[OW_FORMAT] = "-";
	if (!(layout->shown & 1u << LOSS))
		return;
	if (sent)
		ow_format_percent((double)lost / (double)sent, text);
	put_bytes(line, colour && lost ? "\033[31m" : "");
	put_cell(line, LOSS, text);
	put_bytes(line, colour && lost ? "\033[0m" : "");
}

static void put_delay(struct line *line, const struct layout *layout, int column, const struct ow_value *value)
{
	char text[OW_DURATION_TEXT];
	if (layout->shown & 1u << column)
		put_cell(line, column, ow_duration_cell(value->status == OW_VALUE_NONE ? NAN : value->value, text));
}

static void put_numbers(struct line *line, const struct ow_render_table *table, const struct lane *lane,
                        const struct layout *layout)
{
	const struct ow_interval_result *r = &lane->newest;
	put_rates(line, layout, (double)all_sent(r) / seconds_of(r), 8 * (double)r->bytes / seconds_of(r));
	put_unshared(line, layout, lane->settled.unshared_sent, lane->settled.sent);
	put_loss(line, layout, lane->settled.lost, lane->is_settled ? lane->settled.sent : 0, table->colour);
	put_delay(line, layout, MEAN, &r->mean_ns);
	put_delay(line, layout, P99, &r->quantile_ns[OW_Q99]);
}

/* Prints the reason in place of the numbers. */
static void put_excuse(struct line *line, const struct ow_render_table *table, const struct ow_interval_result *r,
                       const struct layout *layout)
{
	unsigned room = 0;
	for (int i = 0; i < COLUMNS; i++)
		room += layout->shown & 1u << i ? 1 + columns[i].width : 0;
	unsigned end = line->columns + room;
	put_status(line, r, room, !table->utf8);
	while (line->columns < end && line->columns < line->width)
		put_text(line, " ");
}

static void put_lane(struct line *line, const struct ow_render_table *table, const struct lane *lane,
                     const struct layout *layout)
{
	const struct ow_interval_result *r = &lane->newest;
	char name[OW_RENDER_LANE];
	bool known = r->status != OW_RESULT_UNKNOWN;
	ow_render_lane(r, layout->lane, !table->utf8, name);
	put_padded(line, name, layout->lane);
	put_bytes(line, table->colour && r->status != OW_RESULT_MEASURED ? "\033[31m" : "");
	put_text(line, !known ? " ?" : r->status == OW_RESULT_PARTIAL ? " !" : "  ");
	put_bytes(line, table->colour && r->status != OW_RESULT_MEASURED ? "\033[0m" : "");
	if (known)
		put_numbers(line, table, lane, layout);
	else
		put_excuse(line, table, r, layout);
	if (layout->spark)
		put_spark(line, lane, layout, table->utf8);
	if (layout->status && known)
		put_status(line, lane->settled.lost_whole_flows ? &lane->settled : r, layout->status + 1, !table->utf8);
}

/* The total of the lanes that have a result; marked if some have none. */
static void put_total(struct line *line, const struct ow_render_table *table, const struct layout *layout)
{
	double packets = 0, bits = 0;
	uint64_t sent = 0, lost = 0, unshared = 0;
	size_t known = 0;
	for (size_t i = 0; i < table->lanes; i++) {
		const struct lane *lane = &table->lane[i];
		if (lane->newest.status == OW_RESULT_UNKNOWN)
			continue;
		known++;
		packets += (double)all_sent(&lane->newest) / seconds_of(&lane->newest);
		bits += 8 * (double)lane->newest.bytes / seconds_of(&lane->newest);
		sent += lane->is_settled ? lane->settled.sent : 0;
		lost += lane->is_settled ? lane->settled.lost : 0;
		unshared += lane->is_settled ? lane->settled.unshared_sent : 0;
	}
	put_bytes(line, table->colour ? "\033[1m" : "");
	put_padded(line, "total", layout->lane);
	put_text(line, known == 0 ? " ?" : known < table->lanes ? " !" : "  ");
	put_rates(line, layout, known ? packets : NAN, known ? bits : NAN);
	put_unshared(line, layout, unshared, sent);
	put_loss(line, layout, lost, sent, false);
	put_bytes(line, table->colour ? "\033[0m" : "");
}

static void put_heading(struct line *line, const struct ow_render_table *table, const struct layout *layout)
{
	char time[OW_FORMAT], utc[OW_FORMAT + 4];
	const struct ow_interval_result *r = &table->lane[0].newest;
	for (size_t i = 1; i < table->lanes; i++)
		r = table->lane[i].newest.start_ns > r->start_ns ? &table->lane[i].newest : r;
	put_bytes(line, table->colour ? "\033[1m" : "");
	ow_format_time(r->start_ns, "%H:%M:%S", time);
	snprintf(utc, sizeof utc, "%s UTC", time);
	put_padded(line, layout->lane + 2 >= strlen(utc) ? utc : time, layout->lane + 2);
	for (int i = 0; i < COLUMNS; i++) {
		if (layout->shown & 1u << i)
			put_cell(line, i, columns[i].title);
	}
	if (layout->spark)
		put_format(line, " %-*s", (int)layout->spark, "mean");
	if (layout->status)
		put_text(line, " status");
	put_bytes(line, table->colour ? "\033[0m" : "");
}

/* -- screen ------------------------------------------------------------------------------------------------------- */

/* Moves to the first line of the last drawing, also if the terminal has become narrower since. */
static void go_up(struct ow_render_table *table, unsigned width, unsigned height)
{
	unsigned rows = 0;
	for (unsigned i = 0; i < table->lines; i++)
		rows += table->drawn[i] > width ? (table->drawn[i] + width - 1) / width : 1;
	rows = rows < height ? rows : height - 1;
	if (rows)
		fprintf(table->out, "\033[%uF", rows);
	table->lines = 0;
}

static void put_line(struct ow_render_table *table, const struct line *line)
{
	fprintf(table->out, "\033[2K%s\n", line->text);
	table->drawn[table->lines++] = line->columns;
}

/* The newest events that fit, the oldest of them first, broken to the width. Their lines are counted if `put` is not
 * set. */
static size_t put_events(struct ow_render_table *table, size_t first, unsigned width, bool put)
{
	size_t lines = 0;
	for (size_t i = first; i < table->events; i++) {
		const char *text = table->event[i % EVENTS];
		for (const char *mark = "* "; *text; mark = "  ", lines++) {
			size_t length = ow_format_break(text, strlen(text), width > 3 ? width - 2 : 1);
			length = length ? length : strcspn(text, " ");
			struct line line = {.width = width};
			put_format(&line, "%s%.*s", mark, (int)length, text);
			text += length;
			text += strspn(text, " ");
			if (put)
				put_line(table, &line);
		}
	}
	return lines;
}

/* The first event that is shown if there are so many lines for events. */
static size_t first_event(struct ow_render_table *table, size_t room, unsigned width)
{
	size_t first = table->events > EVENTS ? table->events - EVENTS : 0;
	while (first < table->events && put_events(table, first, width, false) > room)
		first++;
	return first;
}

void ow_render_table_draw(struct ow_render_table *table, unsigned width, unsigned height)
{
	struct line line;
	width = width < 1 ? 1 : width < SCREEN_MAX ? width : SCREEN_MAX;
	height = height < 2 ? 2 : height < SCREEN_MAX ? height : SCREEN_MAX;
	go_up(table, width, height);
	if (!table->lanes)
		return;
	struct layout layout = layout_of(table, width);
	/* The cursor is below the table, in its own line. */
	size_t room = height - 1, frame = room >= 4 ? 2 : 0, rows = table->lanes;
	if (rows > room - frame)
		rows = room - frame > 1 ? room - frame - 1 : room - frame;
	if (frame) {
		line = (struct line){.width = width};
		put_heading(&line, table, &layout);
		put_line(table, &line);
	}
	for (size_t i = 0; i < rows; i++) {
		line = (struct line){.width = width};
		put_lane(&line, table, &table->lane[i], &layout);
		put_line(table, &line);
	}
	if (rows < table->lanes && rows + frame < room) {
		line = (struct line){.width = width};
		put_format(&line, "... and %zu more", table->lanes - rows);
		put_line(table, &line);
	}
	if (frame) {
		line = (struct line){.width = width};
		put_total(&line, table, &layout);
		put_line(table, &line);
	}
	size_t left = room > table->lines ? room - table->lines : 0;
	put_events(table, first_event(table, left, width), width, true);
	fputs("\033[J", table->out);
	fflush(table->out);
}
