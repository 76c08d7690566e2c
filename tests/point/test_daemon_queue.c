/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that do not read: data that waits for them stays within half of the memory budget, and others are not affected.
 */
#include "../exchange/link.h"
#include "point/daemon_private.h"
#include "point/daemon_queue.h"

#include <stdlib.h>
#include <string.h>

#define S      INT64_C(1000000000)
#define MEMORY (8u << 20)
#define FRAME  (1u << 20)

static struct keys keys;
static struct ow_tls *london, *paris;

/* A daemon with two peers: each has a connection whose far end the test holds. */
struct scene {
	struct link wire[2];
	struct ow_config config;
	struct ow_daemon_link link[2];
	struct ow_daemon_peer peer[2];
	struct ow_daemon *daemon;
};

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

static void open_scene(struct scene *s)
{
	memset(s, 0, sizeof *s);
	s->config.memory = MEMORY;
	s->daemon = calloc(1, sizeof *s->daemon);
	assert_non_null(s->daemon);
	s->daemon->config = &s->config;
	s->daemon->peer_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		link_make(&s->wire[i], london, "paris", paris, NULL);
		link_open(&s->wire[i]);
		ow_session_set_limit(s->wire[i].session[SERVER], FRAME);
		s->link[i] = (struct ow_daemon_link){
			.daemon = s->daemon, .peer = &s->peer[i], .session = s->wire[i].session[CLIENT]};
		s->peer[i].link = &s->link[i];
		s->daemon->peers[i] = &s->peer[i];
	}
}

static void close_scene(struct scene *s)
{
	link_free(&s->wire[0]);
	link_free(&s->wire[1]);
	free(s->daemon);
}

static void send_frames(struct scene *s, unsigned to, unsigned count)
{
	uint8_t *frame = calloc(1, FRAME);
	assert_non_null(frame);
	for (unsigned i = 0; i < count; i++)
		ow_daemon_link_send_frame(&s->link[to], frame, FRAME);
	free(frame);
}

/* The far end takes what has been sent. */
static void read_frames(struct scene *s, unsigned from, unsigned count)
{
	size_t size;
	for (unsigned i = 0; i < count; i++)
		assert_non_null(link_frame(&s->wire[from], SERVER, &size));
}

static void who_does_not_read_is_dropped(void **state)
{
	(void)state;
	struct scene s;
	open_scene(&s);
	unsigned sent = 0;
	for (int64_t now = 1; now < 60 && !s.link[0].broken; now++) {
		send_frames(&s, 0, 1);
		send_frames(&s, 1, 1);
		read_frames(&s, 1, 1);
		sent++;
		ow_daemon_queues_bound(s.daemon, now * S);
	}
	assert_true(s.link[0].broken);
	assert_non_null(strstr(s.link[0].why.text, "does not read"));
	assert_false(s.link[1].broken);
	/* Half of the memory, and what came in 5 s on top. */
	assert_in_range(sent, MEMORY / 2 / FRAME + 1, MEMORY / 2 / FRAME + 7);
	close_scene(&s);
}

/* Less than half of the budget may wait for as long as it takes. */
static void who_is_slow_is_not(void **state)
{
	(void)state;
	struct scene s;
	open_scene(&s);
	send_frames(&s, 0, MEMORY / 2 / FRAME - 1);
	for (int64_t now = 1; now < 600; now++)
		ow_daemon_queues_bound(s.daemon, now * S);
	assert_false(s.link[0].broken);
	read_frames(&s, 0, MEMORY / 2 / FRAME - 1);
	close_scene(&s);
}

/* More than that at once is fine when it is read. */
static void who_reads_is_not(void **state)
{
	(void)state;
	struct scene s;
	open_scene(&s);
	for (int64_t now = 1; now < 20; now += 4) {
		send_frames(&s, 0, MEMORY / FRAME);
		ow_daemon_queues_bound(s.daemon, now * S);
		ow_daemon_queues_bound(s.daemon, (now + 3) * S);
		read_frames(&s, 0, MEMORY / FRAME);
	}
	assert_false(s.link[0].broken);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_does_not_read_is_dropped),
		cmocka_unit_test(who_is_slow_is_not),
		cmocka_unit_test(who_reads_is_not),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
