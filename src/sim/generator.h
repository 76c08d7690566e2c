/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/* UDP traffic of the lab: a source that sends at a given rate, and a sink that receives and counts. */
struct ow_generator_options {
	const char *to;          /* IPv4 address of the sink */
	uint16_t port;           /* of the sink */
	uint32_t flows;          /* source ports, used in turn; at most OW_GENERATOR_FLOWS */
	double rate_pps;         /* of all flows */
	bool constant_rate;      /* else Poisson */
	struct ow_sim_size size; /* of the IP packets */
	uint64_t seed;
	int64_t length_ns; /* 0 = until the signal */
};
#define OW_GENERATOR_FLOWS 1024
/* An IPv4 and a UDP header, and 8 bytes that number the packet. Smaller sizes are raised to it. */
#define OW_GENERATOR_SIZE_MIN 36

struct ow_generator_counts {
	uint64_t packets, bytes; /* of IP packets */
	uint64_t refused;        /* source: not sent because the kernel refused them */
};

/*
 * Both run until the time is over or SIGTERM arrives. They block SIGTERM and wait for it, so each needs a process of
 * its own. The sink writes a byte to ready_fd when it is ready (-1 = not wanted).
 */
int ow_generator_source(const struct ow_generator_options *options, struct ow_generator_counts *ret_counts,
                        struct ow_error *err);
int ow_generator_sink(uint16_t port, int ready_fd, struct ow_generator_counts *ret_counts, struct ow_error *err);
