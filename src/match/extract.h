/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_EXTRACT_H
#define OW_MATCH_EXTRACT_H

#include <oneway/match.h>

/* A set of record numbers of one capture: a bitmap, one bit a record. All zero is the empty set. */
struct ow_records {
	uint64_t *word;
	size_t words;
	uint64_t count;
};

/* number: 1-based. Adding one that is there is fine. -ENOMEM leaves the set unchanged. */
int ow_records_add(struct ow_records *records, uint64_t number);
bool ow_records_has(const struct ow_records *records, uint64_t number);
void ow_records_done(struct ow_records *records);

/*
 * Copies the chosen records of both captures into one nanosecond pcap at path, merged by time, as they were captured.
 * All must have one link type, or it fails. No record chosen: an empty capture. On failure nothing stays at path.
 */
int ow_extract(const char *path, const char *const source[OW_SIDES], const struct ow_records chosen[OW_SIDES],
               struct ow_error *err);

#endif
