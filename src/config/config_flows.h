/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "synopsis/colate_plan.h"
#include "flows/epoch.h"

/* A recording of flows that a point makes (docs/config.md): which packets, and how. */
struct ow_config_class;

#define OW_CONFIG_FLOWS_MAX 8 /* recordings */

struct ow_config_flows {
	const char *file;
	uint32_t interfaces; /* bit i: interface i */
	enum ow_heading heading;
	const char *filter; /* NULL = all packets */
	struct ow_config_class *classes;
	unsigned class_count;
	enum ow_colate_form form;
	uint64_t stddev, stddev_spread, repair, counters, spread, vectors, bits, check_bits, count_bits, seed, id_bytes,
		flows_max;
	struct ow_epoch_info info; /* valid after ow_config_flows_complete */
	unsigned line;
};

/* Checks the values against each other, and fills info. */
int ow_config_flows_complete(struct ow_config_flows *flows, struct ow_error *why);
/* Whether both record in the same way. */
bool ow_config_flows_same(const struct ow_config_flows *a, const struct ow_config_flows *b);
