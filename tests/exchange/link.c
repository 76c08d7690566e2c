/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *keys_path(const struct keys *keys, const char *name)
{
	static char paths[64][160];
	static unsigned next;
	char *path = paths[next++ % 64];
	snprintf(path, sizeof paths[0], "%s/%s", keys->folder, name);
	return path;
}

void keys_make(struct keys *keys)
{
	static const char *const names[] = {"london", "paris", "rome"};
	struct ow_error err = {""};
	snprintf(keys->folder, sizeof keys->folder, "/tmp/oneway-keys-XXXXXX");
	assert_non_null(mkdtemp(keys->folder));
	assert_int_equal(ow_tls_make_certificates(keys->folder, names, 3, 30, &err), 0);
	assert_int_equal(ow_tls_make_certificates(keys_path(keys, "other"), names, 1, 30, &err), 0);
	assert_int_equal(ow_tls_make_psk(keys_path(keys, "psk"), &err), 0);
	assert_int_equal(ow_tls_make_psk(keys_path(keys, "other/psk"), &err), 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

void keys_remove(struct keys *keys)
{
	nftw(keys->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static struct ow_tls *create(const struct ow_tls_options *options)
{
	struct ow_tls *tls = NULL;
	struct ow_error err = {""};
	if (ow_tls_create(options, &tls, &err) < 0)
		fail_msg("%s", err.text);
	return tls;
}

struct ow_tls *keys_tls(const struct keys *keys, const char *name, const char *ca)
{
	char file[3][64];
	snprintf(file[0], sizeof file[0], "%s.pem", name);
	snprintf(file[1], sizeof file[1], "%s.key", name);
	snprintf(file[2], sizeof file[2], "%s.pem", ca);
	struct ow_tls_options options = {.certificate = keys_path(keys, file[0]),
	                                 .key = keys_path(keys, file[1]),
	                                 .ca = keys_path(keys, file[2])};
	return create(&options);
}

struct ow_tls *keys_psk(const struct keys *keys, const char *file, const char *name)
{
	struct ow_tls_options options = {.psk_file = keys_path(keys, file), .name = name};
	return create(&options);
}

void socket_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

void link_make(struct link *link, struct ow_tls *client, const char *client_expects, struct ow_tls *server,
               const char *server_expects)
{
	int fds[2];
	*link = (struct link){0};
	socket_pair(fds);
	assert_int_equal(ow_session_create(client, fds[0], false, client_expects, &link->session[CLIENT], NULL), 0);
	assert_int_equal(ow_session_create(server, fds[1], true, server_expects, &link->session[SERVER], NULL), 0);
}

void link_free(struct link *link)
{
	ow_session_free(link->session[CLIENT]);
	ow_session_free(link->session[SERVER]);
}

static void drive(struct link *link, int side)
{
	link->code[side] = ow_session_drive(link->session[side], &link->err[side]);
	/* The other side shall see that it is over. */
	if (link->code[side] < 0)
		shutdown(ow_session_fd(link->session[side]), SHUT_WR);
}

bool link_step(struct link *link)
{
	struct pollfd fds[2];
	for (int i = 0; i < 2; i++) {
		fds[i].fd = link->code[i] < 0 ? -1 : ow_session_fd(link->session[i]);
		fds[i].events = ow_session_events(link->session[i]);
		fds[i].revents = 0;
	}
	if ((link->code[0] < 0 && link->code[1] < 0) || poll(fds, 2, 1000) <= 0)
		return false;
	for (int i = 0; i < 2; i++) {
		if (fds[i].revents)
			drive(link, i);
	}
	return true;
}

void link_shake(struct link *link)
{
	while (!(ow_session_peer(link->session[CLIENT]) && ow_session_peer(link->session[SERVER])) &&
	       link->code[CLIENT] == 0 && link->code[SERVER] == 0) {
		if (!link_step(link))
			break;
	}
}

void link_open(struct link *link)
{
	link_shake(link);
	for (int i = 0; i < 2; i++) {
		if (!ow_session_peer(link->session[i]))
			fail_msg("side %d: %d %s", i, link->code[i], link->err[i].text);
	}
}

void link_end(struct link *link)
{
	while (link_step(link))
		continue;
}

const uint8_t *link_frame(struct link *link, int to, size_t *ret_size)
{
	for (;;) {
		const uint8_t *frame = ow_session_frame(link->session[to], ret_size);
		if (frame || !link_step(link))
			return frame;
	}
}
