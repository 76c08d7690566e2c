/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/path.h"
#include "sim/queue.h"

/*
 * One direction of the lab's wire: decides the fate of a packet when it comes in. First comes a queue in front of a
 * link of limited bandwidth, then the path of `simulate`: loss, delay, duplication.
 */
struct ow_impair_options {
	struct ow_sim_options path; /* seed, delay, base_delay_ns, in_order, loss, duplicate */
	double bandwidth_bps;       /* 0 = no limit */
	double buffer_bytes;        /* of its queue; 0 = OW_IMPAIR_BUFFER_S at line rate */
	double reorder;             /* share of packets held back for up to hold_ns, so that later ones overtake */
	int64_t hold_ns;
};

#define OW_IMPAIR_BUFFER_S 0.05

struct ow_impair {
	struct ow_sim_path path;
	struct ow_queue link;
	bool limited;
	double reorder;
	int64_t hold_ns, start_ns;
	struct ow_random random;
};

/* start_ns: not after the first packet. The options must outlive the object. */
int ow_impair_init(struct ow_impair *impair, const struct ow_impair_options *options, enum ow_direction direction,
                   int64_t start_ns);
void ow_impair_done(struct ow_impair *impair);

enum ow_impair_fate { OW_IMPAIR_PASSES, OW_IMPAIR_LOST, OW_IMPAIR_QUEUE_FULL };
struct ow_impaired {
	enum ow_impair_fate fate;
	int64_t due_ns;  /* when it leaves the wire */
	int64_t copy_ns; /* a second copy, 0 = none */
};
/* A frame of len bytes comes in; times must not go backwards. flow: any hash of its flow. */
void ow_impair_pass(struct ow_impair *impair, int64_t time_ns, uint32_t len, uint32_t flow,
                    struct ow_impaired *ret_impaired);
