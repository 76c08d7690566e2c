/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as requests to the exporter of a point, over a real connection: every answer is HTTP with a status that the
 * exporter uses, and a client that gets no answer does not prevent answers to others.
 */
#include "point/exporter.h"
#include "report/metrics.h"
#include "exchange/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX  (1u << 20)
#define WAIT_MS     20000
#define PATIENCE_MS 20 /* the server waits longer than this for the rest of a request */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* Started once: as in a point, it runs as long as the process. */
static const char *server(void)
{
	static struct ow_exporter *exporter;
	if (!exporter) {
		struct ow_error err;
		char address[] = "127.0.0.1:0";
		struct ow_config config = {.metrics = address, .point = "fuzz"};
		signal(SIGPIPE, SIG_IGN);
		check(ow_exporter_create(&config, &exporter, &err) == 0 && ow_exporter_start(exporter, &err) == 0);
	}
	return ow_exporter_address(exporter);
}

/* False after a timeout. */
static bool wait_for(int fd, short events, int ms)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int r;
	do
		r = poll(&wait, 1, ms);
	while (r < 0 && errno == EINTR);
	return r == 1;
}

static void send_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		check(wait_for(fd, POLLOUT, WAIT_MS));
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return; /* the server has closed the connection */
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
}

/* The answer until the server closes the connection; "" if it still waits for more after this time. */
static const char *ask(const uint8_t *data, size_t size, int patience_ms)
{
	static char answer[ANSWER_MAX];
	struct ow_error err;
	int fd;
	size_t got = 0;
	check(ow_connect(server(), &fd, &err) == 0);
	send_all(fd, data, size);
	shutdown(fd, SHUT_WR);
	while (wait_for(fd, POLLIN, got ? WAIT_MS : patience_ms)) {
		ssize_t n = recv(fd, answer + got, ANSWER_MAX - 1 - got, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
		check(got < ANSWER_MAX - 1);
	}
	close(fd);
	answer[got] = 0;
	return answer;
}

static void check_answer(const char *answer)
{
	static const int meant[] = {100, 200, 400, 404, 405, 411, 413, 414, 431, 501, 503, 505};
	int status = 0;
	check(strncmp(answer, "HTTP/1.", 7) == 0 && strlen(answer) > 12);
	status = (int)strtol(answer + 9, NULL, 10);
	bool known = false;
	for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
		known |= status == meant[i];
	check(known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char health[] = "GET /healthz HTTP/1.0\r\n\r\n";
	char *accept = strndup((const char *)data, size);
	check(accept && ow_metrics_type[ow_metrics_format(accept)] != NULL);
	free(accept);
	const char *answer = ask(data, size, PATIENCE_MS);
	if (*answer)
		check_answer(answer);
	else
		check_answer(ask((const uint8_t *)health, sizeof health - 1, WAIT_MS));
	return 0;
}
