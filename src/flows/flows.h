/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "flows/flow_spread.h"
#include "flows/lost_packets.h"

/*
 * Per-flow delay from the counters of two points (COLATE section 4; formulas 3.8). All estimates use the differences of
 * counters, B - A; flows and their packet counts come from another source (our flow counts, NetFlow, CSV).
 */

/* The same layer at both points. */
struct ow_flows_layer {
	struct ow_colate_layer layer;
	double *delay_ns; /* layer.counters: sum of delays (signed layers: of sign * delay) in this counter */
	double *noise;    /* variance of delay_ns by the times of packets that were taken out, ns^2 */
	/* as far as the check can detect, both points put the same packets there; otherwise delay_ns is not usable */
	bool *clean;
	uint32_t *counts;    /* of B, modulo 2^count_bits; NULL if there are none */
	uint64_t packets[2]; /* at A, at B */
	/* B - A, modulo: of the sums, the checks and the counts (NULL if there are none) */
	uint64_t *sum_off;
	uint32_t *check_off, *count_off;
};

/* A flow that the points saw. */
struct ow_flow_load {
	uint64_t flow;                         /* hash, as recorded */
	double packets;                        /* p_f, number of received packets */
	double in_layer[OW_COLATE_LAYERS_MAX]; /* of these, packets in the layer's share; < 0 = not known (then the
	                                          share of packets is taken, with its binomial error) */
	int64_t first_ns, last_ns; /* of its packets, at either point; first > last = not known. Flows that were in a
	                              queue at the same time are assumed to have similar delays. */
	/* Its own counter, of as many packets; 0 = none, or not clean. */
	double own_packets, own_delay_ns;
	double own_noise; /* variance of own_delay_ns by the times of packets that were taken out, ns^2 */
	bool whole;       /* both points counted the same number: no packet of it was lost or came from another path */
	bool balanced;    /* so they did, but for packets that were taken out */
};

struct ow_flows {
	struct ow_colate_params params;
	struct ow_flows_layer layer[OW_COLATE_LAYERS_MAX];
	struct ow_flow_load *flow;
	size_t flows;
	const struct ow_lost_packets *lost; /* that were taken out; NULL = none */
	int64_t offset_ns;                  /* is added to all delays */
};

/*
 * The difference of two recordings of the same packets; the caller sets flow and flows (initially NULL, 0). -EINVAL if
 * they cannot be compared.
 */
int ow_flows_difference(const struct ow_colate *a, const struct ow_colate *b, struct ow_flows *ret_flows,
                        struct ow_error *err);
/*
 * Takes packets that only one point has out of the counters they are in, and out of the loads. A counter whose checks
 * then agree is clean. Layers of deviations beside banks stay as they are: the error of a time would look like
 * deviation.
 */
void ow_flows_take_out(struct ow_flows *flows, const struct ow_lost_packets *packets);
/* Both points do not have the same packets of this flow in the share of a layer of banks: its counters there are not clean. */
void ow_flows_distrust(struct ow_flows *flows, uint64_t flow, uint32_t layer);
/*
 * Adds offset_ns to the delays, own_delay_ns has it already, and finds out what counters mean that hold less than their sums of
 * delays. To be called once, when flow and flows are set and no packet is to be taken out any more. -ENOMEM.
 */
int ow_flows_correct(struct ow_flows *flows, int64_t offset_ns);
/* Frees the layers' arrays, not `flow`. */
void ow_flows_done(struct ow_flows *flows);

enum ow_flow_estimator {
	OW_FLOWS_AUTO,   /* the best estimator for the recording */
	OW_FLOWS_COLATE, /* theorems 2 to 4 */
	OW_FLOWS_BLUP,   /* one bank at a time */
	OW_FLOWS_BANKS,  /* all banks together, conjugate gradients */
};
/* "colate", "blup", "banks+cg" */
const char *ow_flow_estimator_name(enum ow_flow_estimator estimator);

struct ow_flow_estimate {
	double packets;
	struct ow_value mean_ns, stddev_ns; /* NONE with a reason if the noise is too large */
	enum ow_flow_estimator estimator;
	const struct ow_flow_spread *spread; /* of a heavy flow; NULL = none, because of: */
	enum ow_reason no_spread;
};

struct ow_flows_options {
	enum ow_flow_estimator estimator;
	uint32_t repetitions; /* virtual repetitions of Theorem 4; 0 = the closed form that they converge to */
	uint64_t seed;        /* of the repetitions */
	/* done: 0 to 1. With millions of flows an estimate takes a minute. NULL = nobody wants to know. */
	void (*on_progress)(void *arg, double done);
	void *arg;
};

/*
 * All assumptions about flows (their mean over time, their deviations) are fitted to the counters. A mean is EXACT if
 * the counters determine it. It is NONE if no counter of the flow is clean, if too few are clean to find out how flows
 * differ, or if they give no information and the interval would be wider than the value. Intervals hold in at least 95
 * % of cases (tests/flows/test_flows_coverage.c). Standard deviations need, in addition to the banks, a layer of
 * form OW_COLATE_HASHED, best with count_bits: 8 are enough for counters whose packets are known to within 128.
 */
/*
 * Computes an estimate for each flow of flows->flow, in its order. -ENOMEM; -EINVAL if the estimator does not support
 * the form of the recording.
 */
int ow_flows_estimate(const struct ow_flows *flows, const struct ow_flows_options *options,
                      struct ow_flow_estimate *ret_estimates, struct ow_error *err);
