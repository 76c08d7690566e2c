/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics for Prometheus. With an argument (text or open) prints a page with everything in it, for other tests to
 * check.
 */
#include "../result/interval_sample.h"
#include "report/metrics.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LANE "segment=\"london-paris\",class=\"voice\",from=\"london\",to=\"paris\""
#define S    INT64_C(1000000000)

static char *render(const struct ow_metrics *m, enum ow_metrics_format format)
{
	struct ow_metrics_process process = {1.25, 1700000000.5, 4096000, 8192000, 17, 1024, 123456};
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	assert_non_null(out);
	ow_metrics_render(m, &process, format, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(strlen(text), length);
	return text;
}

static struct ow_metrics *create(void)
{
	struct ow_metrics *m;
	assert_int_equal(ow_metrics_create("london", &m), 0);
	return m;
}

/* A final result as the sending point has it, with delays in two buckets. */
static struct ow_interval_result sent(int64_t interval)
{
	struct ow_interval_result r = sample_live(interval);
	r.delay_bucket[6] = 90000;
	r.delay_bucket[7] = 9700;
	r.delay_bucket[OW_BUCKETS] = 40;
	return r;
}

/* The value of a sample, NAN if there is none. */
static double value(const struct ow_metrics *m, const char *sample)
{
	char *text = render(m, OW_METRICS_TEXT), *line = text;
	size_t length = strlen(sample);
	double found = NAN;
	while (line) {
		if (strncmp(line, sample, length) == 0 && line[length] == ' ')
			found = strtod(line + length, NULL);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	free(text);
	return found;
}

static void is(const struct ow_metrics *m, const char *sample, double want)
{
	double got = value(m, sample);
	if (!(fabs(got - want) <= 1e-12 * fabs(want)))
		fail_msg("%s is %.15g, not %.15g", sample, got, want);
}

static void is_absent(const struct ow_metrics *m, const char *sample)
{
	assert_true(isnan(value(m, sample)));
}

static void numbers_of_a_lane(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	struct ow_interval_result r = sent(0);
	r.unreadable = 3;
	ow_metrics_add(m, &r, 0);
	is(m, "oneway_packets_sent_total{" LANE "}", 100000);
	is(m, "oneway_packets_received_total{" LANE "}", 99740);
	is(m, "oneway_packets_compared_total{" LANE "}", 100000);
	is(m, "oneway_packets_lost_total{" LANE "}", 260);
	is(m, "oneway_packets_late_total{" LANE "}", 40);
	is(m, "oneway_packets_undecided_total{" LANE "}", 0);
	is(m, "oneway_packets_extra_total{" LANE "}", 5);
	is(m, "oneway_packets_duplicated_total{" LANE "}", 3);
	is(m, "oneway_packets_ambiguous_total{" LANE "}", 12);
	is(m, "oneway_bytes_sent_total{" LANE "}", 50000000);
	is(m, "oneway_frames_unreadable_total{" LANE "}", 3);
	is(m, "oneway_protocol_bytes_total{" LANE "}", 16384);
	is(m, "oneway_protocol_round_trips_total{" LANE "}", 2);
	is(m, "oneway_intervals_total{" LANE ",status=\"measured\"}", 1);
	is(m, "oneway_intervals_total{" LANE ",status=\"unknown\"}", 0);
	is(m, "oneway_ring_drops_total{" LANE ",side=\"from\",point=\"london\"}", 0);
	is(m, "oneway_ring_drops_total{" LANE ",side=\"to\",point=\"paris\"}", 7);
	is(m, "oneway_delay_mean_seconds{" LANE "}", 50123.5e-9);
	is(m, "oneway_delay_stddev_seconds{" LANE "}", 1234.25e-9);
	is(m, "oneway_delay_quantile_seconds{" LANE ",q=\"0.99\"}", 53000e-9);
	is(m, "oneway_delay_samples{" LANE "}", 2048);
	is(m, "oneway_loss_ratio{" LANE "}", 0.0026);
	is(m, "oneway_sample_ratio{" LANE "}", 1);
	is(m, "oneway_coverage_ratio{" LANE "}", 1);
	is(m, "oneway_clock_error_seconds{" LANE ",side=\"from\",point=\"london\"}", 4e-6);
	is_absent(m, "oneway_clock_error_seconds{" LANE ",side=\"to\",point=\"paris\"}");
	is(m, "oneway_clock_synchronised{" LANE ",side=\"from\",point=\"london\"}", 1);
	is(m, "oneway_clock_synchronised{" LANE ",side=\"to\",point=\"paris\"}", 0);
	is(m, "oneway_stage_seconds_total{" LANE ",stage=\"compute\"}", 0.0005);
	is(m, "oneway_interval_last_timestamp_seconds{" LANE "}", 1700000001.25);
	/* Not estimated, not counted, not provisional. */
	is_absent(m, "oneway_delay_min_seconds{" LANE "}");
	is_absent(m, "oneway_packets_reordered_total{" LANE "}");
	is_absent(m, "oneway_result_ready_seconds{" LANE "}");
	is(m, "process_cpu_seconds_total", 1.25);
	is(m, "process_open_fds", 17);
	is(m, "oneway_memory_allocated_bytes", 123456);
	ow_metrics_free(m);
}

static void histogram(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	struct ow_interval_result r = sample_live(0);
	ow_metrics_add(m, &r, 0);
	/* The receiving point has no delays. */
	is_absent(m, "oneway_delay_seconds_count{" LANE "}");
	for (int i = 1; i <= 2; i++) {
		r = sent(i);
		ow_metrics_add(m, &r, 0);
	}
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"0.0\"}", 0);
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"2.5e-05\"}", 0);
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"5e-05\"}", 180000);
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"0.0001\"}", 199400);
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"10.0\"}", 199400);
	is(m, "oneway_delay_seconds_bucket{" LANE ",le=\"+Inf\"}", 199480);
	is(m, "oneway_delay_seconds_count{" LANE "}", 199480);
	is(m, "oneway_delay_seconds_sum{" LANE "}", 199480 * 50123.5e-9);
	/* Clocks that are apart do not let the sum go back. */
	r = sent(3);
	r.mean_ns = sample_value(OW_VALUE_EXACT, -1e9, 0);
	ow_metrics_add(m, &r, 0);
	is(m, "oneway_delay_seconds_sum{" LANE "}", 199480 * 50123.5e-9);
	is(m, "oneway_delay_mean_seconds{" LANE "}", -1);
	ow_metrics_free(m);
}

/* Provisional results tell nothing but that the point measures, and how soon. */
static void counts_final_results_once(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	for (int i = 0; i < 3; i++) {
		struct ow_interval_result r = sample_provisional(i);
		ow_metrics_add(m, &r, 0);
		is(m, "oneway_packets_sent_total{" LANE "}", 100000 * i);
		is(m, "oneway_result_ready_seconds{" LANE "}", 0.0016);
		r = sample_live(i);
		ow_metrics_add(m, &r, 0);
		is(m, "oneway_packets_sent_total{" LANE "}", 100000 * (i + 1));
		is(m, "oneway_intervals_total{" LANE ",status=\"measured\"}", i + 1);
	}
	ow_metrics_free(m);
}

static void unknown_is_no_loss(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	struct ow_interval_result r = sample_live(0);
	ow_metrics_add(m, &r, 0);
	r = sample_unknown(1);
	r.total_sent = 100000;
	ow_metrics_add(m, &r, 0);
	is(m, "oneway_intervals_total{" LANE ",status=\"unknown\"}", 1);
	is(m, "oneway_packets_sent_total{" LANE "}", 100000);
	is(m, "oneway_packets_lost_total{" LANE "}", 260);
	/* What was measured before is no news of this interval. */
	is_absent(m, "oneway_loss_ratio{" LANE "}");
	is_absent(m, "oneway_delay_mean_seconds{" LANE "}");
	is_absent(m, "oneway_clock_synchronised{" LANE ",side=\"from\",point=\"london\"}");
	is(m, "oneway_interval_last_timestamp_seconds{" LANE "}", 1700000001.25);
	ow_metrics_free(m);
}

static void sampled_and_undecided(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	struct ow_interval_result r = sample_live(0);
	r.sample_shift = 3;
	r.total_sent = 800000;
	r.total_received = 797000;
	r.pending = 60;
	r.lost = 200;
	r.status = OW_RESULT_PARTIAL;
	r.coverage = 0.125;
	r.reordered = 11;
	ow_metrics_add(m, &r, 0);
	is(m, "oneway_packets_sent_total{" LANE "}", 800000);
	is(m, "oneway_packets_received_total{" LANE "}", 797000);
	is(m, "oneway_packets_compared_total{" LANE "}", 99940);
	is(m, "oneway_packets_undecided_total{" LANE "}", 60);
	is(m, "oneway_packets_lost_total{" LANE "}", 200);
	is(m, "oneway_packets_reordered_total{" LANE "}", 11);
	is(m, "oneway_sample_ratio{" LANE "}", 0.125);
	is(m, "oneway_coverage_ratio{" LANE "}", 0.125);
	is(m, "oneway_intervals_total{" LANE ",status=\"partial\"}", 1);
	ow_metrics_free(m);
}

/* Whatever comes, also from a peer that lies: no counter is less than before. */
static void counters_never_go_back(void **state)
{
	(void)state;
	static const char *const names[] = {
		"oneway_packets_sent_total{" LANE "}",
		"oneway_packets_lost_total{" LANE "}",
		"oneway_packets_reordered_total{" LANE "}",
		"oneway_packets_compared_total{" LANE "}",
		"oneway_bytes_sent_total{" LANE "}",
		"oneway_protocol_bytes_total{" LANE "}",
		"oneway_stage_seconds_total{" LANE ",stage=\"decode\"}",
		"oneway_delay_seconds_count{" LANE "}",
		"oneway_delay_seconds_sum{" LANE "}",
		"oneway_ring_drops_total{" LANE ",side=\"from\",point=\"london\"}",
	};
	double before[sizeof names / sizeof *names] = {0};
	struct ow_metrics *m = create();
	for (int64_t i = 0; i < 8; i++) {
		struct ow_interval_result r = sent(i % 2 ? -i : i);
		r.reordered = i < 2 ? 7 : i < 6 ? UINT64_MAX - 5 : OW_RESULT_NOT_COUNTED;
		if (i >= 2 && i < 6) {
			r.sent = r.total_sent = r.bytes = r.lost = r.cost.bytes = r.ring_drops_from = UINT64_MAX - 5;
			r.delay_bucket[3] = UINT64_MAX / 2;
			r.cost.decode_ns = i % 2 ? INT64_MIN : INT64_MAX;
			r.pending = i % 2 ? UINT64_MAX : 0;
			r.mean_ns.value = i % 2 ? -1e18 : 1e18;
			r.start_ns = i % 2 ? INT64_MIN : INT64_MAX;
		}
		ow_metrics_add(m, &r, 0);
		for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
			double now = value(m, names[n]);
			if (!(now >= before[n]))
				fail_msg("%s: %.15g after %.15g", names[n], now, before[n]);
			before[n] = now;
		}
	}
	ow_metrics_free(m);
}

static void labels_are_escaped(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	struct ow_interval_result r = sample_live(0);
	snprintf(r.segment, sizeof r.segment, "a\"b\\c\nd");
	snprintf(r.class_name, sizeof r.class_name, "caf\xc3\xa9 \xff\xc3");
	memset(r.to, '"', sizeof r.to - 1);
	ow_metrics_add(m, &r, 0);
	char *text = render(m, OW_METRICS_TEXT);
	assert_non_null(
		strstr(text, "{segment=\"a\\\"b\\\\c?d\",class=\"caf\xc3\xa9 ??\",from=\"london\",to=\"\\\"\\\""));
	/* The longest name is there with all its escapes. */
	const char *to = strstr(text, "to=\"");
	assert_non_null(to);
	assert_int_equal(strspn(to + 4, "\\\""), 2 * (sizeof r.to - 1) + 1);
	assert_memory_equal(to + 4 + 2 * (sizeof r.to - 1), "\"} ", 3);
	free(text);
	ow_metrics_free(m);
}

/* Every line is a comment or a sample of the family before it; OpenMetrics ends with its mark. */
struct lines {
	bool open, ended;
	char family[100], type[20], seen[8192];
};

static void check_help(struct lines *l, const char *line)
{
	char once[sizeof l->family + 2];
	assert_int_equal(sscanf(line, "# HELP %99s", l->family), 1);
	snprintf(once, sizeof once, "|%s|", l->family);
	assert_null(strstr(l->seen, once));
	snprintf(l->seen + strlen(l->seen), sizeof l->seen - strlen(l->seen), "%s", once);
}

static void check_type(struct lines *l, const char *line)
{
	char name[100];
	assert_int_equal(sscanf(line, "# TYPE %99s %19s", name, l->type), 2);
	assert_string_equal(name, l->family);
	bool total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
	assert_int_equal(total, !l->open && strcmp(l->type, "counter") == 0);
}

static void check_line(struct lines *l, const char *line)
{
	assert_false(l->ended);
	if (strcmp(line, "# EOF") == 0) {
		l->ended = true;
	} else if (strncmp(line, "# HELP ", 7) == 0) {
		check_help(l, line);
	} else if (strncmp(line, "# TYPE ", 7) == 0) {
		check_type(l, line);
	} else {
		assert_int_equal(strncmp(line, l->family, strlen(l->family)), 0);
		char *end, *number = strrchr(line, ' ') + 1;
		strtod(number, &end);
		assert_true(end > number && !*end);
		if (l->open && strcmp(l->type, "counter") == 0)
			assert_non_null(strstr(line, "_total"));
	}
}

static void check_lines(char *text, bool open)
{
	struct lines l = {.open = open};
	for (char *end; *text; text = end + 1) {
		end = strchr(text, '\n');
		assert_non_null(end);
		*end = 0;
		check_line(&l, text);
	}
	assert_int_equal(l.ended, open);
}

static struct ow_metrics *everything(void)
{
	struct ow_metrics *m = create();
	for (int64_t i = 0; i < 3; i++) {
		struct ow_interval_result r = sample_provisional(i);
		ow_metrics_add(m, &r, i * S);
		r = sent(i);
		r.reordered = 1;
		r.clock_to = (struct ow_clock_state){true, 5000};
		r.min_ns = r.max_ns = sample_value(OW_VALUE_EXACT, 40000, 0);
		ow_metrics_add(m, &r, i * S);
		snprintf(r.class_name, sizeof r.class_name, "\"odd\" \\ class");
		ow_metrics_add(m, &r, i * S);
	}
	ow_metrics_peer(m, "paris", true);
	ow_metrics_peer(m, "oslo", false);
	ow_metrics_store(m, 4, 1);
	ow_metrics_certificate(m, 1900000000);
	return m;
}

static void both_formats(void **state)
{
	(void)state;
	struct ow_metrics *m = everything(), *empty = create();
	for (int open = 0; open < 2; open++) {
		char *text = render(m, open ? OW_METRICS_OPEN : OW_METRICS_TEXT);
		assert_non_null(strstr(text, open ? "# TYPE oneway_build info\n" : "# TYPE oneway_build_info gauge\n"));
		assert_non_null(strstr(text, "\noneway_build_info{version=\""));
		check_lines(text, open);
		free(text);
		text = render(empty, open ? OW_METRICS_OPEN : OW_METRICS_TEXT);
		check_lines(text, open);
		free(text);
	}
	ow_metrics_free(empty);
	ow_metrics_free(m);
}

static void peers_and_store(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	ow_metrics_peer(m, "paris", false);
	is(m, "oneway_session_connected{peer=\"paris\"}", 0);
	for (int i = 1; i <= 3; i++) {
		ow_metrics_peer(m, "paris", true);
		is(m, "oneway_session_connected{peer=\"paris\"}", 1);
		is(m, "oneway_session_connections_total{peer=\"paris\"}", i);
		ow_metrics_peer(m, "paris", false);
	}
	/* A lane to several peers is none of its own. */
	struct ow_interval_result r = sent(1);
	snprintf(r.from, sizeof r.from, "london");
	snprintf(r.to, sizeof r.to, "paris+oslo");
	ow_metrics_add(m, &r, 1);
	is_absent(m, "oneway_session_connected{peer=\"paris+oslo\"}");
	is_absent(m, "oneway_certificate_expiry_timestamp_seconds");
	ow_metrics_certificate(m, 1900000000);
	is(m, "oneway_certificate_expiry_timestamp_seconds", 1900000000);
	ow_metrics_store(m, 5, 9);
	ow_metrics_store(m, 2, 3);
	is(m, "oneway_store_lost_total", 5);
	is(m, "oneway_store_waiting", 3);
	ow_metrics_free(m);
}

static void lanes_are_bounded(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	char name[40];
	for (int i = 0; i < OW_METRICS_LANES + 10; i++) {
		struct ow_interval_result r = sample_live(0);
		snprintf(r.class_name, sizeof r.class_name, "class-%d", i);
		ow_metrics_add(m, &r, 0);
		snprintf(name, sizeof name, "peer-%d", i);
		ow_metrics_peer(m, name, true);
	}
	is(m, "oneway_metrics_left_out_total{peer=\"paris\"}", 10);
	char *text = render(m, OW_METRICS_TEXT);
	assert_non_null(strstr(text, "\"class-1023\""));
	assert_null(strstr(text, "\"class-1024\""));
	assert_null(strstr(text, "\"peer-256\""));
	free(text);
	ow_metrics_free(m);
}

static void add_lane(struct ow_metrics *m, const char *peer, int number, int64_t steady_ns)
{
	struct ow_interval_result r = sample_live(0);
	snprintf(r.class_name, sizeof r.class_name, "%s-%d", peer, number);
	snprintf(number % 2 ? r.to : r.from, sizeof r.to, "%s", peer);
	snprintf(number % 2 ? r.from : r.to, sizeof r.to, "london");
	ow_metrics_add(m, &r, steady_ns);
}

/* A peer that makes up names takes its own places only; places of lanes that are over are used again. */
static void no_peer_takes_all(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	char *text;
	for (int i = 0; i < 3 * OW_METRICS_LANES; i++)
		add_lane(m, "rome", i, S);
	is(m, "oneway_metrics_left_out_total{peer=\"rome\"}", 2 * OW_METRICS_LANES);
	for (int i = 0; i < 100; i++)
		add_lane(m, "paris", i, 2 * S);
	for (int i = 0; i < 100; i++)
		add_lane(m, "rome", 10000 + i, 3 * S);
	text = render(m, OW_METRICS_TEXT);
	assert_non_null(strstr(text, "\"paris-0\""));
	assert_non_null(strstr(text, "\"paris-99\""));
	assert_null(strstr(text, "\"rome-10000\""));
	free(text);
	is(m, "oneway_metrics_lanes_dropped_total", 100);
	is(m, "oneway_metrics_left_out_total{peer=\"paris\"}", 0);
	is(m, "oneway_metrics_left_out_total{peer=\"rome\"}", 2 * OW_METRICS_LANES + 100);
	/* Later: a class with another name. Lanes that have gone on stay. */
	add_lane(m, "rome", 500, S + OW_METRICS_OVER_NS);
	add_lane(m, "rome", 20000, S + OW_METRICS_OVER_NS);
	text = render(m, OW_METRICS_TEXT);
	assert_non_null(strstr(text, "\"rome-20000\""));
	assert_non_null(strstr(text, "\"rome-500\""));
	free(text);
	/* Many peers, all places taken: each has its part. */
	for (int peer = 0; peer < 50; peer++) {
		char name[20];
		snprintf(name, sizeof name, "p%d", peer);
		for (int i = 0; i < 30; i++)
			add_lane(m, name, i, 2 * S + OW_METRICS_OVER_NS);
	}
	text = render(m, OW_METRICS_TEXT);
	for (int peer = 0; peer < 50; peer++) {
		char name[100];
		unsigned lanes = 0;
		for (int i = 0; i < 30; i++) {
			snprintf(name, sizeof name,
			         "oneway_packets_lost_total{segment=\"london-paris\",class=\"p%d-%d\"", peer, i);
			lanes += strstr(text, name) != NULL;
		}
		assert_in_range(lanes, OW_METRICS_LANES / 52 - 1, 30);
	}
	free(text);
	ow_metrics_free(m);
}

static void health(void **state)
{
	(void)state;
	struct ow_metrics *m = create();
	char why[OW_METRICS_WHY];
	assert_false(ow_metrics_healthy(m, 0, why));
	assert_string_equal(why, "no interval has been measured yet");
	struct ow_interval_result r = sample_unknown(0);
	ow_metrics_add(m, &r, 0);
	assert_false(ow_metrics_healthy(m, 0, why));
	r = sample_provisional(1);
	ow_metrics_add(m, &r, 100 * S);
	assert_true(ow_metrics_healthy(m, 100 * S, why));
	assert_true(ow_metrics_healthy(m, 113 * S, why));
	assert_string_equal(why, "measuring");
	/* Intervals go on, but nothing is known of them. */
	r = sample_unknown(2);
	ow_metrics_add(m, &r, 114 * S);
	assert_false(ow_metrics_healthy(m, 114 * S, why));
	assert_string_equal(why, "no interval has been measured for 14 s");
	ow_metrics_free(m);
}

static void accept_header(void **state)
{
	(void)state;
	static const struct {
		const char *accept;
		enum ow_metrics_format format;
	} cases[] = {
		{NULL, OW_METRICS_TEXT},
		{"", OW_METRICS_TEXT},
		{"*/*", OW_METRICS_TEXT},
		{"application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	         OW_METRICS_OPEN},
		{"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.75", OW_METRICS_TEXT},
		{"text/plain ; q=0.3 , Application/OpenMetrics-Text ; Q=0.4", OW_METRICS_OPEN},
		{"application/openmetrics-text;q=0", OW_METRICS_TEXT},
		{"application/openmetrics-textual", OW_METRICS_TEXT},
		{"application/openmetrics-text;q=", OW_METRICS_TEXT},
		{",,;;,text/plain;q", OW_METRICS_TEXT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (ow_metrics_format(cases[i].accept) != cases[i].format)
			fail_msg("Accept: %s", cases[i].accept);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_a_lane),
		cmocka_unit_test(histogram),
		cmocka_unit_test(counts_final_results_once),
		cmocka_unit_test(unknown_is_no_loss),
		cmocka_unit_test(sampled_and_undecided),
		cmocka_unit_test(counters_never_go_back),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(both_formats),
		cmocka_unit_test(peers_and_store),
		cmocka_unit_test(lanes_are_bounded),
		cmocka_unit_test(no_peer_takes_all),
		cmocka_unit_test(health),
		cmocka_unit_test(accept_header),
	};
	if (argc > 1) {
		struct ow_metrics *m = everything();
		char *text = render(m, strcmp(argv[1], "open") == 0 ? OW_METRICS_OPEN : OW_METRICS_TEXT);
		fputs(text, stdout);
		free(text);
		ow_metrics_free(m);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
