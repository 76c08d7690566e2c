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
	struct ow_packet_notes *notes;
	struct ow_random random;
	static uint8_t told[RECORDS + 1];
	const struct ow_packet_note *note;
	ow_random_seed(&random, 3);
	assert_int_equal(ow_packet_notes_create("/tmp", &notes, NULL), 0);
	for (uint64_t i = 1; i <= RECORDS; i++) {
		/* Mostly in order, some much later. */
		uint64_t number = i % 100 ? i : 1 + ow_random_below(&random, i);
		struct ow_packet_event event = {.size = sizeof event,
		                                .fate = OW_FATE_MATCHED,
		                                .packets = 1,
		                                .id = number,
		                                .number = {number, number + 7},
		                                .time_ns = {(int64_t)number, (int64_t)(3 * number)}};
		assert_int_equal(ow_packet_notes_add(notes, OW_SIDE_A, &event, NULL), 0);
		told[number]++;
	}
	for (uint64_t i = 1; i <= RECORDS + 1000; i++) {
		assert_int_equal(ow_packet_notes_get(notes, i, &note, NULL), 0);
		unsigned times = i <= RECORDS ? told[i] : 0;
		assert_int_equal(note->packets[OW_FATE_MATCHED], times);
		assert_int_equal(note->id, times ? i : 0);
		if (!times)
			continue;
		assert_int_equal(note->other_number, i + 7);
		assert_int_equal(note->delay_ns, 2 * i);
		assert_true(note->timed);
	}
	assert_int_equal(ow_packet_notes_last(notes), RECORDS - 1);
	assert_int_equal(ow_packet_notes_get(notes, UINT64_MAX, &note, NULL), -ERANGE);
	ow_packet_notes_free(notes);
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
		struct ow_packet_notes *notes;
		const struct ow_packet_note *note;
		assert_int_equal(ow_packet_notes_create("/tmp", &notes, NULL), 0);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(ow_packet_notes_add(notes, OW_SIDE_A, &event[order[i][k]], NULL), 0);
		assert_int_equal(ow_packet_notes_get(notes, 5, &note, NULL), 0);
		assert_int_equal(note->other_number, 11);
		assert_int_equal(note->delay_ns, 20);
		assert_int_equal(note->packets[OW_FATE_LOST], 1);
		assert_int_equal(note->packets[OW_FATE_MATCHED], 3);
		ow_packet_notes_free(notes);
	}
}

static void failures(void **state)
{
	(void)state;
	struct ow_packet_notes *notes;
	struct ow_error err;
	assert_true(ow_packet_notes_create("/nowhere/at/all", &notes, &err) < 0);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	ow_packet_notes_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_any_order),
		cmocka_unit_test(parts),
		cmocka_unit_test(failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
