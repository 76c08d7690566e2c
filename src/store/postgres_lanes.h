/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "store/postgres.h"

/* The numbers of lanes in a database, kept in memory. Lanes are never removed from it. */
struct ow_postgres_lanes;

int ow_postgres_lanes_create(struct ow_postgres_lanes **ret_lanes);
void ow_postgres_lanes_free(struct ow_postgres_lanes *lanes);
/* Forgets everything, and reads all lanes of the database. */
int ow_postgres_lanes_load(struct ow_postgres_lanes *lanes, struct ow_postgres *postgres, struct ow_error *err);

/* The number of the lane with these four names; 0: not known. */
int64_t ow_postgres_lanes_find(const struct ow_postgres_lanes *lanes, const struct ow_interval_result *names);
/* A lane that is to be added for this point, unless it waits already. -EDQUOT: the point has `most` lanes. */
int ow_postgres_lanes_want(struct ow_postgres_lanes *lanes, const char *point, const struct ow_interval_result *names,
                           size_t most);
/* Adds the lanes that wait, in a transaction of its own. After a failure, load them again. */
int ow_postgres_lanes_add(struct ow_postgres_lanes *lanes, struct ow_postgres *postgres, struct ow_error *err);
