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
	const char *from;    /* the file of the point before; NULL = none */
	uint32_t interfaces; /* bit i: interface i */
	enum ow_heading heading;
	const char *peer;   /* whose recording of the same packets is copied; NULL = none */
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
/* The file of the copy of the peer's recording, which there must be; the caller frees it. NULL: no memory. */
char *ow_config_flows_copy(const struct ow_config_flows *flows);
/* Whether this recording is at one point what the other one is at the other point. */
bool ow_config_flows_fit(enum ow_heading a, const struct ow_epoch_info *info_a, enum ow_heading b,
                         const struct ow_epoch_info *info_b);
/* Whether both record in the same way. */
bool ow_config_flows_same(const struct ow_config_flows *a, const struct ow_config_flows *b);
