/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that are chosen to collide in the tables do so only for an attacker who knows the key: the test counts
 * operations, not times. bench/bench_flood.c has the times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "flood.h"

#include <stdio.h>
#include <string.h>

#define PACKETS 8000
#define KNOWN   UINT64_C(1)
#define SECRETS 20

static uint64_t crafted[PACKETS], plain[PACKETS];

static int setup(void **state)
{
	(void)state;
	struct ow_identity known = flood_identity(KNOWN);
	flood_choose(&known, crafted, PACKETS);
	for (size_t i = 0; i < PACKETS; i++)
		plain[i] = i;
	return 0;
}

/* Slots that are looked at for these packets under this seed. */
static uint64_t probes(const uint64_t *number, uint64_t seed)
{
	struct ow_identity identity = flood_identity(seed);
	struct ow_copies copies;
	static struct ow_sighting stamp[PACKETS];
	for (size_t i = 0; i < PACKETS; i++)
		stamp[i] = (struct ow_sighting){flood_id(&identity, number[i]), 0};
	ow_copies_init(&copies);
	assert_int_equal(ow_copies_reserve(&copies, PACKETS), 0);
	ow_copies_name(&copies, stamp, PACKETS);
	assert_int_equal(copies.copies, 0);
	uint64_t sum = flood_probes(&copies);
	ow_copies_done(&copies);
	return sum;
}

/* The longest chain of the matcher's table: bits 24 and up of the id choose the place. */
static unsigned longest(const uint64_t *number, uint64_t seed)
{
	static unsigned place[16384];
	struct ow_identity identity = flood_identity(seed);
	unsigned most = 0;
	memset(place, 0, sizeof place);
	for (size_t i = 0; i < PACKETS; i++) {
		unsigned here = ++place[flood_id(&identity, number[i]) >> 24 & 16383];
		most = here > most ? here : most;
	}
	return most;
}

static void costs_nothing_without_the_key(void **state)
{
	(void)state;
	uint64_t with = probes(crafted, KNOWN), usual = probes(plain, KNOWN);
	print_message("%d packets: %llu slots looked at with the key, %llu for others\n", PACKETS,
	              (unsigned long long)with, (unsigned long long)usual);
	/* The attack works where the key is known: some hundred slots a packet. */
	assert_true(with > 100 * usual);
	for (uint64_t secret = 1; secret <= SECRETS; secret++) {
		uint64_t seed = ow_mix64(secret * UINT64_C(0x9e3779b97f4a7c15));
		uint64_t attacked = probes(crafted, seed), normal = probes(plain, seed);
		print_message("seed %016llx: %llu and %llu\n", (unsigned long long)seed, (unsigned long long)attacked,
		              (unsigned long long)normal);
		assert_true(attacked <= 2 * normal);
		/* Of 8000 in 16384 places 12 in one has a chance of 1e-7. */
		assert_true(longest(crafted, seed) <= 12);
	}
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* One packet again and again: each copy has a name of its own, and looks at one place. */
static void same_packet(void **state)
{
	(void)state;
	enum { COPIES = 1000000, STEP = 4096 };
	struct ow_copies copies;
	struct ow_sighting *stamp = malloc(COPIES * sizeof *stamp);
	uint64_t *name = malloc(COPIES * sizeof *name);
	assert_true(stamp && name);
	for (size_t i = 0; i < COPIES; i++)
		stamp[i] = (struct ow_sighting){ow_mix64(7), (int64_t)i};
	ow_copies_init(&copies);
	for (size_t i = 0; i < COPIES; i += STEP) {
		size_t count = COPIES - i < STEP ? COPIES - i : STEP;
		assert_int_equal(ow_copies_reserve(&copies, count), 0);
		ow_copies_name(&copies, stamp + i, count);
	}
	assert_int_equal(copies.used, 1);
	assert_int_equal(flood_probes(&copies), 1);
	assert_int_equal(copies.copies, COPIES - 1);
	assert_int_equal(copies.last.used, 1);
	for (size_t i = 0; i < COPIES; i++)
		name[i] = stamp[i].id;
	qsort(name, COPIES, sizeof *name, by_number);
	for (size_t i = 1; i < COPIES; i++)
		assert_true(name[i] != name[i - 1]);
	ow_copies_done(&copies);
	free(stamp);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_nothing_without_the_key),
		cmocka_unit_test(same_packet),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
