/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in the background: the caller never waits, whatever the resolver does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exchange/dial.h"
#include "exchange/session.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The resolver: answers when a byte comes, "n" with an error, anything else with a socket, and then tells its far end.
 */
static int gate[2], told[2];

static int slow(const char *address, int *ret_fd, struct ow_error *err)
{
	char answer;
	int pair[2];
	if (read(gate[0], &answer, 1) != 1 || answer == 'n' || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return ow_error_set(err, EHOSTUNREACH, "%s: no such host", address);
	*ret_fd = pair[0];
	return write(told[1], &pair[1], sizeof pair[1]) == sizeof pair[1] ? 0 : -EIO;
}

static int wait_for(struct ow_dial *dial, int *ret_fd, struct ow_error *err)
{
	int r;
	while ((r = ow_dial_result(dial, ret_fd, err)) == -EINPROGRESS)
		poll(NULL, 0, 1);
	return r;
}

/* At the far end: until everybody has closed the near one. */
static void assert_closed(void)
{
	char byte;
	int far;
	assert_int_equal(read(told[0], &far, sizeof far), sizeof far);
	assert_int_equal(read(far, &byte, 1), 0);
	close(far);
}

static void names_do_not_wait(void **state)
{
	(void)state;
	struct ow_dial *dial;
	struct ow_error err = {""};
	int fd = -1;
	assert_int_equal(ow_dial_start("paris.example:8620", slow, &dial, &err), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ow_dial_result(dial, &fd, &err), -EINPROGRESS);
		poll(NULL, 0, 1);
	}
	assert_int_equal(write(gate[1], "y", 1), 1);
	assert_int_equal(wait_for(dial, &fd, &err), 0);
	ow_dial_free(dial);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	assert_closed();
}

static void errors_are_told(void **state)
{
	(void)state;
	struct ow_dial *dial;
	struct ow_error err = {""};
	int fd = -1;
	assert_int_equal(ow_dial_start("paris.example:8620", slow, &dial, &err), 0);
	assert_int_equal(write(gate[1], "n", 1), 1);
	assert_int_equal(wait_for(dial, &fd, &err), -EHOSTUNREACH);
	assert_string_equal(err.text, "paris.example:8620: no such host");
	ow_dial_free(dial);
	assert_int_equal(ow_dial_start("paris.example", NULL, &dial, &err), 0);
	assert_int_equal(ow_dial_result(dial, &fd, &err), -EINVAL);
	ow_dial_free(dial);
}

/* Given up before the answer, or after it: the socket is closed. */
static void nobody_wants_it_any_more(void **state)
{
	(void)state;
	struct ow_dial *dial;
	struct ow_error err = {""};
	for (int early = 0; early < 2; early++) {
		assert_int_equal(ow_dial_start("paris.example:8620", slow, &dial, &err), 0);
		if (early)
			ow_dial_free(dial);
		assert_int_equal(write(gate[1], "y", 1), 1);
		if (!early) {
			poll(NULL, 0, 20);
			ow_dial_free(dial);
		}
		assert_closed();
	}
	ow_dial_free(NULL);
}

/* Numbers are not looked up: the answer is there at once. */
static void numbers_are_done_at_once(void **state)
{
	(void)state;
	int listener, fd = -1;
	struct ow_error err = {""};
	struct ow_dial *dial;
	assert_false(ow_address_waits("127.0.0.1:8620"));
	assert_false(ow_address_waits("[::1]:8620"));
	assert_false(ow_address_waits(":8620"));
	assert_false(ow_address_waits("nonsense"));
	assert_true(ow_address_waits("localhost:8620"));
	assert_int_equal(ow_listen("127.0.0.1:0", &listener, &err), 0);
	struct sockaddr_storage at;
	socklen_t size = sizeof at;
	char address[OW_ADDRESS_TEXT];
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	const uint8_t *port = (const uint8_t *)&at + 2;
	snprintf(address, sizeof address, "127.0.0.1:%u", port[0] << 8 | port[1]);
	assert_int_equal(ow_dial_start(address, NULL, &dial, &err), 0);
	assert_int_equal(ow_dial_result(dial, &fd, &err), 0);
	ow_dial_free(dial);
	close(fd);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_do_not_wait),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(nobody_wants_it_any_more),
		cmocka_unit_test(numbers_are_done_at_once),
	};
	if (pipe(gate) < 0 || pipe(told) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
