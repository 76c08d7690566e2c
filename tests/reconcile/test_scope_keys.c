/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both points cut the same set out of an interval: all interleavings of three packets over a few intervals, with
 * packets that are early, late, lost or go elsewhere; generations, FINE pairs, HOT destinations, limits and resets.
 */
#include "../effort.h"
#include "scope_world.h"

#include "base/hash.h"
#include "base/random.h"
#include "reconcile/scope_set.h"
#include "reconcile/scope_waste.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LENGTH INT64_C(1000000)

static struct ow_scope_flow flow(uint32_t source, uint32_t dest, uint16_t port)
{
	struct ow_scope_hash hash;
	struct ow_scope_flow ret;
	struct ow_flow_key key = {.proto = 6, .version = 4, .sport = port};
	ow_scope_hash_seed(&hash, 7);
	memcpy(key.src, (uint8_t[]){(uint8_t)(source >> 16), (uint8_t)(source >> 8), (uint8_t)source, 1}, 4);
	memcpy(key.dst, (uint8_t[]){(uint8_t)(dest >> 16), (uint8_t)(dest >> 8), (uint8_t)dest, 1}, 4);
	ow_scope_flow_of(&hash, &key, &ret);
	ret.packets = 1;
	ret.ttl = 60;
	return ret;
}

/* -- all interleavings --------------------------------------------------------------------------------------------- */

/* Three flows, three intervals, and what happens: arrives -1, 0, 1 or 2 intervals later, lost, elsewhere, only at B. */
#define STORIES (3 * 3 * 7)

static struct trip story(unsigned number, int64_t first)
{
	unsigned fate = number / 9;
	struct trip trip = {.flow = number % 3, .sent_ns = (first + number / 3 % 3) * LENGTH + 100};
	trip.fate = fate < 4 ? TRIP_ARRIVES : fate == 4 ? TRIP_LOST : fate == 5 ? TRIP_ELSEWHERE : TRIP_ONLY_B;
	trip.arrived_ns = trip.sent_ns + (fate < 4 ? (int64_t)fate - 1 : 0) * LENGTH;
	return trip;
}

static void check_world(struct scope_world *world)
{
	static struct scope_account account;
	scope_world_run(world, &account);
	assert_int_equal(account.strays, 0);
	assert_int_equal(account.unknown, 0);
	assert_int_equal(account.sent, account.arrived + account.lost + account.elsewhere);
	assert_int_equal(account.sent, account.arrived + account.sums.lost + account.sums.unshared);
	assert_int_equal(account.received, account.in_synopsis + account.expired);
	/* Of networks that pass, nothing that arrived is lost; a flow that never arrived may be. */
	for (size_t t = 0; t < world->trip_count; t++)
		assert_true(world->trips[t].fate != TRIP_ARRIVES || world->trips[t].matched >= 0);
}

static void all_of(int64_t first, int64_t fine_at, unsigned ahead)
{
	/* Two flows of a pair, and another pair of the same destination. */
	struct ow_scope_flow flows[] = {flow(1, 1, 1), flow(1, 1, 2), flow(2, 1, 1)};
	for (unsigned a = 0; a < STORIES; a++) {
		for (unsigned b = a; b < STORIES; b++) {
			for (unsigned c = b; c < STORIES; c += RUN_STEP) {
				struct trip trips[] = {story(a, first), story(b, first), story(c, first)};
				struct scope_world world = {.flows = flows,
				                            .flow_count = 3,
				                            .trips = trips,
				                            .trip_count = 3,
				                            .length_ns = LENGTH,
				                            .horizon = 2,
				                            .hold = 1,
				                            .intervals = first + 7,
				                            .ahead = ahead,
				                            .fine_at = fine_at};
				check_world(&world);
			}
		}
	}
}

static void test_interleavings(void **state)
{
	(void)state;
	all_of(1, 0, 0);
}

static void test_fine_interleavings(void **state)
{
	(void)state;
	all_of(1, 2, 1);
}

/* The end of a generation is between these intervals. */
static void test_generation_interleavings(void **state)
{
	(void)state;
	all_of(OW_SCOPE_GENERATION - 2, 0, 0);
}

/* -- one end, by hand ---------------------------------------------------------------------------------------------- */

struct ends {
	struct ow_scope_announcer *a;
	struct ow_scope_receiver *b;
	struct ow_error err;
};

static void make_ends(struct ends *ends)
{
	struct ow_scope_options options = {.hold = 1, .overlap = 2};
	memset(ends, 0, sizeof *ends);
	assert_int_equal(ow_scope_announcer_create(&options, &ends->a), 0);
	assert_int_equal(ow_scope_receiver_create(&options, &ends->b), 0);
}

static void free_ends(struct ends *ends)
{
	ow_scope_announcer_free(ends->a);
	ow_scope_receiver_free(ends->b);
}

/* An interval with these flows at both points. Returns how many are compared; or what B or A answers. */
static int step(struct ends *ends, int64_t interval, const struct ow_scope_flow *flows, size_t sent, size_t received,
                size_t *ret_keys)
{
	const struct ow_scope_update *update;
	struct ow_scope_answer answer;
	struct ow_scope_held held[1];
	size_t helds;
	uint8_t *in_scope = malloc(sent + received + 1);
	int r = ow_scope_announce(ends->a, interval, flows, sent, &update);
	assert_int_equal(r, 0);
	if (ret_keys)
		*ret_keys = update->keys.count;
	r = ow_scope_receive(ends->b, interval, update, flows, received, in_scope, held, &helds, &answer, &ends->err);
	if (r == 0)
		r = ow_scope_confirm(ends->a, interval, &answer, flows, sent, in_scope, &ends->err);
	for (size_t k = 0; k < sent && r >= 0; k++)
		r += in_scope[k];
	ow_scope_answer_done(&answer);
	free(in_scope);
	return r;
}

/* A key is announced once a generation, and seen anew in each. */
static void test_generations(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_flow flows[] = {flow(1, 1, 1), flow(1, 1, 2), flow(2, 1, 1)};
	make_ends(&ends);
	for (int64_t i = 0; i < 3 * OW_SCOPE_GENERATION; i++) {
		size_t keys;
		/* B sees the first pair only, and only in the first generation. */
		int compared = step(&ends, i, flows, 3, i < OW_SCOPE_GENERATION ? 2 : 0, &keys);
		assert_int_equal(keys, i % OW_SCOPE_GENERATION == 0 ? 2 : 0);
		assert_int_equal(compared, i < OW_SCOPE_GENERATION ? 2 : 0);
	}
	free_ends(&ends);
}

static void test_fine(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_flow flows[] = {flow(1, 1, 1), flow(1, 1, 2), flow(1, 1, 3)};
	uint64_t pair = ow_scope_key(flows[0].pair);
	size_t keys;
	make_ends(&ends);
	/* The pair is seen: all are compared, though B has one. */
	assert_int_equal(step(&ends, 0, flows, 3, 1, &keys), 3);
	assert_int_equal(keys, 1);
	assert_int_equal(ow_scope_make_fine(ends.a, &pair, 1), 0);
	/* Flows are announced; for `overlap` intervals the pair still counts. */
	assert_int_equal(step(&ends, 1, flows, 3, 1, &keys), 3);
	assert_int_equal(keys, 3);
	assert_int_equal(step(&ends, 2, flows, 3, 1, &keys), 3);
	assert_int_equal(keys, 0);
	for (int64_t i = 3; i < 3 * OW_SCOPE_GENERATION; i++)
		assert_int_equal(step(&ends, i, flows, 3, 1, NULL), 1);
	free_ends(&ends);
}

/* B asks for FINE where much of what it has is not at A. */
static void test_fine_wanted(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_flow flows[] = {flow(1, 1, 1), flow(1, 1, 2)};
	struct ow_scope_announcer_counts counts;
	make_ends(&ends);
	for (int64_t i = 0; i < 4; i++) {
		step(&ends, i, flows, 1, 2, NULL);
		ow_scope_received_only(ends.b, &flows[1], 3);
	}
	ow_scope_announcer_counts(ends.a, &counts);
	assert_int_equal(counts.fine, 1);
	free_ends(&ends);
}

/* A destination with many new pairs is one key. */
static void test_hot(void **state)
{
	(void)state;
	struct ends ends;
	enum { PAIRS = OW_SCOPE_HOT_PAIRS + 1 };
	static struct ow_scope_flow flows[PAIRS + 1];
	size_t keys;
	for (uint32_t i = 0; i < PAIRS; i++)
		flows[i] = flow(i, 1, 1);
	flows[PAIRS] = flow(1, 2, 1);
	make_ends(&ends);
	assert_int_equal(step(&ends, 0, flows, PAIRS - 1, 0, &keys), 0);
	assert_int_equal(keys, PAIRS - 1);
	free_ends(&ends);
	make_ends(&ends);
	assert_int_equal(step(&ends, 0, flows, PAIRS + 1, 1, &keys), PAIRS);
	assert_int_equal(keys, 2);
	free_ends(&ends);
}

/* -- limits -------------------------------------------------------------------------------------------------------- */

/* Far more keys than a lane may have: both ends stay within their limits, and go on. */
static void test_limits(void **state)
{
	(void)state;
	struct ends ends;
	const size_t count = 100000;
	struct ow_scope_flow *flows = calloc(count, sizeof *flows);
	make_ends(&ends);
	struct ow_scope_announcer_counts counts;
	for (int64_t i = 0; i < 6; i++) {
		for (size_t k = 0; k < count; k++)
			flows[k] = flow((uint32_t)k, (uint32_t)((size_t)i * count + k), 1);
		size_t keys;
		assert_true(step(&ends, i, flows, count, 10, &keys) >= 0);
		assert_true(keys <= OW_SCOPE_UPDATE_MAX);
		ow_scope_announcer_counts(ends.a, &counts);
		assert_true(counts.live <= OW_SCOPE_LIVE_MAX);
		assert_true(counts.unannounced >= count - OW_SCOPE_UPDATE_MAX);
	}
	/* When the flood is over, a flow is announced at once, or as soon as a generation has passed. */
	struct ow_scope_flow one = flow(1, 2, 3);
	int compared = 0;
	for (int64_t i = 6; i < 10; i++)
		compared = step(&ends, i, &one, 1, 1, NULL);
	assert_int_equal(compared, 1);
	free(flows);
	free_ends(&ends);
}

static void refuse(struct ow_scope_update *update, int error)
{
	struct ow_scope_options options = {.hold = 1, .overlap = 1};
	struct ow_scope_receiver *b;
	struct ow_scope_answer answer;
	struct ow_scope_held held[1];
	struct ow_error err = {""};
	size_t helds;
	assert_int_equal(ow_scope_receiver_create(&options, &b), 0);
	assert_int_equal(ow_scope_receive(b, 0, update, NULL, 0, NULL, held, &helds, &answer, &err), error);
	assert_true(err.text[0]);
	ow_scope_receiver_free(b);
}

static void test_refused(void **state)
{
	(void)state;
	uint64_t *many = calloc(OW_SCOPE_UPDATE_MAX + 1, sizeof *many);
	for (size_t k = 0; k <= OW_SCOPE_UPDATE_MAX; k++)
		many[k] = k;
	refuse(&(struct ow_scope_update){0}, -ESTALE);
	refuse(&(struct ow_scope_update){.reset = true, .digest = 1}, -ESTALE);
	refuse(&(struct ow_scope_update){.reset = true, .keys = {many, OW_SCOPE_UPDATE_MAX + 1}}, -EPROTO);
	refuse(&(struct ow_scope_update){.reset = true, .fine = {many, OW_SCOPE_LISTED_MAX + 1}}, -EPROTO);
	refuse(&(struct ow_scope_update){.reset = true, .hot = {many, OW_SCOPE_LISTED_MAX + 1}}, -EPROTO);
	free(many);
	struct ow_scope_options options = {.hold = 0, .overlap = 1};
	struct ow_scope_announcer *a;
	assert_int_equal(ow_scope_announcer_create(&options, &a), -EINVAL);
}

/* Answers that do not fit, or lie. */
static void test_lies(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_flow flows[] = {flow(1, 1, 1)};
	const struct ow_scope_update *update;
	uint8_t in_scope[1], seen[1] = {1};
	uint64_t stranger = 12345;
	make_ends(&ends);
	struct ow_scope_answer none = {0}, bits = {.seen = seen, .seen_bytes = 1},
			       late = {.seen = seen, .seen_bytes = 1, .late = {&stranger, 1}};
	assert_int_equal(ow_scope_announce(ends.a, 0, flows, 1, &update), 0);
	assert_int_equal(ow_scope_announce(ends.a, 0, flows, 1, &update), -EINVAL);
	assert_int_equal(ow_scope_confirm(ends.a, 1, &none, flows, 1, in_scope, &ends.err), -ENOENT);
	assert_int_equal(ow_scope_confirm(ends.a, 0, &none, flows, 1, in_scope, &ends.err), -EINVAL);
	ow_scope_announcer_reset(ends.a);
	assert_int_equal(ow_scope_announce(ends.a, 1, flows, 1, &update), 0);
	assert_true(update->reset);
	assert_int_equal(ow_scope_confirm(ends.a, 1, &late, flows, 1, in_scope, &ends.err), -EINVAL);
	ow_scope_announcer_reset(ends.a);
	assert_int_equal(ow_scope_announce(ends.a, 2, flows, 1, &update), 0);
	assert_int_equal(ow_scope_confirm(ends.a, 2, &bits, flows, 1, in_scope, &ends.err), -ESTALE);
	ow_scope_announcer_reset(ends.a);
	/* The honest end goes on with it. */
	assert_int_equal(step(&ends, 3, flows, 1, 1, NULL), 1);
	free_ends(&ends);
}

/* A set does not stay large when little is in it: work for an update follows from what was sent. */
static void test_set_shrinks(void **state)
{
	(void)state;
	struct ow_scope_set set;
	ow_scope_set_init(&set, 1, 1);
	for (uint64_t k = 0; k < OW_SCOPE_UPDATE_MAX; k++) {
		assert_int_equal(ow_scope_set_add(&set, k), 0);
		assert_int_equal(ow_scope_set_list(&set, &set.fine, k, 0), 0);
	}
	for (uint16_t g = 1; g <= 3; g++)
		assert_int_equal(ow_scope_set_turn(&set, g), 0);
	assert_int_equal(set.used + set.fine.used, 0);
	assert_true(set.slots <= 64 && set.fine.slots <= 64);
	assert_int_equal(ow_scope_set_add(&set, 7), 0);
	assert_non_null(ow_scope_set_find(&set, 7));
	ow_scope_set_clear(&set);
	assert_null(ow_scope_set_find(&set, 7));
	assert_true(set.slots == 0 && set.digest == 0 && set.generation == 3);
	ow_scope_set_done(&set);
}

/* More pairs than there is room for, packet by packet. It takes minutes if the table is built anew for each. */
static void test_waste_is_full(void **state)
{
	(void)state;
	struct ow_scope_waste waste;
	ow_scope_waste_init(&waste, 9);
	for (uint64_t k = 0; k < 1000000; k++)
		ow_scope_waste_add(&waste, ow_scope_key(ow_mix64(k)), 5, 2);
	assert_true(waste.table.used <= OW_SCOPE_WASTE_MAX && waste.table.slots <= 2 * OW_SCOPE_WASTE_MAX);
	/* Those that have a place go on, and others follow when they are old. */
	for (unsigned i = 0; i < 5; i++)
		ow_scope_waste_add(&waste, ow_scope_key(ow_mix64(0)), 5, 2);
	assert_int_equal(waste.fines, 1);
	for (unsigned i = 0; i < 5; i++)
		ow_scope_waste_add(&waste, ow_scope_key(ow_mix64(5000000)), 50, 2);
	assert_int_equal(waste.fines, 2);
	ow_scope_waste_done(&waste);
}

/* -- resets -------------------------------------------------------------------------------------------------------- */

#define AHEAD 5

static struct ow_scope_list copy_of(const struct ow_scope_list *list)
{
	struct ow_scope_list copy = {calloc(list->count + 1, sizeof *copy.key), list->count};
	if (list->count)
		memcpy(copy.key, list->key, list->count * sizeof *copy.key);
	return copy;
}

/* A is ahead of the answers by some intervals: when an update is lost, one reset is enough. */
static void test_reset_in_flight(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_update wire[AHEAD + 1];
	struct ow_scope_flow flows[2] = {flow(1, 1, 1), flow(2, 2, 2)};
	unsigned compared = 0, unknown = 0;
	const int64_t lost = 20, intervals = 60;
	make_ends(&ends);
	for (int64_t i = 0; i < intervals; i++) {
		const struct ow_scope_update *update;
		struct ow_scope_answer answer;
		struct ow_scope_held held[1];
		size_t helds;
		uint8_t in_scope[2];
		flows[0] = flow(1, (uint32_t)i, 1);
		assert_int_equal(ow_scope_announce(ends.a, i, flows, 2, &update), 0);
		wire[i % (AHEAD + 1)] =
			(struct ow_scope_update){update->generation,     update->reset,          copy_of(&update->hot),
		                                 copy_of(&update->fine), copy_of(&update->keys), update->digest};
		if (i < AHEAD)
			continue;
		int64_t at = i - AHEAD;
		struct ow_scope_update *next = &wire[at % (AHEAD + 1)];
		next->keys.count = at == lost ? 0 : next->keys.count;
		int r = ow_scope_receive(ends.b, at, next, flows + 1, 1, in_scope, held, &helds, &answer, &ends.err);
		if (r == -ESTALE)
			ow_scope_announcer_lost(ends.a, at);
		else
			r = ow_scope_confirm(ends.a, at, &answer, flows + 1, 1, in_scope, &ends.err);
		compared += r == 0 && in_scope[0];
		unknown += r < 0;
		ow_scope_answer_done(&answer);
		ow_scope_update_done(next);
	}
	for (int64_t i = intervals - AHEAD; i < intervals; i++)
		ow_scope_update_done(&wire[i % (AHEAD + 1)]);
	/* The lost one, and those that were on their way. */
	assert_int_equal(unknown, AHEAD + 1);
	assert_int_equal(compared, intervals - AHEAD - unknown);
	free_ends(&ends);
}

/* An update that is lost costs a few intervals, and nothing after. */
static void test_reset(void **state)
{
	(void)state;
	enum { FLOWS = 200, PACKETS = 20000 };
	static struct ow_scope_flow flows[FLOWS];
	static struct trip trips[PACKETS];
	struct ow_random random;
	ow_random_seed(&random, 3);
	for (uint32_t i = 0; i < FLOWS; i++)
		flows[i] = flow(i % 20, i % 30, (uint16_t)i);
	for (unsigned ahead = 0; ahead < 3; ahead++) {
		for (size_t t = 0; t < PACKETS; t++) {
			int64_t sent_ns = (int64_t)ow_random_below(&random, (uint64_t)(90 * LENGTH));
			trips[t] = (struct trip){.flow = (uint32_t)ow_random_below(&random, FLOWS),
			                         .sent_ns = sent_ns,
			                         .arrived_ns = sent_ns + LENGTH / 5};
		}
		struct scope_world world = {.flows = flows,
		                            .flow_count = FLOWS,
		                            .trips = trips,
		                            .trip_count = PACKETS,
		                            .length_ns = LENGTH,
		                            .horizon = 2,
		                            .hold = 1,
		                            .intervals = 95,
		                            .ahead = ahead,
		                            .break_at = 2 * OW_SCOPE_GENERATION};
		static struct scope_account account;
		scope_world_run(&world, &account);
		assert_true(account.unknown >= 2 && account.unknown <= 3 + ahead);
		assert_true(account.counts.resets >= 1);
		int64_t from = world.break_at, until = from + (int64_t)account.unknown;
		for (size_t t = 0; t < PACKETS; t++) {
			bool touched = trips[t].b_interval >= from && trips[t].b_interval < until;
			assert_true(trips[t].matched >= 0 || touched);
		}
	}
}

/* More live keys than an update holds: a reset takes two, and what is late in between is held. */
static void test_large_reset(void **state)
{
	(void)state;
	struct ends ends;
	const size_t count = OW_SCOPE_UPDATE_MAX;
	struct ow_scope_flow *flows = calloc(count, sizeof *flows);
	size_t keys;
	make_ends(&ends);
	for (int64_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < count; k++)
			flows[k] = flow((uint32_t)k, (uint32_t)((size_t)i * count + k), 1);
		assert_int_equal(step(&ends, i, flows, count - 100, count - 100, &keys), count - 100);
	}
	ow_scope_announcer_reset(ends.a);
	assert_int_equal(step(&ends, 2, flows, 10, 10, &keys), 10);
	assert_int_equal(keys, OW_SCOPE_UPDATE_MAX);
	assert_int_equal(step(&ends, 3, flows, 10, 10, &keys), 10);
	assert_int_equal(keys, 2 * (count - 100) - OW_SCOPE_UPDATE_MAX);
	free(flows);
	free_ends(&ends);
}

/* -- TTL ----------------------------------------------------------------------------------------------------------- */

static void test_ttl(void **state)
{
	(void)state;
	struct ends ends;
	struct ow_scope_flow flows[3][2];
	const struct ow_scope_update *update;
	struct ow_scope_held held[1];
	size_t helds;
	uint8_t in_scope[2];
	make_ends(&ends);
	for (int64_t i = 0; i < 3; i++) {
		struct ow_scope_answer answer;
		flows[i][0] = flow(1, 1, 1);
		flows[i][1] = flow(2, 1, 1);
		flows[i][1].ttl = i == 2 ? 57 : 60;
		assert_int_equal(ow_scope_announce(ends.a, i, flows[i], 2, &update), 0);
		assert_int_equal(
			ow_scope_receive(ends.b, i, update, flows[i], 2, in_scope, held, &helds, &answer, NULL), 0);
		assert_int_equal(answer.rerouted.count, i == 2);
		if (i == 2) {
			assert_int_equal(answer.rerouted.key[0], ow_scope_key(flows[i][1].pair));
			assert_int_equal(answer.ttl_change[0], -3);
		}
		assert_int_equal(ow_scope_confirm(ends.a, i, &answer, flows[i], 2, in_scope, NULL), 0);
		ow_scope_answer_done(&answer);
	}
	free_ends(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interleavings),
		cmocka_unit_test(test_fine_interleavings),
		cmocka_unit_test(test_generation_interleavings),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_fine),
		cmocka_unit_test(test_fine_wanted),
		cmocka_unit_test(test_hot),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_set_shrinks),
		cmocka_unit_test(test_waste_is_full),
		cmocka_unit_test(test_reset_in_flight),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_large_reset),
		cmocka_unit_test(test_ttl),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
