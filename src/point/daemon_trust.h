/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_TRUST_H
#define OW_POINT_DAEMON_TRUST_H

#include <stdint.h>

struct ow_daemon;

/* Ends the connections whose peers the keys do not accept. */
void ow_daemon_links_check(struct ow_daemon *daemon);
/* The same of the one that was not looked at for longest, if it is time to; and whether this point's own certificate is
 * about to expire. */
void ow_daemon_trust_tick(struct ow_daemon *daemon, int64_t steady_ns);

#endif
