/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon.h"

#include <stdio.h>

/*
 * The log of a point: one line for each event. To systemd's journal with its level in front ("<4>..."), elsewhere with
 * the time. A repeated line is printed once, then counted: one line per minute, later one per hour, with the count.
 * Lines that differ only in ports, or after the first comma, are the same. A flood of different warnings is counted as
 * well. For one thread.
 */
struct ow_journal;

/* point: printed in front of each line, unless a journal adds it. The caller keeps out. */
int ow_journal_create(FILE *out, const char *point, bool journald, struct ow_journal **ret_journal);
/* Prints what was only counted. */
void ow_journal_free(struct ow_journal *journal);

/* now_ns: ow_clock_steady_ns. */
void ow_journal_line(struct ow_journal *journal, enum ow_event level, const char *line, int64_t now_ns);
/* To be called about once per second: prints counts whose time has come. */
void ow_journal_tick(struct ow_journal *journal, int64_t now_ns);

/* Whether this descriptor is the one that $JOURNAL_STREAM names. */
bool ow_journal_is_stream(int fd);

#define OW_JOURNAL_WINDOW_NS  INT64_C(60000000000)
#define OW_JOURNAL_LONGEST_NS INT64_C(3600000000000)
#define OW_JOURNAL_KINDS      64 /* kinds of lines that are remembered at a time */
