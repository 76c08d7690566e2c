/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/client_table.h"
#include "base/random.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define SEED   23
#define PLACES 256
#define IDLE   1000

static struct sockaddr_storage peer_of(const char *address, uint16_t port)
{
	struct sockaddr_storage peer = {0};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
		memcpy(&peer, &four, sizeof four);
	else if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1)
		memcpy(&peer, &six, sizeof six);
	else
		fail_msg("%s is no address", address);
	return peer;
}

static bool same(const char *a, uint16_t a_port, const char *b, uint16_t b_port, bool source)
{
	struct sockaddr_storage x = peer_of(a, a_port), y = peer_of(b, b_port);
	uint8_t key[2][20];
	if (source) {
		ow_client_source(&x, key[0]);
		ow_client_source(&y, key[1]);
	} else {
		ow_client_session(&x, 7, key[0]);
		ow_client_session(&y, 7, key[1]);
	}
	return memcmp(key[0], key[1], sizeof key[0]) == 0;
}

/* A source is an IPv4 address or an IPv6 /64, whatever its ports; a session has its own address and port. */
static void keys(void **state)
{
	(void)state;
	uint8_t key[2][20];
	assert_true(same("192.0.2.1", 1, "192.0.2.1", 2, true));
	assert_false(same("192.0.2.1", 1, "192.0.2.2", 1, true));
	assert_true(same("2001:db8:1:2::1", 1, "2001:db8:1:2:ffff::9", 9, true));
	assert_false(same("2001:db8:1:2::1", 1, "2001:db8:1:3::1", 1, true));
	assert_false(same("2001:db8:1:2::1", 1, "2001:db8:1:2::2", 1, false));
	assert_false(same("192.0.2.1", 1, "192.0.2.1", 2, false));
	assert_true(same("192.0.2.1", 1, "::ffff:192.0.2.1", 1, false));
	struct sockaddr_storage peer = peer_of("192.0.2.1", 1);
	ow_client_session(&peer, 7, key[0]);
	ow_client_session(&peer, 8, key[1]);
	assert_memory_not_equal(key[0], key[1], sizeof key[0]);
}

static struct ow_client *visit(struct ow_client_table *table, uint64_t who, int64_t now_ns)
{
	uint8_t key[20] = {0};
	memcpy(key, &who, sizeof who);
	struct ow_client *client = ow_client_table_find(table, key, now_ns, 5);
	if (client)
		client->last_ns = now_ns;
	return client;
}

/* A flood of new clients gets the free places and no more; who keeps talking stays, with the state that it has. */
static void flood(void **state)
{
	(void)state;
	struct ow_client_table *table;
	struct ow_random random;
	size_t taken = 0;
	ow_random_seed(&random, SEED);
	assert_int_equal(ow_client_table_create(PLACES, IDLE, ow_random_u64(&random), &table), 0);
	for (uint64_t i = 0; i < 10; i++) {
		struct ow_client *client = visit(table, i, 0);
		assert_true(client && client->number == 0 && client->tokens == 5);
		client->number = (uint32_t)i + 1;
	}
	for (int64_t now = 1; now < 3 * IDLE; now++) {
		taken += visit(table, ow_random_u64(&random) | UINT64_C(1) << 63, now) != NULL;
		assert_true(now > IDLE || taken <= PLACES - 10);
		for (uint64_t i = 0; i < 10; i++) {
			struct ow_client *client = visit(table, i, now);
			assert_true(client && client->number == i + 1);
		}
	}
	/* Most places were used at once, and again when their clients had been silent. */
	assert_true(taken > PLACES);
	/* Everybody has been silent: all places can be had, by clients that begin anew. */
	size_t found = 0;
	for (uint64_t i = 0; i < PLACES / 8; i++) {
		struct ow_client *client = visit(table, i, 10 * IDLE);
		found += client && (client->number == 0 || i < 10);
	}
	assert_int_equal(found, PLACES / 8);
	ow_client_table_free(table);
	ow_client_table_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(keys), cmocka_unit_test(flood)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
