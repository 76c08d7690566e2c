/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flows.h"
#include <math.h>

/*
 * Declarations that the files flows/flows*.c have in common.
 *
 * The banks of a recording are a linear system. Row c is a counter, column f a flow:
 *     D_c = sum_f n_cf theta_f + noise_c
 * theta_f is the mean delay of the flow's packets, n_cf how many of them went into c. The noise is that of layers which
 * saw only some of a flow's packets. Rows that are not clean have no entries.
 */
struct ow_flow_entry {
	uint32_t row;
	/* The entry's noise has the variance (partial * within + unknown) m_f^2. */
	/* layers with a share of the packets: the mean of this share differs from that of the whole flow */
	float partial;
	float unknown; /* the packets of the share may not have been counted: variance of n_cf */
	double load;   /* n_cf; 0 = no entry */
};

struct ow_flow_system {
	const struct ow_flows *data;
	size_t flows;
	double *packets;             /* p_f */
	uint32_t slots;              /* entries of each flow */
	struct ow_flow_entry *entry; /* flows * slots */
	size_t rows;
	double *sum;    /* D_c, ns */
	double *noise;  /* ns^2: of times that were rounded to units, and of packets that were taken out */
	double *taken;  /* ns^2: of the noise, that of packets that were taken out */
	double *shared; /* ns^2: in addition, if the rows of several banks are used together, without `lost` */
	/*
	 * Packets that were taken out: their times are unknowns of the system of all banks. NULL: there are none, or too
	 * many, or several layers of banks.
	 */
	const struct ow_lost_packets *lost;
	uint32_t *lost_flow; /* of each: the flow; OW_FLOW_NONE = none of the flows */
	uint32_t *link;      /* of each flow: its number among those with lost packets; OW_FLOW_NONE = it has none */
	size_t links;
	uint32_t *used; /* entries of each row; 0 = not clean or empty */
};

#define OW_FLOW_NONE  UINT32_MAX
#define OW_FLOW_PARTS 4

/* The prior: the assumed distribution of a flow's mean before its own counters are used. */
struct ow_flow_prior {
	double mean_ns;  /* of all flows */
	double *mean;    /* of each flow, ns */
	double *var;     /* V_f, ns^2 */
	double within;   /* variance of a packet's delay within its flow, over m_f^2 */
	size_t steps;    /* number of steps of the curve over time that gives the means */
	double optimism; /* V_f was increased by this, for flows that the means were not fitted to */
	double freedom; /* degrees of freedom: counters that the prior was fitted to, minus its parameters; <= 0 = not usable */
	double counters;            /* number of counters that the prior was fitted to */
	double line[OW_FLOW_PARTS]; /* of V_f, see flows_prior.c: the start of another fit */
};

static inline double ow_flow_dot(const double *a, const double *b, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

bool ow_flow_is_bank(const struct ow_colate_layer *layer);
/* -ENOMEM; -EINVAL without a bank. */
int ow_flow_system_init(const struct ow_flows *data, struct ow_flow_system *ret_system, struct ow_error *err);
void ow_flow_system_done(struct ow_flow_system *system);

/* Fits tau, cv and mu of formulas 3.8, by flow size, to the counters. */
int ow_flow_prior_init(const struct ow_flow_system *system, struct ow_flow_prior *ret_prior);
void ow_flow_prior_done(struct ow_flow_prior *prior);
struct ow_flow_mean;
int ow_flow_prior_copy(const struct ow_flow_prior *prior, size_t flows, struct ow_flow_prior *ret_prior);
/*
 * Fits the prior again, to the means that it led to. Returns 1, or 0 if that is not needed or too little was measured.
 */
int ow_flow_prior_again(const struct ow_flow_system *system, const struct ow_flow_mean *mean,
                        struct ow_flow_prior *prior);
/*
 * The deviations of flows are not normal. `normal` becomes the normal prior that leads to the same means and variances
 * as the true distribution (fitted to mean); on entry it must be the prior that led to mean. ret_known: for each flow,
 * whether enough similar flows were measured to know the distribution. Returns 1, or 0 if it is known for no flow.
 */
int ow_flow_shape(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                  const struct ow_flow_mean *mean, struct ow_flow_prior *normal, bool *ret_known);

/* The fit of a prior. factor: for each class of size, applied to the line of OW_FLOW_PARTS parts. */
#define OW_FLOW_SHARES  16
#define OW_FLOW_SIZES   16
#define OW_FLOW_LEVELS  12
#define OW_FLOW_CLASSES (OW_FLOW_SIZES * OW_FLOW_LEVELS)
struct ow_flow_fit {
	const struct ow_flow_system *system;
	struct ow_flow_prior *prior;
	double *residual, *variance; /* of each row: r_c, s_c */
	uint8_t *class_of;           /* of each flow */
	/*
	 * The fit has its own order of flows: those of a share of the rows come first, because coarse curves need no
	 * more; flows without a clean counter come last. flows[i]: the end of the flows of shares 0 .. i.
	 */
	uint32_t *order;
	size_t flows[OW_FLOW_SHARES];
	size_t steps; /* of the curve */
	double a[OW_FLOW_PARTS], factor[OW_FLOW_CLASSES];
};
/* One step on the parts of the line. */
void ow_flow_fit_line(struct ow_flow_fit *fit);
/* One step on the factors of the classes. */
void ow_flow_fit_classes(struct ow_flow_fit *fit);
/*
 * Computes the flows' prior means from the delay over time. One row in OW_FLOW_JUDGES is not fitted; these rows decide
 * how fine the curve becomes.
 */
#define OW_FLOW_JUDGES 8
static inline bool ow_flow_judges(size_t row)
{
	return ow_mix64(row + 1) % OW_FLOW_JUDGES == 0;
}
int ow_flow_profile(struct ow_flow_fit *fit);

/* r_c = D_c - sum n m_f of each row, and its variance s_c = sum n^2 V_f + noise. */
void ow_flow_residuals(const struct ow_flow_system *system, const struct ow_flow_prior *prior, double *ret_residual,
                       double *ret_variance);

/* var: posterior variance, ns^2; 0 = exact. */
struct ow_flow_mean {
	double mean, var;
};
/* What the counters alone say about a flow: the mean without the prior that led to it. var INFINITY = nothing. */
static inline struct ow_flow_mean ow_flow_told(const struct ow_flow_prior *prior, const struct ow_flow_mean *mean,
                                               size_t flow)
{
	double m = prior->mean[flow], learnt = 1 - mean[flow].var / prior->var[flow];
	if (!(learnt > 1e-9))
		return (struct ow_flow_mean){m, INFINITY};
	return (struct ow_flow_mean){m + (mean[flow].mean - m) / learnt, mean[flow].var / learnt};
}

int ow_flows_blup(const struct ow_flow_system *system, const struct ow_flow_prior *prior, struct ow_flow_mean *ret);
/* rough: only accurate enough to fit another prior to it. */
int ow_flows_banks(const struct ow_flow_system *system, const struct ow_flow_prior *prior, bool rough,
                   struct ow_flow_mean *ret);

/* Sets mean, and true, for flows that the counters determine exactly. The others are unchanged. */
int ow_flows_peel(const struct ow_flow_system *system, struct ow_flow_mean *ret, bool *ret_exact);
/* Sets stddev_ns if the recording has layers of COLATE's form in addition to the banks. */
int ow_flows_stddev(const struct ow_flows *flows, const struct ow_flow_mean *mean, struct ow_flow_estimate *ret);
int ow_flows_colate(const struct ow_flows *flows, const struct ow_flows_options *options, struct ow_flow_estimate *ret,
                    struct ow_error *err);

static inline const struct ow_flow_entry *ow_flow_entries(const struct ow_flow_system *system, size_t flow)
{
	return &system->entry[flow * system->slots];
}
