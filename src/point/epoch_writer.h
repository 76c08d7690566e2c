/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "flows/epoch.h"

/*
 * Writes the epochs that a point records into their files, in its own thread, so that nobody waits for the disk. Epochs
 * that cannot be written are retried; epochs beyond the queue are lost, and counted.
 */
struct ow_epoch_writer;

/* Opens the files of the configuration's recordings for appending. */
int ow_epoch_writer_create(const struct ow_config *config, struct ow_epoch_writer **ret_writer, struct ow_error *err);
/* Takes the epoch: its colate and counts are NULL afterwards. May be called by any thread. */
void ow_epoch_writer_add(struct ow_epoch_writer *writer, unsigned recording, struct ow_epoch *epoch);
/* Counts packets that were not recorded. May be called by any thread. */
void ow_epoch_writer_lost(struct ow_epoch_writer *writer, unsigned recording, uint64_t packets);
/* A line for the log: a file that cannot be written, or can be written again; false = none. */
bool ow_epoch_writer_news(struct ow_epoch_writer *writer, struct ow_error *ret_line);
/* Writes the waiting epochs, once, and ends the thread. There may be news afterwards. */
void ow_epoch_writer_stop(struct ow_epoch_writer *writer);
void ow_epoch_writer_free(struct ow_epoch_writer *writer);
