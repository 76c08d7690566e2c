/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdio.h>

/* Files of truth: "-" is standard output. */
int ow_sim_output_open(const char *path, FILE **ret_out, struct ow_error *err);
/* Closes; fails if anything was not written. out may be NULL. */
int ow_sim_output_close(const char *path, FILE *out, struct ow_error *err);
