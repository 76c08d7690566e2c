/* SPDX-License-Identifier: Apache-2.0 */
/* Connections whose superframes count the IPv4 identification, and such that do not. */
#include "capture/ip_id.h"

#include "base/bytes.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static bool ask(struct ow_ip_ids *ids, uint16_t port, uint16_t id, unsigned way)
{
	uint8_t ip[24] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
	ow_store_be16(ip + 4, id);
	ow_store_be16(ip + 20, port);
	return ow_ip_id_fixed(ids, ip, sizeof ip, way);
}

static void connections_do_the_one_or_the_other(void **state)
{
	(void)state;
	struct ow_ip_ids *ids = calloc(1, sizeof *ids);
	for (int i = 0; i < 10; i++)
		assert_true(ask(ids, 1, 0, 0)); /* always 0 */
	for (int i = 0; i < 10; i++)
		assert_int_equal(ask(ids, 2, 77, 0), i > 0); /* always the same: known from the second on */
	for (unsigned i = 0; i < 100000; i++)
		assert_false(ask(ids, 3, (uint16_t)(1000 + 45 * i), 0)); /* counting, also through 0 */
	/* Two ways of one connection do not disturb each other. */
	for (unsigned i = 1; i < 100; i++) {
		assert_false(ask(ids, 4, (uint16_t)(45 * i), 1));
		assert_false(ask(ids, 4, (uint16_t)(45 * i), 2));
	}
	free(ids);
}

static void others_count(void **state)
{
	(void)state;
	static struct ow_ip_ids ids;
	const uint8_t good[24] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6};
	static const struct {
		int at;
		uint8_t byte;
	} odd[] = {{0, 0x65}, {0, 0x44}, {0, 0x4f}, {6, 0}, {9, 17}};
	assert_true(ow_ip_id_fixed(&ids, good, sizeof good, 0));
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		uint8_t ip[24];
		memcpy(ip, good, sizeof ip);
		ip[odd[i].at] = odd[i].byte;
		assert_false(ow_ip_id_fixed(&ids, ip, sizeof ip, 0));
	}
	for (size_t size = 0; size < sizeof good; size++)
		assert_false(ow_ip_id_fixed(&ids, good, size, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_do_the_one_or_the_other),
		cmocka_unit_test(others_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
