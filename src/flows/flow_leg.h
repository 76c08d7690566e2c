/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flow_answers.h"
#include "flows/flow_repair.h"

/* One leg of a query: two recordings, their difference, and the estimates of its flows. */
struct ow_flow_leg_input {
	struct ow_repair_side side[2]; /* from, to */
	const char *path[2];
	const struct ow_flow_counts *counts; /* from elsewhere; NULL = those of the recordings */
	int64_t since_ns, until_ns;
	int64_t offset_ns; /* is added to the times of `to` */
	bool no_repair;
	struct ow_flows_options estimate;
};

/* The flows of a leg and their estimates, in the order of `counts`. */
struct ow_flow_leg_flows {
	const struct ow_flow_counts *counts; /* p_f */
	const struct ow_flow_counts *sender; /* the counts of the first point; NULL = not known */
	struct ow_flow_load *load;
	struct ow_flow_estimate *estimate;
	struct ow_flow_spread *spread; /* that the estimates point to; NULL = none */
	size_t flows;
	double mean_ns; /* of heavy flows, which is exact; else of all packets with an estimate; NAN = not known */
	bool is_noise;  /* the form is colate-random: its estimates do not even tell the sign of the mean */
};

/* Sets everything in *leg but its points. The caller frees *ret_flows, also after an error. */
int ow_flow_leg_estimate(const struct ow_flow_leg_input *input, struct ow_flow_leg *leg,
                         struct ow_flow_leg_flows *ret_flows, struct ow_error *err);
void ow_flow_leg_done(struct ow_flow_leg_flows *flows);
