/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct ow_daemon;

/* Continues a reload, and proposes refused lanes again. */
void ow_daemon_reload_tick(struct ow_daemon *daemon);
