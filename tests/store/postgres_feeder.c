/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes minutes into PostgreSQL as a collector does, for tests of faults: a batch is sent again until it is stored.
 *
 *     postgres_feeder URL SEED POINTS MINUTES
 *
 * Each point has a lane to the next one, with a minute for each of the last MINUTES; both are the same for every seed.
 * Until the standard input ends, a batch has random ones of them, twice at times, so that several feeders send the same;
 * then every one is sent. Prints a line for each failure, then "done".
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "store/postgres_writer.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MINUTE_NS (60 * OW_NS_PER_S)
#define BATCH     500
/* A test that takes longer has failed. */
#define TRIES 600

struct feed {
	struct ow_postgres_writer *writer;
	int64_t points, minutes, end_ns;
	struct ow_interval_result result[BATCH];
	struct ow_postgres_row row[BATCH];
};

/* The nth minute of all; final ones have other counts than provisional ones. */
static void make(const struct feed *feed, int64_t n, bool final, struct ow_interval_result *r)
{
	int64_t point = n % feed->points, minute = n / feed->points;
	*r = (struct ow_interval_result){.segment = "ring",
	                                 .class_name = "all",
	                                 .start_ns = feed->end_ns - (minute + 1) * MINUTE_NS,
	                                 .length_ns = MINUTE_NS,
	                                 .intervals = final ? 60 : 30,
	                                 .final = final,
	                                 .sent = 1000,
	                                 .matched = 1000,
	                                 .received = 1000,
	                                 .coverage = 1,
	                                 .reordered = OW_RESULT_NOT_COUNTED};
	r->lost = final ? (uint64_t)(n * 7919 % 100) : 0;
	r->matched -= r->lost;
	r->received -= r->lost;
	snprintf(r->from, sizeof r->from, "p%" PRId64, point);
	snprintf(r->to, sizeof r->to, "p%" PRId64, (point + 1) % feed->points);
}

/* A failure is printed once, and what failed is tried again a little later. */
static void failed(const struct ow_error *err, struct ow_error *last)
{
	if (strcmp(err->text, last->text) != 0)
		printf("%s\n", err->text);
	fflush(stdout);
	*last = *err;
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* The server may fail before the feeder has begun. */
static bool open_writer(struct feed *feed, const char *url)
{
	struct ow_postgres_writer_options options = {.url = url};
	struct ow_error err = {""}, last = {""};
	for (int i = 0; i < TRIES; i++) {
		if (ow_postgres_writer_open(&options, &feed->writer, &err) == 0)
			return true;
		failed(&err, &last);
	}
	return false;
}

/* Until it is stored. false: it never was. */
static bool send_batch(struct feed *feed, size_t count)
{
	struct ow_postgres_tally tally;
	struct ow_error err = {""}, last = {""};
	for (int i = 0; i < TRIES; i++) {
		int r = ow_postgres_write(feed->writer, feed->row, count, &tally, &err);
		if (r == 0 && tally.refused)
			printf("refused: %s\n", tally.why.text);
		if (r == 0)
			return !tally.refused;
		failed(&err, &last);
	}
	return false;
}

static void maintain(struct feed *feed)
{
	struct ow_error err;
	for (int i = 0; i < 20; i++) {
		if (ow_postgres_maintain(feed->writer, ow_clock_real_ns(), &err) <= 0)
			return;
	}
}

/* Waits a little; whether the standard input has ended. */
static bool has_ended(void)
{
	char byte;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&input, 1, 20) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static bool feed_all(struct feed *feed, struct ow_random *random)
{
	int64_t all = feed->points * feed->minutes, sent = 0;
	bool ended = false;
	for (int64_t i = 0; sent < all; i++) {
		size_t count = 0;
		ended = ended || has_ended();
		for (; count < BATCH; count++) {
			/* First some at random, provisional or final, then each one. */
			int64_t n = ended ? sent++ : (int64_t)ow_random_below(random, (uint64_t)all);
			if (n >= all)
				break;
			make(feed, n, ended || ow_random_below(random, 2), &feed->result[count]);
			feed->row[count] = (struct ow_postgres_row){feed->result[count].from, OW_PERIOD_MINUTE,
			                                            &feed->result[count]};
		}
		if (!send_batch(feed, count))
			return false;
		if (i % 4 == 0)
			maintain(feed);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ow_random random;
	struct ow_error err = {"the server did not come back"};
	if (argc != 5)
		return 2;
	struct feed *feed = calloc(1, sizeof *feed);
	if (!feed)
		return 1;
	ow_random_seed(&random, strtoull(argv[2], NULL, 10));
	feed->points = strtoll(argv[3], NULL, 10);
	feed->minutes = strtoll(argv[4], NULL, 10);
	feed->end_ns = ow_clock_real_ns() / (3600 * OW_NS_PER_S) * 3600 * OW_NS_PER_S;
	bool done = open_writer(feed, argv[1]) && feed_all(feed, &random);
	for (int i = 0; done && i < TRIES && ow_postgres_maintain(feed->writer, ow_clock_real_ns(), &err) != 0; i++)
		;
	ow_postgres_writer_close(feed->writer);
	free(feed);
	puts(done ? "done" : err.text);
	return !done;
}
