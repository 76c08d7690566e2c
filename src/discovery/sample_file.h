/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/sampler.h"

/*
 * Samples from files: messages (sample_message.h), each with its length before it (4 bytes, little-endian), and captures,
 * of which they are made here.
 */
typedef int ow_sample_handler(void *arg, struct ow_vantage_sample *sample, struct ow_error *err);

/* Whether the file begins like a file of messages. */
bool ow_sample_file_is(const char *path);
/* Calls the handler for each message, which may take its records. Stops at the first error. */
int ow_sample_file_read(const char *path, ow_sample_handler *handler, void *arg, struct ow_error *err);

struct ow_sample_capture {
	const char *path, *point;
	uint64_t key;
	uint32_t records;
	int64_t epoch_ns;
};
/* The capture is one vantage without direction: point, "capture". 1: it is damaged at its end, as err says, and was used
 * up to there. */
int ow_sample_capture_read(const struct ow_sample_capture *capture, ow_sample_handler *handler, void *arg,
                           struct ow_error *err);
