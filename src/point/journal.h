/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_JOURNAL_H
#define OW_POINT_JOURNAL_H

#include "point/daemon.h"

#include <stdio.h>

/*
 * The log of a point: one line an event. To systemd's journal with its level in front ("<4>..."), elsewhere with the
 * time. What is said again and again is said once, then counted: a line a minute, later a line an hour with how often
 * it was. Ports do not make a difference, nor does what follows the first comma. A flood of different warnings is
 * counted, too. One thread.
 */
struct ow_journal;

/* point: in front of each line, where there is no journal that knows. out stays the caller's. */
int ow_journal_create(FILE *out, const char *point, bool journald, struct ow_journal **ret_journal);
/* Tells what was only counted. */
void ow_journal_free(struct ow_journal *journal);

/* now_ns: ow_clock_steady_ns. */
void ow_journal_line(struct ow_journal *journal, enum ow_event level, const char *line, int64_t now_ns);
/* Once a second or so: counts whose time has come. */
void ow_journal_tick(struct ow_journal *journal, int64_t now_ns);

/* Whether this descriptor is the one that $JOURNAL_STREAM names. */
bool ow_journal_is_stream(int fd);

#define OW_JOURNAL_WINDOW_NS  INT64_C(60000000000)
#define OW_JOURNAL_LONGEST_NS INT64_C(3600000000000)
#define OW_JOURNAL_KINDS      64 /* of lines that are remembered at a time */

#endif
