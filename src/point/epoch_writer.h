/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_EPOCH_WRITER_H
#define OW_POINT_EPOCH_WRITER_H

#include "config/config.h"
#include "flows/epoch.h"

/*
 * Writes the epochs that a point records into their files, in a thread of its own: whatever the disk does, nobody waits
 * for it. What cannot be written is tried again; what finds no room to wait is lost, and counted.
 */
struct ow_epoch_writer;

/* Opens the files of the configuration's recordings, appending to what is there. */
int ow_epoch_writer_create(const struct ow_config *config, struct ow_epoch_writer **ret_writer, struct ow_error *err);
/* Takes the epoch: its colate and counts are NULL afterwards. From any thread. */
void ow_epoch_writer_add(struct ow_epoch_writer *writer, unsigned recording, struct ow_epoch *epoch);
/* Packets that were not recorded. From any thread. */
void ow_epoch_writer_lost(struct ow_epoch_writer *writer, unsigned recording, uint64_t packets);
/* A line that the log should have: a file that cannot be written, or again can; false = none. */
bool ow_epoch_writer_news(struct ow_epoch_writer *writer, struct ow_error *ret_line);
/* Writes what waits, once, and ends the thread. News may follow. */
void ow_epoch_writer_stop(struct ow_epoch_writer *writer);
void ow_epoch_writer_free(struct ow_epoch_writer *writer);

#endif
