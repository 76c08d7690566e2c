/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated captures through recorder and interval log: the packets that an exact match of the same files counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/time.h"
#include "books.h"
#include "capture/file/reader.h"
#include "flows/flow_thread.h"
#include "synopsis/colate_plan.h"
#include "../match/scenario.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS       OW_NS_PER_MS
#define FORWARD  "src net 10.0.0.0/8"
#define ROOM     1000000 /* stamps of a page: more than there are packets */
#define ONE_PAGE (10 * OW_NS_PER_S)

static struct ow_source_options file_source(const char *path, double speed)
{
	return (struct ow_source_options){.live = {.kind = OW_IFACE_FILE, .name = path, .speed = speed}};
}

static int64_t start_of(const char *path)
{
	struct ow_reader *reader;
	struct ow_frame frame;
	struct ow_error err = {""};
	if (ow_reader_open(path, &reader, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_reader_read(reader, &frame, 1, &err), 1);
	int64_t start_ns = frame.time_ns;
	ow_reader_close(reader);
	return start_ns;
}

/* Both files of a scenario as two points, at full speed. */
static void open_pair(struct books *books, const struct scenario *s)
{
	const struct ow_source_options sources[] = {file_source(s->sim.side[0].path, 0),
	                                            file_source(s->sim.side[1].path, 0)};
	books_open(books, sources, 2);
}

static struct ow_lane_options lane_of(uint32_t sources, int64_t t0_ns, int64_t length_ns)
{
	return (struct ow_lane_options){
		.identity = books_identity(11), .sources = sources, .t0_ns = t0_ns, .length_ns = length_ns};
}

/* What two lanes share, and the mean delay of it. */
static size_t common(const struct books *books, unsigned a, unsigned b, double *ret_mean)
{
	size_t as, bs, matched = 0;
	struct ow_sighting *x = books_stamps(books, a, &as), *y = books_stamps(books, b, &bs);
	double sum = 0;
	for (size_t i = 0, k = 0; i < as && k < bs;) {
		if (x[i].id == y[k].id) {
			sum += (double)(y[k].time_ns - x[i].time_ns);
			matched++;
		}
		if (x[i].id < y[k].id)
			i++;
		else if (x[i].id > y[k].id)
			k++;
		else
			i++, k++;
	}
	free(x);
	free(y);
	*ret_mean = matched ? sum / (double)matched : 0;
	return matched;
}

static void check_direction(const struct books *books, unsigned from, unsigned to, const struct ow_result *result)
{
	double mean;
	assert_int_equal(books->lane[from].packets, result->sent);
	assert_int_equal(books->lane[to].packets, result->received);
	assert_int_equal(common(books, from, to, &mean), result->matched);
	assert_true(fabs(mean - result->delay.mean_ns) < 1);
}

/* Two points, both directions given by a filter: counts and mean delay are those of an exact match. */
static void test_as_match(void **state)
{
	(void)state;
	struct scenario s;
	struct books books;
	scenario_init(&s, "recorder as match");
	s.sim.reverse = 0.4;
	s.sim.router = true;
	scenario_run(&s);
	open_pair(&books, &s);
	int64_t t0_ns = start_of(s.sim.side[0].path) - MS;
	for (uint32_t side = 0; side < 2; side++) {
		struct ow_lane_options lane = lane_of(1u << side, t0_ns, ONE_PAGE);
		lane.way = FORWARD;
		books_add(&books, &lane, ROOM);
		lane.way_not = true;
		books_add(&books, &lane, ROOM);
	}
	books_run(&books, INT64_MAX);
	check_direction(&books, 0, 2, &s.report->direction[OW_A_TO_B]);
	check_direction(&books, 3, 1, &s.report->direction[OW_B_TO_A]);
	struct ow_recorder_counts counts;
	for (uint32_t side = 0; side < 2; side++) {
		ow_recorder_counts(books.recorder, side, &counts);
		assert_int_equal(counts.frames, s.report->capture[side].packets);
		assert_int_equal(counts.stamped[OW_STAMPED_BY_FILE], counts.frames);
		assert_int_equal(counts.not_ip + counts.unclaimed + counts.dropped, 0);
	}
	ow_recorder_counts(books.recorder, UINT32_MAX, &counts);
	assert_int_equal(counts.frames, s.report->capture[0].packets + s.report->capture[1].packets);
	books_close(&books);
	scenario_done(&s);
}

/* Packets of each interval, from the file itself. */
static void count_file(const char *path, int64_t t0_ns, int64_t length_ns, uint64_t *packets, size_t intervals)
{
	struct ow_reader *reader;
	struct ow_frame frame[64];
	struct ow_error err = {""};
	int n;
	if (ow_reader_open(path, &reader, &err) < 0)
		fail_msg("%s", err.text);
	while ((n = ow_reader_read(reader, frame, 64, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			size_t interval = (size_t)((frame[i].time_ns - t0_ns) / length_ns);
			assert_true(interval < intervals);
			packets[interval]++;
		}
	}
	assert_int_equal(n, 0);
	ow_reader_close(reader);
}

/* Many intervals at full speed, dense and sparse, two files into one lane: each packet in its interval. */
static void test_intervals(void **state)
{
	(void)state;
	enum { INTERVALS = 4000 };
	static uint64_t packets[INTERVALS];
	const struct {
		double rate;
		uint64_t packets;
		int64_t length_ns;
	} runs[] = {{100000, 20000, 10 * MS}, {100000, 20000, MS}, {500, 500, MS}, {500, 500, OW_NS_PER_S}};
	for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
		struct scenario s;
		struct books books;
		scenario_init(&s, "intervals");
		s.sim.packets = runs[run].packets;
		s.sim.rate_pps = runs[run].rate;
		scenario_simulate(&s);
		open_pair(&books, &s);
		int64_t t0_ns = start_of(s.sim.side[0].path) - MS / 3;
		struct ow_lane_options lane = lane_of(3, t0_ns, runs[run].length_ns);
		books_add(&books, &lane, ROOM);
		/* Of another length: its boundaries are others. */
		lane.length_ns = runs[run].length_ns + 777777;
		books_add(&books, &lane, ROOM);
		books_run(&books, INT64_MAX);
		for (unsigned k = 0; k < 2; k++) {
			memset(packets, 0, sizeof packets);
			for (int side = 0; side < 2; side++)
				count_file(s.sim.side[side].path, t0_ns, runs[run].length_ns + 777777 * (int)k, packets,
				           INTERVALS);
			for (size_t i = 0; i < INTERVALS; i++) {
				if (i >= books.lane[k].pages) {
					assert_int_equal(packets[i], 0);
					continue;
				}
				const struct ow_interval_packets *page = books.lane[k].page[i];
				assert_int_equal(page->total_packets, packets[i]);
				for (size_t p = 1; p < page->count; p++)
					assert_true(page->sighting[p - 1].time_ns <= page->sighting[p].time_ns);
			}
		}
		books_close(&books);
		scenario_done(&s);
	}
}

/* Classes, headings, and samples. */
static void test_lanes(void **state)
{
	(void)state;
	enum { ALL, TCP, UDP, NEITHER, ONE_WAY, SAMPLE, NAT, OUT, LATER, LANES };
	struct scenario s;
	struct books books;
	scenario_init(&s, "lanes");
	s.sim.ipv6 = 0.2;
	s.sim.identical = 0.05;
	scenario_simulate(&s);
	const struct ow_source_options source = file_source(s.sim.side[0].path, 0);
	int64_t t0_ns = start_of(s.sim.side[0].path);
	struct ow_lane_options lane[LANES];
	books_open(&books, &source, 1);
	for (int i = 0; i < LANES; i++)
		lane[i] = lane_of(1, t0_ns, 20 * MS);
	lane[TCP].filter = "tcp";
	lane[UDP].filter = "udp";
	lane[NEITHER].filter = "not tcp and not udp";
	lane[ONE_WAY].filter = "tcp";
	lane[ONE_WAY].way = "dst port 80";
	lane[SAMPLE].sample_shift = 2;
	lane[NAT].identity.level = OW_LEVEL_NAT;
	lane[OUT].heading = OW_HEADING_OUT; /* files do not know */
	lane[LATER].t0_ns = t0_ns + 100 * MS;
	for (int i = 0; i < LANES; i++)
		books_add(&books, &lane[i], ROOM);
	books_run(&books, INT64_MAX);
	uint64_t packets[LANES];
	for (int i = 0; i < LANES; i++)
		packets[i] = books.lane[i].packets;
	assert_int_equal(packets[ALL], s.sim.packets);
	assert_int_equal(packets[TCP] + packets[UDP] + packets[NEITHER], packets[ALL]);
	assert_true(packets[TCP] > 1000 && packets[UDP] > 1000);
	assert_true(packets[ONE_WAY] > 0 && packets[ONE_WAY] < packets[TCP]);
	assert_int_equal(packets[SAMPLE], packets[ALL]);
	assert_int_equal(packets[NAT], packets[ALL]);
	assert_int_equal(packets[OUT], 0);
	uint64_t later = 0;
	for (size_t i = 5; i < books.lane[ALL].pages; i++)
		later += books.lane[ALL].page[i]->total_packets;
	assert_int_equal(packets[LATER], later);
	size_t copies = 0;
	/* A page in the sample is the whole one, resampled. */
	for (size_t i = 0; i < books.lane[ALL].pages; i++) {
		struct ow_interval_packets *whole = books.lane[ALL].page[i], *sample = books.lane[SAMPLE].page[i];
		assert_int_equal(whole->sample_shift, 0);
		assert_int_equal(sample->sample_shift, 2);
		copies += whole->copies;
		ow_interval_packets_resample(whole, &lane[ALL].identity, 2);
		assert_int_equal(whole->count, sample->count);
		for (size_t k = 0; k < whole->count; k++) {
			const struct ow_sighting *a = &whole->sighting[k], *b = &sample->sighting[k];
			assert_true(a->id == b->id && a->time_ns == b->time_ns && a->flow == b->flow);
		}
		assert_int_equal(whole->copies, sample->copies);
	}
	assert_true(copies > 0);
	books_close(&books);
	scenario_done(&s);
}

/* Frames that no lane wants, and packets that are cut too short. */
static void test_unclaimed(void **state)
{
	(void)state;
	struct scenario s;
	struct books books;
	struct ow_recorder_counts counts;
	scenario_init(&s, "unclaimed");
	s.sim.side[0].snaplen = 80;
	scenario_simulate(&s);
	const struct ow_source_options source = file_source(s.sim.side[0].path, 0);
	struct ow_lane_options lane = lane_of(1, start_of(s.sim.side[0].path), 20 * MS);
	lane.filter = "udp";
	books_open(&books, &source, 1);
	books_add(&books, &lane, ROOM);
	lane.identity.hash_limit = 60;
	books_add(&books, &lane, ROOM);
	books_run(&books, INT64_MAX);
	ow_recorder_counts(books.recorder, 0, &counts);
	assert_int_equal(counts.frames, s.sim.packets);
	assert_int_equal(counts.not_ip, 0);
	assert_true(counts.unclaimed > 0 && books.lane[0].unreadable > 0);
	assert_int_equal(books.lane[0].packets + books.lane[0].unreadable + counts.unclaimed, counts.frames);
	assert_int_equal(books.lane[1].packets + counts.unclaimed, counts.frames);
	assert_int_equal(books.lane[1].unreadable, 0);
	books_close(&books);
	scenario_done(&s);
}

/* The epochs of a recording of flows: of its thread, until it has ended. */
struct epochs {
	uint64_t packets;
	unsigned count, clock_set;
	uint8_t first, all; /* flaws */
};

static void on_epoch(void *arg, struct ow_epoch *epoch)
{
	struct epochs *epochs = arg;
	epochs->first = epochs->count ? epochs->first : epoch->flaws;
	epochs->count++;
	epochs->packets += ow_colate_packets(epoch->colate);
	epochs->clock_set += (epoch->flaws & OW_EPOCH_CLOCK_SET) != 0;
	epochs->all |= epoch->flaws;
}

static void on_lost(void *arg, uint64_t packets)
{
	(void)arg;
	fail_msg("%llu packets lost", (unsigned long long)packets);
}

/* An epoch of flows knows that the clock was set, and the following ones are not of two clocks. */
static void test_flows(void **state)
{
	(void)state;
	struct scenario s;
	struct books books = {.passed_ns = INT64_MIN, .open_max = OW_REPLAY_OPEN};
	struct ow_error err = {""};
	struct epochs epochs = {0};
	struct ow_colate_plan plan;
	struct ow_epoch_info info = {
		.select = {.by = OW_FLOW_BY_FIVE_TUPLE}, .level = OW_LEVEL_IP, .id_bytes = 40, .interval_ns = 20 * MS};
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	assert_int_equal(ow_colate_plan_params(&plan, &info.params, NULL), 0);
	scenario_init(&s, "flows");
	scenario_simulate(&s);
	const struct ow_source_options source = file_source(s.sim.side[0].path, 0);
	const struct ow_flow_thread_options tap = {
		.sources = 1, .decoder = {.info = &info}, .on_epoch = on_epoch, .on_lost = on_lost, .arg = &epochs};
	if (ow_recorder_open(&source, 1, &books.recorder, &err) < 0 ||
	    ow_recorder_add_tap(books.recorder, &tap, &err) < 0)
		fail_msg("%s", err.text);
	/* The file waits for the first take, so it is set before its first frame is read. */
	ow_recorder_clock_set(books.recorder);
	assert_int_equal(ow_recorder_start(books.recorder, &err), 0);
	books_run(&books, INT64_MAX);
	books_close(&books);
	assert_int_equal(epochs.packets, s.sim.packets);
	assert_true(epochs.count > 3);
	assert_int_equal(epochs.clock_set, 1);
	assert_int_equal(epochs.first, OW_EPOCH_CLOCK_SET);
	assert_int_equal(epochs.all, OW_EPOCH_CLOCK_SET);
	scenario_done(&s);
}

/* Lanes come, change and go while two files are replayed in their own time; one lane sees everything. */
static void test_changing_lanes(void **state)
{
	(void)state;
	struct scenario s;
	struct books books;
	struct ow_random random;
	ow_random_seed(&random, 3);
	scenario_init(&s, "changing lanes");
	s.sim.rate_pps = 30000;
	scenario_simulate(&s);
	const struct ow_source_options sources[] = {file_source(s.sim.side[0].path, 1),
	                                            file_source(s.sim.side[1].path, 1)};
	int64_t t0_ns = start_of(s.sim.side[0].path) - MS;
	books_open(&books, sources, 2);
	struct ow_lane_options options = lane_of(3, t0_ns, 20 * MS);
	books_add(&books, &options, ROOM);
	unsigned changes = 0;
	while (books.passed_ns < INT64_MAX) {
		uint32_t lane[8];
		for (int i = 0; i < 8; i++) {
			struct ow_lane_options other = lane_of(1u << i % 2, t0_ns, (1 + i) * MS);
			other.identity = books_identity(ow_random_below(&random, 3));
			other.filter = i % 3 ? "tcp or udp" : "udp";
			other.way = i % 4 ? NULL : "dst port 80";
			assert_int_equal(ow_recorder_add_lane(books.recorder, &other, &lane[i], NULL), 0);
			assert_int_equal(lane[i], 1 + 8 * changes + (unsigned)i);
		}
		for (int i = 0; i < 8; i++)
			ow_recorder_set_shift(books.recorder, lane[ow_random_below(&random, 8)], (unsigned)i % 3);
		usleep(3000);
		for (int i = 0; i < 8; i++)
			ow_recorder_remove_lane(books.recorder, lane[i]);
		ow_recorder_remove_lane(books.recorder, lane[0]);
		/* No chunks of lanes that are gone: books_step would fail. */
		books_step(&books, 5);
		changes++;
	}
	books_run(&books, INT64_MAX);
	print_message("%u times 8 lanes\n", changes);
	uint64_t packets[100] = {0}, all = 0;
	for (int side = 0; side < 2; side++)
		count_file(s.sim.side[side].path, t0_ns, 20 * MS, packets, 100);
	for (int i = 0; i < 100; i++)
		all += packets[i];
	assert_int_equal(books.lane[0].packets, all);
	books_close(&books);
	scenario_done(&s);
}

/* A file that is cut off says so once; the other one is read to its end. */
static void test_damaged(void **state)
{
	(void)state;
	struct scenario s;
	struct books books;
	scenario_init(&s, "damaged");
	scenario_simulate(&s);
	assert_int_equal(truncate(s.sim.side[0].path, 50001), 0);
	open_pair(&books, &s);
	struct ow_lane_options lane = lane_of(2, start_of(s.sim.side[0].path), ONE_PAGE);
	books_add(&books, &lane, ROOM);
	books_run(&books, INT64_MAX);
	assert_int_equal(books.failures, 1);
	assert_int_equal(books.failed, -EIO);
	assert_true(strlen(books.err.text) > 10);
	assert_true(books.lane[0].packets > 19000);
	books_close(&books);
	scenario_done(&s);
}

static void refuse(struct books *books, const struct ow_lane_options *options, const char *part)
{
	struct ow_error err = {""};
	uint32_t lane = 77;
	assert_int_equal(ow_recorder_add_lane(books->recorder, options, &lane, &err), -EINVAL);
	if (!strstr(err.text, part))
		fail_msg("%s lacks \"%s\"", err.text, part);
	assert_int_equal(lane, 77);
}

static void test_errors(void **state)
{
	(void)state;
	struct scenario s;
	struct books books;
	struct ow_error err = {""};
	scenario_init(&s, "errors");
	scenario_simulate(&s);
	struct ow_source_options sources[] = {file_source(s.sim.side[0].path, 0), file_source("no-such-file", 0)};
	struct ow_recorder *recorder = NULL;
	assert_int_equal(ow_recorder_open(sources, 2, &recorder, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-such-file"));
	assert_int_equal(ow_recorder_open(sources, 0, &recorder, &err), -EINVAL);
	sources[0].threads = 1000;
	assert_int_equal(ow_recorder_open(sources, 1, &recorder, &err), -EINVAL);
	assert_null(recorder);
	sources[0].threads = 4; /* a file has one */
	books_open(&books, sources, 1);
	struct ow_lane_options good = lane_of(1, 0, OW_NS_PER_S), bad = good;
	bad.filter = "udp prot 7";
	refuse(&books, &bad, "udp prot 7");
	bad = good;
	bad.filter = "udp";
	bad.way = "tcp flags";
	refuse(&books, &bad, "tcp flags");
	bad = good;
	bad.sources = 2;
	refuse(&books, &bad, "source");
	bad.sources = 0;
	refuse(&books, &bad, "source");
	bad = good;
	bad.length_ns = OW_INTERVAL_MAX_NS + 1;
	refuse(&books, &bad, "interval");
	bad = good;
	bad.identity.level = OW_LEVEL_FRAME;
	refuse(&books, &bad, "level");
	bad = good;
	bad.sample_shift = 65;
	refuse(&books, &bad, "sample");
	for (uint32_t i = 0; i < OW_LANES_MAX; i++) {
		uint32_t lane;
		assert_int_equal(ow_recorder_add_lane(books.recorder, &good, &lane, &err), 0);
		assert_int_equal(lane, i);
	}
	refuse(&books, &good, "lanes");
	/* Freed without a take: the threads had not begun. */
	books_close(&books);

	/* Freed when they wait because nobody takes. */
	books_open(&books, sources, 1);
	good.t0_ns = start_of(s.sim.side[0].path);
	good.length_ns = MS;
	books_add(&books, &good, ROOM);
	books_step(&books, 1000);
	usleep(20000);
	books_close(&books);
	ow_recorder_free(NULL);
	scenario_done(&s);
}

#define SCENARIO(test) cmocka_unit_test_teardown(test, scenario_say)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(test_as_match),  SCENARIO(test_intervals),      SCENARIO(test_lanes),
		SCENARIO(test_unclaimed), SCENARIO(test_changing_lanes), SCENARIO(test_damaged),
		SCENARIO(test_errors),    SCENARIO(test_flows),
	};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
