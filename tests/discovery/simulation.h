/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/join.h"
#include "plane/topology.h"

/*
 * A network with traffic whose truth is known: shortest paths with load sharing by flow, gravity traffic, flows of very
 * different rates of which 30 % are replaced in every epoch, loss on links, clocks that are off and drift. Vantages are
 * the interfaces of some routers, or taps on links. Their samples are made by the sampler's own code, encoded, decoded
 * and joined.
 */
struct simulation_options {
	uint64_t seed;
	unsigned vantages, epochs, packets; /* packets in an epoch */
	unsigned k;
	double lossy; /* share of links that lose packets, up to loss_max */
	double loss_max;
	double clock_s;     /* offsets up to this */
	double taps;        /* share of points that are taps on a link */
	double nat;         /* share of routers that change the flow of what they forward */
	double missing;     /* share of messages that are lost */
	double drops;       /* share of packets that captures miss */
	double clock_steps; /* share of points whose clock is set in the middle */
	double bursts;      /* loss comes in bursts of so many packets; 0 = single */
	double reroute_s;   /* at this time some links fail; 0 = never */
	double copies;      /* share of packets that are sent twice */
};

struct simulation_score {
	uint64_t firm, firm_right, firm_reversed;
	uint64_t provisional, provisional_right;
	uint64_t edges[5], found[5]; /* true edges by share of the busier side: >= 30 %, 3 %, 1 %, .3 %, less */
	uint64_t ordered, order_wrong;
	uint64_t shares, shares_in, losses, losses_in, delays, delays_in;
	uint64_t clean, accused; /* pairs without loss, with 100 samples; those that are said to have some */
	uint64_t offsets, offsets_out;
	uint64_t unknown_order, changes;
	uint64_t hops, hops_wrong;
	double seconds, bytes; /* of the join, for each epoch; bytes of a message */
	struct ow_map_counts counts;
};

/* Adds to the score. */
void simulate(const struct ow_topology *topology, const struct simulation_options *options,
              struct simulation_score *score);
/* A random network of so many routers; to be freed by the caller. */
struct ow_topology *random_topology(unsigned routers, uint64_t seed);
