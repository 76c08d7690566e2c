/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>

/*
 * A connection in the background. ow_connect asks the resolver for a host's name, and blocks for many seconds if a name
 * server does not answer: here this happens in a separate thread. A numeric address, which does not block, is connected
 * at once.
 */
struct ow_dial;

/* As ow_connect. */
typedef int (*ow_dial_how)(const char *address, int *ret_fd, struct ow_error *err);

/* how: NULL = ow_connect. -ENOMEM, -EAGAIN (no thread). */
int ow_dial_start(const char *address, ow_dial_how how, struct ow_dial **ret_dial, struct ow_error *err);
/* The result: -EINPROGRESS as long as it is not known, then what ow_connect returned, once. */
int ow_dial_result(struct ow_dial *dial, int *ret_fd, struct ow_error *err);
/* Does not wait: a thread that still waits continues alone, and cleans up. */
void ow_dial_free(struct ow_dial *dial);
