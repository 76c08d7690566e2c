/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of SCOPE and its answer: to bytes and back; damaged, repeated and too long ones are refused. */
#include "exchange/message_scope.h"
#include "reconcile/key_list.h"
#include "examples.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct ow_error err;

static bool same(const struct ow_scope_list *a, const struct ow_scope_list *b)
{
	return a->count == b->count && (!a->count || memcmp(a->key, b->key, a->count * sizeof *a->key) == 0);
}

/* Through a frame, as between two points. */
static void travel(const struct ow_message *message, struct ow_message *ret_message, uint8_t **ret_frame)
{
	size_t size;
	assert_int_equal(ow_message_encode(message, ret_frame, &size, &err), 0);
	assert_int_equal(ow_message_decode(*ret_frame, size, ret_message, &err), 0);
}

static void test_update(void **state)
{
	(void)state;
	uint64_t keys[] = {0, 1, 77, (UINT64_C(1) << 40) - 1}, pairs[] = {5, 6};
	struct ow_scope_update update = {
		.generation = 65535, .reset = true, .digest = 9, .fine = {pairs, 2}, .keys = {keys, 4}};
	struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = 1, .interval = 2}, heard;
	struct ow_scope_update back;
	uint8_t *bytes, *frame;
	assert_int_equal(ow_message_of_scope_update(&update, &m.scope, &bytes), 0);
	travel(&m, &heard, &frame);
	assert_int_equal(ow_scope_update_of_message(&heard.scope, &back, &err), 0);
	assert_true(same(&back.keys, &update.keys) && same(&back.fine, &update.fine) && same(&back.hot, &update.hot));
	assert_true(back.generation == 65535 && back.reset && back.digest == 9);
	ow_scope_update_done(&back);
	free(frame);
	free(bytes);
}

static void test_answer(void **state)
{
	(void)state;
	uint64_t keys[] = {3, 8}, pairs[] = {5, 6, 7};
	uint8_t seen[] = {0xff, 1};
	int8_t change[] = {-127, 1, 127};
	struct ow_scope_answer answer = {.digest = 4,
	                                 .seen = seen,
	                                 .seen_bytes = 2,
	                                 .late = {keys, 2},
	                                 .fine = {pairs, 1},
	                                 .rerouted = {pairs, 3},
	                                 .ttl_change = change};
	struct ow_message m = {.type = OW_MESSAGE_SYNOPSIS, .lane = 1, .interval = 2}, heard;
	struct ow_scope_answer back;
	uint8_t *bytes, *frame;
	assert_int_equal(ow_message_of_scope_answer(&answer, &m.synopsis.scope, &bytes), 0);
	travel(&m, &heard, &frame);
	assert_true(heard.synopsis.scope.there);
	assert_int_equal(ow_scope_answer_of_message(&heard.synopsis.scope, &back, &err), 0);
	assert_true(same(&back.late, &answer.late) && same(&back.fine, &answer.fine));
	assert_true(same(&back.rerouted, &answer.rerouted) && back.digest == 4 && back.seen_bytes == 2);
	assert_memory_equal(back.seen, seen, 2);
	assert_memory_equal(back.ttl_change, change, 3);
	ow_scope_answer_done(&back);
	free(frame);
	free(bytes);
}

/* The lists of the documented examples are what they say. */
static void test_examples(void **state)
{
	(void)state;
	struct ow_message m = example(13);
	struct ow_scope_update update;
	assert_int_equal(ow_scope_update_of_message(&m.scope, &update, &err), 0);
	assert_true(update.fine.count == 1 && update.fine.key[0] == 1);
	assert_true(update.keys.count == 2 && update.keys.key[0] == 2 && update.keys.key[1] == (UINT64_C(1) << 39) + 5);
	ow_scope_update_done(&update);
	struct ow_scope_answer answer;
	m = example(14);
	assert_int_equal(ow_scope_answer_of_message(&m.synopsis.scope, &answer, &err), 0);
	assert_true(answer.rerouted.count == 1 && answer.ttl_change[0] == -2 && answer.seen[0] == 2);
	ow_scope_answer_done(&answer);
}

static void refuse_keys(const uint64_t *keys, size_t count, size_t cut, const char *why)
{
	size_t size = ow_key_list_size(OW_SCOPE_KEY_BITS, keys, count);
	uint8_t *bytes = malloc(size);
	ow_key_list_encode(OW_SCOPE_KEY_BITS, keys, count, bytes);
	struct ow_message_scope m = {.keys = bytes, .keys_size = (uint32_t)(size - cut)};
	struct ow_scope_update update;
	assert_int_equal(ow_scope_update_of_message(&m, &update, &err), -EPROTO);
	assert_non_null(strstr(err.text, why));
	assert_null(update.keys.key);
	free(bytes);
}

static void test_refused(void **state)
{
	(void)state;
	uint64_t *many = calloc(OW_SCOPE_UPDATE_MAX + 1, sizeof *many);
	for (size_t k = 0; k <= OW_SCOPE_UPDATE_MAX; k++)
		many[k] = k;
	refuse_keys(many, OW_SCOPE_UPDATE_MAX + 1, 0, "65537 keys");
	refuse_keys(many, 0, 0, "0 keys");
	refuse_keys((uint64_t[]){7, 7}, 2, 0, "twice");
	refuse_keys((uint64_t[]){7, 9}, 2, 1, "flow keys");
	free(many);
	struct ow_message m = example(14);
	struct ow_scope_answer answer;
	m.synopsis.scope.changes = 0;
	assert_int_equal(ow_scope_answer_of_message(&m.synopsis.scope, &answer, &err), -EPROTO);
	assert_null(answer.seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_update), cmocka_unit_test(test_answer),
	                                   cmocka_unit_test(test_examples), cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
