/* SPDX-License-Identifier: Apache-2.0 */
/* Data of an open session: any sizes, any divisions, both directions at once, with limits on what waits. */
#include "link.h"
#include "mint.h"

#include "base/bytes.h"
#include "base/random.h"
#include "exchange/message.h"
#include "exchange/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEED 4711

static struct keys keys;
static struct ow_tls *london, *paris;

static int setup(void **state)
{
	(void)state;
	keys_make(&keys);
	london = keys_tls(&keys, "london", "ca");
	paris = keys_tls(&keys, "paris", "ca");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ow_tls_free(london);
	ow_tls_free(paris);
	keys_remove(&keys);
	return 0;
}

static void open_link(struct link *link)
{
	link_make(link, london, "paris", paris, NULL);
	link_open(link);
}

static uint8_t *noise(size_t size, uint64_t seed)
{
	struct ow_random random;
	uint8_t *bytes = malloc(size + 8);
	assert_non_null(bytes);
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < size; i += 8)
		ow_store_le64(bytes + i, ow_random_u64(&random));
	return bytes;
}

/* Frames of 10 MB cross each other. */
static void large_frames_both_ways(void **state)
{
	(void)state;
	const size_t size = 10000000;
	uint8_t *bytes[2] = {noise(size, SEED), noise(size, SEED + 1)};
	bool arrived[2] = {false, false};
	struct link link;
	open_link(&link);
	for (int i = 0; i < 2; i++) {
		ow_session_set_limit(link.session[i], OW_WIRE_FRAME_MAX);
		assert_int_equal(ow_session_send(link.session[i], bytes[i], size), 0);
		assert_int_equal(ow_session_queued(link.session[i]), size + 4);
	}
	while (!(arrived[0] && arrived[1]) && link_step(&link)) {
		for (int i = 0; i < 2; i++) {
			size_t n = 0;
			const uint8_t *frame = ow_session_frame(link.session[i], &n);
			if (!frame)
				continue;
			assert_int_equal(n, size);
			assert_memory_equal(frame, bytes[!i], size);
			arrived[i] = true;
		}
	}
	assert_true(arrived[0] && arrived[1]);
	for (int i = 0; i < 2; i++) {
		struct ow_session_counts counts;
		ow_session_counts(link.session[i], &counts);
		assert_int_equal(counts.bytes_in, size + 4);
		assert_int_equal(counts.bytes_out, size + 4);
		/* A record of 16 KiB has 22 bytes more; the handshake is below 4 KiB. */
		assert_in_range(counts.wire_out, size, size + size / 16384 * 22 + 4096 + 64);
		assert_int_equal(ow_session_queued(link.session[i]), 0);
		free(bytes[i]);
	}
	link_free(&link);
}

/* Between the sessions: at most `step` bytes at a time each way. */
static bool forward(int from, int to, size_t step)
{
	uint8_t bytes[64];
	ssize_t n = recv(from, bytes, step < sizeof bytes ? step : sizeof bytes, MSG_DONTWAIT);
	if (n > 0)
		assert_int_equal(send(to, bytes, (size_t)n, MSG_NOSIGNAL), n);
	return n > 0;
}

static void a_byte_at_a_time(void **state)
{
	(void)state;
	int left[2], right[2];
	struct ow_session *session[2] = {NULL, NULL};
	const size_t size = 3000;
	uint8_t *bytes = noise(size, SEED);
	unsigned frames[2] = {0, 0};
	socket_pair(left);
	socket_pair(right);
	assert_int_equal(ow_session_create(london, left[0], false, "paris", &session[0], NULL), 0);
	assert_int_equal(ow_session_create(paris, right[0], true, NULL, &session[1], NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ow_session_send(session[i], bytes, size), 0);
		assert_int_equal(ow_session_send(session[i], bytes, 1), 0);
	}
	for (unsigned idle = 0; idle < 3 && frames[0] + frames[1] < 4;) {
		idle++;
		for (int i = 0; i < 2; i++) {
			size_t n = 0;
			assert_int_equal(ow_session_drive(session[i], NULL), 0);
			const uint8_t *frame = ow_session_frame(session[i], &n);
			if (!frame)
				continue;
			assert_int_equal(n, frames[i] == 0 ? size : 1);
			assert_memory_equal(frame, bytes, n);
			frames[i]++;
		}
		if (forward(left[1], right[1], 1) | forward(right[1], left[1], 1))
			idle = 0;
	}
	assert_int_equal(frames[0], 2);
	assert_int_equal(frames[1], 2);
	ow_session_free(session[0]);
	ow_session_free(session[1]);
	close(left[1]);
	close(right[1]);
	free(bytes);
}

/* Nobody takes the frames: reading stops, and continues when somebody does. */
static void pauses_when_frames_wait(void **state)
{
	(void)state;
	enum { FRAMES = 3000, SIZE = 1000 };
	struct link link;
	struct ow_session_counts counts;
	uint8_t frame[SIZE];
	open_link(&link);
	for (unsigned i = 0; i < FRAMES; i++) {
		memset(frame, (int)(i & 0xff), sizeof frame);
		assert_int_equal(ow_session_send(link.session[CLIENT], frame, sizeof frame), 0);
	}
	while (ow_session_events(link.session[SERVER]) & POLLIN)
		assert_true(link_step(&link));
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(ow_session_drive(link.session[SERVER], NULL), 0);
	ow_session_counts(link.session[SERVER], &counts);
	assert_in_range(counts.bytes_in, 256 << 10, (256 + 16) << 10);
	for (unsigned i = 0; i < FRAMES; i++) {
		size_t size = 0;
		const uint8_t *got = link_frame(&link, SERVER, &size);
		assert_non_null(got);
		assert_int_equal(size, SIZE);
		assert_int_equal(got[0], i & 0xff);
		assert_int_equal(got[SIZE - 1], i & 0xff);
	}
	link_free(&link);
}

static void what_is_sent_is_limited(void **state)
{
	(void)state;
	struct link link;
	size_t size = OW_WIRE_FRAME_MAX;
	uint8_t *bytes = calloc(1, size + 1);
	assert_non_null(bytes);
	open_link(&link);
	assert_int_equal(ow_session_send(link.session[CLIENT], bytes, 0), -EMSGSIZE);
	assert_int_equal(ow_session_send(link.session[CLIENT], bytes, size + 1), -EMSGSIZE);
	for (unsigned i = 0; i < OW_SESSION_QUEUE / OW_WIRE_FRAME_MAX; i++)
		assert_int_equal(ow_session_send(link.session[CLIENT], bytes, size), 0);
	assert_int_equal(ow_session_send(link.session[CLIENT], bytes, size), -ENOBUFS);
	ow_session_close(link.session[CLIENT]);
	assert_int_equal(ow_session_send(link.session[CLIENT], bytes, 1), -EPIPE);
	link_free(&link);
	free(bytes);
}

/* The first frames are small; the limit is raised before the next one is looked at. */
static void the_limit_is_raised(void **state)
{
	(void)state;
	size_t size = OW_SESSION_FIRST_MAX + 1, n = 0;
	uint8_t *bytes = noise(size, SEED);
	for (int raised = 0; raised < 2; raised++) {
		struct link link;
		open_link(&link);
		assert_int_equal(ow_session_send(link.session[CLIENT], bytes, OW_SESSION_FIRST_MAX), 0);
		assert_int_equal(ow_session_send(link.session[CLIENT], bytes, size), 0);
		assert_non_null(link_frame(&link, SERVER, &n));
		assert_int_equal(n, OW_SESSION_FIRST_MAX);
		if (raised) {
			ow_session_set_limit(link.session[SERVER], SIZE_MAX);
			assert_non_null(link_frame(&link, SERVER, &n));
			assert_int_equal(n, size);
		} else {
			assert_null(link_frame(&link, SERVER, &n));
			assert_int_equal(link.code[SERVER], -EPROTO);
			assert_string_equal(link.err[SERVER].text,
			                    "the peer announces a frame of 65537 bytes, 65536 are accepted");
		}
		link_free(&link);
	}
	free(bytes);
}

/* An open session of paris, and london as nothing but TLS. */
static void open_raw(struct raw *raw, struct ow_session **session)
{
	int fds[2];
	socket_pair(fds);
	assert_int_equal(ow_session_create(paris, fds[1], true, "london", session, NULL), 0);
	raw_make(raw, fds[0], false, &keys, "london", TLS1_3_VERSION);
	assert_int_equal(raw_shake(raw, *session, NULL), 0);
}

static void wrong_lengths_end_it_at_once(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {0, OW_WIRE_FRAME_MAX + 1, 1u << 31, UINT32_MAX};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct raw raw;
		struct ow_session *session = NULL;
		struct ow_error err = {""};
		uint8_t length[4];
		open_raw(&raw, &session);
		ow_session_set_limit(session, OW_WIRE_FRAME_MAX);
		ow_store_le32(length, lengths[i]);
		assert_int_equal(SSL_write(raw.ssl, length, 4), 4);
		assert_int_equal(ow_session_drive(session, &err), -EPROTO);
		assert_non_null(strstr(err.text, lengths[i] ? "announces a frame of" : "an empty frame"));
		raw_free(&raw);
		ow_session_free(session);
	}
}

/* Complete frames before the end can still be taken, a cut one cannot. */
static void ends_in_the_middle(void **state)
{
	(void)state;
	for (int goodbye = 0; goodbye < 2; goodbye++) {
		struct raw raw;
		struct ow_session *session = NULL;
		struct ow_error err = {""};
		static const uint8_t bytes[] = {3, 0, 0, 0, 'a', 'b', 'c', 9, 0, 0, 0, 'd'};
		size_t size = 0;
		open_raw(&raw, &session);
		assert_int_equal(SSL_write(raw.ssl, bytes, sizeof bytes), sizeof bytes);
		if (goodbye)
			SSL_shutdown(raw.ssl);
		shutdown(raw.fd, SHUT_WR);
		assert_int_equal(ow_session_drive(session, &err), -ECONNRESET);
		assert_string_equal(err.text, goodbye ? "the peer closed the connection"
		                                      : "the peer closed the connection without a goodbye");
		const uint8_t *frame = ow_session_frame(session, &size);
		assert_non_null(frame);
		assert_int_equal(size, 3);
		assert_memory_equal(frame, "abc", 3);
		assert_null(ow_session_frame(session, &size));
		assert_string_equal(ow_session_peer(session), "london");
		raw_free(&raw);
		ow_session_free(session);
	}
}

/* Without MSG_NOSIGNAL this would end the program. */
static void a_peer_that_is_gone_raises_no_signal(void **state)
{
	(void)state;
	struct raw raw;
	struct ow_session *session = NULL;
	struct ow_error err = {""};
	uint8_t bytes[1000] = {0};
	open_raw(&raw, &session);
	raw_free(&raw);
	assert_int_equal(ow_session_send(session, bytes, sizeof bytes), 0);
	assert_int_equal(ow_session_drive(session, &err), -ECONNRESET);
	assert_true(err.text[0]);
	assert_int_equal(ow_session_send(session, bytes, sizeof bytes), -EPIPE);
	ow_session_free(session);
}

static void changed_bytes_are_noticed(void **state)
{
	(void)state;
	int left[2], right[2];
	struct ow_session *session[2] = {NULL, NULL};
	struct ow_error err = {""};
	uint8_t record[256];
	socket_pair(left);
	socket_pair(right);
	assert_int_equal(ow_session_create(london, left[0], false, "paris", &session[0], NULL), 0);
	assert_int_equal(ow_session_create(paris, right[0], true, NULL, &session[1], NULL), 0);
	while (!ow_session_peer(session[0]) || !ow_session_peer(session[1])) {
		for (int i = 0; i < 2; i++)
			assert_int_equal(ow_session_drive(session[i], NULL), 0);
		forward(left[1], right[1], sizeof record);
		forward(right[1], left[1], sizeof record);
	}
	assert_int_equal(ow_session_send(session[0], (const uint8_t *)"the result", 10), 0);
	assert_int_equal(ow_session_drive(session[0], NULL), 0);
	ssize_t n = recv(left[1], record, sizeof record, 0);
	assert_true(n > 20);
	record[n / 2] ^= 1;
	assert_int_equal(send(right[1], record, (size_t)n, 0), n);
	assert_int_equal(ow_session_drive(session[1], &err), -EPROTO);
	assert_non_null(strstr(err.text, "bad record mac"));
	ow_session_free(session[0]);
	ow_session_free(session[1]);
	close(left[1]);
	close(right[1]);
}

/* Early data, tickets and renegotiation are not offered. */
static void nothing_is_resumed(void **state)
{
	(void)state;
	struct raw raw;
	struct ow_session *session = NULL;
	uint8_t byte;
	open_raw(&raw, &session);
	assert_int_equal(ow_session_send(session, (const uint8_t *)"x", 1), 0);
	assert_int_equal(ow_session_drive(session, NULL), 0);
	assert_int_equal(SSL_read(raw.ssl, &byte, 1), 1);
	assert_int_equal(SSL_SESSION_is_resumable(SSL_get0_session(raw.ssl)), 0);
	assert_int_equal(SSL_SESSION_get_max_early_data(SSL_get0_session(raw.ssl)), 0);
	assert_int_equal(SSL_renegotiate(raw.ssl), 0);
	ERR_clear_error();
	raw_free(&raw);
	ow_session_free(session);
}

/* New keys in the middle of a conversation, large frames included. */
static void keys_are_changed(void **state)
{
	(void)state;
	const size_t size = 200000;
	uint8_t *bytes = noise(size, SEED);
	struct link link;
	open_link(&link);
	london->rekey = 3;
	paris->rekey = 2;
	for (int i = 0; i < 2; i++)
		ow_session_set_limit(link.session[i], size);
	for (unsigned i = 0; i < 40; i++) {
		size_t n = 0, length = i % 10 == 9 ? size : 100 + i;
		assert_int_equal(ow_session_send(link.session[i % 2], bytes, length), 0);
		const uint8_t *frame = link_frame(&link, (i + 1) % 2, &n);
		assert_non_null(frame);
		assert_int_equal(n, length);
		assert_memory_equal(frame, bytes, n);
	}
	london->rekey = paris->rekey = 1u << 20;
	link_free(&link);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_frames_both_ways),    cmocka_unit_test(a_byte_at_a_time),
		cmocka_unit_test(pauses_when_frames_wait),   cmocka_unit_test(what_is_sent_is_limited),
		cmocka_unit_test(the_limit_is_raised),       cmocka_unit_test(wrong_lengths_end_it_at_once),
		cmocka_unit_test(ends_in_the_middle),        cmocka_unit_test(a_peer_that_is_gone_raises_no_signal),
		cmocka_unit_test(changed_bytes_are_noticed), cmocka_unit_test(nothing_is_resumed),
		cmocka_unit_test(keys_are_changed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
