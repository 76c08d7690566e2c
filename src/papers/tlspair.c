/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions of one process, connected through the loopback interface with a random key. */
#include "papers/tlspair.h"

#include "base/clock.h"
#include "base/time.h"
#include "exchange/message.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const names[2] = {"a", "b"};

static int make_keys(struct ow_tlspair *pair, struct ow_error *err)
{
	char folder[] = "/tmp/oneway-pair-XXXXXX", path[64];
	if (!mkdtemp(folder))
		return ow_error_set(err, errno, "%s: %s", folder, strerror(errno));
	snprintf(path, sizeof path, "%s/key", folder);
	int r = ow_tls_make_psk(path, err);
	for (int i = 0; i < 2 && r == 0; i++)
		r = ow_tls_create(&(struct ow_tls_options){.psk_file = path, .name = names[i]}, &pair->tls[i], err);
	unlink(path);
	rmdir(folder);
	return r;
}

static int accept_one(int listener, int *ret_fd, struct ow_error *err)
{
	struct pollfd wait = {.fd = listener, .events = POLLIN};
	if (poll(&wait, 1, OW_SESSION_HANDSHAKE_MS) <= 0)
		return ow_error_set(err, ETIMEDOUT, "no connection through the loopback interface");
	int r = ow_accept(listener, ret_fd);
	return r < 0 ? ow_error_set(err, -r, "accept: %s", strerror(-r)) : 0;
}

static int connect_both(struct ow_tlspair *pair, struct ow_error *err)
{
	int listener, fd[2] = {-1, -1};
	int r = ow_listen("127.0.0.1:0", &listener, err);
	if (r < 0)
		return r;
	struct sockaddr_in address = {0};
	socklen_t length = sizeof address;
	char text[32];
	if (getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		r = ow_error_set(err, errno, "getsockname: %s", strerror(errno));
	if (r == 0) {
		snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(address.sin_port));
		r = ow_connect(text, &fd[0], err);
	}
	if (r == 0)
		r = accept_one(listener, &fd[1], err);
	close(listener);
	for (int i = 0; i < 2; i++) {
		if (r == 0)
			r = ow_session_create(pair->tls[i], fd[i], i == 1, names[!i], &pair->session[i], err);
		else if (fd[i] >= 0)
			close(fd[i]);
	}
	return r;
}

static int shake_hands(struct ow_tlspair *pair, struct ow_error *err)
{
	while (!ow_session_peer(pair->session[0]) || !ow_session_peer(pair->session[1])) {
		struct pollfd wait[2];
		for (int i = 0; i < 2; i++)
			wait[i] = (struct pollfd){.fd = ow_session_fd(pair->session[i]),
			                          .events = ow_session_events(pair->session[i])};
		poll(wait, 2, 100);
		for (int i = 0; i < 2; i++) {
			/* This loop ends: a handshake that takes too long is an error. */
			int r = ow_session_drive(pair->session[i], err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int ow_tlspair_create(struct ow_tlspair *ret_pair, struct ow_error *err)
{
	struct ow_tlspair pair = {0};
	int r = make_keys(&pair, err);
	if (r == 0)
		r = connect_both(&pair, err);
	if (r == 0)
		r = shake_hands(&pair, err);
	if (r < 0) {
		ow_tlspair_done(&pair);
		return r;
	}
	for (int i = 0; i < 2; i++)
		ow_session_set_limit(pair.session[i], OW_WIRE_FRAME_MAX);
	*ret_pair = pair;
	return 0;
}

void ow_tlspair_done(struct ow_tlspair *pair)
{
	for (int i = 0; i < 2; i++)
		ow_session_free(pair->session[i]);
	for (int i = 0; i < 2; i++)
		ow_tls_free(pair->tls[i]);
}

int ow_tlspair_receive(struct ow_session *session, int64_t deadline_ns, const uint8_t **ret_frame, size_t *ret_size,
                       struct ow_error *err)
{
	for (;;) {
		int r = ow_session_drive(session, err);
		*ret_frame = ow_session_frame(session, ret_size);
		if (*ret_frame)
			return 0;
		if (r < 0)
			return r;
		int64_t left = deadline_ns - ow_clock_steady_ns();
		if (left <= 0)
			return 0;
		struct pollfd wait = {.fd = ow_session_fd(session), .events = ow_session_events(session)};
		poll(&wait, 1, (int)(left / OW_NS_PER_MS < 1000 ? left / OW_NS_PER_MS + 1 : 1000));
	}
}
