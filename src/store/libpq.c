/* SPDX-License-Identifier: Apache-2.0 */
#include "store/libpq.h"

#include "base/library.h"

#define LIBRARY "libpq.so.5"

struct ow_libpq ow_pq;

int ow_libpq_load(struct ow_error *err)
{
#define FUNCTION(name) {#name, &ow_pq.name},
	static const struct ow_library_function functions[] = {OW_LIBPQ_FUNCTIONS(FUNCTION)};
	return ow_library_load(LIBRARY, functions, sizeof functions / sizeof *functions, err);
}
