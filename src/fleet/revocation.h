/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"
#include "fleet/desired.h"
#include "fleet/folder.h"

/*
 * Revoked keys on their way to the points: they connect to each other without asking anybody, so each of them has the
 * list (exchange/revoked.h). It is signed as a desired state of a name that no point of a fleet has, because of its dot.
 * A point keeps the highest generation of each name that it has seen: an old list takes nothing back.
 */
#define OW_REVOCATION_NAME "revoked.keys"
/* Its key in the bucket; not the name of a point either. */
#define OW_REVOCATION_KEY "=revoked"

/* Publishes what the records of the points say. */
int ow_revocation_publish(const struct ow_fleet *fleet, const struct ow_credential *ca, struct ow_bus *bus,
                          struct ow_error *err);
/* See OW_DESIRED_NONE: all points may ask for the list, so there has to be one. */
int ow_revocation_reserve(struct ow_bus *bus, struct ow_error *err);
/*
 * For the agent of a point: checks what came, by the authority's certificate in the state folder, and adds it to the file
 * there. Returns 1 if something is new.
 */
int ow_revocation_take(const char *folder, const char *bytes, size_t size, struct ow_error *err);
