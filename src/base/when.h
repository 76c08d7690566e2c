/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/*
 * Parses a time as people write it: "2026-11-15 10:02", with seconds or without a time of day; "10:02", its last
 * occurrence; "-2h" before now; "now"; seconds since 1970. Local time; UTC with a Z at the end.
 */
int ow_when_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct ow_error *err);
