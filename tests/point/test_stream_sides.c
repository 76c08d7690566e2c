/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are on which side of two captures, by TTL and by times, and when packets do not tell. */
#include "point/stream_sides.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define MOST 256

struct world {
	struct ow_common_packet packet[MOST];
	struct ow_frame a[MOST], b[MOST];
	uint8_t bytes[2][MOST][42];
	size_t count;
};

static void put(uint8_t *f, uint8_t ttl, uint8_t from, uint8_t to)
{
	memset(f, 0, 42);
	f[12] = 8;
	f[14] = 0x45;
	f[17] = 28;
	f[22] = ttl;
	f[23] = 17;
	f[26] = 10;
	f[29] = from;
	f[30] = 10;
	f[33] = to;
}

/* A packet of host 10.0.0.FROM to 10.0.0.TO; difference: time at B less time at A. */
static void add(struct world *w, uint8_t from, uint8_t to, uint8_t ttl_a, uint8_t ttl_b, int64_t difference_ns)
{
	size_t i = w->count++;
	int64_t now_ns = INT64_C(1700000000000000000) + (int64_t)i * 1000;
	put(w->bytes[0][i], ttl_a, from, to);
	put(w->bytes[1][i], ttl_b, from, to);
	w->a[i] = (struct ow_frame){now_ns, w->bytes[0][i], 42, 42, i + 1, 1};
	w->b[i] = (struct ow_frame){now_ns + difference_ns, w->bytes[1][i], 42, 42, i + 1, 1};
	w->packet[i] = (struct ow_common_packet){&w->a[i], &w->b[i]};
}

static void test_by_ttl(void **state)
{
	struct world w = {0};
	struct ow_stream_sides sides;
	(void)state;
	for (int i = 0; i < 20; i++) {
		add(&w, 1, 2, 64, 63, -5000000);
		add(&w, 1, 2, 64, 63, -5000000);
		add(&w, 3, 2, 60, 58, -5000000);
	}
	/* One packet that contradicts does not count; a host of which half do is on no side. */
	add(&w, 2, 1, 64, 63, 0);
	add(&w, 4, 2, 64, 63, 0);
	add(&w, 4, 2, 63, 64, 0);
	assert_int_equal(ow_stream_sides(w.packet, w.count, &sides), 0);
	assert_string_equal(sides.hosts[0], "10.0.0.1 and 1 more");
	assert_string_equal(sides.hosts[1], "10.0.0.2");
	assert_string_equal(sides.forward, "(dst host 10.0.0.2 or src host 10.0.0.1 or src host 10.0.0.3) and not "
	                                   "(src host 10.0.0.2 or dst host 10.0.0.1 or dst host 10.0.0.3)");
	assert_null(strstr(sides.backward, "10.0.0.4"));
}

/* No router between: the way that takes longer, by clocks that are a second apart, is from A to B. */
static void test_by_times(void **state)
{
	struct world w = {0};
	struct ow_stream_sides sides;
	(void)state;
	for (int i = 0; i < 10; i++) {
		add(&w, 1, 2, 64, 64, -1000000000 + 20000 + i);
		add(&w, 2, 1, 64, 64, -1000000000 - 20000 - i);
	}
	assert_int_equal(ow_stream_sides(w.packet, w.count, &sides), 0);
	assert_string_equal(sides.hosts[0], "10.0.0.1");
	assert_string_equal(sides.hosts[1], "10.0.0.2");
	assert_int_equal(strncmp(sides.forward, "(src host 10.0.0.1 or dst host 10.0.0.2)", 40), 0);
	assert_int_equal(strncmp(sides.backward, "(dst host 10.0.0.1 or src host 10.0.0.2)", 40), 0);
}

static void test_not_told(void **state)
{
	struct world w = {0};
	struct ow_stream_sides sides;
	(void)state;
	assert_int_equal(ow_stream_sides(w.packet, 0, &sides), -ENODATA);
	for (int i = 0; i < 20; i++)
		add(&w, 1, 2, 64, 64, 20000);
	assert_int_equal(ow_stream_sides(w.packet, w.count, &sides), -ENODATA);
	assert_string_equal(sides.hosts[0], "");
}

/* More hosts than a filter can have. */
static void test_many(void **state)
{
	struct world w = {0};
	struct ow_stream_sides sides;
	(void)state;
	for (int i = 0; i < 200; i++)
		add(&w, (uint8_t)(10 + i), 1, 64, 63, 0);
	assert_int_equal(ow_stream_sides(w.packet, w.count, &sides), 0);
	assert_string_equal(sides.hosts[0], "10.0.0.10 and 23 more of 200");
	assert_string_equal(sides.hosts[1], "10.0.0.1");
	assert_non_null(strstr(sides.forward, "dst host 10.0.0.1 "));
	assert_int_equal(sides.forward[strlen(sides.forward) - 1], ')');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_ttl),
		cmocka_unit_test(test_by_times),
		cmocka_unit_test(test_not_told),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
