/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

#define OW_COMMENT_MAX 1024 /* bytes of a comment, with the 0 at its end */

/* Writes the comment of a record. Returns its length, 0 for none, or a negative errno. */
typedef int ow_comment_of(void *arg, uint64_t number, char text[OW_COMMENT_MAX], struct ow_error *err);

/*
 * Copies a capture to a pcapng file (.gz: compressed) with a comment on each packet. A pcapng file is copied block by
 * block: its interfaces, statistics, names and comments stay, and the new comment is the first one. Simple packet
 * blocks cannot have comments. So are pcapng files of a set that follow each other. Of other files, of files that cover
 * the same time and of the port of a capture device the packets are written with nanoseconds and one interface for each
 * link type; then comment_of may be called from the first record on again. Fails if the capture has
 * fewer records than `records`: it has changed. On failure there is no file at `to`.
 */
int ow_comment_copy(const char *from, const char *to, uint64_t records, ow_comment_of *comment_of, void *arg,
                    struct ow_error *err);
