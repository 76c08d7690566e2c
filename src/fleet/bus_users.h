/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/folder.h"

/*
 * The users of the bus with their permissions: a point publishes as itself only, and reads its own desired state only.
 * Each server has the same file, users.conf, which its configuration includes.
 */
int ow_bus_users_print(const struct ow_fleet *fleet, FILE *out, struct ow_error *err);

/* The folder of a server: "DIR/nats/HOST" or "DIR/nats/HOST-PORT". To be freed. */
char *ow_bus_folder(const char *path, const struct ow_bus_host *host);

/*
 * Writes users.conf for all servers, and lets those that run on this host read it. *ret_elsewhere: the servers that do
 * not run here, each with a space before it; to be freed.
 */
int ow_bus_users_apply(const struct ow_fleet *fleet, char **ret_elsewhere, struct ow_error *err);
/* Lets the nats-server of this folder read its users again. -ESRCH if none runs here. */
int ow_bus_reload(const char *folder);
