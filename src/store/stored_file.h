/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored_source.h"
#include "store/row.h"
#include "store/stored.h"

/* The first version of the schema that has minutes, hours and days. */
#define OW_STORED_PERIODS_SINCE 7

/* Private to the files stored*.c. */
struct ow_stored {
	struct ow_stored_source source;
	struct ow_stored_lane *lane; /* by id */
	size_t lanes, lanes_room, chosen;
	struct ow_stored_filter filter;
	char *columns; /* columns that ow_stored_row reads */
	struct ow_row_reader reader;
	int64_t end_ns; /* of the time for queries, by the steady clock */
};

/* Whether it has tables of minutes, hours and days. */
bool ow_stored_has_periods(const struct ow_stored *stored);
/* Lane by its number, or NULL. */
const struct ow_stored_lane *ow_stored_lane(const struct ow_stored *stored, int64_t id);

/*
 * "SELECT columns FROM result WHERE selection" and then `tail`. Parameters ?1 and ?2 are since and until. The time
 * index is used for several lanes, that of the lane for a single one. The caller frees it; NULL if there is no memory.
 */
char *ow_stored_query(const struct ow_stored *stored, const char *columns, const char *tail);
int ow_stored_prepare(const struct ow_stored *stored, const char *columns, const char *tail,
                      struct ow_statement **ret_statement, struct ow_error *err);
