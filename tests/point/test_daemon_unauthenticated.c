/* SPDX-License-Identifier: Apache-2.0 */
/* Unauthenticated connections: which one is dropped if there is no room, and how much time they get. */
#include "point/daemon_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS   INT64_C(1000000)
#define MANY (2 * OW_UNAUTHENTICATED_MAX)

static struct ow_daemon *daemon_;
static struct ow_daemon_link link_[MANY];

static int setup(void **state)
{
	(void)state;
	daemon_ = calloc(1, sizeof *daemon_);
	if (!daemon_)
		return -1;
	daemon_->scheduler.epoll_fd = daemon_->listen.fd = -1;
	memset(link_, 0, sizeof link_);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(daemon_);
	return 0;
}

static struct ow_daemon_link *come(unsigned i, const char *address)
{
	link_[i].daemon = daemon_;
	link_[i].since_ns = i;
	snprintf(link_[i].address, sizeof link_[i].address, "%s", address);
	return ow_unauthenticated_add(&link_[i]);
}

static bool is_here(unsigned i)
{
	for (unsigned k = 0; k < OW_UNAUTHENTICATED_MAX; k++) {
		if (daemon_->unauthenticated.link[k] == &link_[i])
			return true;
	}
	return false;
}

/* A host that floods, from as many ports as it likes, displaces its own, the oldest first. */
static void a_flood_displaces_itself(void **state)
{
	(void)state;
	char address[64];
	assert_null(come(0, "192.0.2.1:1000"));
	assert_null(come(1, "[2001:db8::1]:1000"));
	for (unsigned i = 2; i < MANY; i++) {
		snprintf(address, sizeof address, "198.51.100.7:%u", 2000 + i);
		struct ow_daemon_link *gone = come(i, address);
		assert_ptr_equal(gone, i < OW_UNAUTHENTICATED_MAX ? NULL : &link_[i - OW_UNAUTHENTICATED_MAX + 2]);
	}
	assert_true(is_here(0) && is_here(1) && is_here(MANY - 1));
}

/* 192.0.2.1 and 192.0.2.10 are two hosts. */
static void hosts_are_whole_addresses(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++)
		assert_null(come(i, i % 2 ? "192.0.2.10:1" : i < 40 ? "192.0.2.1:1" : "192.0.2.2:1"));
	/* 32 of .10, 20 of .1, 12 of .2 */
	assert_ptr_equal(come(OW_UNAUTHENTICATED_MAX, "192.0.2.1:2"), &link_[1]);
}

static void places_are_free_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++)
		assert_null(come(i, "192.0.2.1:1"));
	ow_unauthenticated_remove(&link_[5]);
	ow_unauthenticated_remove(&link_[5]);
	assert_false(is_here(5));
	assert_null(come(OW_UNAUTHENTICATED_MAX, "192.0.2.1:2"));
	assert_ptr_equal(come(OW_UNAUTHENTICATED_MAX + 1, "192.0.2.1:3"), &link_[0]);
}

/* A quarter of the time is theirs, with a reserve of 50 ms; then they are not heard until half of it is back. */
static void a_share_of_the_time(void **state)
{
	(void)state;
	const struct ow_unauthenticated *u = &daemon_->unauthenticated;
	int64_t now = 1000 * MS, spent = 0;
	ow_unauthenticated_spend(daemon_, now, 0);
	for (int i = 0; i < 1000; i++) {
		now += 4 * MS;
		ow_unauthenticated_spend(daemon_, now, MS);
		assert_false(u->deaf);
	}
	while (!u->deaf) {
		now += MS;
		ow_unauthenticated_spend(daemon_, now, MS);
		spent += MS;
	}
	/* Three quarters of what they spent were beyond their share. */
	assert_true(spent * 3 / 4 >= 49 * MS && spent * 3 / 4 <= 53 * MS);
	int64_t since = now;
	while (u->deaf) {
		now += MS;
		ow_unauthenticated_spend(daemon_, now, 0);
	}
	assert_true(now - since >= 99 * MS && now - since <= 110 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_flood_displaces_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(hosts_are_whole_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(places_are_free_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_share_of_the_time, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
