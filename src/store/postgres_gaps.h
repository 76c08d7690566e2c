/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/postgres_writer.h"

/* Minutes that the database does not have between two that it has: the point may still have them. */
struct ow_postgres_gap {
	const char *from, *to; /* points of the lane */
	int64_t since_ns, until_ns;
};
typedef void ow_postgres_each_gap(void *arg, const struct ow_postgres_gap *gap);
/* Gaps between minutes of [since, until), at most `limit`, the newest first. */
int ow_postgres_gaps(struct ow_postgres_writer *writer, int64_t since_ns, int64_t until_ns, unsigned limit,
                     ow_postgres_each_gap *each, void *arg, struct ow_error *err);
