/* SPDX-License-Identifier: Apache-2.0 */
/* Identical packets of one interval after the other: which arrival is which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reconcile/interval_copies.h"
#include "reconcile/late_packets.h"

#define MS   INT64_C(1000000)
#define MOST 256

struct input {
	int64_t sent_ns[MOST], received_ns[MOST];
	struct ow_copy_times of;
	struct ow_copy_fate fate[MOST];
	struct ow_copy_counts counts;
};

static void pair(struct ow_interval_copies *copies, struct input *in, int64_t start_ns)
{
	in->of.id = 1;
	in->of.sent_ns = in->sent_ns;
	in->of.received_ns = in->received_ns;
	in->of.start_ns = start_ns;
	assert_int_equal(ow_interval_copies_pair(copies, &in->of, in->fate, &in->counts), 0);
}

static unsigned paired(const struct input *in)
{
	unsigned pairs = 0;
	for (uint32_t j = 0; j < in->of.receiveds; j++)
		pairs += in->fate[j].sent != OW_ALIGN_NONE;
	return pairs;
}

/* The packets of a superframe arrive at one time: they are no duplicates, and not lost. */
static void test_together(void **state)
{
	(void)state;
	struct ow_interval_copies *copies;
	struct input in = {.sent_ns = {14 * MS, 21 * MS, 75 * MS},
	                   .received_ns = {67 * MS, 67 * MS},
	                   .of = {.sents = 3, .receiveds = 2}};
	assert_int_equal(ow_interval_copies_create(&copies), 0);
	ow_interval_copies_begin(copies);
	for (int i = 0; i < 100; i++)
		ow_interval_copies_learn(copies, 34 * MS + i * MS / 4);
	pair(copies, &in, 0);
	assert_int_equal(paired(&in), 2);
	assert_int_equal(in.counts.duplicated, 0);
	ow_interval_copies_free(copies);
}

/* 200 packets a second, every tenth lost, every 25th twice, on a path that takes so long. Others: packets that show that.
 * If a path is longer than the time between two packets, duplicates may be others that were lost: that is said. */
static void check_duplicates(int64_t path_ns, int others)
{
	struct ow_interval_copies *copies;
	assert_int_equal(ow_interval_copies_create(&copies), 0);
	for (int64_t start_ns = 0; start_ns < 3000 * MS; start_ns += 1000 * MS) {
		struct input in = {.of = {.sents = 200}};
		for (uint32_t i = 0; i < 200; i++) {
			in.sent_ns[i] = start_ns + 5 * MS * i;
			for (unsigned n = 0; i % 10 != 3 && n < (i % 25 == 7 ? 2 : 1); n++)
				in.received_ns[in.of.receiveds++] = in.sent_ns[i] + path_ns + n * 20000;
		}
		ow_interval_copies_begin(copies);
		for (int i = 0; i < others; i++)
			ow_interval_copies_learn(copies, path_ns + i * MS / 100);
		pair(copies, &in, start_ns);
		unsigned lost = 200 - paired(&in);
		assert_int_equal(in.counts.duplicated, in.of.receiveds - paired(&in));
		assert_int_equal(in.counts.close, in.of.receiveds - 180);
		assert_true(lost <= 20 && lost + in.counts.close >= 20 && (path_ns >= 5 * MS || lost == 20));
		for (uint32_t j = 0; j < in.of.receiveds; j++) {
			uint32_t sent = in.fate[j].sent;
			assert_true(sent == OW_ALIGN_NONE || in.fate[j].doubtful ||
			            in.received_ns[j] - in.sent_ns[sent] <= path_ns + 20000);
		}
	}
	ow_interval_copies_free(copies);
}

static void test_duplicates(void **state)
{
	(void)state;
	check_duplicates(MS, 0);
	for (int64_t ms = 1; ms < 100; ms *= 3)
		check_duplicates(ms * MS, 100);
}

/*
 * The same of a sender that wakes up every 20 ms and then sends what is due: arrivals that are close together are usual,
 * and pairs that are not those of a burst show the others. Without other packets all that is known is that none takes
 * longer than a message and its answer, which took 30 ms.
 */
static void test_duplicates_in_bursts(void **state)
{
	(void)state;
	struct ow_interval_copies *copies;
	assert_int_equal(ow_interval_copies_create(&copies), 0);
	for (int64_t start_ns = 0; start_ns < 3000 * MS; start_ns += 1000 * MS) {
		struct input in = {.of = {.sents = 200}};
		for (uint32_t i = 0; i < 200; i++) {
			in.sent_ns[i] = start_ns + i / 4 * 20 * MS + i % 4 * 30000;
			for (unsigned n = 0; i % 19 != 3 && n < (i % 23 == 7 ? 2 : 1); n++)
				in.received_ns[in.of.receiveds++] = in.sent_ns[i] + 5000 + n * 2000;
		}
		ow_interval_copies_begin(copies);
		copies->plausible.known = true;
		copies->plausible.low_ns = copies->plausible.least_ns = 0;
		copies->plausible.high_ns = 30 * MS;
		pair(copies, &in, start_ns);
		unsigned lost = 200 - paired(&in), truth = 11;
		assert_true(lost <= truth && lost + in.counts.close >= truth);
		for (uint32_t j = 0; j < in.of.receiveds; j++) {
			uint32_t sent = in.fate[j].sent;
			assert_true(sent == OW_ALIGN_NONE || in.fate[j].doubtful ||
			            in.received_ns[j] - in.sent_ns[sent] < 30000);
		}
	}
	ow_interval_copies_free(copies);
}

/* All that wait and all that were sent have arrived: each is its own, whether the times can be compared or not. */
static void test_all_arrive(void **state)
{
	(void)state;
	struct input in = {.sent_ns = {-7 * MS, -3 * MS, 13 * MS},
	                   .received_ns = {4 * MS, 8 * MS, 23 * MS},
	                   .of = {.waiting = 2, .sents = 3, .receiveds = 3}};
	for (int known = 0; known < 2; known++) {
		struct ow_interval_copies *copies;
		assert_int_equal(ow_interval_copies_create(&copies), 0);
		ow_interval_copies_begin(copies);
		pair(known ? copies : NULL, &in, 0);
		assert_int_equal(in.fate[0].waited_ns, -7 * MS);
		assert_int_equal(in.fate[1].waited_ns, -3 * MS);
		assert_int_equal(in.fate[2].sent, 0);
		assert_false(in.fate[0].doubtful || in.fate[1].doubtful || in.fate[2].doubtful);
		ow_interval_copies_free(copies);
	}
}

/* The times cannot be compared: they are taken in turn, and this is said. */
static void test_in_turn(void **state)
{
	(void)state;
	struct input in = {.sent_ns = {-900 * MS, 0, 5 * MS, 10 * MS},
	                   .received_ns = {MS, 6 * MS, 11 * MS},
	                   .of = {.waiting = 1, .sents = 4, .receiveds = 3}};
	pair(NULL, &in, 0);
	assert_int_equal(in.fate[0].sent, OW_ALIGN_NONE);
	assert_true(in.fate[0].doubtful && in.fate[0].waited_ns == OW_LATE_PACKETS_OLDEST);
	assert_int_equal(paired(&in), 2);
}

/* Ten were on their way when the first interval began, and ten are at its end: in order all would take 0.7 ms, while other
 * packets take 50. */
static void test_under_way(void **state)
{
	(void)state;
	struct ow_interval_copies *copies;
	struct input in = {.of = {.sents = 200, .receiveds = 200}};
	for (uint32_t i = 0; i < 200; i++) {
		in.sent_ns[i] = 5 * MS * i;
		in.received_ns[i] = 5 * MS * i + 700000;
	}
	for (int known = 0; known < 2; known++) {
		assert_int_equal(ow_interval_copies_create(&copies), 0);
		ow_interval_copies_begin(copies);
		for (int i = 0; known && i < 100; i++)
			ow_interval_copies_learn(copies, 50 * MS + i * MS / 50);
		pair(copies, &in, 0);
		assert_int_equal(in.counts.odd, known);
		for (uint32_t j = 0; j < 200; j++)
			assert_int_equal(in.fate[j].doubtful, known);
		ow_interval_copies_free(copies);
	}
}

/* One was on its way when the first interval began, and one is at its end: in order all would take 45 ms, while other packets
 * take 50. No delay is known that is not right, in this interval and in the next one. */
static void test_shifted_by_one(void **state)
{
	(void)state;
	struct ow_interval_copies *copies;
	assert_int_equal(ow_interval_copies_create(&copies), 0);
	unsigned known = 0;
	for (int64_t start_ns = 0; start_ns < 3000 * MS; start_ns += 1000 * MS) {
		struct input in = {.of = {.sents = 200, .receiveds = 200}};
		for (uint32_t i = 0; i < 200; i++) {
			in.sent_ns[i] = start_ns + 5 * MS * i + i % 7 * 10000;
			in.received_ns[i] = start_ns + 45 * MS + 5 * MS * i + (i + 6) % 7 * 10000 + i % 11 * 50000;
		}
		ow_interval_copies_begin(copies);
		for (int i = 0; i < 100; i++)
			ow_interval_copies_learn(copies, 50 * MS + i * MS / 100);
		ow_interval_copies_learned(copies);
		pair(copies, &in, start_ns);
		for (uint32_t j = 0; j < 200; j++) {
			if (in.fate[j].sent == OW_ALIGN_NONE || in.fate[j].doubtful)
				continue;
			assert_true(in.received_ns[j] - in.sent_ns[in.fate[j].sent] >= 49 * MS);
			known++;
		}
	}
	print_message("%u of 597 delays known\n", known);
	ow_interval_copies_free(copies);
}

/* One that waits since 5 ms is not the one that arrives, if others take 50 ms: its delay is not known. */
static void test_late_too_soon(void **state)
{
	(void)state;
	struct ow_interval_copies *copies;
	struct input in = {.sent_ns = {-5 * MS, 200 * MS},
	                   .received_ns = {MS / 2, 250 * MS},
	                   .of = {.waiting = 1, .sents = 2, .receiveds = 2}};
	assert_int_equal(ow_interval_copies_create(&copies), 0);
	ow_interval_copies_begin(copies);
	for (int i = 0; i < 100; i++)
		ow_interval_copies_learn(copies, 50 * MS + i * MS / 50);
	pair(copies, &in, 0);
	assert_true(in.fate[0].doubtful || in.fate[0].waited_ns == OW_LATE_PACKETS_NOBODY);
	assert_false(in.fate[1].doubtful);
	ow_interval_copies_free(copies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),      cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_late_too_soon), cmocka_unit_test(test_duplicates_in_bursts),
		cmocka_unit_test(test_all_arrive),    cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_under_way),     cmocka_unit_test(test_shifted_by_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
