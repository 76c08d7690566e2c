/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>

/*
 * Handling of SIGINT and SIGTERM for commands that check ow_interrupted and end soon after, without leaving a
 * half-written file.
 */

/* Set by the first signal. */
extern volatile sig_atomic_t ow_interrupted;

/* Installs the handlers. A second signal has its default action. */
void ow_interrupt_catch(void);
