/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "hostile: %s\n", what);
	exit(2);
}

void client_connect(struct client *client, const struct target *target)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *list;
	if (getaddrinfo(target->host, target->port, &hints, &list) != 0)
		give_up("address");
	*client = (struct client){.fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct timeval patience = {.tv_sec = 20};
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (client->fd < 0 || connect(client->fd, list->ai_addr, list->ai_addrlen) < 0) {
		perror("hostile: connect");
		exit(2);
	}
	freeaddrinfo(list);
}

bool client_shake(struct client *client, const struct target *target, const char *certificate, int version)
{
	char path[300];
	client->context = SSL_CTX_new(TLS_client_method());
	if (!client->context || SSL_CTX_set_min_proto_version(client->context, version) != 1 ||
	    SSL_CTX_set_max_proto_version(client->context, version) != 1)
		give_up("TLS");
	if (certificate) {
		snprintf(path, sizeof path, "%s/%s.pem", target->folder, certificate);
		if (SSL_CTX_use_certificate_chain_file(client->context, path) != 1)
			give_up(path);
		snprintf(path, sizeof path, "%s/%s.key", target->folder, certificate);
		if (SSL_CTX_use_PrivateKey_file(client->context, path, SSL_FILETYPE_PEM) != 1)
			give_up(path);
	}
	client->ssl = SSL_new(client->context);
	if (!client->ssl || SSL_set_fd(client->ssl, client->fd) != 1)
		give_up("TLS");
	return SSL_connect(client->ssl) == 1;
}

void client_close(struct client *client)
{
	SSL_free(client->ssl);
	SSL_CTX_free(client->context);
	close(client->fd);
	*client = (struct client){.fd = -1};
}

bool client_bytes(struct client *client, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	while (size > 0) {
		int n = client->ssl ? SSL_write(client->ssl, p, size > 16384 ? 16384 : (int)size)
		                    : (int)send(client->fd, p, size, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

bool client_frame(struct client *client, const uint8_t *frame, size_t size)
{
	uint8_t *whole = malloc(size + 4);
	if (!whole)
		give_up("memory");
	ow_store_le32(whole, (uint32_t)size);
	memcpy(whole + 4, frame, size);
	bool sent = client_bytes(client, whole, size + 4);
	free(whole);
	return sent;
}

uint8_t *client_encode(const struct ow_message *message, size_t *ret_size)
{
	struct ow_error err = {""};
	uint8_t *frame;
	if (ow_message_encode(message, &frame, ret_size, &err) < 0)
		give_up(err.text);
	return frame;
}

bool client_say(struct client *client, const struct ow_message *message)
{
	size_t size;
	uint8_t *frame = client_encode(message, &size);
	bool sent = client_frame(client, frame, size);
	free(frame);
	return sent;
}

/* So many bytes before this steady time. *ret_over: the connection has ended. */
static bool read_bytes(struct client *client, uint8_t *bytes, size_t size, int64_t until_ns, bool *ret_over)
{
	*ret_over = false;
	while (size > 0) {
		struct pollfd fd = {.fd = client->fd, .events = POLLIN};
		int64_t left = (until_ns - ow_clock_steady_ns()) / OW_NS_PER_MS;
		if (SSL_pending(client->ssl) == 0 && poll(&fd, 1, left > 0 ? (int)left : 0) <= 0)
			return false;
		int n = SSL_read(client->ssl, bytes, (int)size);
		if (n <= 0) {
			*ret_over = true;
			return false;
		}
		bytes += n;
		size -= (size_t)n;
	}
	return true;
}

/* The next frame into a buffer that lives until the next call. */
static const uint8_t *next_frame(struct client *client, int ms, size_t *ret_size, bool *ret_over)
{
	static uint8_t *frame;
	uint8_t length[4];
	int64_t until = ow_clock_steady_ns() + ms * OW_NS_PER_MS;
	if (!read_bytes(client, length, sizeof length, until, ret_over))
		return NULL;
	*ret_size = ow_load_le32(length);
	free(frame);
	frame = malloc(*ret_size);
	if (!frame)
		give_up("memory");
	return read_bytes(client, frame, *ret_size, until + 5 * OW_NS_PER_S, ret_over) ? frame : NULL;
}

bool client_hear(struct client *client, int ms, struct ow_message *ret_message)
{
	size_t size = 0;
	bool over;
	struct ow_error err = {""};
	const uint8_t *frame = next_frame(client, ms, &size, &over);
	if (!frame)
		return false;
	if (ow_message_decode(frame, size, ret_message, &err) < 0)
		give_up(err.text);
	return true;
}

bool client_hear_type(struct client *client, int ms, enum ow_message_type type, struct ow_message *ret_message)
{
	int64_t until = ow_clock_steady_ns() + ms * OW_NS_PER_MS;
	while (client_hear(client, (int)((until - ow_clock_steady_ns()) / OW_NS_PER_MS) + 1, ret_message)) {
		if (ret_message->type == type)
			return true;
		ow_message_done(ret_message);
	}
	return false;
}

bool client_is_closed(struct client *client, int ms)
{
	int64_t until = ow_clock_steady_ns() + ms * OW_NS_PER_MS;
	bool over = false;
	size_t size;
	while (!over && ow_clock_steady_ns() < until)
		(void)next_frame(client, (int)((until - ow_clock_steady_ns()) / OW_NS_PER_MS) + 1, &size, &over);
	return over;
}

bool client_enter(struct client *client, const struct target *target, const char *name)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct ow_message hello = {.type = OW_MESSAGE_HELLO,
	                           .hello = {.version_min = OW_WIRE_VERSION,
	                                     .version_max = OW_WIRE_VERSION,
	                                     .epoch = (uint64_t)now.tv_nsec,
	                                     .now_ns = now.tv_sec * OW_NS_PER_S + now.tv_nsec,
	                                     .clock = {true, 1000}}};
	snprintf(hello.hello.point, sizeof hello.hello.point, "%s", name);
	snprintf(hello.hello.software, sizeof hello.hello.software, "hostile");
	struct ow_message answer;
	client_connect(client, target);
	return client_shake(client, target, name, TLS1_3_VERSION) && client_say(client, &hello) &&
	       client_hear_type(client, 15000, OW_MESSAGE_HELLO, &answer);
}
