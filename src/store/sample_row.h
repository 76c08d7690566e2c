/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Samples of packets (discovery/sample_message.h) as rows of table sample: the messages that the fleet gets. They are kept
 * for a while only; numbers are not used again, so that a reader knows what it has.
 */

/* The version of the schema that has the table. */
#define OW_SAMPLE_ROW_SINCE 8
/* How long samples are kept. */
#define OW_SAMPLE_ROW_KEPT_NS INT64_C(600000000000)

struct ow_sample_row {
	int64_t start_ns; /* of the epoch */
	const uint8_t *bytes;
	size_t size;
};

extern const char ow_sample_row_schema[];
extern const char ow_sample_row_insert[];
/* Parameter 1: samples of epochs before this time. */
extern const char ow_sample_row_delete[];
void ow_sample_row_bind(sqlite3_stmt *statement, const struct ow_sample_row *row);
