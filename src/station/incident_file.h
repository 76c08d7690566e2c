/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A file of events of incidents, a line of JSON each. A station that is started again finds the same incidents in the
 * same results; what the file has already is not written again.
 */
struct ow_incident_file;

int ow_incident_file_open(const char *path, struct ow_incident_file **ret_file, struct ow_error *err);
/* Whether the file does not have this event yet. number: see struct ow_incident, `events`. There is one end, whatever its
 * number. */
bool ow_incident_file_wants(const struct ow_incident_file *file, const char *id, uint32_t number, bool is_end);
/* Where the event is to be written, as one line. */
FILE *ow_incident_file_out(struct ow_incident_file *file);
/* An error says that not all could be written. */
int ow_incident_file_close(struct ow_incident_file *file, struct ow_error *err);
