/* SPDX-License-Identifier: Apache-2.0 */
/* The table is drawn on a small simulated terminal, which wraps lines again when it is resized. */
#include "../result/interval_sample.h"
#include "report/interval_render.h"
#include "base/format.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROWS 200
#define LINE 2000

/* Logical lines; a line longer than the width takes several rows. The cursor is only ever at the start of a line. */
struct terminal {
	char line[ROWS][LINE];
	unsigned count; /* lines above the cursor, which may have lines below it */
	unsigned all, width;
};

static unsigned rows_of(const struct terminal *t, unsigned i)
{
	size_t columns = ow_format_columns(t->line[i]);
	return columns <= t->width ? 1 : (unsigned)((columns + t->width - 1) / t->width);
}

static void go_up(struct terminal *t, unsigned rows)
{
	while (rows) {
		assert_true(t->count > 0);
		unsigned have = rows_of(t, --t->count);
		assert_true(have <= rows); /* into the middle of a broken line */
		rows -= have;
	}
}

static void obey(struct terminal *t, const char *text)
{
	char line[LINE];
	size_t used = 0;
	while (*text) {
		if (*text == '\n') {
			line[used] = 0;
			assert_true(t->count < ROWS);
			memcpy(t->line[t->count++], line, used + 1);
			t->all = t->count > t->all ? t->count : t->all;
			used = 0;
			text++;
		} else if (*text == '\033') {
			char *end;
			assert_true(text[1] == '[');
			unsigned n = (unsigned)strtoul(text + 2, &end, 10);
			if (*end == 'F')
				go_up(t, n);
			else if (*end == 'J')
				t->all = t->count;
			else
				assert_true((*end == 'K' && n == 2 && !used) || *end == 'm');
			text = end + 1;
		} else {
			line[used++] = *text++;
		}
	}
	assert_int_equal(used, 0);
}

struct setup {
	struct ow_render_table *table;
	struct terminal terminal;
	char *text;
	size_t length;
	FILE *out;
	long seen;
};

static struct setup *begin(unsigned width)
{
	struct setup *s = calloc(1, sizeof *s);
	s->out = open_memstream(&s->text, &s->length);
	s->terminal.width = width;
	assert_int_equal(ow_render_table_create(s->out, &s->table), 0);
	return s;
}

static void draw(struct setup *s, unsigned width, unsigned height)
{
	s->terminal.width = width;
	ow_render_table_draw(s->table, width, height);
	obey(&s->terminal, s->text + s->seen);
	s->seen = ftell(s->out);
	for (unsigned i = 0; i < s->terminal.all; i++)
		assert_true(ow_format_columns(s->terminal.line[i]) <= width);
	assert_true(s->terminal.all < height);
}

static void end(struct setup *s)
{
	ow_render_table_free(s->table);
	fclose(s->out);
	free(s->text);
	free(s);
}

static void add(struct setup *s, unsigned lanes, int64_t interval, bool final)
{
	for (unsigned i = 0; i < lanes; i++) {
		struct ow_interval_result r = final ? sample_live(interval) : sample_provisional(interval);
		snprintf(r.class_name, sizeof r.class_name, "class-%u", i);
		r.mean_ns = sample_value(OW_VALUE_EXACT, 50000 + 1000 * (double)((interval + i) % 8), 0);
		assert_int_equal(ow_render_table_add(s->table, &r), 0);
	}
}

/* The newest events are below the table, as many as there is room for; unshared packets have a column. */
static void shows_events(void **state)
{
	(void)state;
	struct setup *s = begin(100);
	struct ow_flow_event event = {.class_name = "all",
	                              .to = "paris",
	                              .scope = {.kind = OW_SCOPE_STOPPED, .version = 4, .bits = 8, .network = {10}}};
	add(s, 3, 0, true);
	draw(s, 100, 24);
	assert_null(strstr(s->terminal.line[0], "unshared"));
	for (uint32_t i = 1; i <= 5; i++) {
		event.scope.flows = i;
		ow_render_table_event(s->table, &event);
	}
	struct ow_interval_result r = sample_live(1);
	snprintf(r.class_name, sizeof r.class_name, "class-0");
	r.unshared_sent = 300000;
	assert_int_equal(ow_render_table_add(s->table, &r), 0);
	draw(s, 100, 24);
	assert_non_null(strstr(s->terminal.line[0], "unshared"));
	assert_non_null(strstr(s->terminal.line[1], "75.0%"));
	assert_int_equal(s->terminal.all, 5 + 3);
	assert_non_null(strstr(s->terminal.line[5], "* since 00:00:00 3 flows of 10.0.0.0/8 no longer pass paris"));
	assert_non_null(strstr(s->terminal.line[7], "5 flows"));
	end(s);
	for (unsigned height = 2; height < 12; height++) {
		for (unsigned width = 1; width < 120; width += 7) {
			s = begin(width);
			add(s, 2, 0, true);
			ow_render_table_event(s->table, &event);
			draw(s, width, height);
			draw(s, width, height);
			end(s);
		}
	}
}

static void stays_in_place(void **state)
{
	(void)state;
	struct setup *s = begin(100);
	ow_render_table_style(s->table, true, true);
	for (int64_t i = 0; i < 100; i++) {
		add(s, 3, i, false);
		if (i >= 2)
			add(s, 3, i - 2, true);
		draw(s, 100, 24);
		assert_int_equal(s->terminal.all, 5);
	}
	const struct terminal *t = &s->terminal;
	assert_non_null(strstr(t->line[0], "22:14:59.250 UTC"));
	assert_non_null(strstr(t->line[1], "class-0 london>paris"));
	assert_non_null(strstr(t->line[1], "100.0 kpps 400.0 Mb/s  0.260%     53 us     53 us "));
	assert_non_null(strstr(t->line[1], "▅▆▇█▁▂▃▄"));
	assert_non_null(strstr(t->line[2], "▆▇█▁▂▃▄▅"));
	assert_non_null(strstr(t->line[4], "300.0 kpps 1.200 Gb/s  0.260%"));
	assert_true(strncmp(t->line[4], "total", 5) == 0);
	end(s);
}

/* Any size follows any other, and there is always one table on the screen, without a leftover. */
static void survives_resizing(void **state)
{
	(void)state;
	/* High enough that the old lines, broken anew, do not scroll out: what has left the screen stays. */
	static const unsigned sizes[][2] = {{80, 24}, {40, 24}, {30, 20}, {200, 60}, {81, 30}, {20, 190},
	                                    {1, 190}, {80, 24}, {20, 50}, {120, 9},  {79, 24}};
	struct setup *s = begin(80);
	ow_render_table_style(s->table, true, false);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		add(s, 6, (int64_t)i, true);
		draw(s, sizes[i][0], sizes[i][1]);
		assert_int_equal(s->terminal.all, s->terminal.count);
	}
	assert_int_equal(s->terminal.all, 8);
	/* Lower than the table: what fits. */
	for (unsigned height = 24; height-- > 2;) {
		ow_render_table_draw(s->table, 79, height);
		s->terminal = (struct terminal){.width = 79};
		obey(&s->terminal, strchr(s->text + s->seen, 'F') + 1);
		s->seen = ftell(s->out);
		assert_int_equal(s->terminal.all, height - 1 < 8 ? height - 1 : 8);
	}
	end(s);
}

static void many_lanes(void **state)
{
	(void)state;
	struct setup *s = begin(80);
	add(s, 40, 0, true);
	draw(s, 80, 24);
	assert_int_equal(s->terminal.all, 23);
	assert_string_equal(s->terminal.line[21], "... and 20 more");
	assert_non_null(strstr(s->terminal.line[20], "19 "));
	assert_non_null(strstr(s->terminal.line[22], "4.000 Mpps")); /* of all 40 */
	draw(s, 80, 43);
	assert_int_equal(s->terminal.all, 42);
	end(s);
}

static void ascii_only(void **state)
{
	(void)state;
	struct setup *s = begin(100);
	for (int64_t i = 0; i < 8; i++)
		add(s, 1, i, true);
	draw(s, 100, 24);
	assert_non_null(strstr(s->terminal.line[1], "_.-=+*#@"));
	for (const char *p = s->text; *p; p++)
		assert_true((unsigned char)*p < 0x80);
	end(s);
}

/* What is wrong is said where the numbers would be; a gap is a gap in the sparkline. */
static void unknown_lane(void **state)
{
	(void)state;
	struct setup *s = begin(80);
	struct ow_interval_result r = sample_live(0);
	ow_render_table_add(s->table, &r);
	r = sample_unknown(2);
	ow_render_table_add(s->table, &r);
	r = sample_live(3);
	r.status = OW_RESULT_PARTIAL;
	ow_render_table_add(s->table, &r);
	draw(s, 80, 24);
	assert_non_null(strstr(s->terminal.line[1], "voice london>paris !"));
	assert_non_null(strstr(s->terminal.line[1], "=  ="));
	r = sample_unknown(4);
	ow_render_table_add(s->table, &r);
	draw(s, 80, 24);
	assert_non_null(strstr(s->terminal.line[1], "? no result: paris does not answer "));
	assert_null(strstr(s->terminal.line[1], "kpps"));
	/* The total does not know either; with another lane it knows a part. */
	assert_non_null(strstr(s->terminal.line[2], "total"));
	assert_non_null(strstr(s->terminal.line[2], " ?          -          -       -"));
	r = sample_live(4);
	snprintf(r.class_name, sizeof r.class_name, "video");
	ow_render_table_add(s->table, &r);
	draw(s, 80, 24);
	assert_non_null(strstr(s->terminal.line[3], " ! 100.0 kpps 400.0 Mb/s  0.260%"));
	end(s);
}

/* A new session counts from 0 again. */
static void new_session(void **state)
{
	(void)state;
	struct setup *s = begin(80);
	add(s, 1, 1000000, true);
	add(s, 1, 0, true);
	draw(s, 80, 24);
	assert_non_null(strstr(s->terminal.line[0], "22:13:20.250"));
	struct ow_interval_result r = sample_live(0);
	const int64_t extremes[] = {INT64_MAX, INT64_MIN, -1, 0};
	for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
		r.interval = extremes[i];
		assert_int_equal(ow_render_table_add(s->table, &r), 0);
		draw(s, 80, 24);
	}
	end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_events), cmocka_unit_test(stays_in_place), cmocka_unit_test(survives_resizing),
		cmocka_unit_test(many_lanes),   cmocka_unit_test(ascii_only),     cmocka_unit_test(unknown_lane),
		cmocka_unit_test(new_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
