/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What a service tells systemd, by datagrams to $NOTIFY_SOCKET (sd_notify(3)); nothing if it is not set. The socket is
 * opened once, before the sandbox forbids it.
 */
struct ow_service {
	int fd;          /* -1 = there is no socket */
	int64_t beat_ns; /* how often the watchdog must be notified; 0 = never */
	int64_t next_ns; /* ow_clock_steady_ns */
	char status[200];
};

void ow_service_open(struct ow_service *ret_service);
void ow_service_close(struct ow_service *service);

void ow_service_ready(struct ow_service *service);
void ow_service_reloading(struct ow_service *service);
void ow_service_stopping(struct ow_service *service);
/* One line for `systemctl status`; sent if it has changed. */
void ow_service_status(struct ow_service *service, const char *status);
/* Notifies the watchdog, if it is time to. */
void ow_service_beat(struct ow_service *service, int64_t now_ns);
