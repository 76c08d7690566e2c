/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_PROCESS_H
#define OW_POINT_PROCESS_H

#include "report/metrics.h"

/* What this process uses. Its files below /proc are opened once, so that a process that may open none later still
 * sees itself. */
struct ow_process;

/* Where /proc does not tell, the facts are not known: no failure. */
int ow_process_create(struct ow_process **ret_process);
void ow_process_free(struct ow_process *process);
void ow_process_look(struct ow_process *process, struct ow_metrics_process *ret_facts);

#endif
