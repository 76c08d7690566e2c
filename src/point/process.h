/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/metrics.h"

/* What this process uses. Its files in /proc are opened once, so that a confined process can still read them. */
struct ow_process;

/* Values that /proc does not provide are not known; this is not a failure. */
int ow_process_create(struct ow_process **ret_process);
void ow_process_free(struct ow_process *process);
void ow_process_look(struct ow_process *process, struct ow_metrics_process *ret_facts);
