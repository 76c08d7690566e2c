/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: each has its own text, from which it is found again. */
#include "estimate/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A message between points and a row of the store hold so many bytes of a text, with the end. */
#define TEXT_MAX 160

static void texts_come_back(void **state)
{
	(void)state;
	assert_string_equal(ow_reason_text(OW_NO_REASON), "");
	for (int i = OW_NO_REASON + 1; i < OW_REASON_COUNT; i++) {
		const char *text = ow_reason_text((enum ow_reason)i);
		assert_in_range(strlen(text), 1, TEXT_MAX - 1);
		assert_int_equal(ow_reason_of(text, OW_NO_REASON), i);
		assert_int_equal(ow_reason_of_hash(ow_reason_hash((enum ow_reason)i), OW_NO_REASON), i);
	}
	assert_int_equal(ow_reason_hash(OW_NO_REASON), 0);
	assert_int_equal(ow_reason_of_hash(0, OW_REASON_OTHER), OW_NO_REASON);
	assert_int_equal(ow_reason_of_hash(1, OW_REASON_OTHER), OW_REASON_OTHER);
	assert_int_equal(ow_reason_of("no packets were sent", OW_NO_REASON), OW_REASON_NO_PACKET_SENT);
	assert_int_equal(ow_reason_of("", OW_REASON_OTHER), OW_REASON_OTHER);
	assert_int_equal(ow_reason_of("no such reason", OW_NO_REASON), OW_NO_REASON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(texts_come_back)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
