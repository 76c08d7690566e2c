/* SPDX-License-Identifier: Apache-2.0 */
/* The signal handler only records that a signal came. */
#include "cli/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t ow_interrupted;

static void on_signal(int number)
{
	ow_interrupted = number;
}

void ow_interrupt_catch(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
