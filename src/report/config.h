/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include <stdio.h>

/* Prints a configuration as it was understood. lanes, needed: its lanes, and the bytes that they need at least. */
void ow_report_config(FILE *out, const struct ow_config *config, unsigned lanes, uint64_t needed);
