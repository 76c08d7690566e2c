/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are silent, or stop in the middle: each costs little, and each is given up in time. */
#include "link.h"
#include "mint.h"

#include "base/clock.h"
#include "base/time.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENT 1000
/* Bytes that a connection may cost: a silent client costs no TLS, one that has begun to speak some 60 KiB. */
#define COST_SILENT 4096
#define COST_BEGUN  98304

static struct keys keys;
static struct ow_tls *paris;

static int setup(void **state)
{
	(void)state;
	keys_make(&keys);
	paris = keys_tls(&keys, "paris", "ca");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ow_tls_free(paris);
	keys_remove(&keys);
	return 0;
}

/* Bytes in use; 0 where the allocator does not tell, as that of a sanitizer. */
static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static unsigned count_silent(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	unsigned most = limit.rlim_cur > 2 * SILENT + 100 ? SILENT : (unsigned)(limit.rlim_cur - 100) / 2;
	if (most < SILENT)
		print_message("only %u connections: the limit of open files\n", most);
	return most;
}

struct crowd {
	unsigned count;
	int far[SILENT];
	struct ow_session *session[SILENT];
};

/* Each says so many bytes of a handshake. */
static void gather(struct crowd *crowd, size_t bytes)
{
	size_t before = in_use();
	for (unsigned i = 0; i < crowd->count; i++) {
		int fds[2];
		socket_pair(fds);
		crowd->far[i] = fds[0];
		assert_int_equal(ow_session_create(paris, fds[1], true, NULL, &crowd->session[i], NULL), 0);
		if (bytes > 0)
			assert_int_equal(send(fds[0], "\x16\x03\x01", bytes, 0), bytes);
		assert_int_equal(ow_session_drive(crowd->session[i], NULL), 0);
		assert_int_equal(ow_session_events(crowd->session[i]), POLLIN);
	}
	if (before > 0) {
		size_t cost = (in_use() - before) / crowd->count;
		print_message("%zu bytes for a connection that says %zu bytes\n", cost, bytes);
		assert_true(cost < (bytes ? COST_BEGUN : COST_SILENT));
	}
}

static void disperse(struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->count; i++) {
		ow_session_free(crowd->session[i]);
		close(crowd->far[i]);
	}
}

static void sleep_until(int64_t deadline_ns)
{
	for (;;) {
		int64_t left = deadline_ns - ow_clock_steady_ns();
		if (left <= 0)
			return;
		poll(NULL, 0, (int)(left / OW_NS_PER_MS) + 1);
	}
}

/* A frame of which the rest does not come, and one that comes slowly but comes. */
struct slow {
	struct raw raw;
	struct ow_session *session;
};

static void begin_frame(struct slow *slow)
{
	int fds[2];
	socket_pair(fds);
	assert_int_equal(ow_session_create(paris, fds[1], true, "london", &slow->session, NULL), 0);
	raw_make(&slow->raw, fds[0], false, &keys, "london", TLS1_3_VERSION);
	assert_int_equal(raw_shake(&slow->raw, slow->session, NULL), 0);
	assert_int_equal(ow_session_deadline(slow->session), INT64_MAX);
	static const uint8_t bytes[] = {5, 0, 0, 0, 'a'};
	assert_int_equal(SSL_write(slow->raw.ssl, bytes, sizeof bytes), sizeof bytes);
	assert_int_equal(ow_session_drive(slow->session, NULL), 0);
	assert_true(ow_session_deadline(slow->session) <= ow_clock_steady_ns() + OW_SESSION_STALL_MS * OW_NS_PER_MS);
}

static void end_frame(struct slow *slow)
{
	raw_free(&slow->raw);
	ow_session_free(slow->session);
}

static void the_silent_are_given_up(void **state)
{
	(void)state;
	struct crowd *crowd = calloc(1, sizeof *crowd);
	struct slow stuck, slow;
	struct ow_error err = {""};
	assert_non_null(crowd);
	crowd->count = count_silent();
	gather(crowd, 0);
	begin_frame(&stuck);
	begin_frame(&slow);
	int64_t first = ow_session_deadline(crowd->session[0]), last = ow_session_deadline(stuck.session);
	sleep_until(first - 2 * OW_NS_PER_S);
	assert_int_equal(SSL_write(slow.raw.ssl, "b", 1), 1);
	assert_int_equal(ow_session_drive(slow.session, NULL), 0);
	assert_true(ow_session_deadline(slow.session) > last);
	sleep_until(last);
	for (unsigned i = 0; i < crowd->count; i++) {
		assert_int_equal(ow_session_drive(crowd->session[i], &err), -ETIMEDOUT);
		assert_string_equal(err.text, "no complete handshake within 5 s");
	}
	assert_int_equal(ow_session_drive(stuck.session, &err), -ETIMEDOUT);
	assert_string_equal(err.text, "the peer stopped in the middle of a frame");
	/* Its frame came on meanwhile; if this machine slept too long, the rest is there before the time is looked at.
	 */
	assert_int_equal(SSL_write(slow.raw.ssl, "cde", 3), 3);
	assert_int_equal(ow_session_drive(slow.session, NULL), 0);
	size_t size = 0;
	assert_non_null(ow_session_frame(slow.session, &size));
	assert_int_equal(size, 5);
	end_frame(&stuck);
	end_frame(&slow);
	disperse(crowd);
	free(crowd);
}

/* Round after round the memory is the same. */
static void the_silent_leave_nothing_behind(void **state)
{
	(void)state;
	struct crowd *crowd = calloc(1, sizeof *crowd);
	size_t first = 0;
	assert_non_null(crowd);
	crowd->count = count_silent();
	for (unsigned round = 0; round < 4; round++) {
		gather(crowd, round % 2 ? 3 : 0);
		disperse(crowd);
		if (round == 1)
			first = in_use();
		else if (round > 1)
			assert_true(in_use() <= first + 65536);
	}
	free(crowd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_silent_leave_nothing_behind),
		cmocka_unit_test(the_silent_are_given_up),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
