/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a path that are matched together come to the same as each of them by itself. */
#include "../effort.h"
#include "base/hash.h"
#include "base/random.h"
#include "path/rounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define POINTS  4u
#define PACKETS 6000
#define START_S INT64_C(1700000000)
#define US      INT64_C(1000)
#define MS      (1000 * US)

struct frame {
	int64_t time_ns;
	uint8_t ip[36];
};

/* What is special about the traffic. */
struct traffic {
	double loss, back, polls, copies;
	int64_t floor_ns, queue_ns; /* of a hop; the queue is exponential */
	int64_t ahead_ns;           /* the clock of each point is ahead of the one before */
	double disorder;            /* share of packets that a capture shows after the next one */
	double unseen;              /* by the second point */
	bool apart;                 /* there can be no joint pass */
};

struct path {
	char file[POINTS][64];
	struct frame *frame[POINTS];
	size_t frames[POINTS];
	struct ow_random random;
};

static bool chance(struct path *p, double share)
{
	return ow_random_unit(&p->random) < share;
}

static void show(struct path *p, unsigned point, int64_t time_ns, const uint8_t ip[36], uint8_t ttl)
{
	struct frame *f = &p->frame[point][p->frames[point]++];
	f->time_ns = time_ns;
	memcpy(f->ip, ip, sizeof f->ip);
	f->ip[8] = ttl;
}

/* A packet on its way: a poll is like all others, anything else is unique. */
static void send_packet(struct path *p, const struct traffic *t, uint32_t number, int64_t sent_ns)
{
	bool poll = chance(p, t->polls), back = chance(p, t->back);
	uint64_t data = poll ? UINT64_MAX : number;
	uint8_t ip[36] = {0x45, 0, 0, 36, 0, 0, 0x40, 0,    64, 17,   0, 0, 10,
	                  0,    1, 1, 10, 0, 2, 2,    0x10, 1,  0x20, 2, 0, 16};
	ip[back ? 15 : 19] = (uint8_t)(number % 16);
	ip[5] = poll ? 0 : (uint8_t)number;
	ip[4] = poll ? 0 : (uint8_t)(number >> 8);
	if (back) {
		memcpy(ip + 12, (const uint8_t[]){10, 0, 2}, 3);
		memcpy(ip + 16, (const uint8_t[]){10, 0, 1}, 3);
	}
	memcpy(ip + 28, &data, sizeof data);
	for (unsigned hop = 0; hop < POINTS; hop++) {
		unsigned point = back ? POINTS - 1 - hop : hop;
		int64_t seen_ns = sent_ns + point * t->ahead_ns;
		if (point != 1 || !chance(p, t->unseen))
			show(p, point, seen_ns, ip, (uint8_t)(64 - hop));
		if (chance(p, t->copies))
			show(p, point, seen_ns + 30 * US, ip, (uint8_t)(64 - hop));
		if (chance(p, t->loss))
			return;
		sent_ns += t->floor_ns - llrint(log(1 - ow_random_unit(&p->random)) * (double)t->queue_ns);
	}
}

static int by_time(const void *x, const void *y)
{
	const struct frame *a = x, *b = y;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static void write_file(struct path *p, const struct traffic *t, unsigned point)
{
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 101 /* raw IP */};
	FILE *file = fopen(p->file[point], "wb");
	assert_non_null(file);
	fwrite(head, sizeof head, 1, file);
	qsort(p->frame[point], p->frames[point], sizeof *p->frame[point], by_time);
	for (size_t i = 0; i + 1 < p->frames[point]; i++) {
		if (chance(p, t->disorder)) {
			struct frame kept = p->frame[point][i];
			p->frame[point][i] = p->frame[point][i + 1];
			p->frame[point][i + 1] = kept;
		}
	}
	for (size_t i = 0; i < p->frames[point]; i++) {
		const struct frame *f = &p->frame[point][i];
		int64_t ns = f->time_ns + START_S * 1000000000;
		const uint32_t record[4] = {(uint32_t)(ns / 1000000000), (uint32_t)(ns % 1000000000), sizeof f->ip,
		                            sizeof f->ip};
		fwrite(record, sizeof record, 1, file);
		fwrite(f->ip, sizeof f->ip, 1, file);
	}
	assert_int_equal(fclose(file), 0);
}

static void make_path(struct path *p, const struct traffic *t, uint64_t seed)
{
	memset(p, 0, sizeof *p);
	ow_random_seed(&p->random, seed);
	for (unsigned i = 0; i < POINTS; i++) {
		snprintf(p->file[i], sizeof p->file[i], "/tmp/oneway-joint-%ld-%u.pcap", (long)getpid(), i);
		p->frame[i] = malloc(2 * PACKETS * sizeof *p->frame[i]);
		assert_non_null(p->frame[i]);
	}
	int64_t now_ns = 0;
	for (uint32_t i = 0; i < PACKETS; i++) {
		now_ns -= llrint(log(1 - ow_random_unit(&p->random)) * 20 * (double)US);
		send_packet(p, t, i, now_ns);
	}
	for (unsigned i = 0; i < POINTS; i++)
		write_file(p, t, i);
}

static void end_path(struct path *p)
{
	for (unsigned i = 0; i < POINTS; i++) {
		unlink(p->file[i]);
		free(p->frame[i]);
	}
}

/* Events in any order come to the same sum. */
static int on_packet(void *arg, const struct ow_packet_event *e)
{
	uint64_t *sum = arg, hash = ow_mix64(e->number[0]) ^ ow_mix64(e->number[1] + (UINT64_C(1) << 32));
	hash = ow_mix64(hash ^ (uint64_t)e->time_ns[0] ^ ow_mix64((uint64_t)e->time_ns[1]));
	*sum += ow_mix64(hash ^ (uint64_t)e->fate << 8 ^ (uint64_t)e->direction ^ (uint64_t)e->ambiguous << 16);
	return 0;
}

static void same_results(const struct ow_match_report *joint, const struct ow_match_report *alone)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *x = &joint->direction[d], *y = &alone->direction[d];
		assert_int_equal(x->sent, y->sent);
		assert_int_equal(x->received, y->received);
		assert_int_equal(x->matched, y->matched);
		assert_int_equal(x->lost, y->lost);
		assert_int_equal(x->extra, y->extra);
		assert_int_equal(x->duplicated, y->duplicated);
		assert_int_equal(x->ambiguous, y->ambiguous);
		assert_int_equal(x->reordered, y->reordered);
		assert_int_equal(x->delay.samples, y->delay.samples);
		if (!x->delay.samples)
			continue;
		assert_int_equal(x->delay.min_ns, y->delay.min_ns);
		assert_int_equal(x->delay.max_ns, y->delay.max_ns);
		assert_true(x->delay.mean_ns == y->delay.mean_ns && x->delay.stddev_ns == y->delay.stddev_ns);
		assert_int_equal(joint->unclassified[d], alone->unclassified[d]);
		assert_int_equal(joint->outside_overlap[d], alone->outside_overlap[d]);
	}
	assert_int_equal(joint->intervals, alone->intervals);
	for (size_t i = 0; i < joint->intervals; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			assert_int_equal(joint->interval[i].direction[d].sent, alone->interval[i].direction[d].sent);
			assert_int_equal(joint->interval[i].direction[d].lost, alone->interval[i].direction[d].lost);
		}
	}
	assert_int_equal(joint->warnings, alone->warnings);
	for (size_t i = 0; i < joint->warnings; i++)
		assert_string_equal(joint->warning[i], alone->warning[i]);
}

/* Neighbours, and both ends. */
static void set_pairs(const struct path *p, const struct ow_match_options *options, struct ow_rounds_pair pair[POINTS],
                      struct ow_reader *reader[POINTS], uint64_t sum[POINTS])
{
	for (unsigned i = 0; i < POINTS; i++)
		assert_int_equal(ow_reader_open(p->file[i], &reader[i], NULL), 0);
	for (unsigned k = 0; k < POINTS; k++) {
		unsigned from = k + 1 < POINTS ? k : 0, to = k + 1 < POINTS ? k + 1 : POINTS - 1;
		pair[k] = (struct ow_rounds_pair){.place = {from, to},
		                                  .path = {p->file[from], p->file[to]},
		                                  .reader = {reader[from], reader[to]},
		                                  .options = *options,
		                                  .log.most = 10};
		pair[k].options.arg = &sum[k];
	}
}

static void compare(const struct traffic *t, const struct ow_match_options *options, uint64_t seed)
{
	struct path p;
	struct ow_rounds_pair pair[POINTS];
	struct ow_reader *reader[POINTS];
	uint64_t sum[POINTS] = {0};
	unsigned round = 0;
	make_path(&p, t, seed);
	set_pairs(&p, options, pair, reader, sum);
	assert_int_equal(ow_rounds_run(pair, POINTS, &round), 0);
	for (unsigned k = 0; k < POINTS; k++) {
		struct ow_match *alone;
		struct ow_error err;
		uint64_t sum_alone = 0;
		struct ow_match_options one = *options;
		one.arg = &sum_alone;
		assert_int_equal(pair[k].result, 0);
		assert_int_equal(pair[k].round > 0, !t->apart);
		assert_int_equal(ow_match_files(pair[k].path[0], pair[k].path[1], &one, &alone, &err), 0);
		same_results(ow_match_report(pair[k].match), ow_match_report(alone));
		assert_int_equal(sum[k], sum_alone);
		ow_match_free(alone);
		ow_match_free(pair[k].match);
		free(pair[k].log.note);
	}
	for (unsigned i = 0; i < POINTS; i++)
		ow_reader_close(reader[i]);
	end_path(&p);
}

static struct ow_match_options defaults(void)
{
	struct ow_match_options options;
	ow_match_defaults(&options);
	options.seed = 77;
	return options;
}

/* Of all kinds, in small captures that end while packets are in flight. */
static void traffic_of_all_kinds(void **state)
{
	(void)state;
	static const struct traffic traffic[] = {
		{.floor_ns = 50 * US, .queue_ns = 10 * US},
		{.loss = 0.02, .back = 0.4, .floor_ns = 50 * US, .queue_ns = 50 * US},
		{.loss = 0.01, .back = 0.5, .floor_ns = 0, .queue_ns = 30 * US},
		{.loss = 0.01, .back = 0.3, .polls = 0.05, .floor_ns = 100 * US, .queue_ns = 20 * US},
		{.apart = true, .back = 0.3, .copies = 0.01, .floor_ns = 100 * US, .queue_ns = 20 * US},
		{.apart = true,
	         .loss = 0.01,
	         .back = 0.5,
	         .ahead_ns = 40 * US,
	         .floor_ns = 30 * US,
	         .queue_ns = 30 * US},
		{.loss = 0.01, .back = 0.5, .disorder = 0.1, .floor_ns = 100 * US, .queue_ns = 20 * US},
		{.loss = 0.01, .unseen = 0.3, .floor_ns = 100 * US, .queue_ns = 20 * US},
		{.loss = 0.01, .back = 0.5, .floor_ns = 20 * MS, .queue_ns = 5 * MS},
	};
	struct ow_match_options options = defaults();
	for (size_t i = 0; i < sizeof traffic / sizeof *traffic && !ONLY_THREADS; i++)
		compare(&traffic[i], &options, 1 + i);
}

static void every_packet_is_told(void **state)
{
	(void)state;
	static const struct traffic traffic = {
		.loss = 0.02, .back = 0.4, .polls = 0.02, .floor_ns = 50 * US, .queue_ns = 50 * US};
	struct ow_match_options options = defaults();
	if (ONLY_THREADS)
		return;
	options.on_packet = on_packet;
	compare(&traffic, &options, 21);
	options.interval_ns = 10 * MS;
	compare(&traffic, &options, 22);
	options.on_packet = NULL;
	compare(&traffic, &options, 23);
}

static void a_part_of_the_time(void **state)
{
	(void)state;
	static const struct traffic traffic = {.loss = 0.02, .back = 0.4, .floor_ns = 50 * US, .queue_ns = 50 * US};
	struct ow_match_options options = defaults();
	options.since_ns = START_S * 1000000000 + 20 * MS;
	compare(&traffic, &options, 31);
	options.until_ns = START_S * 1000000000 + 90 * MS;
	options.threads = 2;
	compare(&traffic, &options, 32);
}

static void on_progress(void *arg, double done)
{
	double *last = arg;
	assert_true(done >= *last && done <= 1);
	*last = done;
}

static int on_path_packet(void *arg, const struct ow_path_packet *packet)
{
	(void)packet;
	assert_true(*(const double *)arg >= 0);
	return 0;
}

/* However many passes the pairs take. */
static void progress_never_goes_back(void **state)
{
	(void)state;
	static const struct traffic traffic = {
		.loss = 0.01, .back = 0.5, .ahead_ns = 40 * US, .floor_ns = 30 * US, .queue_ns = 30 * US};
	for (unsigned i = 0; i < 4; i++) {
		struct path p;
		struct ow_path *path;
		struct ow_path_point point[POINTS];
		double last = 0;
		struct ow_path_options options = {.match = defaults(), .keep_order = true};
		options.match.clock = i & 1 ? OW_CLOCK_ESTIMATED : OW_CLOCK_NONE;
		options.match.on_progress = on_progress;
		options.match.arg = &last;
		options.on_path_packet = i & 2 ? on_path_packet : NULL;
		make_path(&p, &traffic, 41 + i);
		for (unsigned k = 0; k < POINTS; k++)
			point[k] = (struct ow_path_point){.name = p.file[k], .path = p.file[k]};
		assert_int_equal(ow_path_match(point, POINTS, &options, &path, NULL), 0);
		assert_true(last > 0);
		ow_path_free(path);
		end_path(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_of_all_kinds),
		cmocka_unit_test(every_packet_is_told),
		cmocka_unit_test(a_part_of_the_time),
		cmocka_unit_test(progress_never_goes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
