/* SPDX-License-Identifier: Apache-2.0 */
#include "match/packet_notes.h"

#include "base/random.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RECORDS 300000 /* several times what is kept in memory */

static void in_any_order(void **state)
{
	(void)state;
	struct ow_record_file *notes;
	struct ow_random random;
	static uint8_t told[RECORDS + 1];
	const void *item;
	ow_random_seed(&random, 3);
	assert_int_equal(ow_record_file_create("/tmp", sizeof(struct ow_packet_note), &notes, NULL), 0);
	for (uint64_t i = 1; i <= RECORDS; i++) {
		/* Mostly in order, some much later. */
		uint64_t number = i % 100 ? i : 1 + ow_random_below(&random, i);
		struct ow_packet_event event = {.size = sizeof event,
		                                .fate = OW_FATE_MATCHED,
		                                .packets = 1,
		                                .id = number,
		                                .number = {number, number + 7},
		                                .time_ns = {(int64_t)number, (int64_t)(3 * number)}};
		assert_int_equal(ow_packet_note_add(notes, OW_SIDE_A, &event, NULL), 0);
		told[number]++;
	}
	for (uint64_t i = 1; i <= RECORDS + 1000; i++) {
		assert_int_equal(ow_record_file_get(notes, i, &item, NULL), 0);
		const struct ow_packet_note *note = item;
		unsigned times = i <= RECORDS ? told[i] : 0;
		assert_int_equal(note->packets[OW_FATE_MATCHED], times);
		assert_int_equal(note->id, times ? i : 0);
		if (!times)
			continue;
		assert_int_equal(note->other_number, i + 7);
		assert_int_equal(note->delay_ns, 2 * i);
		assert_true(note->timed);
	}
	assert_int_equal(ow_record_file_last(notes), RECORDS - 1);
	assert_int_equal(ow_record_file_get(notes, UINT64_MAX, &item, NULL), -ERANGE);
	ow_record_file_free(notes);
}

/* The first part that arrived stands for a superframe, in whatever order its parts are told. */
static void parts(void **state)
{
	(void)state;
	struct ow_packet_event event[] = {
		{.fate = OW_FATE_LOST, .packets = 1, .id = 1, .part = 1, .number = {5, 0}},
		{.fate = OW_FATE_MATCHED, .packets = 2, .id = 2, .part = 3, .number = {5, 12}, .time_ns = {10, 40}},
		{.fate = OW_FATE_MATCHED, .packets = 1, .id = 3, .part = 2, .number = {5, 11}, .time_ns = {10, 30}},
	};
	static const unsigned order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	for (unsigned i = 0; i < 6; i++) {
		struct ow_record_file *notes;
		const void *item;
		assert_int_equal(ow_record_file_create("/tmp", sizeof(struct ow_packet_note), &notes, NULL), 0);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(ow_packet_note_add(notes, OW_SIDE_A, &event[order[i][k]], NULL), 0);
		assert_int_equal(ow_record_file_get(notes, 5, &item, NULL), 0);
		const struct ow_packet_note *note = item;
		assert_int_equal(note->other_number, 11);
		assert_int_equal(note->delay_ns, 20);
		assert_int_equal(note->packets[OW_FATE_LOST], 1);
		assert_int_equal(note->packets[OW_FATE_MATCHED], 3);
		ow_record_file_free(notes);
	}
}

/* Of several packets of a record, the one that most points saw. */
static void hops(void **state)
{
	(void)state;
	static const int64_t time_ns[][3] = {{1, 2, 0}, {1, 3, 7}, {1, 0, 0}};
	static const uint32_t seen[] = {3, 7, 1};
	struct ow_record_file *notes;
	const void *item;
	assert_int_equal(ow_record_file_create("/tmp", ow_hop_note_size(3), &notes, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		const struct ow_hop_note hop = {.seen = seen[i], .direction = OW_A_TO_B};
		assert_int_equal(ow_hop_note_add(notes, 9, &hop, time_ns[i], 3, NULL), 0);
	}
	assert_int_equal(ow_record_file_get(notes, 9, &item, NULL), 0);
	const struct ow_hop_note *note = item;
	assert_int_equal(note->seen, 7);
	assert_memory_equal(note->time_ns, time_ns[1], sizeof time_ns[1]);
	assert_int_equal(ow_record_file_get(notes, 10, &item, NULL), 0);
	assert_int_equal(((const struct ow_hop_note *)item)->seen, 0);
	ow_record_file_free(notes);
}

static void failures(void **state)
{
	(void)state;
	struct ow_record_file *notes;
	struct ow_error err;
	assert_true(ow_record_file_create("/nowhere/at/all", 8, &notes, &err) < 0);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	ow_record_file_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_any_order),
		cmocka_unit_test(parts),
		cmocka_unit_test(hops),
		cmocka_unit_test(failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
