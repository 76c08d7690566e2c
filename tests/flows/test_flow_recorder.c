/* SPDX-License-Identifier: Apache-2.0 */
/* Where epochs end: intervals, late packets, clocks that are set, thresholds; and frames by heading, class and cut. */
#include "flows/flow_recorder.h"
#include "flows/flow_decoder.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define BEGIN  (INT64_C(1700000000) * SECOND)

struct heard {
	unsigned epochs;
	uint64_t packets[20];
	int64_t begin_ns[20], end_ns[20];
	uint8_t flaws[20];
	bool keep;
};

static int on_epoch(void *arg, struct ow_epoch *epoch, struct ow_error *err)
{
	struct heard *heard = arg;
	(void)err;
	assert_true(heard->epochs < 20);
	heard->packets[heard->epochs] = ow_colate_packets(epoch->colate);
	assert_int_equal(ow_flow_counts_packets(epoch->counts), ow_colate_packets(epoch->colate));
	heard->flaws[heard->epochs] = epoch->flaws;
	heard->begin_ns[heard->epochs] = epoch->begin_ns;
	heard->end_ns[heard->epochs++] = epoch->end_ns;
	if (heard->keep)
		ow_epoch_done(epoch);
	return 0;
}

static struct ow_epoch_info make_info(int64_t interval_ns)
{
	struct ow_epoch_info info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                             .level = OW_LEVEL_IP,
	                             .id_bytes = 64,
	                             .interval_ns = interval_ns,
	                             .counts = true};
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	assert_int_equal(ow_colate_plan_params(&plan, &info.params, NULL), 0);
	return info;
}

static struct ow_flow_recorder *make(struct heard *heard, int64_t interval_ns, uint64_t threshold)
{
	struct ow_flow_recorder_options options = {
		.info = make_info(interval_ns), .threshold = threshold, .on_epoch = on_epoch, .arg = heard};
	struct ow_flow_recorder *recorder;
	assert_int_equal(ow_flow_recorder_create(&options, &recorder, NULL), 0);
	return recorder;
}

static void add(struct ow_flow_recorder *recorder, int64_t time_ns)
{
	static const struct ow_flow_key key = {.version = 4}, *keys = &key;
	const struct ow_flow_sighting stamp = {ow_flow_hash(1, &key), (uint64_t)time_ns, time_ns};
	assert_int_equal(ow_flow_recorder_add(recorder, &stamp, &keys, 1, NULL), 0);
}

static void test_intervals(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		struct heard heard = {.keep = keep};
		struct ow_flow_recorder *recorder = make(&heard, SECOND, 0);
		add(recorder, BEGIN + SECOND / 2);
		add(recorder, BEGIN + SECOND - 1);
		add(recorder, BEGIN + SECOND); /* the next one */
		assert_int_equal(heard.epochs, 1);
		add(recorder, BEGIN + SECOND - 5); /* late: with the one at hand */
		add(recorder, BEGIN + 7 * SECOND); /* nothing in between: no epochs */
		assert_int_equal(heard.epochs, 2);
		assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + 8 * SECOND - 1, NULL), 0);
		assert_int_equal(heard.epochs, 2);
		assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + 8 * SECOND, NULL), 0);
		assert_int_equal(heard.epochs, 3);
		assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + 20 * SECOND, NULL), 0);
		add(recorder, BEGIN + 1000 * SECOND); /* a clock that is set ahead, and back again */
		add(recorder, BEGIN + 9 * SECOND);
		add(recorder, BEGIN + 9 * SECOND + 1);
		assert_int_equal(ow_flow_recorder_cut(recorder, NULL), 0);
		assert_int_equal(ow_flow_recorder_cut(recorder, NULL), 0);
		assert_int_equal(heard.epochs, 5);
		static const uint64_t packets[] = {2, 2, 1, 1, 2};
		static const int begin[] = {0, 1, 7, 1000, 9};
		for (unsigned i = 0; i < 5; i++) {
			assert_int_equal(heard.packets[i], packets[i]);
			/* The recording began in the middle of the first one. */
			assert_int_equal(heard.begin_ns[i], BEGIN + begin[i] * SECOND + (i ? 0 : SECOND / 2));
			assert_int_equal(heard.end_ns[i], BEGIN + (begin[i] + 1) * SECOND);
		}
		ow_flow_recorder_free(recorder);
	}
}

/* The span of an epoch is without times in which nothing was recorded, and its flaws are those of its packets. */
static void test_spans(void **state)
{
	(void)state;
	struct heard heard = {0};
	struct ow_flow_recorder *recorder = make(&heard, SECOND, 0);
	assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + 300, NULL), 0);
	add(recorder, BEGIN + 500);
	add(recorder, BEGIN + 200); /* late: it passed before that time */
	assert_false(ow_flow_recorder_due(recorder, BEGIN + SECOND - 1));
	assert_true(ow_flow_recorder_due(recorder, BEGIN + SECOND));
	add(recorder, BEGIN + SECOND + 700);
	ow_flow_recorder_flaw(recorder, OW_EPOCH_MISSED);
	assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + SECOND + 900, NULL), 0);
	assert_int_equal(ow_flow_recorder_cut(recorder, NULL), 0); /* it pauses */
	add(recorder, BEGIN + SECOND + 1500);
	ow_flow_recorder_flaw(recorder, OW_EPOCH_CLOCK_SET);
	add(recorder, BEGIN + SECOND + 1600);
	assert_int_equal(ow_flow_recorder_cut(recorder, NULL), 0);
	add(recorder, BEGIN + 3 * SECOND + 10);
	assert_int_equal(ow_flow_recorder_pass(recorder, BEGIN + 4 * SECOND, NULL), 0);
	static const int64_t begin[] = {200, SECOND + 0, SECOND + 1500, 3 * SECOND + 10};
	static const int64_t end[] = {SECOND, SECOND + 900, SECOND + 1601, 4 * SECOND};
	static const uint8_t flaws[] = {0, OW_EPOCH_MISSED, OW_EPOCH_CLOCK_SET, 0};
	assert_int_equal(heard.epochs, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(heard.begin_ns[i] - BEGIN, begin[i]);
		assert_int_equal(heard.end_ns[i] - BEGIN, end[i]);
		assert_int_equal(heard.flaws[i], flaws[i]);
	}
	ow_flow_recorder_free(recorder);
}

static void test_threshold(void **state)
{
	(void)state;
	struct heard heard = {0};
	struct ow_flow_recorder *recorder = make(&heard, 0, 100);
	for (int i = 0; i < 10; i++)
		add(recorder, BEGIN + 20 * i); /* 0, 20, 60, 120: that is four packets */
	assert_int_equal(heard.epochs, 2);
	assert_int_equal(ow_flow_recorder_cut(recorder, NULL), 0);
	assert_int_equal(heard.epochs, 3);
	assert_int_equal(heard.packets[0] + heard.packets[1] + heard.packets[2], 10);
	assert_int_equal(heard.packets[0], 4);
	assert_int_equal(heard.begin_ns[1], BEGIN + 80);
	assert_int_equal(heard.end_ns[1], BEGIN + 140 + 1);
	ow_flow_recorder_free(recorder);
	ow_flow_recorder_free(NULL);
}

/* An IPv4 TCP packet in Ethernet, with this port and payload. */
static uint8_t bytes[4000];

static struct ow_iface_frame make_frame(uint16_t port, uint32_t payload)
{
	static const uint8_t head[] = {0, 1,  2,  3, 4,  5, 6, 7, 8,  9, 10,   11,   8,  0, 0x45, 0, 0, 0,
	                               0, 7,  64, 0, 64, 6, 0, 0, 10, 0, 0,    1,    10, 0, 0,    2, 0, 0,
	                               0, 80, 0,  0, 0,  1, 0, 0, 0,  1, 0x50, 0x10, 1,  1, 0,    0, 0, 0};
	static uint8_t *next = bytes;
	uint8_t *at = next;
	next = next + sizeof head + payload > bytes + 2500 ? bytes : next + sizeof head + payload;
	memcpy(at, head, sizeof head);
	memset(at + sizeof head, 3, payload);
	at[16] = (uint8_t)((40 + payload) >> 8);
	at[17] = (uint8_t)(40 + payload);
	at[34] = (uint8_t)(port >> 8);
	at[35] = (uint8_t)port;
	uint32_t size = (uint32_t)sizeof head + payload;
	return (struct ow_iface_frame){.frame = {BEGIN, at, size, size, 1, 1}, .heading = OW_HEADING_IN};
}

static size_t stamps_of(const struct ow_flow_decoder_options *options, const struct ow_iface_frame *frames,
                        size_t count, struct ow_flow_decoder_counts *ret_counts)
{
	struct ow_flow_decoder *decoder;
	struct ow_flow_sightings stamps;
	size_t total = 0;
	assert_int_equal(ow_flow_decoder_create("test", options, &decoder, NULL), 0);
	assert_int_equal(ow_flow_decoder_prepare(decoder, 1, NULL), 0);
	assert_int_equal(ow_flow_decoder_load_live(decoder, frames, count, NULL), 0);
	while (ow_flow_decoder_next(decoder, &stamps, NULL) == 0 && stamps.count)
		total += stamps.count;
	*ret_counts = *ow_flow_decoder_counts(decoder);
	assert_int_equal(ret_counts->frames, ret_counts->packets - ret_counts->pieces + ret_counts->filtered +
	                                             ret_counts->unclassed + ret_counts->not_ip +
	                                             ret_counts->too_short + ret_counts->below_limit +
	                                             ret_counts->untimed);
	ow_flow_decoder_free(decoder);
	return total;
}

static void test_stamper(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info(0);
	struct ow_flow_decoder_options options = {.info = &info};
	struct ow_flow_decoder_counts counts;
	struct ow_iface_frame frame[3] = {make_frame(1000, 10), make_frame(1001, 1000), make_frame(1000, 20)};
	frame[2].heading = OW_HEADING_OUT;
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 3);
	options.heading = OW_HEADING_OUT;
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 1);
	options.heading = OW_HEADING_UNKNOWN;
	options.filter = "tcp src port 1001";
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 1);
	options.filter = NULL;
	frame[1].gso = OW_GSO_TCP4; /* as the interface cuts it: 3 of 300, one of 100 */
	frame[1].gso_size = 300;
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 6);
	assert_int_equal(counts.pieces, 3);
	frame[1].gso = OW_GSO_NONE;
	options.segment_bytes = 250;
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 6);
	options.segment_bytes = 0;
	frame[0].frame.time_ns = 0;
	frame[1].frame.data += 14; /* no Ethernet any more */
	frame[1].frame.caplen -= 14;
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 1);
	assert_int_equal(counts.untimed, 1);
	info.select = (struct ow_flow_select){.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"a", "b"}};
	frame[0] = make_frame(1000, 10);
	frame[1] = make_frame(1001, 10);
	frame[2] = make_frame(1002, 10);
	options.class_filter[0] = "src port 1000";
	options.class_filter[1] = "src port 1001";
	assert_int_equal(stamps_of(&options, frame, 3, &counts), 2);
	assert_int_equal(counts.unclassed, 1);
	options.filter = "no such thing";
	struct ow_flow_decoder *decoder;
	struct ow_error err;
	assert_int_equal(ow_flow_decoder_create("test", &options, &decoder, NULL), 0);
	assert_true(ow_flow_decoder_prepare(decoder, 1, &err) < 0);
	assert_non_null(strstr(err.text, "test"));
	ow_flow_decoder_free(decoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_intervals), cmocka_unit_test(test_spans),
	                                   cmocka_unit_test(test_threshold), cmocka_unit_test(test_stamper)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
