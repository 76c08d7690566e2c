/* SPDX-License-Identifier: Apache-2.0 */
#include "packet/packet_class.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void dscp(void **state)
{
	(void)state;
	const uint8_t four[20] = {0x45, 46 << 2 | 1}, six[40] = {0x6b, 0x9f};
	assert_int_equal(ow_packet_dscp(&(struct ow_packet){.ip = four, .version = 4}), 46);
	assert_int_equal(ow_packet_dscp(&(struct ow_packet){.ip = six, .version = 6}), 46);
	static const char *const names[64] = {
		[0] = "CS0", [1] = "LE",  [10] = "AF11", [12] = "AF12", [14] = "AF13", [26] = "AF31", [38] = "AF43",
		[44] = "VA", [46] = "EF", [48] = "CS6",  [56] = "CS7",  [3] = "3",     [42] = "42",   [63] = "63",
	};
	for (unsigned i = 0; i < 64; i++) {
		char text[OW_DSCP_TEXT];
		if (names[i])
			assert_string_equal(ow_dscp_text((uint8_t)i, text), names[i]);
	}
}

/* Every size is in one class, and in the range of that class. */
static void sizes(void **state)
{
	(void)state;
	uint32_t least, most, next = 0;
	for (uint8_t i = 0; i < OW_SIZE_CLASSES; i++) {
		ow_size_class_range(i, &least, &most);
		assert_int_equal(least, next);
		assert_int_equal(ow_size_class(least), i);
		assert_int_equal(ow_size_class(most), i);
		next = most + 1;
	}
	assert_int_equal(most, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(dscp), cmocka_unit_test(sizes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
