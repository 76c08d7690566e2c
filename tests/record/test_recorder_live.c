/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder on real interfaces, in its own namespace: two threads share one, and time passes without packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../capture/netns.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"
#include "books.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SENT   20000
#define FLOWS  16
#define LENGTH (50 * OW_NS_PER_MS)

static struct ow_source_options source_on(const char *interface, unsigned threads)
{
	return (struct ow_source_options){.live = {.name = interface, .ring_bytes = 16 << 20}, .threads = threads};
}

static void open_books(struct books *books, const struct ow_source_options *sources, unsigned count)
{
	books_open(books, sources, count);
	books->open_max = 10000;
}

static struct ow_lane_options lane_of(const struct books *books, uint32_t sources, enum ow_heading heading)
{
	return (struct ow_lane_options){.identity = books_identity(5),
	                                .sources = sources,
	                                .heading = heading,
	                                .t0_ns = ow_recorder_now_ns(books->recorder),
	                                .length_ns = LENGTH};
}

static void send_frames(const char *interface, uint32_t from, uint32_t count)
{
	uint8_t frame[200];
	int fd = netns_sender(interface);
	for (uint32_t i = from; i < from + count; i++) {
		netns_send(fd, frame, netns_frame(frame, 60 + i * 7 % 140, i, FLOWS));
		if (i % 64 == 0)
			usleep(200);
	}
	close(fd);
}

static void *send_from_v0(void *arg)
{
	(void)arg;
	send_frames("v0", 0, SENT);
	return NULL;
}

/* The same packets at both ends: one thread here, two there that share them by flow. */
static void test_fanout(void **state)
{
	(void)state;
	struct books books;
	const struct ow_source_options sources[] = {source_on("v0", 1), source_on("v1", 2)};
	open_books(&books, sources, 2);
	struct ow_lane_options lane = lane_of(&books, 1, OW_HEADING_OUT);
	unsigned out = books_add(&books, &lane, 1000000);
	lane.sources = 2;
	lane.heading = OW_HEADING_IN;
	unsigned in = books_add(&books, &lane, 1000000);
	lane.heading = OW_HEADING_OUT;
	unsigned none = books_add(&books, &lane, 1000000);
	lane.heading = OW_HEADING_UNKNOWN;
	lane.filter = "udp src port 1027";
	unsigned flow = books_add(&books, &lane, 1000000);
	books_step(&books, 0);
	usleep(50000); /* the threads have taken up the lanes */
	pthread_t sender;
	assert_int_equal(pthread_create(&sender, NULL, send_from_v0, NULL), 0);
	books_run(&books, ow_recorder_now_ns(books.recorder) + LENGTH);
	pthread_join(sender, NULL);
	books_run(&books, ow_recorder_now_ns(books.recorder) + LENGTH);

	assert_int_equal(books.failures, 0);
	assert_int_equal(books.lane[out].packets, SENT);
	assert_int_equal(books.lane[in].packets, SENT);
	assert_int_equal(books.lane[none].packets, 0);
	assert_int_equal(books.lane[flow].packets, SENT / FLOWS);
	size_t outs, ins;
	struct ow_sighting *a = books_stamps(&books, out, &outs), *b = books_stamps(&books, in, &ins);
	assert_int_equal(outs, SENT);
	for (size_t i = 0; i < outs; i++) {
		assert_true(a[i].id == b[i].id);
		assert_true(b[i].time_ns >= a[i].time_ns);
	}
	for (size_t i = 0; i < books.lane[in].pages; i++) {
		const struct ow_interval_packets *page = books.lane[in].page[i];
		assert_int_equal(page->copies, 0);
		for (size_t k = 1; k < page->count; k++)
			assert_true(page->sighting[k - 1].time_ns <= page->sighting[k].time_ns);
	}
	struct ow_recorder_counts counts;
	ow_recorder_counts(books.recorder, 1, &counts);
	assert_int_equal(counts.frames, SENT);
	assert_int_equal(counts.stamped[OW_STAMPED_BY_KERNEL], SENT);
	assert_int_equal(counts.dropped + counts.not_ip + counts.unclaimed, 0);
	free(a);
	free(b);
	books_close(&books);
}

static void send_tcp(uint32_t count)
{
	uint8_t frame[1514];
	int fd = netns_sender("v0");
	for (uint32_t i = 0; i < count; i++) {
		size_t size = netns_frame(frame, 1000, i, 1);
		frame[23] = 6;
		frame[46] = 0x50; /* the least header; the number is the sequence number */
		ow_store_be32(frame + 38, i);
		memset(frame + 54, (int)i, size - 54);
		netns_send(fd, frame, size);
	}
	close(fd);
}

/* Lanes that need the payload of TCP, by their identity or their filter, have it, together with one that needs none. */
static void test_payload(void **state)
{
	(void)state;
	enum { COUNT = 500 };
	struct books books;
	struct ow_source_options source = source_on("v1", 2);
	source.live.cut_tcp = true;
	open_books(&books, &source, 1);
	struct ow_lane_options lane = lane_of(&books, 1, OW_HEADING_IN);
	lane.identity.tcp_headers = true;
	unsigned headers = books_add(&books, &lane, 100000);
	lane.filter = "ip[900] = 7"; /* two of 500 */
	unsigned filtered = books_add(&books, &lane, 100000);
	lane.filter = NULL;
	lane.identity.tcp_headers = false;
	unsigned whole = books_add(&books, &lane, 100000);
	for (int round = 0; round < 2; round++) {
		books_step(&books, 0);
		usleep(50000);
		send_tcp(COUNT);
		books_run(&books, ow_recorder_now_ns(books.recorder) + LENGTH);
		/* Without these lanes the frames are cut, and all is well. */
		if (round == 0) {
			assert_int_equal(books.lane[filtered].packets, 2);
			assert_int_equal(books.lane[whole].packets, COUNT);
			assert_int_equal(books.lane[whole].unreadable, 0);
			books_remove(&books, filtered);
			books_remove(&books, whole);
		}
	}
	assert_int_equal(books.lane[headers].packets, 2 * COUNT);
	assert_int_equal(books.lane[headers].unreadable, 0);
	books_close(&books);
}

/* Only time passes: intervals end without packets. */
static void test_idle(void **state)
{
	(void)state;
	struct books books;
	const struct ow_source_options sources[] = {source_on("v0", 2), source_on("v1", 1)};
	open_books(&books, sources, 2);
	struct ow_lane_options lane = lane_of(&books, 3, OW_HEADING_UNKNOWN);
	unsigned all = books_add(&books, &lane, 1000);
	books_run(&books, lane.t0_ns + 6 * LENGTH);
	assert_true(books.lane[all].pages >= 6);
	assert_int_equal(books.lane[all].packets, 0);
	assert_true(books.passed_ns <= ow_recorder_now_ns(books.recorder));
	books_close(&books);
}

/* A lane that is added in full traffic has all packets from its beginning on. */
static void test_added_in_traffic(void **state)
{
	(void)state;
	struct books books;
	const struct ow_source_options sources[] = {source_on("v0", 1), source_on("v1", 2)};
	open_books(&books, sources, 2);
	books_step(&books, 0);
	pthread_t sender;
	assert_int_equal(pthread_create(&sender, NULL, send_from_v0, NULL), 0);
	usleep(10000);
	struct ow_lane_options lane = lane_of(&books, 1, OW_HEADING_OUT);
	lane.t0_ns += 2 * LENGTH;
	lane.length_ns = LENGTH / 5;
	unsigned out = books_add(&books, &lane, 1000000);
	lane.sources = 2;
	lane.heading = OW_HEADING_IN;
	unsigned in = books_add(&books, &lane, 1000000);
	books_run(&books, lane.t0_ns + LENGTH);
	pthread_join(sender, NULL);
	books_run(&books, ow_recorder_now_ns(books.recorder) + LENGTH);
	size_t outs, ins;
	struct ow_sighting *a = books_stamps(&books, out, &outs), *b = books_stamps(&books, in, &ins);
	/* A packet around t0 may have been sent before and received after. */
	size_t early = 0, matched = 0;
	for (size_t i = 0, k = 0; k < ins; k++) {
		while (i < outs && a[i].id < b[k].id)
			i++;
		if (i < outs && a[i].id == b[k].id) {
			matched++;
			continue;
		}
		assert_true(b[k].time_ns - lane.t0_ns < LENGTH);
		early++;
	}
	print_message("%zu packets since then, %zu of them sent before\n", ins, early);
	assert_int_equal(matched, outs);
	assert_true(early < 100);
	free(a);
	free(b);
	books_close(&books);
}

/* The reader sleeps while more comes than rings hold: what is missing is counted. */
static void test_drops(void **state)
{
	(void)state;
	struct books books;
	struct ow_source_options source = source_on("v1", 1);
	source.live.ring_bytes = 1; /* as small as it can be */
	open_books(&books, &source, 1);
	struct ow_lane_options lane = lane_of(&books, 1, OW_HEADING_IN);
	lane.length_ns = 100 * OW_NS_PER_S;
	unsigned in = books_add(&books, &lane, 1000000);
	books_step(&books, 0);
	usleep(50000);
	uint8_t frame[1514];
	int fd = netns_sender("v0");
	for (uint32_t i = 0; i < SENT; i++)
		netns_send(fd, frame, netns_frame(frame, 1514, i, FLOWS));
	close(fd);
	struct ow_recorder_counts counts;
	for (int i = 0; i < 1000; i++) {
		books_step(&books, 20);
		ow_recorder_counts(books.recorder, 0, &counts);
		if (counts.frames + counts.dropped == SENT && books.lane[in].chunk_packets == counts.frames)
			break;
	}
	print_message("%llu of %d dropped\n", (unsigned long long)counts.dropped, SENT);
	assert_int_equal(counts.frames + counts.dropped, SENT);
	assert_int_equal(books.lane[in].chunk_packets, counts.frames);
	books_close(&books);
}

/* Takes until the outage of a source is (not) over. */
static struct ow_outage wait_for_outage(struct books *books, uint32_t source, bool over)
{
	struct ow_outage outage = {.over = !over};
	for (int i = 0; i < 1000 && outage.over != over; i++) {
		books_step(books, 20);
		(void)ow_recorder_outage(books->recorder, source, &outage);
	}
	assert_int_equal(outage.over, over);
	assert_true(outage.from_ns <= outage.until_ns);
	return outage;
}

/* An interface that goes away is no failure: the other one goes on, time passes, and it is captured when it is back. */
static void go_and_come_back(const char *go, const char *cause, const char *come)
{
	struct books books;
	struct ow_outage outage;
	const struct ow_source_options sources[] = {source_on("v0", 1), source_on("v2", 1)};
	open_books(&books, sources, 2);
	struct ow_lane_options lane = lane_of(&books, 3, OW_HEADING_UNKNOWN);
	unsigned all = books_add(&books, &lane, 1000);
	books_step(&books, 0);
	usleep(50000);
	send_frames("v2", 0, 10);
	books_run(&books, ow_recorder_now_ns(books.recorder));
	int64_t before_ns = ow_recorder_now_ns(books.recorder);
	netns_run("%s", go);
	outage = wait_for_outage(&books, 1, false);
	assert_string_equal(outage.cause, cause);
	assert_true(outage.until_ns >= before_ns);
	send_frames("v0", 0, 10);
	books_run(&books, ow_recorder_now_ns(books.recorder) + 2 * LENGTH);
	assert_int_equal(books.lane[all].packets, 20);
	int64_t back_ns = ow_recorder_now_ns(books.recorder);
	netns_run("%s", come);
	outage = wait_for_outage(&books, 1, true);
	assert_true(outage.until_ns >= back_ns);
	assert_false(ow_recorder_outage(books.recorder, 0, &outage));
	/* The kernel may take a second to let packets out again. */
	for (uint32_t i = 0; i < 50 && books.lane[all].packets == 20; i++) {
		send_frames("v2", 100 + 10 * i, 10);
		books_run(&books, ow_recorder_now_ns(books.recorder) + LENGTH);
	}
	assert_int_equal(books.lane[all].packets, 30);
	assert_int_equal(books.failures, 0);
	books_close(&books);
}

#define MAKE "ip link add v2 type veth peer name v3 && ip link set v2 up && ip link set v3 up"

static void test_gone(void **state)
{
	(void)state;
	netns_run(MAKE);
	go_and_come_back("ip link set v2 down", "v2 was down", "ip link set v2 up");
	go_and_come_back("ip link del v2", "v2 was removed", MAKE);
	go_and_come_back("ip link set v2 down && ip link set v2 name v9", "v2 was down",
	                 "ip link set v9 name v2 && ip link set v2 up");
	/* Another one under its name. */
	go_and_come_back("ip link set v2 down && ip link set v2 name v9", "v2 was down",
	                 "ip link set v3 name v2 && ip link set v2 up && ip link set v9 up");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fanout),           cmocka_unit_test(test_payload), cmocka_unit_test(test_idle),
		cmocka_unit_test(test_added_in_traffic), cmocka_unit_test(test_drops),   cmocka_unit_test(test_gone),
	};
	netns_enter();
	netns_veth();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
