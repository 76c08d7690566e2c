/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_classes.h"

#include "packet/packet_class.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Names of sizes differ in the middle: cut ones could not be told apart. */
static void names_of_sizes_are_whole_in_a_narrow_terminal(void **state)
{
	(void)state;
	static struct ow_match_classes classes = {.by = OW_CLASS_BY_SIZE};
	for (unsigned i = 0; i < OW_SIZE_CLASSES; i++) {
		classes.result[i][OW_A_TO_B] = (struct ow_result){.sent = 1000, .lost = 10};
		ow_match_classes_add(&classes, (uint8_t)i);
	}
	for (unsigned width = 40; width <= 120; width += 20) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		ow_report_match_classes_text(out, &classes, width, OW_LOOK_PLAIN);
		assert_int_equal(fclose(out), 0);
		for (unsigned i = 0; i < classes.count; i++)
			assert_non_null(strstr(text, classes.name[i]));
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= width);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_sizes_are_whole_in_a_narrow_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
