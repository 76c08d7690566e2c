/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: which columns are shown, how they are aligned, and that no line is wider than it was asked for. */
#include "base/table.h"

#include "base/format.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct ow_table_column columns[] = {{"a", 4, 1, false}, {"b", 6, 0, true}, {"c", 2, 2, false}};

static void fit(void **state)
{
	(void)state;
	struct ow_table table = {.column = columns, .count = 3};
	assert_int_equal(ow_table_fit(&table, 80), 15);
	assert_int_equal(table.shown, 7);
	assert_int_equal(ow_table_fit(&table, 14), 12); /* by rank: c goes first, */
	assert_int_equal(table.shown, 3);
	assert_int_equal(ow_table_fit(&table, 11), 7); /* then a, and c though it would fit */
	assert_int_equal(table.shown, 2);
	assert_int_equal(ow_table_fit(&table, 6), 0);
	assert_int_equal(table.shown, 0);
}

static void names(void **state)
{
	(void)state;
	struct ow_table table = {.column = columns, .count = 3};
	for (unsigned width = 12; width < 100; width++) {
		unsigned name = ow_table_fit_name(&table, width, 2, 10, 30), used = 0;
		for (unsigned i = 0; i < 3; i++)
			used += table.shown >> i & 1 ? 1 + columns[i].width : 0;
		assert_in_range(name, 10, 30);
		assert_true(2 + name + used <= width);
		assert_true(name == 30 || 2 + name + used == width);
	}
}

static void lines(void **state)
{
	(void)state;
	char *text;
	size_t size;
	ow_table_cells cells = {"12", "ok", "3"};
	struct ow_table table = {.out = open_memstream(&text, &size), .column = columns, .count = 3, .colour = true};
	ow_table_fit(&table, 80);
	ow_table_bold(&table);
	ow_table_name(table.out, "n\303\244me", 6);
	ow_table_titles(&table);
	ow_table_name(table.out, "a long name", 6);
	ow_table_row(&table, cells, 1);
	fclose(table.out);
	assert_string_equal(text, "\033[1mn\303\244me      a b       c\033[0m\na l*me\033[31m   12\033[0m ok      3\n");
	free(text);
}

/* No spaces at the end of a line, whatever its last cells are. */
static void ends(void **state)
{
	(void)state;
	char *text;
	size_t size;
	ow_table_cells one = {"12", "ok", ""}, none = {""};
	struct ow_table table = {.out = open_memstream(&text, &size), .column = columns, .count = 3};
	ow_table_fit(&table, 80);
	ow_table_row(&table, one, 0);
	ow_table_row(&table, none, 0);
	ow_table_fit(&table, 14); /* without c */
	ow_table_row(&table, one, 0);
	ow_table_numbers(&table, one, 0);
	fclose(table.out);
	assert_string_equal(text, "   12 ok\n\n   12 ok\n   12 ok    ");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fit),
		cmocka_unit_test(names),
		cmocka_unit_test(lines),
		cmocka_unit_test(ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
