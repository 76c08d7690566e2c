/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A flow of which nothing arrives is lost, or it takes another way. Points (scope_verdict.h) and `match`
 * (directions.h) decide it by the same rule:
 *
 *     nothing of its pair of networks g and of its destination network d arrives: it takes another way. Otherwise
 *
 *     al = max(1e-5, absent / (flows + 20))                  of all flows of this direction
 *     ad = max(1e-5, (d.absent + 4 al) / (d.flows + 4))
 *     a  = max(1e-5, (g.absent + 4 ad) / (g.flows + 4))      the share of flows of g that take another way
 *     like = (1 - a) * how likely it is that all its packets are lost
 *     like >= a -> lost, else absent
 *
 * Once a flow, a / (a + like) counts as absent for g, d and all; flows of which something arrived count as flows only.
 */

/* Flows of a network, and how many of them are absent. */
struct ow_flow_share {
	float absent, flows;
};

/* The share of packets that is lost, from those of flows that arrive. Flows of a single packet are to be left out: one
 * that is lost is not known to be one that arrives. */
double ow_usual_loss(double lost, double sent);
double ow_absent_usual(double absent, double flows);
/* Of a network (NULL: nothing is known of it); `wider`: the share of the set of flows that it is a part of. */
double ow_absent_share(const struct ow_flow_share *network, double wider);
/* How likely it is that a flow is absent: it is lost if that is at most OW_ABSENT_RATHER. */
double ow_absent_chance(double share, double log_like);

#define OW_ABSENT_RATHER .5
