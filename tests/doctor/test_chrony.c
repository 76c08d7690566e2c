/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for chronyd answers with recorded answers of chronyd 4.3, or with invalid data. */
#include "doctor/chrony.h"

#include "base/bytes.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

/* `chronyc tracking` at that time: offset -1.361 us, residual frequency 0.002 ppm, skew 0.314 ppm, root delay 6.271 us,
 * root dispersion 1.232 us. */
static const char golden[] = "06020000002100050000000000000000123456780000000000000000"
			     "7f0000017f00000100000000000000000000000000010000"
			     "00090000000000006af990c032896422"
			     "dd495e94d0891e25e086605bf757d7e2f0cb6ff000a09edfe0d26b7bdca554a404802e95";
#define ANSWER   104
#define ERROR_NS 5728 /* 1360.70 + 1231.81 + 6271.00 / 2 = 5728.01, rounded up below */

static void unhex(uint8_t answer[ANSWER])
{
	assert_int_equal(strlen(golden), 2 * ANSWER);
	for (size_t i = 0; i < ANSWER; i++) {
		char digits[3] = {golden[2 * i], golden[2 * i + 1], '\0'};
		answer[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

struct stage {
	int fd;
	struct ow_clocks *clocks;
	struct sockaddr_in from;
	uint8_t question[256];
	int64_t now_ns;
};

static void begin(struct stage *stage)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	*stage = (struct stage){.now_ns = 1000 * OW_NS_PER_S};
	stage->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(stage->fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(stage->fd, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(ow_clocks_create(ntohs(address.sin_port), &stage->clocks), 0);
}

static void end(struct stage *stage)
{
	ow_clocks_free(stage->clocks);
	close(stage->fd);
}

/* Ticks; true if there was a question. */
static bool asked(struct stage *stage)
{
	struct pollfd fd = {.fd = stage->fd, .events = POLLIN};
	socklen_t size = sizeof stage->from;
	ow_clocks_tick(stage->clocks, stage->now_ns);
	if (poll(&fd, 1, 0) == 0)
		return false;
	ssize_t n =
		recvfrom(stage->fd, stage->question, sizeof stage->question, 0, (struct sockaddr *)&stage->from, &size);
	assert_int_equal(n, ANSWER);
	static const uint8_t head[] = {6, 1, 0, 0, 0, 33, 0, 0};
	assert_memory_equal(stage->question, head, sizeof head);
	return true;
}

static void reply(struct stage *stage, const uint8_t *bytes, size_t size)
{
	assert_int_equal(sendto(stage->fd, bytes, size, 0, (struct sockaddr *)&stage->from, sizeof stage->from), size);
	ow_clocks_tick(stage->clocks, stage->now_ns);
}

static void make_answer(struct stage *stage, uint8_t answer[ANSWER])
{
	unhex(answer);
	memcpy(answer + 16, stage->question + 8, 4);
}

static int64_t error_of(struct stage *stage, bool *ret_synchronised)
{
	struct ow_clock_state state;
	ow_clocks_state(stage->clocks, stage->now_ns, &state);
	*ret_synchronised = state.synchronised;
	return state.error_ns;
}

static void chronyd_is_believed(void **state)
{
	(void)state;
	struct stage stage;
	uint8_t answer[ANSWER];
	bool synchronised = false;
	begin(&stage);
	assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "kernel");
	assert_true(asked(&stage));
	make_answer(&stage, answer);
	reply(&stage, answer, sizeof answer);
	assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "chrony");
	assert_int_equal(error_of(&stage, &synchronised), ERROR_NS + 1);
	assert_true(synchronised);
	/* 10 s later: 1 + 0.3137 + 0.0016 ppm of 10 s. */
	assert_false(asked(&stage));
	stage.now_ns += 10 * OW_NS_PER_S;
	assert_in_range(error_of(&stage, &synchronised), ERROR_NS + 13152, ERROR_NS + 13154);
	assert_true(asked(&stage));
	assert_false(asked(&stage));
	end(&stage);
}

static void an_old_answer_is_no_answer(void **state)
{
	(void)state;
	struct stage stage;
	uint8_t answer[ANSWER];
	struct ow_clock_state kernel;
	bool synchronised;
	begin(&stage);
	assert_true(asked(&stage));
	make_answer(&stage, answer);
	reply(&stage, answer, sizeof answer);
	stage.now_ns += 30 * OW_NS_PER_S;
	assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "kernel");
	ow_clock_state(&kernel);
	error_of(&stage, &synchronised);
	assert_int_equal(synchronised, kernel.synchronised);
	/* The answer to the question before the last. */
	assert_true(asked(&stage));
	make_answer(&stage, answer);
	stage.now_ns += 10 * OW_NS_PER_S;
	assert_true(asked(&stage));
	reply(&stage, answer, sizeof answer);
	assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "kernel");
	end(&stage);
}

static void what_proves_nothing_is_not_synchronised(void **state)
{
	(void)state;
	static const struct {
		unsigned at;
		uint8_t bytes[4];
	} cases[] = {
		{28, {0x7f, 0x7f, 1, 1}},                        /* local */
		{52, {0, 16, 0, 0}},                             /* stratum */
		{52, {0, 0, 0, 0}},          {52, {0, 9, 0, 3}}, /* leap: not synchronised */
		{68, {0x7e, 0xff, 0xff, 0}},                     /* an offset of 2^61 s */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stage stage;
		uint8_t answer[ANSWER];
		bool synchronised = true;
		begin(&stage);
		assert_true(asked(&stage));
		make_answer(&stage, answer);
		memcpy(answer + cases[i].at, cases[i].bytes, 4);
		reply(&stage, answer, sizeof answer);
		assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "chrony");
		assert_int_equal(error_of(&stage, &synchronised), OW_CLOCK_UNKNOWN);
		assert_false(synchronised);
		end(&stage);
	}
}

static void nonsense_is_ignored(void **state)
{
	(void)state;
	struct stage stage;
	uint8_t answer[ANSWER + 100] = {0};
	begin(&stage);
	assert_true(asked(&stage));
	make_answer(&stage, answer);
	for (size_t size = 0; size < ANSWER; size += 13)
		reply(&stage, answer, size);
	static const unsigned fields[] = {0, 1, 5, 7, 9, 19};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		answer[fields[i]] ^= 1;
		reply(&stage, answer, ANSWER);
		answer[fields[i]] ^= 1;
		assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "kernel");
	}
	reply(&stage, answer, ANSWER + 100);
	assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "chrony");
	end(&stage);
}

/* If nobody listens, there is no error and no delay. */
static void without_chronyd(void **state)
{
	(void)state;
	struct stage stage;
	begin(&stage);
	close(stage.fd);
	for (unsigned i = 0; i < 50; i++) {
		stage.now_ns += OW_NS_PER_S;
		ow_clocks_tick(stage.clocks, stage.now_ns);
		assert_string_equal(ow_clocks_source(stage.clocks, stage.now_ns), "kernel");
	}
	ow_clocks_free(stage.clocks);
	ow_clocks_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chronyd_is_believed),
		cmocka_unit_test(an_old_answer_is_no_answer),
		cmocka_unit_test(what_proves_nothing_is_not_synchronised),
		cmocka_unit_test(nonsense_is_ignored),
		cmocka_unit_test(without_chronyd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
