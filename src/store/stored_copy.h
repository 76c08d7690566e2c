/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored.h"

struct ow_stored_copied {
	uint64_t results; /* with minutes, hours and days */
	uint64_t events;
	uint64_t there; /* of both: the server had it already */
	uint64_t refused;
	struct ow_error why; /* of the first that was refused */
};

/* Copies the selected results, also as minutes, hours and days, and events to a PostgreSQL server. It can be done again. */
int ow_stored_copy(struct ow_stored *stored, const char *url, struct ow_stored_copied *ret_copied,
                   struct ow_error *err);
