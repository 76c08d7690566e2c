/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/tcp_resends.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define KEEP_NS 1000

struct step {
	struct ow_tcp_packet packet;
	struct ow_tcp_verdict verdict;
};

static void play(const struct step *step, size_t steps)
{
	struct ow_tcp_resends *resends;
	assert_int_equal(ow_tcp_resends_create(KEEP_NS, &resends), 0);
	for (size_t i = 0; i < steps; i++) {
		struct ow_tcp_packet packet = step[i].packet;
		struct ow_tcp_verdict found;
		packet.number = i + 1;
		packet.packets = 1;
		assert_int_equal(ow_tcp_resends_add(resends, &packet, &found), 0);
		assert_int_equal(found.kind, step[i].verdict.kind);
		assert_int_equal(found.of, step[i].verdict.of);
		assert_int_equal(found.repairs, step[i].verdict.repairs);
		assert_int_equal(found.needless, step[i].verdict.needless);
		assert_int_equal(found.resent, step[i].verdict.resent);
	}
	ow_tcp_resends_free(resends);
}

#define PLAY(...)                                          \
	do {                                               \
		const struct step steps[] = {__VA_ARGS__}; \
		play(steps, sizeof steps / sizeof *steps); \
	} while (0)
#define ARRIVED(s, l)                                          \
	{                                                      \
		.seq = (s), .len = (l), .fate = OW_TCP_ARRIVED \
	}
#define LOST(s, l)                                          \
	{                                                   \
		.seq = (s), .len = (l), .fate = OW_TCP_LOST \
	}
#define NEW                        \
	{                          \
		.kind = OW_TCP_NEW \
	}

/* One packet is lost and repaired, one is sent again though it arrived, one is lost twice. */
static void repairs_and_needless(void **state)
{
	(void)state;
	PLAY({ARRIVED(100, 10), NEW}, {LOST(110, 10), NEW}, {ARRIVED(120, 10), NEW},
	     {ARRIVED(110, 10), {OW_TCP_RESENT, .of = 2, .repairs = true, .resent = 1}},
	     {ARRIVED(120, 10), {OW_TCP_RESENT, .of = 3, .needless = true}},
	     {ARRIVED(110, 10), {OW_TCP_RESENT, .of = 4, .needless = true}}, {LOST(130, 10), NEW},
	     {LOST(130, 10), {OW_TCP_RESENT, .of = 7, .repairs = true, .resent = 1}},
	     {ARRIVED(130, 10), {OW_TCP_RESENT, .of = 8, .repairs = true, .resent = 1}});
}

/* A retransmission has the bytes of several packets, or of parts of them. */
static void other_limits(void **state)
{
	(void)state;
	PLAY({LOST(100, 10), NEW}, {LOST(110, 10), NEW}, {ARRIVED(120, 10), NEW},
	     {ARRIVED(100, 30), {OW_TCP_RESENT, .of = 3, .repairs = true, .resent = 2}},
	     {ARRIVED(105, 20), {OW_TCP_RESENT, .of = 4, .needless = true}},
	     /* half of it is new */
	     {ARRIVED(125, 10), {OW_TCP_RESENT, .of = 4, .needless = true}});
}

/* Data that is first seen behind later data is no retransmission; numbers wrap; flows are apart. */
static void order_and_wrap(void **state)
{
	(void)state;
	PLAY({ARRIVED(UINT32_MAX - 4, 10), NEW}, {ARRIVED(15, 10), NEW}, {ARRIVED(5, 10), {OW_TCP_OUT_OF_ORDER}},
	     {ARRIVED(UINT32_MAX - 4, 10), {OW_TCP_RESENT, .of = 1, .needless = true}},
	     {{.flow = 1, .seq = 5, .len = 10, .fate = OW_TCP_LOST}, NEW},
	     {{.flow = 1, .seq = 5, .len = 10}, {OW_TCP_RESENT, .of = 5, .repairs = true, .resent = 1}});
}

static void control(void **state)
{
	(void)state;
	/* A SYN is sent twice; another one begins a connection with the same ports; a FIN is sent twice. */
	PLAY({{.seq = 99, .len = 1, .syn = true, .fate = OW_TCP_LOST}, NEW},
	     {{.seq = 99, .len = 1, .syn = true}, {OW_TCP_RESENT, .of = 1, .repairs = true, .resent = 1}},
	     {ARRIVED(100, 10), NEW}, {{.seq = 110, .len = 1, .fin = true}, NEW},
	     {{.seq = 110, .len = 1, .fin = true}, {OW_TCP_RESENT, .of = 4, .needless = true}},
	     {{.seq = 50, .len = 1, .syn = true}, NEW}, {ARRIVED(51, 10), NEW}, {ARRIVED(99, 10), NEW});
	/* A keep-alive is no retransmission, but the repetition of a single byte is. */
	PLAY({ARRIVED(100, 10), NEW}, {ARRIVED(109, 1), {OW_TCP_KEEP_ALIVE}}, {ARRIVED(110, 1), NEW},
	     {ARRIVED(110, 1), {OW_TCP_RESENT, .of = 3, .needless = true}});
}

/* What is too long ago, or whose fate is not known, is not judged. */
static void not_known(void **state)
{
	(void)state;
	PLAY({ARRIVED(100, 10), NEW}, {{.seq = 110, .len = 10, .time_ns = 2 * KEEP_NS}, NEW},
	     {{.seq = 100, .len = 10, .time_ns = 2 * KEEP_NS}, {OW_TCP_FORGOTTEN}});
	PLAY({{.seq = 100, .len = 10, .fate = OW_TCP_UNKNOWN}, NEW}, {ARRIVED(100, 10), {OW_TCP_RESENT, .of = 1}},
	     {ARRIVED(100, 10), {OW_TCP_RESENT, .of = 2, .needless = true}});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repairs_and_needless),
		cmocka_unit_test(other_limits),
		cmocka_unit_test(order_and_wrap),
		cmocka_unit_test(control),
		cmocka_unit_test(not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
