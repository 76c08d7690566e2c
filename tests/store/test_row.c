/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the store: every field of a result comes back. */
#include "../result/every_field.h"
#include "store/stored.h"
#include "store_file.h"

static int keep(void *arg, const struct ow_interval_result *result)
{
	*(struct ow_interval_result *)arg = *result;
	return 0;
}

static void comes_back(void **state)
{
	for (unsigned more = 0; more < 4; more++) {
		struct ow_interval_result wrote = every_field(more), read = {.length_ns = 0};
		store_fresh(state);
		struct ow_store *store = store_open();
		struct ow_stored *stored = NULL;
		struct ow_error err;
		if (more % 2) {
			wrote.status = OW_RESULT_MEASURED;
			wrote.cause[0] = 0;
			wrote.reordered = OW_RESULT_NOT_COUNTED;
			wrote.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
			wrote.exact = wrote.active = false;
		}
		store_add(store, &wrote);
		ow_store_close(store);
		assert_int_equal(ow_stored_open(store_path, &stored, &err), 0);
		assert_int_equal(ow_stored_list(stored, 1, keep, &read, &err), 0);
		for (size_t i = 0; i < ow_field_count; i++)
			every_same(&ow_fields[i], &wrote, &read);
		ow_stored_close(stored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back)};
	if (store_make() < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
