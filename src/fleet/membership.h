/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "fleet/bus.h"
#include "fleet/enrol.h"

/*
 * What keeps a point in its fleet, for its agent: the certificate, which is renewed in time, and the desired state,
 * which is checked and kept in the state folder. The point notices both by the files.
 */
struct ow_membership {
	const struct ow_config *config;
	struct ow_bus *bus;
	void (*log)(void *arg, bool warning, const char *line);
	void *arg;
	int64_t enrol_next_ns, ask_next_ns, pause_ns; /* steady times */
	bool was_connected;
	char refused[OW_ENROL_TOKEN]; /* see ow_enrol */
	struct ow_error said;         /* last problem that was logged */
};

/* Waits until the point has a certificate, or until *stop. */
int ow_membership_begin(struct ow_membership *m, volatile int *stop);
/* The bus on which the desired state comes. */
int ow_membership_join(struct ow_membership *m, struct ow_bus *bus, struct ow_error *err);
/* To be called every second or so. */
void ow_membership_tick(struct ow_membership *m, int64_t now_ns);
