/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_FLOWS_PRIVATE_H
#define OW_FLOWS_FLOWS_PRIVATE_H

#include "flows/flows.h"
#include <math.h>

/*
 * What the files of estimate/flows*.c share.
 *
 * The banks of a recording are a linear system. Row c is a counter, column f a flow:
 *     D_c = sum_f n_cf theta_f + noise_c
 * theta_f is the mean delay of the flow's packets, n_cf how many of them went into c. The noise is that of layers which
 * saw only some of a flow's packets. Rows that are not clean have no entries.
 */
struct ow_flow_entry {
	uint32_t row;
	/* The entry's noise has the variance (partial * within + unknown) m_f^2. */
	float partial; /* layers with a share of the packets: theirs have another mean than all of the flow */
	float unknown; /* and nobody may have counted them: variance of n_cf */
	double load;   /* n_cf; 0 = no entry */
};

struct ow_flow_system {
	const struct ow_flows *data;
	size_t flows;
	double *packets;             /* p_f */
	uint32_t slots;              /* entries a flow */
	struct ow_flow_entry *entry; /* flows * slots */
	size_t rows;
	double *sum;    /* D_c, ns */
	double *noise;  /* ns^2: of times that were rounded to units */
	uint32_t *used; /* entries of each row; 0 = not clean or empty */
};

#define OW_FLOW_PARTS 4

/* The prior: what is known of a flow before its own counters are looked at. */
struct ow_flow_prior {
	double mean_ns;  /* of all flows */
	double *mean;    /* of each flow, ns */
	double *var;     /* V_f, ns^2 */
	double within;   /* variance of a packet's delay within its flow, over m_f^2 */
	size_t steps;    /* of the curve over time that the means are of */
	double optimism; /* V_f was made larger by this, for flows that the means were not fitted to */
	double freedom;  /* degrees: counters that the prior was fitted to, less its parameters; <= 0 = it is worthless
	                  */
	double counters; /* that the prior was fitted to */
	double line[OW_FLOW_PARTS]; /* of V_f, see flows_prior.c: where another fit begins */
};

bool ow_flow_is_bank(const struct ow_colate_layer *layer);
/* -ENOMEM; -EINVAL without a bank. */
int ow_flow_system_init(const struct ow_flows *data, struct ow_flow_system *ret_system, struct ow_error *err);
void ow_flow_system_done(struct ow_flow_system *system);

/* tau, cv and mu of formulas 3.8, by size of flow, from the counters themselves. */
int ow_flow_prior_init(const struct ow_flow_system *system, struct ow_flow_prior *ret_prior);
void ow_flow_prior_done(struct ow_flow_prior *prior);
struct ow_flow_mean;
int ow_flow_prior_copy(const struct ow_flow_prior *prior, size_t flows, struct ow_flow_prior *ret_prior);
/* The prior once more, from the means that it led to. 1, or 0 if there is no need, or too little was
 * measured. */
int ow_flow_prior_again(const struct ow_flow_system *system, const struct ow_flow_mean *mean,
                        struct ow_flow_prior *prior);
/*
 * Flows do not deviate as a normal distribution does. `normal` becomes what, taken for a normal prior, leads to the
 * means and variances that the true distribution (fitted to mean) leads to; it has to be what led to mean. ret_known:
 * for each flow, whether enough flows like it were measured to tell the distribution. 1, or 0 if it is known for none.
 */
int ow_flow_shape(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                  const struct ow_flow_mean *mean, struct ow_flow_prior *normal, bool *ret_known);

/* The fit of a prior. factor: of each class of size, on the line of OW_FLOW_PARTS parts. */
#define OW_FLOW_SHARES  16
#define OW_FLOW_SIZES   16
#define OW_FLOW_LEVELS  12
#define OW_FLOW_CLASSES (OW_FLOW_SIZES * OW_FLOW_LEVELS)
struct ow_flow_fit {
	const struct ow_flow_system *system;
	struct ow_flow_prior *prior;
	double *residual, *variance; /* of each row: r_c, s_c */
	uint8_t *class_of;           /* of each flow */
	/* The fit has its own order of flows, in which those of a share of the rows come first: coarse curves need no
	 * more, and those that no counter tells of come last. flows[i]: up to which flow those of shares 0 .. i are. */
	uint32_t *order;
	size_t flows[OW_FLOW_SHARES];
	size_t steps; /* of the curve */
	double a[OW_FLOW_PARTS], factor[OW_FLOW_CLASSES];
};
/* A step on the line's parts. */
void ow_flow_fit_line(struct ow_flow_fit *fit);
/* The flows' prior means from the delay over time. How fine it becomes is decided by one row in OW_FLOW_JUDGES that is
 * not fitted. */
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
/* What the counters alone say of a flow: mean without the prior that led to it. var INFINITY = nothing. */
static inline struct ow_flow_mean ow_flow_told(const struct ow_flow_prior *prior, const struct ow_flow_mean *mean,
                                               size_t flow)
{
	double m = prior->mean[flow], learnt = 1 - mean[flow].var / prior->var[flow];
	if (!(learnt > 1e-9))
		return (struct ow_flow_mean){m, INFINITY};
	return (struct ow_flow_mean){m + (mean[flow].mean - m) / learnt, mean[flow].var / learnt};
}

int ow_flows_blup(const struct ow_flow_system *system, const struct ow_flow_prior *prior, struct ow_flow_mean *ret);
/* rough: only good enough to fit another prior to. */
int ow_flows_banks(const struct ow_flow_system *system, const struct ow_flow_prior *prior, bool rough,
                   struct ow_flow_mean *ret);

/* Flows that the counters determine exactly: their mean, and true. The others stay as they are. */
int ow_flows_peel(const struct ow_flow_system *system, struct ow_flow_mean *ret, bool *ret_exact);
/* Sets stddev_ns where the recording has layers of COLATE's form beside the banks. */
int ow_flows_stddev(const struct ow_flows *flows, const struct ow_flow_mean *mean, struct ow_flow_estimate *ret);
int ow_flows_colate(const struct ow_flows *flows, const struct ow_flows_options *options, struct ow_flow_estimate *ret,
                    struct ow_error *err);

static inline const struct ow_flow_entry *ow_flow_entries(const struct ow_flow_system *system, size_t flow)
{
	return &system->entry[flow * system->slots];
}

#endif
