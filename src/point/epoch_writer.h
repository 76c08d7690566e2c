/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "flows/epochs.h"
#include "point/worst_flows.h"

/*
 * Writes the epochs that a point records into their files, in its own thread, so that nobody waits for the disk. Epochs
 * that cannot be written are retried; epochs beyond the queue are lost, and counted. If a recording has a peer, the
 * thread also reads epochs for it, and appends those of the peer to the copy. And it finds the worst flows of recordings with
 * `from`.
 */
struct ow_epoch_writer;

/* Opens the files of the configuration's recordings for appending. */
int ow_epoch_writer_create(const struct ow_config *config, struct ow_epoch_writer **ret_writer, struct ow_error *err);
/* Takes the epoch: its colate and counts are NULL afterwards. May be called by any thread. */
void ow_epoch_writer_add(struct ow_epoch_writer *writer, unsigned recording, struct ow_epoch *epoch);
/*
 * These are called by one thread, for recordings with a peer. Where the copy ends; false: an epoch is being appended, or
 * the copy has stopped.
 */
bool ow_epoch_writer_place(struct ow_epoch_writer *writer, unsigned recording, struct ow_epochs_place *ret_place);
/* Appends the peer's next epoch to the copy, later. Copies the bytes. 0, -ENOSPC, -ENOMEM. */
int ow_epoch_writer_append(struct ow_epoch_writer *writer, unsigned recording, const struct ow_epochs_copy *copy);
/* Reads the epoch of the recording that follows this place, later. 0; -EBUSY: one is being read; -ENOSPC, -ENOMEM. */
int ow_epoch_writer_read(struct ow_epoch_writer *writer, unsigned recording, const struct ow_epochs_place *place);
/* Once, when it was read. code: as of ow_epochs_copy_next; the caller frees the bytes of the copy. */
bool ow_epoch_writer_was_read(struct ow_epoch_writer *writer, unsigned recording, int *ret_code,
                              struct ow_epochs_copy *ret_copy);
/* Counts packets that were not recorded. May be called by any thread. */
void ow_epoch_writer_lost(struct ow_epoch_writer *writer, unsigned recording, uint64_t packets);
/* A line for the log: a file that cannot be written, or can be written again; false = none. */
bool ow_epoch_writer_news(struct ow_epoch_writer *writer, struct ow_error *ret_line);
/*
 * The worst flows of an interval of a recording with `from`, when the next interval is over; false = none since the last
 * time. The caller frees its json.
 */
bool ow_epoch_writer_worst(struct ow_epoch_writer *writer, struct ow_worst_flows *ret_worst);
/* Writes the waiting epochs, once, and ends the thread. There may be news afterwards. */
void ow_epoch_writer_stop(struct ow_epoch_writer *writer);
void ow_epoch_writer_free(struct ow_epoch_writer *writer);
