/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_EPOCH_WRITER_H
#define OW_POINT_EPOCH_WRITER_H

#include "config/config.h"
#include "flows/epoch.h"

/*
 * Writes the epochs that a point records into their files, in a thread of its own: whatever the disk does, nobody waits
 * for it. What cannot be written is tried again; what finds no room to wait is lost, and counted.
 */
struct ow_flow_keeper;

/* Opens the files of the configuration's recordings, appending to what is there. */
int ow_flow_keeper_create(const struct ow_config *config, struct ow_flow_keeper **ret_keeper, struct ow_error *err);
/* Takes the epoch: its colate and counts are NULL afterwards. From any thread. */
void ow_flow_keeper_add(struct ow_flow_keeper *keeper, unsigned recording, struct ow_epoch *epoch);
/* Packets that were not recorded. From any thread. */
void ow_flow_keeper_lost(struct ow_flow_keeper *keeper, unsigned recording, uint64_t packets);
/* A line that the log should have: a file that cannot be written, or again can; false = none. */
bool ow_flow_keeper_news(struct ow_flow_keeper *keeper, struct ow_error *ret_line);
/* Writes what waits, once, and ends the thread. News may follow. */
void ow_flow_keeper_stop(struct ow_flow_keeper *keeper);
void ow_flow_keeper_free(struct ow_flow_keeper *keeper);

#endif
