/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends any bytes to a server of this process over a real connection, and takes what comes back. */
#include "exchange/session.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_ANSWER_MAX  (1u << 20)
#define HTTP_WAIT_MS     20000
#define HTTP_PATIENCE_MS 20 /* a server waits longer than this for the rest of a request */

static inline void check(int good)
{
	if (!good)
		abort();
}

/* False after a timeout. */
static inline bool wait_for(int fd, short events, int ms)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int r;
	do
		r = poll(&wait, 1, ms);
	while (r < 0 && errno == EINTR);
	return r == 1;
}

static inline void send_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		check(wait_for(fd, POLLOUT, HTTP_WAIT_MS));
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return; /* the server has closed the connection */
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
}

/* The answer until the server closes the connection; "" if it still waits for more after this time. */
static inline const char *http_ask(const char *address, const uint8_t *data, size_t size, int patience_ms)
{
	static char answer[HTTP_ANSWER_MAX];
	struct ow_error err;
	int fd;
	size_t got = 0;
	check(ow_connect(address, &fd, &err) == 0);
	send_all(fd, data, size);
	shutdown(fd, SHUT_WR);
	while (wait_for(fd, POLLIN, got ? HTTP_WAIT_MS : patience_ms)) {
		ssize_t n = recv(fd, answer + got, HTTP_ANSWER_MAX - 1 - got, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
		check(got < HTTP_ANSWER_MAX - 1);
	}
	close(fd);
	answer[got] = 0;
	return answer;
}

/* meant: the statuses that the server uses, 0 at the end. */
static inline void http_check_status(const char *answer, const int *meant)
{
	check(strncmp(answer, "HTTP/1.", 7) == 0 && strlen(answer) > 12);
	long status = strtol(answer + 9, NULL, 10);
	while (*meant && *meant != status)
		meant++;
	check(*meant);
}
