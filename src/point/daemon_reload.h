/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_RELOAD_H
#define OW_POINT_DAEMON_RELOAD_H

struct ow_daemon;

/* Continues a reload, and proposes refused lanes again. */
void ow_daemon_reload_tick(struct ow_daemon *daemon);

#endif
