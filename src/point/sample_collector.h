/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "discovery/sampler.h"

/*
 * Makes messages of the samples of a point's interfaces. Threads that share an interface sample its packets apart; their
 * samples are joined when all of them are there.
 */
struct ow_sample_collector;

/* Called in the recording threads, one at a time. */
typedef void ow_sample_message_handler(void *arg, int64_t start_ns, const uint8_t *bytes, size_t size);

/* The configuration has discovery.key. */
int ow_sample_collector_create(const struct ow_config *config, ow_sample_message_handler *handler, void *arg,
                               struct ow_sample_collector **ret_collector, struct ow_error *err);
void ow_sample_collector_free(struct ow_sample_collector *collector);
/* For ow_recorder_add_sampler. */
void ow_sample_collector_options(const struct ow_sample_collector *collector, struct ow_sampler_options *ret_options);
