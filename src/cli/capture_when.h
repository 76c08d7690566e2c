/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/*
 * Parses a time of a capture as people write it (base/when.h). A time of day means its first occurrence in the capture:
 * 10:02 is on the day of the first packet, or on the next one if the capture begins later. +90s is 90 s after the first packet.
 */
int ow_capture_when_parse(const char *text, const char *path, int64_t *ret_ns, struct ow_error *err);
