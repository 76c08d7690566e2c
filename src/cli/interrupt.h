/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_INTERRUPT_H
#define OW_CLI_INTERRUPT_H

#include <signal.h>

/* SIGINT and SIGTERM for commands that end by themselves soon after, so that no half-written file stays. */

/* Set by the first of them. */
extern volatile sig_atomic_t ow_interrupted;

/* From now on; the second time the default action applies. */
void ow_interrupt_catch(void);

#endif
