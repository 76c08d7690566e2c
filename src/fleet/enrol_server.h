/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>

/*
 * `oneway fleet serve`: gives points their certificates, and tells servers of the bus who its users are. Anybody can
 * connect: a few connections of an address at a time, each for some seconds, each with one short request.
 */
struct ow_enrol_server {
	const char *folder;                                 /* of the fleet */
	const char *listen;                                 /* ":8621" */
	int stop_fd;                                        /* ends when it is readable */
	void (*log)(void *arg, bool bad, const char *line); /* called by several threads, one at a time */
	void *arg;
};
int ow_enrol_serve(const struct ow_enrol_server *how, struct ow_error *err);
