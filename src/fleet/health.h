/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * How a point is: it writes it into its state folder, its agent publishes it, and `oneway fleet status` shows it. The
 * table of its fields is in health.c; docs/json.md has their meaning.
 */
#define OW_HEALTH_MAX 8192 /* bytes of JSON */

struct ow_health {
	char point[64];
	char version[32]; /* of the program */
	char state[16];   /* "waiting" for a desired state, "measuring" */
	int64_t time_ns;  /* when it was written */
	int64_t started_ns;
	uint64_t peers, connected, lanes;
	char peers_why[160];      /* why the first one that is not connected is not */
	uint64_t frames, dropped; /* by the rings, since the start */
	uint64_t store_waiting, store_lost;
	bool store_failing; /* what waits could not be written, and is tried again */
	uint64_t memory_bytes;
	bool clock_known, clock_synchronised;
	int64_t clock_error_ns;
	int64_t last_result_ns; /* end of the interval of the latest final result; 0 = none */
	int64_t certificate_until_s;
	uint64_t config_version; /* of the desired state in force; 0 = none */
	uint64_t config_refused; /* of one that is not, because: */
	char config_why[300];
	char config_kept[160]; /* keys that the point's own file decides */
	int64_t heard_ns;      /* when the bus got it, by the clock of its server; no part of the message */
};

struct ow_json;
/* As a member of an object. */
void ow_health_members(struct ow_json *json, const char *name, const struct ow_health *health);
/* One line of JSON. */
void ow_health_print(FILE *out, const struct ow_health *health);
/* -EINVAL if it is not such a line. Members that are missing are 0; unknown ones are skipped. */
int ow_health_parse(const char *text, size_t size, struct ow_health *ret_health, struct ow_error *err);
/* Writes it into the state folder. */
int ow_health_save(const char *folder, const struct ow_health *health, struct ow_error *err);
