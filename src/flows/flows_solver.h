/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flows_private.h"

/*
 * The system of all banks in units of the unknowns. Rows are counters and columns are flows.
 *
 * If lost packets were taken out, the errors e of their times are columns, too, and the cells that told their times are
 * rows. All counters of a flow have the same errors, so what they tell is phi_f = theta_f - sum_l sign_l e_l / p_f. This
 * is a column in the place of theta_f, and a row without noise says it. (With the errors in each counter instead, the
 * messages would take the flow's banks for independent.)
 *
 * With x_f = (theta_f - m_f) / sqrt(V_f), of variance 1, and rows divided by sqrt(s_c):
 *     r = B x + noise,   b_cf = n_cf sqrt(V_f) / sqrt(s_c),   sum_f b_cf^2 + noise_c = 1.
 * The best linear prediction is x = B' y with (B B' + N) y = r.
 */
struct ow_flow_solver {
	size_t rows, columns;
	size_t *start;   /* columns + 1: the first entry of each column. Flows, times of lost packets, phi */
	uint32_t *row;   /* of each entry */
	double *b;       /* of each entry */
	double *noise;   /* N, of each row */
	double *r, *y;   /* of each row */
	double *x;       /* of each column: the prediction */
	double *var;     /* of each column: variance of x - prediction, 1 = nothing is known */
	uint32_t *order; /* columns, the largest first */
	bool rough;      /* the result is only used to fit another prior */
};

/*
 * Messages between flows and counters (Gaussian belief propagation), flow after flow, the largest first: sets x, y and
 * var. Exact on a graph without cycles; x is exact if the iteration converges (Weiss and Freeman 2001), and a start for
 * other methods if not. Returns whether it converged, or -ENOMEM.
 */
int ow_flow_messages(struct ow_flow_solver *solver);

/*
 * Both set x and var. The first is exact and takes rows^2 (rows + columns) operations; the second is for systems of any
 * size. Return -ENOMEM, or whether var can be relied on: not if the messages do not converge.
 */
int ow_flow_solve_dense(struct ow_flow_solver *solver);
int ow_flow_solve_sparse(struct ow_flow_solver *solver);

int ow_flow_solver_init(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                        struct ow_flow_solver *ret_solver);
void ow_flow_solver_done(struct ow_flow_solver *solver);
