/* SPDX-License-Identifier: Apache-2.0 */
/* A sender that announces whatever it likes: the receiver keeps a bounded part of it, and knows what it does not have. */
#include "base/hash.h"
#include "exchange/exchange_scope.h"
#include "exchange/message_scope.h"
#include "record/recorder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define KEYS 1000

static struct ow_receiver_scope *make_scope(int64_t length_ns)
{
	struct ow_exchange x = {.options = {.length_ns = length_ns, .horizon = 4}};
	struct ow_receiver_scope *scope = NULL;
	assert_int_equal(ow_receiver_scope_create(&x, &scope), 0);
	return scope;
}

/* An update that can be applied has the digest of its keys: that of a receiver that has nothing else. */
static uint64_t digest_of(const struct ow_scope_update *update)
{
	struct ow_scope_announcer *a;
	const struct ow_scope_update *made;
	struct ow_scope_options options = {.hold = 1, .overlap = 1};
	struct ow_scope_flow *flow = calloc(update->keys.count, sizeof *flow);
	assert_int_equal(ow_scope_announcer_create(&options, &a), 0);
	for (size_t k = 0; k < update->keys.count; k++)
		flow[k].dest = flow[k].pair = flow[k].flow = update->keys.key[k] << (64 - OW_SCOPE_KEY_BITS);
	assert_int_equal(ow_scope_announce(a, 0, flow, update->keys.count, &made), 0);
	assert_memory_equal(made->keys.key, update->keys.key, update->keys.count * sizeof *made->keys.key);
	uint64_t digest = made->digest;
	ow_scope_announcer_free(a);
	free(flow);
	return digest;
}

static void announce(struct ow_receiver_scope *scope, int64_t from, int64_t to, bool reset)
{
	uint64_t key[KEYS];
	struct ow_message_scope message;
	uint8_t *bytes;
	struct ow_error err;
	for (size_t k = 0; k < KEYS; k++)
		key[k] = k * 1000;
	struct ow_scope_update update = {.reset = reset, .keys = {key, KEYS}};
	update.digest = digest_of(&update);
	assert_int_equal(ow_message_of_scope_update(&update, &message, &bytes), 0);
	for (int64_t i = from; i < to; i++)
		assert_int_equal(ow_receiver_scope_announced(scope, i, &message, &err), 0);
	free(bytes);
}

/* How many of the announcements wait, and how many of them have their keys. */
static void take_all(struct ow_receiver_scope *scope, size_t *ret_waited, size_t *ret_whole)
{
	struct ow_scope_answer answer;
	struct ow_error err;
	uint64_t unshared;
	int64_t interval, last = -1;
	*ret_waited = *ret_whole = 0;
	while (ow_receiver_scope_next(scope, &interval)) {
		assert_true(interval > last);
		last = interval;
		int r = ow_receiver_scope_take(scope, NULL, &answer, &unshared, &err);
		assert_true(r == 0 || r == -ESTALE);
		++*ret_waited;
		*ret_whole += r == 0;
		ow_scope_answer_done(&answer);
	}
}

static void a_flood_of_resets_is_bounded(void **state)
{
	(void)state;
	struct ow_receiver_scope *scope = make_scope(1000000);
	size_t waited, whole;
	announce(scope, 0, 2 * OW_SCOPE_FLIGHT_MAX, true);
	take_all(scope, &waited, &whole);
	assert_int_equal(waited, OW_SCOPE_FLIGHT_MAX);
	assert_true(whole > 0 && whole * KEYS <= 4 * (size_t)OW_SCOPE_LIVE_MAX);
	/* And it goes on. */
	announce(scope, 2 * OW_SCOPE_FLIGHT_MAX, 2 * OW_SCOPE_FLIGHT_MAX + 3, true);
	take_all(scope, &waited, &whole);
	assert_int_equal(waited, 3);
	assert_int_equal(whole, 3);
	ow_receiver_scope_free(scope);
}

/* Intervals of 1 ms, and a delay or clocks that differ by a second: a good sender is that far ahead. */
static void a_sender_may_be_a_second_ahead(void **state)
{
	(void)state;
	struct ow_receiver_scope *scope = make_scope(1000000);
	size_t waited, whole;
	announce(scope, 0, 1, true);
	announce(scope, 1, 1000, false);
	take_all(scope, &waited, &whole);
	assert_int_equal(waited, 1000);
	ow_receiver_scope_free(scope);
}

static void what_was_announced_does_not_change(void **state)
{
	(void)state;
	struct ow_receiver_scope *scope = make_scope(1000000);
	size_t waited, whole;
	announce(scope, OW_MESSAGE_INTERVAL_MAX, OW_MESSAGE_INTERVAL_MAX + 1, true);
	announce(scope, 0, 5, true);
	announce(scope, OW_MESSAGE_INTERVAL_MAX, OW_MESSAGE_INTERVAL_MAX + 1, true);
	take_all(scope, &waited, &whole);
	assert_int_equal(waited, 1);
	ow_receiver_scope_free(scope);
}

/* -- held packets -------------------------------------------------------------------------------------------------- */

#define HELD 64

static void announce_flows(struct ow_receiver_scope *scope, struct ow_scope_announcer *a, int64_t interval,
                           const struct ow_scope_flow *flow, size_t flows)
{
	const struct ow_scope_update *update;
	struct ow_message_scope message;
	uint8_t *bytes;
	struct ow_error err;
	assert_int_equal(ow_scope_announce(a, interval, flow, flows, &update), 0);
	assert_int_equal(ow_message_of_scope_update(update, &message, &bytes), 0);
	assert_int_equal(ow_receiver_scope_announced(scope, interval, &message, &err), 0);
	free(bytes);
}

/* Takes a page of so many packets of the flow. Returns how many are left in it. */
static size_t take_page(struct ow_receiver_scope *scope, int64_t interval, unsigned shift,
                        const struct ow_scope_flow *flow, size_t packets, uint64_t *ret_unshared)
{
	struct ow_interval_packets page = {
		.interval = interval, .start_ns = interval * 100000000, .sample_shift = shift, .count = packets};
	struct ow_scope_answer answer;
	struct ow_error err;
	page.sighting = calloc(packets + 1, sizeof *page.sighting);
	uint32_t number = packets ? ow_lane_flows_add(&page.flows, flow, 10) : 0;
	for (size_t i = 0; i < packets; i++)
		page.sighting[i] = (struct ow_sighting){ow_mix64(i), (int64_t)i, number};
	assert_int_equal(ow_receiver_scope_take(scope, &page, &answer, ret_unshared, &err), 0);
	ow_scope_answer_done(&answer);
	free(page.sighting);
	free(page.copy);
	ow_lane_flows_done(&page.flows);
	return page.count;
}

/* Packets are held, and join or expire in an interval with another sample: they count as in that sample. */
static void held_packets_follow_the_sample(void **state)
{
	(void)state;
	const struct ow_scope_flow flow = {
		.flow = UINT64_C(1) << 60, .pair = UINT64_C(2) << 60, .dest = UINT64_C(3) << 60};
	const struct ow_identity identity = {0};
	struct ow_scope_options options = {.hold = 1, .overlap = 4};
	size_t sampled = 0;
	for (size_t i = 0; i < HELD; i++)
		sampled += ow_sampled(ow_sample_rank(&identity, ow_mix64(i)), 2);
	assert_true(sampled > 0 && sampled < HELD / 2);
	for (size_t joins = 0; joins < 2; joins++) {
		struct ow_receiver_scope *scope = make_scope(100000000);
		struct ow_scope_announcer *a;
		uint64_t unshared;
		assert_int_equal(ow_scope_announcer_create(&options, &a), 0);
		for (int64_t i = 0; i < 4; i++)
			announce_flows(scope, a, i, &flow, joins && i == 1);
		assert_int_equal(take_page(scope, 0, 0, &flow, HELD, &unshared), 0);
		assert_int_equal(unshared, 0);
		assert_int_equal(take_page(scope, 1, 2, &flow, 0, &unshared), joins ? sampled : 0);
		assert_int_equal(unshared, joins ? 0 : sampled);
		/* The other way: each stands for four. */
		if (!joins) {
			assert_int_equal(take_page(scope, 2, 2, &flow, 10, &unshared), 0);
			assert_int_equal(take_page(scope, 3, 0, &flow, 0, &unshared), 0);
			assert_int_equal(unshared, 40);
		}
		ow_scope_announcer_free(a);
		ow_receiver_scope_free(scope);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_of_resets_is_bounded),
		cmocka_unit_test(a_sender_may_be_a_second_ahead),
		cmocka_unit_test(what_was_announced_does_not_change),
		cmocka_unit_test(held_packets_follow_the_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
