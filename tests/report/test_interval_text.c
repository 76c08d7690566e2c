/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and summary as users see them, at every width. */
#include "base/utf8.h"
#include "../result/interval_sample.h"
#include "report/interval_render.h"
#include "base/format.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *lines(unsigned width, bool colour, const struct ow_interval_result *result, size_t count)
{
	char *text;
	size_t length;
	struct ow_render_text to = {.out = open_memstream(&text, &length), .width = width, .colour = colour};
	for (size_t i = 0; i < count; i++)
		ow_render_text(&to, &result[i]);
	fclose(to.out);
	return text;
}

static char *summary(const struct ow_interval_result *total)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_render_summary(out, total);
	fclose(out);
	return text;
}

/* clang-format off */
static const char at_80_columns[] =
"UTC           lane                     sent    lost     loss      mean       p99\n"
"22:13:20.250~ voice london>paris    100,000   0-300 <=0.300%  50.12 us     53 us\n"
"22:13:20.250  voice london>paris    100,000     260   0.260%  50.12 us     53 us\n"
"22:13:21.250? voice london>paris  no result: paris does not answer\n"
"22:13:22.250! voice london>paris    100,000     260   0.260%  50.12 us     53 us\n"
"  ! the ring of paris lost 7 frames\n"
"22:13:23.250! voice london>paris    100,000     260   0.260%  50.12 us     53 us\n";
/* clang-format on */

static void narrow_and_wide(void **state)
{
	(void)state;
	struct ow_interval_result list[] = {sample_provisional(0), sample_live(0), sample_unknown(1), sample_live(2),
	                                    sample_live(3)};
	for (int i = 3; i < 5; i++) {
		list[i].status = OW_RESULT_PARTIAL;
		snprintf(list[i].cause, sizeof list[i].cause, "the ring of paris lost 7 frames");
	}
	char *text = lines(80, false, list, 5);
	assert_string_equal(text, at_80_columns);
	free(text);
}

/* Columns about scope are there once they are needed, with a heading of their own. */
static void scope_columns(void **state)
{
	(void)state;
	struct ow_interval_result list[] = {sample_live(0), sample_live(1), sample_live(2)};
	list[1].unshared_sent = 4321;
	list[1].absent = 21;
	list[1].lost_whole_flows = 250;
	char *text = lines(0, false, list, 3);
	assert_non_null(strstr(text, "unshared  absent    lost   whole "));
	assert_non_null(strstr(text, "100,000     4,321      21     260     250   0.260%"));
	assert_non_null(strstr(text, "100,000         0       0     260       0   0.260%"));
	assert_non_null(strstr(text, "100,000     260   0.260%"));
	free(text);
	/* On a usual terminal the loss of whole flows has room, because it explains the loss. */
	text = lines(80, false, list, 2);
	assert_non_null(strstr(text, "100,000     250   0.260%"));
	free(text);
	for (unsigned width = 28; width <= 200; width++) {
		text = lines(width, false, list, 3);
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= width);
		free(text);
	}
}

static void event_lines(void **state)
{
	(void)state;
	struct ow_flow_event event = {
		.class_name = "voice",
		.to = "paris",
		.start_ns = INT64_C(1700000000250000000),
		.scope = {.kind = OW_SCOPE_STOPPED, .flows = 17, .version = 4, .bits = 16, .network = {10, 1}}};
	char *text;
	size_t length;
	struct ow_render_text to = {.out = open_memstream(&text, &length)};
	ow_render_event(&to, &event);
	to.width = 40;
	ow_render_event(&to, &event);
	fclose(to.out);
	assert_string_equal(text, "  * voice: since 22:13:20 17 flows of 10.1.0.0/16 no longer pass paris\n"
	                          "  * voice: since 22:13:20 17 flows of\n"
	                          "    10.1.0.0/16 no longer pass paris\n");
	free(text);
}

/* No line is wider than the terminal, and lines of numbers are all equally wide. */
static void fits_everywhere(void **state)
{
	(void)state;
	struct ow_interval_result list[] = {sample_provisional(0), sample_live(0), sample_live(1), sample_unknown(2)};
	memset(list[2].from, 'x', OW_RESULT_NAME - 1);
	memset(list[2].segment, 's', OW_RESULT_NAME - 1);
	list[2].sent = list[2].lost = UINT64_MAX;
	list[2].late = list[2].pending = UINT64_MAX / 2;
	list[2].mean_ns = sample_value(OW_VALUE_ESTIMATED, -999.94e9, 1);
	memset(list[3].cause, 'c', OW_RESULT_CAUSE - 1);
	for (unsigned width = 28; width <= 200; width++) {
		char *text = lines(width, false, list, 4);
		size_t heading = 0, n = 0;
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
			size_t length = strcspn(line, "\n");
			/* The longer lane of the third has a heading of its own, if it leaves room for fewer columns.
			 */
			bool begins = strncmp(line, "UTC", 3) == 0;
			if (begins)
				heading = length;
			if (length > width || (n < 3 && length != heading))
				print_error("width %u:\n%s", width, text);
			assert_true(length <= width);
			assert_true(n == 3 || length == heading);
			n += !begins;
		}
		assert_int_equal(n, 4);
		free(text);
	}
}

/* A file has no width: nothing is left out, and a cause stands in its line. */
static void without_terminal(void **state)
{
	(void)state;
	struct ow_interval_result r = sample_live(0);
	r.status = OW_RESULT_PARTIAL;
	snprintf(r.cause, sizeof r.cause, "sampled");
	memset(r.class_name, 'k', OW_RESULT_NAME - 1);
	char *text = lines(0, false, &r, 1);
	assert_non_null(strstr(text, r.class_name));
	assert_non_null(strstr(text, "pending"));
	assert_non_null(strstr(text, "! sampled\n"));
	free(text);
}

static void heading_again(void **state)
{
	(void)state;
	struct ow_interval_result list[60];
	for (int i = 0; i < 60; i++)
		list[i] = sample_live(i);
	char *text = lines(80, false, list, 60);
	unsigned headings = 0, since = 0;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		bool heading = strncmp(line, "UTC", 3) == 0;
		headings += heading;
		since = heading ? 0 : since + 1;
		assert_true(since < 23);
	}
	assert_int_equal(headings, 3);
	free(text);
}

static void colour_only_adds(void **state)
{
	(void)state;
	struct ow_interval_result list[] = {sample_provisional(0), sample_live(0), sample_unknown(1)};
	char *plain = lines(80, false, list, 3), *text = lines(80, true, list, 3), *to = text;
	assert_non_null(strstr(text, "\033[31m"));
	for (const char *from = text; *from; from++) {
		if (*from == '\033')
			from += strcspn(from, "m");
		else
			*to++ = *from;
	}
	*to = 0;
	assert_string_equal(text, plain);
	assert_null(strchr(plain, '\033'));
	free(plain);
	free(text);
}

/* Names are somebody else's bytes. */
static void terminal_obeys_nothing(void **state)
{
	(void)state;
	struct ow_interval_result r = sample_unknown(0);
	snprintf(r.segment, sizeof r.segment,
	         "\033[2J\xc2\x9b"
	         "2J");
	snprintf(r.class_name, sizeof r.class_name, "\xff\xc3\xbc\x7f");
	snprintf(r.cause, sizeof r.cause, "a\033]0;b\a\nc");
	char *text = lines(0, false, &r, 1);
	assert_non_null(strstr(text, "?[2J?2J/?\xc3\xbc? london>paris"));
	assert_non_null(strstr(text, "no result: a?]0;b??c\n"));
	assert_null(strchr(text, '\033'));
	free(text);
}

static void lane_names(void **state)
{
	(void)state;
	char text[OW_RENDER_LANE];
	struct ow_interval_result r = sample_live(0);
	snprintf(r.segment, sizeof r.segment, "core");
	ow_render_lane(&r, 100, false, text);
	assert_string_equal(text, "core/voice london>paris");
	snprintf(r.segment, sizeof r.segment, "paris-london"); /* says nothing new */
	ow_render_lane(&r, 100, false, text);
	assert_string_equal(text, "voice london>paris");
	snprintf(r.class_name, sizeof r.class_name, "all");
	ow_render_lane(&r, 100, false, text);
	assert_string_equal(text, "all london>paris");
	ow_render_lane(&r, 12, false, text);
	assert_string_equal(text, "london>paris");
	/* Ends tell names apart more often than beginnings do. */
	snprintf(r.from, sizeof r.from, "interface-1");
	snprintf(r.to, sizeof r.to, "interface-2");
	ow_render_lane(&r, 16, false, text);
	assert_non_null(strchr(text, '1'));
	assert_non_null(strchr(text, '2'));
	snprintf(r.from, sizeof r.from, "d\xc3\xbcsseldorf");
	for (size_t room = 0; room < 40; room++) {
		size_t used = ow_render_lane(&r, room, false, text);
		assert_true(used <= room && used == ow_format_columns(text));
		uint32_t code;
		for (const char *p = text; *p; p += ow_utf8_next(p, &code))
			assert_true(ow_utf8_next(p, &code) > 0);
	}
	ow_render_lane(&r, 60, true, text);
	assert_non_null(strstr(text, "d?sseldorf"));
}

/* A lane that is longer than those before gets a heading that fits, without a terminal too. */
static void heading_fits_a_long_lane(void **state)
{
	(void)state;
	struct ow_interval_result list[] = {sample_live(0), sample_live(1), sample_live(2)};
	snprintf(list[1].to, sizeof list[1].to, "paris1+paris2");
	char *text = lines(0, false, list, 3);
	static const char *const column[] = {"sent", "100,000", "sent", "100,000", "100,000"};
	size_t end[5] = {0}, row = 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; row++) {
		assert_true(row < 5);
		const char *found = strstr(line, column[row]);
		assert_non_null(found);
		end[row] = (size_t)(found - line) + strlen(column[row]);
	}
	assert_int_equal(row, 5);
	assert_int_equal(end[1], end[0]);
	assert_true(end[2] > end[0]);
	assert_int_equal(end[3], end[2]);
	assert_int_equal(end[4], end[2]);
	free(text);
}

/* Where the packets go to several peers, one of them cannot tell what is lost: no text says that nothing is. */
static void loss_of_one_of_several(void **state)
{
	(void)state;
	struct ow_interval_result r = sample_live(0);
	r.lost = r.pending = 0;
	r.matched = r.sent - r.late;
	r.loss_ratio = sample_none(OW_REASON_OTHER_PEERS);
	char *text = lines(80, false, &r, 1);
	assert_non_null(strstr(text, "voice london>paris    100,000       -        -"));
	free(text);
	text = summary(&r);
	assert_non_null(strstr(text, " received, loss not known, "));
	assert_non_null(strstr(text, "\nloss: what did not arrive here may have gone to another peer"));
	assert_null(strstr(text, " lost ("));
	free(text);
	/* Packets of which nobody knows are no part of the share. */
	r.loss_ratio = ow_value_exact(0);
	r.pending = 40;
	r.matched -= r.pending;
	text = summary(&r);
	assert_non_null(strstr(text, " 0 lost (0 % of those decided)"));
	assert_non_null(strstr(text, "\n40 undecided: it is not known whether they arrived\n"));
	free(text);
	r.matched += r.pending;
	r.pending = 0;
	/* All together have loss, and no delays that clocks could disturb. */
	r.loss_ratio = ow_value_exact(0);
	r.mean_ns = sample_none(OW_REASON_EACH_PEER);
	r.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
	text = summary(&r);
	assert_non_null(strstr(text, " 0 lost (0 %)"));
	assert_null(strstr(text, "clock"));
	free(text);
}

/* clang-format off */
static const char of_a_run[] =
"--- voice london>paris ---\n"
"60 intervals, 60 s from 2023-11-14 22:13:20.250 UTC\n"
"6,000,000 sent, 5,984,405 received, 15,600 lost (0.260 %), 3 duplicates\n"
"2 extra: not seen at london\n"
"one-way delay min/median/max = -3.400 us / 50 us / 900 us\n"
"one-way delay mean/stddev = 50.12 us / 1.234 us, exact, of 2,048 packets\n"
"one-way jitter = 2 us +- 31 ns (P95-P50)\n"
"12 reordered (0.000201 %)\n"
"12 identical packets, whose delay is uncertain\n"
"coverage 99.5% of the packets, sampled 1 in 4 of 24,000,000\n"
"the points' own rings lost frames: 0 sending, 7 receiving\n"
"clock error: at most 13 us in each delay\n"
"negative delay: the clocks are apart by at least 3.400 us (paris is behind), within their error bound of 13 us, or the sender's stamps are late (oneway doctor)\n";
/* clang-format on */

static void summary_of_a_run(void **state)
{
	(void)state;
	struct ow_interval_result r = sample_live(0);
	r.interval = 60;
	r.length_ns = INT64_C(60000000000);
	r.sent = 6000000;
	r.lost = 15600;
	r.late = r.late_received = 0;
	r.matched = r.sent - r.lost;
	r.received = r.matched + r.extra;
	r.reordered = 12;
	r.min_ns = sample_value(OW_VALUE_EXACT, -3400, 0);
	r.max_ns = sample_value(OW_VALUE_EXACT, 900000, 0);
	r.sample_shift = 2;
	r.total_sent = 24000000;
	r.coverage = 0.995;
	r.clock_to = (struct ow_clock_state){true, 9000};
	char *text = summary(&r);
	assert_string_equal(text, of_a_run);
	free(text);

	r.min_ns = sample_none(OW_REASON_SAMPLED);
	r.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
	r.mean_ns = sample_value(OW_VALUE_ESTIMATED, 50123, 70);
	text = summary(&r);
	assert_non_null(strstr(text, "median/p99/p99.9 = 50 us / 53 us / 54 us\n"));
	assert_non_null(strstr(text, "mean within +- 70 ns (95 %)"));
	assert_non_null(strstr(text, "clock of paris is not synchronised"));
	assert_null(strstr(text, "negative"));
	free(text);

	for (int i = 0; i < OW_QUANTILES; i++)
		r.quantile_ns[i] = sample_none(OW_REASON_PEER_COULD_NOT_TELL);
	r.duplicated = 1;
	r.extra = 2;
	text = summary(&r);
	assert_non_null(strstr(text, "one-way delay quantiles unknown: the other point could not tell\n"));
	assert_non_null(strstr(text, ", 1 duplicate\n1 extra: not seen at london\n"));
	free(text);

	r.clock_from = r.clock_to = (struct ow_clock_state){true, 0};
	r.mean_ns = sample_none(OW_NO_REASON);
	text = summary(&r);
	assert_non_null(strstr(text, "no delay: nothing arrived\n"));
	assert_non_null(strstr(text, "the same clock"));
	free(text);

	r = sample_unknown(0);
	text = summary(&r);
	assert_non_null(strstr(text, "no result: paris does not answer\n"));
	assert_null(strstr(text, "sent"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_and_wide),
		cmocka_unit_test(fits_everywhere),
		cmocka_unit_test(scope_columns),
		cmocka_unit_test(event_lines),
		cmocka_unit_test(without_terminal),
		cmocka_unit_test(heading_again),
		cmocka_unit_test(colour_only_adds),
		cmocka_unit_test(terminal_obeys_nothing),
		cmocka_unit_test(lane_names),
		cmocka_unit_test(heading_fits_a_long_lane),
		cmocka_unit_test(loss_of_one_of_several),
		cmocka_unit_test(summary_of_a_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
