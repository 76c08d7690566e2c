/* SPDX-License-Identifier: Apache-2.0 */
#include "path/joint_packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define POINTS  3u
#define PACKETS 20000u /* more than the first buckets are for */

/* Many ids share a bucket, because they differ in few of its bits. */
static uint64_t id_of(uint64_t i)
{
	return i << 17;
}

static void found_until_they_leave(void **state)
{
	(void)state;
	struct ow_joint_packets packets;
	memset(&packets, 0, sizeof packets);
	assert_int_equal(ow_joint_packets_init(&packets, POINTS, false), 0);
	for (uint64_t i = 0; i < PACKETS; i++) {
		assert_null(ow_joint_packets_find(&packets, id_of(i)));
		struct ow_joint_packet *packet = ow_joint_packets_add(&packets, id_of(i));
		assert_non_null(packet);
		assert_true(packet->seen == 0 && packet->records == 0 && !packet->alike && !packet->decided);
		assert_int_equal((uintptr_t)packet % OW_JOINT_LINE, 0);
		packet->at[POINTS - 1].number = i;
		packet->seen = packet->alike = packet->decided = packet->smooth = true;
	}
	for (uint64_t i = 0; i < PACKETS; i += 2)
		ow_joint_packets_leave(&packets, ow_joint_packets_find(&packets, id_of(i)));
	for (uint64_t i = 0; i < PACKETS; i++) {
		const struct ow_joint_packet *packet = ow_joint_packets_find(&packets, id_of(i));
		assert_true(i % 2 ? packet && packet->at[POINTS - 1].number == i : !packet);
	}
	ow_joint_packets_done(&packets);
}

/* Their memory is used again after the turn of the last record. */
static void dropped(void **state)
{
	(void)state;
	struct ow_joint_packets packets;
	memset(&packets, 0, sizeof packets);
	assert_int_equal(ow_joint_packets_init(&packets, POINTS, true), 0);
	struct ow_joint_packet *packet = ow_joint_packets_add(&packets, 1);
	struct ow_record *record = ow_joint_packets_records(&packets, packet);
	assert_ptr_equal(record, &packet->at[POINTS]);
	for (unsigned p = 0; p < POINTS; p++)
		record[p] = (struct ow_record){.id = 1};
	packet->records = 2;
	ow_joint_packets_leave(&packets, packet);
	ow_joint_packets_drop(&packets, packet);
	assert_ptr_not_equal(ow_joint_packets_add(&packets, 2), packet);
	ow_joint_packets_drop(&packets, packet);
	assert_int_equal(packet->id, 1);
	assert_ptr_equal(ow_joint_packets_add(&packets, 3), packet);
	ow_joint_packets_done(&packets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(found_until_they_leave), cmocka_unit_test(dropped)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
