/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Memory that runs out: malloc, calloc and realloc of the program (linked with -Wl,--wrap) fail at the n-th call from
 * now on, and with `forever` at all later ones. 0 = never.
 */
void scarce_from(size_t nth, bool forever);
/* Calls that failed since then. */
size_t scarce_failures(void);
