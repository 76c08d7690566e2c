/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any frames for one end of a lane, as a peer could send them: the first byte selects the end, the method and this
 * point's sample; then frames follow, each preceded by its length (2). Interval packets come in between. Every result
 * must conserve packets, and in the end every interval is answered or unknown. fuzz/wire_corpus.c makes the seeds from
 * real conversations.
 */
#include "base/bytes.h"
#include "lane.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void on_send(void *arg, const uint8_t *frame, size_t size)
{
	struct ow_message message;
	(void)arg;
	check(ow_message_decode(frame, size, &message, NULL) == 0);
	ow_message_done(&message);
}

static void on_result(void *arg, const struct ow_interval_result *r)
{
	(void)arg;
	check(r->sent == r->matched + r->late + r->lost + r->pending);
	check(r->received == r->matched + r->late_received + r->extra);
	check(r->duplicated <= r->extra && r->ambiguous <= r->matched + r->late);
	check(r->coverage >= 0 && r->coverage <= 1);
	check(r->status == OW_RESULT_MEASURED || r->cause[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_exchange *exchange = NULL;
	struct ow_clock_state clock = {true, 1000};
	struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result};
	if (size == 0)
		return 0;
	bool sending = data[0] & 1;
	struct ow_exchange_options options = lane_options(sending, data[0] & 2 ? OW_METHOD_RDA : OW_METHOD_FOLD);
	options.shared = data[0] & 16;
	options.shift_max_ns = data[0] & 32 ? LANE_LENGTH : 0;
	options.identity.level = OW_LEVEL_IP;
	check(ow_exchange_create(&options, &sinks, &exchange) == 0);
	int64_t now = LANE_T0 + LANE_LENGTH, interval = 0;
	size_t at = 1;
	for (unsigned step = 0; at < size || interval < LANE_INTERVALS; step++) {
		if (interval < LANE_INTERVALS && (step % 4 == 0 || at >= size)) {
			struct ow_interval_packets *page = lane_page(interval++, sending, data[0] >> 2 & 3);
			if (options.shared)
				lane_flows(page);
			check(ow_exchange_packets(exchange, page, &clock, now) == 0);
			now += LANE_LENGTH / 8;
		}
		if (size - at < 2) {
			at = size;
			continue;
		}
		size_t length = data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		length = length < size - at ? length : size - at;
		struct ow_error err = {""};
		/* On the heap with exactly this size, so that a read past the end is detected. */
		uint8_t *frame = malloc(length ? length : 1);
		check(frame != NULL);
		memcpy(frame, data + at, length);
		check(ow_exchange_frame(exchange, frame, length, now, &err) == 0 || err.text[0]);
		free(frame);
		at += length;
		now += 1000;
		if (step % 16 == 7)
			ow_exchange_connected(exchange, now);
	}
	ow_exchange_finish(exchange, NULL);
	for (int i = 0; i < 8; i++)
		ow_exchange_tick(exchange, now += 2 * LANE_LENGTH);
	check(ow_exchange_done(exchange));
	struct ow_interval_result total;
	ow_exchange_total(exchange, &total);
	ow_exchange_free(exchange);
	return 0;
}
