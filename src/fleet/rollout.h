/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/control.h"
#include "fleet/plan.h"

/* Brings desired state to the points in steps, and takes it back if a point cannot use it. */

/* The state of a point that changes. */
struct ow_change {
	char name[OW_POINT_NAME];
	char *before; /* NULL: it has none yet */
	const char *after;
};

struct ow_changes {
	struct ow_change *change;
	unsigned count;
	size_t room;
	uint64_t version;   /* that they make */
	unsigned unchanged; /* points */
};

/* Compares the plan with what was applied last. A point that is not in the plan any more gets nothing to measure. */
int ow_changes_find(const struct ow_fleet *fleet, const struct ow_fleet_plan *plan, struct ow_changes *ret_changes,
                    struct ow_error *err);
void ow_changes_done(struct ow_changes *changes);
/* Lines that go, and lines that come, for each point. */
void ow_changes_print(FILE *out, const struct ow_changes *changes);

/* Calls each for the name of every point that has something to measure. A value other than 0 ends it, and is returned. */
int ow_applied_each(const struct ow_fleet *fleet, int (*each)(void *arg, const char *name), void *arg);
/* The version that a point should have; 0 = none. */
uint64_t ow_applied_version(const struct ow_fleet *fleet, const char *point);

struct ow_rollout {
	const struct ow_fleet *fleet;
	const struct ow_credential *ca;
	struct ow_bus *bus;
	const struct ow_fleet_plan *plan;
	const struct ow_changes *changes;
	void (*say)(const char *line);
	volatile int *interrupted; /* may be NULL; then it ends where it is, and the rest is not changed */
};
/* Publishes again what the bus has lost. Returns the number of points. */
int ow_rollout_restore(const struct ow_rollout *how, struct ow_error *err);
/*
 * 0: every point that is there has accepted its state. -ECANCELED: a point refused, or fell silent, and what had been
 * changed was changed back; err has the reason.
 */
int ow_rollout(const struct ow_rollout *how, struct ow_error *err);
