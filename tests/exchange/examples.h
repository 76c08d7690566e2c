/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/arrivals.h"
#include "estimate/low_bits.h"
#include "exchange/message.h"
#include "exchange/message_scope.h"
#include <string.h>

/* One message of each type with fixed contents: docs/protocol.md shows their bytes. */
static const int64_t example_times[] = {5, -1, 1000000};
static const int64_t example_places[] = {2};
static const struct ow_message_copy example_copies[] = {{2, 0x123456789abc}};
static const struct ow_message_bucket example_sums[] = {{.time = 300}, {.time = 0xffffff}};
static const struct ow_message_bucket example_clean[] = {{300, 7, 2}};
static const uint8_t example_sample[] = {0x64, 0x80, 0x0c}; /* 100 and 200 in 12 bits each */

static inline struct ow_interval_result example_result(void)
{
	struct ow_interval_result r = {
		.status = OW_RESULT_MEASURED,
		.final = true,
		.sent = 10,
		.received = 9,
		.matched = 8,
		.late = 1,
		.lost = 1,
		.extra = 1,
		.duplicated = 1,
		.reordered = UINT64_MAX,
		.bytes = 5000,
		.total_sent = 10,
		.total_received = 9,
		.coverage = 1,
		.samples = 9,
		.mean_ns = ow_value_exact(1500),
		.stddev_ns = {OW_VALUE_ESTIMATED, 20, 18, 22, OW_NO_REASON},
		.loss_ratio = ow_value_exact(0.125),
		.clock_from = {true, 250},
		.clock_to = {false, INT64_MAX},
		.clock_method = "relative",
		.clock_offset_ns = {OW_VALUE_ESTIMATED, -2000, -2500, -1500, OW_NO_REASON},
		.clock_drift_ppb = ow_value_exact(125),
		.round_trip_min_ns = ow_value_exact(1000),
		.round_trip_mean_ns = ow_value_none(OW_REASON_CLOCK_ONE_WAY),
		.above_min_ns = ow_value_exact(500),
		.synopsis = "fold 4 x 40",
		.cost = {2048, 1, 1, 2, 3, 4, 5, 6},
	};
	r.min_ns = r.max_ns = ow_value_none(OW_REASON_SAMPLED);
	for (int q = 0; q < OW_QUANTILES; q++)
		r.quantile_ns[q] = ow_value_exact(1400 + 10 * q);
	return r;
}

/* Coded lists of 40-bit keys: 1; and 2, 2^39 + 5. */
static const uint8_t example_key[] = {1, 2, 0, 0, 0, 0};
static const uint8_t example_keys[] = {2, 4, 0, 0, 0, 0x80, 0x0d, 0, 0, 0, 0};
static const uint8_t example_bits[] = {2};
static const uint8_t example_changes[] = {0xfe};

#define EXAMPLES 23
static inline struct ow_message example(unsigned number)
{
	struct ow_message m = {.lane = 7, .interval = 3};
	struct ow_interval_result before;
	switch (number) {
	case 0:
		m = (struct ow_message){.type = OW_MESSAGE_HELLO};
		m.hello = (struct ow_message_hello){2,
		                                    2,
		                                    "london",
		                                    0x0123456789abcdef,
		                                    1700000000000000000,
		                                    {true, 250000},
		                                    0x1122334455667788,
		                                    "oneway 0.1.0"};
		break;
	case 1:
		m = (struct ow_message){.type = OW_MESSAGE_OPEN, .lane = 7};
		m.open = (struct ow_message_open){
			.segment = "london-paris",
			.class_name = "web",
			.filter = "tcp port 443",
			.sends = true,
			.method = OW_MESSAGE_FOLD,
			.level = OW_MESSAGE_LEVEL_IP,
			.hash_limit = UINT32_MAX,
			.identity_seed = 1,
			.synopsis_seed = 2,
			.t0_ns = 1700000002000000000,
			.length_ns = 1000000000,
			.wait_ns = 2000000000,
			.horizon = 2,
			.buckets = 1024,
			.sample = 1000,
			.tcp_headers = true,
			.pieces = true,
			.exact = true,
			.any_ip_id = true,
		};
		break;
	case 2:
		m = (struct ow_message){.type = OW_MESSAGE_OPENED, .lane = 7};
		m.opened = (struct ow_message_opened){1700000000100000000, 1700000002000000000, 1, 2};
		break;
	case 3:
		m = (struct ow_message){.type = OW_MESSAGE_REFUSED, .lane = 7};
		m.text = (struct ow_message_text){"no segment london-paris"};
		break;
	case 4:
		m.type = OW_MESSAGE_SYNOPSIS;
		m.synopsis = (struct ow_message_synopsis){
			.part = OW_MESSAGE_PUSHED,
			.sample_shift = 1,
			.clock = {true, 300},
			.packets = 9,
			.total_packets = 20,
			.total_bytes = 10000,
			.ring_drops = 1,
			.unreadable = 2,
			.oldest = 2,
			.settled = 1,
			.lag_ns = 300000,
			.work_ns = 90000,
			.synopsis = (const uint8_t *)"OWS",
			.synopsis_size = 3,
		};
		break;
	case 5:
		m.type = OW_MESSAGE_ASK;
		m.ask = (struct ow_message_ask){.part = OW_MESSAGE_SECOND, .order = 1, .cells = 100};
		break;
	case 6:
		m.type = OW_MESSAGE_NAMES;
		m.names = (struct ow_message_names){
			.sums = OW_MESSAGE_SUMS,
			.bits = 12,
			.width = 3,
			.wide = true,
			.buckets = 2,
			.sample = 2,
			.wanted = (const uint8_t *)"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0",
			.wanted_size = 24,
			.others = (const uint8_t *)"\4\0\0\0\0\0\0\0",
			.others_size = 8,
		};
		break;
	case 7:
		m.type = OW_MESSAGE_TIMES;
		m.times = (struct ow_message_times){
			.sums = OW_MESSAGE_SUMS,
			.sample_shift = 1,
			.kept = 5,
			.digest = 0x1122334455667788,
			.time_ns = example_times,
			.copy = example_copies,
			.bucket = example_sums,
			.sample = example_sample,
			.bits = 12,
			.width = 3,
			.sums_check = (uint64_t)ow_low_bits_check((const int64_t[]){300, -1}, 2, 0),
			.sample_check = ow_low_bits_check((const int64_t[]){100, 200}, 2, 0),
			.times = 3,
			.copies = 1,
			.buckets = 2,
			.samples = 2,
			.shared = (const uint8_t *)"\5",
			.shared_size = 1,
		};
		break;
	case 8:
		m.type = OW_MESSAGE_TIMES;
		m.times = (struct ow_message_times){
			.sums = OW_MESSAGE_CLEAN,
			.kept = 5,
			.bucket = example_clean,
			.buckets = 1,
			.synopsis = (const uint8_t *)"OWS",
			.synopsis_size = 3,
		};
		break;
	case 9:
		m.type = OW_MESSAGE_RESULT;
		m.told.result = example_result();
		m.told.differences = 3;
		m.told.floor = (struct ow_clock_floor){1700000003000000000, 2500, 125, 9, 1};
		ow_message_choose(&m.told, NULL);
		break;
	case 10:
		m.type = OW_MESSAGE_NONE;
		m.text = (struct ow_message_text){"not recorded"};
		break;
	case 11:
		m = (struct ow_message){.type = OW_MESSAGE_PING};
		m.ping = (struct ow_message_ping){42, true};
		break;
	case 12:
		m = (struct ow_message){.type = OW_MESSAGE_BYE};
		m.text = (struct ow_message_text){"stopping"};
		break;
	case 13:
		m.type = OW_MESSAGE_SCOPE;
		m.scope = (struct ow_message_scope){.generation = 2,
		                                    .digest = 0x1122334455667788,
		                                    .fine = example_key,
		                                    .fine_size = sizeof example_key,
		                                    .keys = example_keys,
		                                    .keys_size = sizeof example_keys};
		break;
	case 19:
		m.type = OW_MESSAGE_SCOPE;
		m.scope = (struct ow_message_scope){
			.generation = 2, .digest = 0x1122334455667788, .sketch = {.capacity = 2}};
		ow_key_sketch_toggle(&m.scope.sketch, 2);
		ow_key_sketch_toggle(&m.scope.sketch, 3);
		m.scope.check = ow_scope_keys_check(&(struct ow_scope_list){(uint64_t[]){2, 3}, 2});
		break;
	case 20:
		m.type = OW_MESSAGE_SCOPE;
		m.scope = (struct ow_message_scope){
			.idle = 3, .quiet = true, .generation = 2, .digest = 0x1122334455667788};
		break;
	case 15:
		m.type = OW_MESSAGE_TIMES;
		m.times = (struct ow_message_times){
			.sums = OW_MESSAGE_SUMS,
			.kept = 2,
			.digest = 0x1122334455667788,
			.time_ns = example_times,
			.place = example_places,
			.times = 1,
			.sample = example_sample,
			.samples = 2,
			.bits = 12,
			.sample_check = ow_low_bits_check((const int64_t[]){100, 200}, 2, 0),
			.order_check = ow_arrivals_check((const struct ow_arrival[]){{100, 0, 0}, {200, 1, 1}}, 2),
		};
		break;
	case 18:
		m.type = OW_MESSAGE_RESULT;
		before = example_result();
		m.told.result = before;
		before.final = false;
		before.pending = 1;
		before.lost = before.cost.bytes = 0;
		before.loss_ratio = ow_value_exact(0);
		ow_message_choose(&m.told, &before);
		break;
	case 16:
		m = (struct ow_message){.type = OW_MESSAGE_SURVEY, .lane = 7};
		m.survey = (struct ow_message_survey){1700000002000000000, 1000000000, 0x1122334455667788, 3};
		break;
	case 17:
		m = (struct ow_message){.type = OW_MESSAGE_SAMPLE, .lane = 7};
		m.sample = (struct ow_message_sample){.seed = 0x1122334455667788};
		m.sample.sample_shift[0] = 3;
		m.sample.count[0] = 2;
		m.sample.ids[0] = (const uint8_t *)"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0";
		break;
	case 21:
		m = (struct ow_message){.type = OW_MESSAGE_WANTED};
		m.wanted = (struct ow_message_wanted){.recording = 1,
		                                      .heading = 2,
		                                      .epochs = 300,
		                                      .check = 0x1122334455667788,
		                                      .info = (const uint8_t *)"\1\0\0",
		                                      .info_size = 3};
		break;
	case 22:
		m = (struct ow_message){.type = OW_MESSAGE_EPOCH};
		m.epoch = (struct ow_message_epoch){.recording = 1,
		                                    .epochs = 300,
		                                    .state = OW_MESSAGE_EPOCH_NEXT,
		                                    .count_bytes = 1,
		                                    .bytes = (const uint8_t *)"\2\3\4\5",
		                                    .size = 4};
		break;
	default:
		m = example(4);
		m.synopsis.scope = (struct ow_message_scope_answer){.there = true,
		                                                    .digest = 0x1122334455667788,
		                                                    .seen = example_bits,
		                                                    .seen_size = 1,
		                                                    .rerouted = example_key,
		                                                    .rerouted_size = sizeof example_key,
		                                                    .change = example_changes,
		                                                    .changes = 1};
		break;
	}
	return m;
}
