/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_fleet.h"
#include "exchange/issue.h"

/*
 * Desired state on its way to a point: keys of its configuration below a first line with point, version and signature
 * (config/config_fleet.h). It is signed, because who can write to the bus is not who may lead a point: a server's answer
 * can be sent to another point than the one that asked.
 */
#define OW_DESIRED_MAX (512u << 10)
/*
 * Stands in the bus for a point that has no desired state. Without it, nats-server would answer the point with an empty
 * message, which the point can have sent to any subject, also to the interface of JetStream: it is a command there.
 */
#define OW_DESIRED_NONE "# oneway: no desired state yet\n"

/* The whole text, to be freed. */
int ow_desired_sign(const struct ow_credential *ca, const char *point, uint64_t version, const char *body,
                    char **ret_bytes, size_t *ret_size, struct ow_error *err);
/* -EACCES: not signed by this authority, or for another point. */
int ow_desired_verify(const X509 *ca, const char *point, const char *bytes, size_t size,
                      struct ow_desired_head *ret_head, struct ow_error *err);

/* The same by the authority's certificate in the state folder of a point. -EFBIG: it is too long. */
int ow_desired_check(const char *folder, const char *point, const char *bytes, size_t size,
                     struct ow_desired_head *ret_head, struct ow_error *err);

/*
 * For the agent of a point: checks what came, by the authority's certificate in the state folder, and keeps it there.
 * Returns 1 if it is new, 0 if the point has it. -ESTALE if it is older than that; nothing is written then.
 */
int ow_desired_take(const char *folder, const char *point, const char *bytes, size_t size, struct ow_error *err);
