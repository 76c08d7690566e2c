/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct ow_daemon;

/* Ends the connections whose peers are not accepted by the keys. */
void ow_daemon_links_check(struct ow_daemon *daemon);
/*
 * Checks, if it is time to, the connection that was not checked for the longest time; and whether this point's own
 * certificate is about to expire.
 */
void ow_daemon_trust_tick(struct ow_daemon *daemon, int64_t steady_ns);
