/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/* A set of record numbers of one capture: a bitmap with one bit for each record. All zero is the empty set. */
struct ow_records {
	uint64_t *word;
	size_t words;
	uint64_t count;
};

/* number: 1-based. It may be in the set already. -ENOMEM leaves the set unchanged. */
int ow_records_add(struct ow_records *records, uint64_t number);
bool ow_records_has(const struct ow_records *records, uint64_t number);
void ow_records_done(struct ow_records *records);

/*
 * Copies the selected records of both captures into one nanosecond pcap at path, merged by time, unchanged. Fails if
 * they have different link types. Without records: an empty capture. On failure there is no file at path.
 */
int ow_extract(const char *path, const char *const source[OW_SIDES], const struct ow_records chosen[OW_SIDES],
               struct ow_error *err);
