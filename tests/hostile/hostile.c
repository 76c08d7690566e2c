/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile FOLDER HOST PORT ATTACK...: runs attacks on a point, one after the other; tests/system/test_hostile.py has
 * the point. Each attack reports its outcome and whether the point's answer was right; the Python test checks what the
 * point logs, counts and measures. FOLDER has keys as `oneway point keygen` makes them: rome is a peer with segment
 * `theirs`, london another one with segment `honest`, moscow a point of the same CA in no segment.
 */
#include "client.h"
#include "lies.h"

#include "base/bytes.h"
#include "../exchange/mint.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* -- who is not who he should be ---------------------------------------------------------------------------------- */

/* TLS 1.3 lets a client finish before its certificate is looked at: refused is what ends soon. */
static bool is_refused(const struct target *target, const char *certificate, int version)
{
	struct client client;
	client_connect(&client, target);
	bool refused = !client_shake(&client, target, certificate, version) || client_is_closed(&client, 10000);
	client_close(&client);
	return refused;
}

static bool wrong_ca(const struct target *t)
{
	return is_refused(t, "other/london", TLS1_3_VERSION);
}

static bool expired(const struct target *t)
{
	struct keys keys;
	snprintf(keys.folder, sizeof keys.folder, "%s", t->folder);
	mint(&keys, "expired",
	     &(struct mint){.cn = "rome", .alternative = "DNS:rome", .from_days = -30, .until_days = -1});
	return is_refused(t, "expired", TLS1_3_VERSION);
}

static bool unknown_name(const struct target *t)
{
	return is_refused(t, "moscow", TLS1_3_VERSION);
}

static bool no_certificate(const struct target *t)
{
	return is_refused(t, NULL, TLS1_3_VERSION);
}

static bool old_tls(const struct target *t)
{
	return is_refused(t, "rome", TLS1_2_VERSION);
}

static bool plain_text(const struct target *t)
{
	struct client client;
	char byte;
	client_connect(&client, t);
	client_bytes(&client, "GET / HTTP/1.0\r\n\r\n", 18);
	struct pollfd fd = {.fd = client.fd, .events = POLLIN};
	bool over = poll(&fd, 1, 10000) == 1;
	while (over && read(client.fd, &byte, 1) == 1)
		continue;
	client_close(&client);
	return over;
}

/* A point with the right key that claims another name is refused by its name; one with another key by the key. */
static bool psk(const struct target *t, const char *file)
{
	struct ow_tls *tls = NULL;
	struct ow_session *session = NULL;
	struct ow_error err = {""};
	char path[300], address[100];
	snprintf(path, sizeof path, "%s/%s", t->folder, file);
	snprintf(address, sizeof address, "%s:%s", t->host, t->port);
	int fd, r = ow_tls_create(&(struct ow_tls_options){.psk_file = path, .name = "rome"}, &tls, &err);
	if (r == 0)
		r = ow_connect(address, &fd, &err);
	if (r == 0)
		r = ow_session_create(tls, fd, false, "oslo", &session, &err);
	while (r == 0) {
		struct pollfd p = {.fd = ow_session_fd(session), .events = ow_session_events(session)};
		poll(&p, 1, 100);
		r = ow_session_drive(session, &err);
		size_t size;
		if (ow_session_frame(session, &size))
			break; /* its HELLO: we are in */
	}
	printf("  %s\n", r < 0 ? err.text : "let in");
	ow_session_free(session);
	ow_tls_free(tls);
	return r < 0;
}

static bool wrong_psk(const struct target *t)
{
	return psk(t, "wrong.psk");
}

static bool right_psk(const struct target *t)
{
	return !psk(t, "lab.psk");
}

/* -- floods ------------------------------------------------------------------------------------------------------- */

#define CROWD 400

/* Many silent clients, and as many that begin to speak; all at once. The point may refuse any of them. */
static bool flood(const struct target *t)
{
	static struct client client[CROWD];
	unsigned ended = 0;
	for (unsigned i = 0; i < CROWD; i++) {
		client_connect(&client[i], t);
		if (i % 2)
			client_bytes(&client[i], "\x16\x03\x01", 3);
	}
	/* Complete handshakes at the same time, of unauthenticated clients. */
	for (unsigned i = 0; i < CROWD / 4; i++) {
		struct client more;
		client_connect(&more, t);
		(void)client_shake(&more, t, "other/london", TLS1_3_VERSION);
		client_close(&more);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		struct pollfd fd = {.fd = client[i].fd, .events = POLLIN};
		ended += poll(&fd, 1, 0) == 1;
		client_close(&client[i]);
	}
	printf("  %u of %u were ended by the point\n", ended, CROWD);
	return ended > 0;
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* Bytes in a peer's connection that the point answers by ending it. */
static bool ends(const struct target *t, const void *bytes, size_t size)
{
	struct client client;
	if (!client_enter(&client, t, "rome"))
		return false;
	client_bytes(&client, bytes, size);
	bool over = client_is_closed(&client, 10000);
	client_close(&client);
	return over;
}

static bool huge_length(const struct target *t)
{
	return ends(t, "\xff\xff\xff\xff\x05\x01\0\0", 8);
}

static bool large_length(const struct target *t)
{
	uint8_t head[4];
	ow_store_le32(head, OW_WIRE_FRAME_MAX + 1);
	return ends(t, head, sizeof head);
}

static bool no_length(const struct target *t)
{
	return ends(t, "\0\0\0\0", 4);
}

static bool truncated(const struct target *t)
{
	struct client client;
	if (!client_enter(&client, t, "rome"))
		return false;
	bool sent = client_bytes(&client, "\x64\0\0\0\x05\x01\0\0", 8);
	client_close(&client);
	return sent;
}

static bool garbage(const struct target *t)
{
	struct client client;
	uint8_t frame[200];
	uint64_t state = 1;
	if (!client_enter(&client, t, "rome"))
		return false;
	for (unsigned i = 0; i < 64; i++) {
		for (size_t k = 0; k < sizeof frame; k++)
			frame[k] = (uint8_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
		frame[0] = (uint8_t)(1 + i % 12);
		frame[1] = i % 4 ? 1 : frame[1];
		frame[2] = frame[3] = 0;
		if (!client_frame(&client, frame, sizeof frame))
			break;
	}
	bool over = client_is_closed(&client, 10000);
	client_close(&client);
	return over;
}

static bool slowly(const struct target *t, bool before)
{
	struct client client;
	unsigned sent = 0;
	if (before)
		client_connect(&client, t);
	else if (!client_enter(&client, t, "rome"))
		return false;
	/* A frame of 64 bytes, or the beginning of a handshake, a byte a second. */
	static const uint8_t bytes[16] = {64, 0, 0, 0, 5, 1}, hello[16] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3};
	bool over = false;
	for (; !over && sent < sizeof bytes; sent++) {
		over = !client_bytes(&client, (before ? hello : bytes) + sent, 1);
		struct pollfd fd = {.fd = client.fd, .events = POLLIN};
		uint8_t end[64];
		if (before)
			over |= poll(&fd, 1, 1000) == 1 && read(client.fd, end, sizeof end) <= 0;
		else
			over |= client_is_closed(&client, 1000);
	}
	printf("  over after %u bytes\n", sent);
	client_close(&client);
	return over;
}

static bool slow_handshake(const struct target *t)
{
	return slowly(t, true);
}

static bool slow_frame(const struct target *t)
{
	return slowly(t, false);
}

/* A handshake, and then nothing. */
static bool no_hello(const struct target *t)
{
	struct client client;
	client_connect(&client, t);
	bool over = client_shake(&client, t, "rome", TLS1_3_VERSION) && client_is_closed(&client, 20000);
	client_close(&client);
	return over;
}

/* -- all of them -------------------------------------------------------------------------------------------------- */

static const struct attack attacks[] = {
	{"wrong-ca", wrong_ca},
	{"expired", expired},
	{"unknown-name", unknown_name},
	{"no-certificate", no_certificate},
	{"tls12", old_tls},
	{"plain-text", plain_text},
	{"wrong-psk", wrong_psk},
	{"right-psk", right_psk},
	{"flood", flood},
	{"huge-length", huge_length},
	{"large-length", large_length},
	{"no-length", no_length},
	{"truncated", truncated},
	{"garbage", garbage},
	{"slow-handshake", slow_handshake},
	{"slow-frame", slow_frame},
	{"no-hello", no_hello},
};

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
		if (strcmp(attacks[i].name, name) == 0)
			return &attacks[i];
	}
	for (size_t i = 0; i < lies_count; i++) {
		if (strcmp(lies[i].name, name) == 0)
			return &lies[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	int failed = 0;
	if (argc < 5) {
		fprintf(stderr, "usage: hostile FOLDER HOST PORT ATTACK...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	const struct target target = {argv[1], argv[2], argv[3]};
	for (int i = 4; i < argc; i++) {
		const struct attack *attack = find(argv[i]);
		if (!attack) {
			fprintf(stderr, "hostile: no attack %s\n", argv[i]);
			return 2;
		}
		bool good = attack->play(&target);
		printf("%s: %s\n", argv[i], good ? "as it should be" : "NOT AS IT SHOULD BE");
		fflush(stdout);
		failed |= !good;
	}
	return failed;
}
