/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flows_private.h"

/*
 * The system of all banks in units of the unknowns. With x_f = (theta_f - m_f) / sqrt(V_f), of variance 1, and rows
 * divided by sqrt(s_c):
 *     r = B x + noise,   b_cf = n_cf sqrt(V_f) / sqrt(s_c),   sum_f b_cf^2 + noise_c = 1.
 * The best linear prediction is x = B' y with (B B' + N) y = r.
 */
struct ow_flow_solver {
	const struct ow_flow_system *system;
	size_t entries;
	double *b;       /* of each entry */
	double *noise;   /* N, of each row */
	double *r, *y;   /* of each row */
	double *x;       /* of each flow: the prediction */
	double *var;     /* of each flow: variance of x - prediction, 1 = nothing is known */
	uint32_t *order; /* flows, the largest first */
	bool rough;      /* the result is only used to fit another prior */
};

/*
 * Messages between flows and counters (Gaussian belief propagation), flow after flow, the largest first: sets x, y and
 * var. Exact on a graph without cycles; x is exact if the iteration converges (Weiss and Freeman 2001), and a start for
 * other methods if not. Returns 0 or -ENOMEM.
 */
int ow_flow_messages(struct ow_flow_solver *solver);

/*
 * Both set x and var. The first is exact and takes rows^2 (rows + flows) operations; the second is for systems of any
 * size. Return 0 or -ENOMEM.
 */
int ow_flow_solve_dense(struct ow_flow_solver *solver);
int ow_flow_solve_sparse(struct ow_flow_solver *solver);

int ow_flow_solver_init(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                        struct ow_flow_solver *ret_solver);
void ow_flow_solver_done(struct ow_flow_solver *solver);
