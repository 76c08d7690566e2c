/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/comparison.h"

/*
 * A method of comparing an interval. The functions return 0; -EPROTO if a message is not allowed, and nothing has
 * changed; -ENOMEM, or another negative errno, and the interval is unknown.
 */
struct ow_method_ops {
	size_t size; /* size of a type that begins with struct ow_comparison */
	/*
	 * It omits all packets that may be confused with identical ones, so that the delays of the others are certain.
	 */
	bool leaves_out_doubtful;

	/*
	 * The receiver. The synopsis that it pushes if there are packets, and about this many differ; NULL: only counts.
	 * *banks: 0, or those of the synopsis that was pushed before.
	 */
	int (*push)(const struct ow_exchange *x, const struct ow_interval_packets *packets, double differences,
	            unsigned *banks, struct ow_synopsis **ret_synopsis);
	/* An empty synopsis as requested; -EOPNOTSUPP if this method has no such part, -EINVAL. */
	int (*answer)(const struct ow_exchange *x, unsigned banks, const struct ow_message_ask *ask,
	              struct ow_synopsis **ret_synopsis);

	/* The sender. Takes the pushed synopsis. */
	int (*take_push)(struct ow_comparison *c, const struct ow_message_synopsis *message, struct ow_error *err);
	/* The packets and the pushed counts have arrived. */
	int (*start)(struct ow_comparison *c);
	/* Called in OW_STAGE_TURN, when all intervals before know which packets they lack. */
	int (*turn)(struct ow_comparison *c);
	int (*take_synopsis)(struct ow_comparison *c, const struct ow_message_synopsis *message, struct ow_error *err);
	int (*take_times)(struct ow_comparison *c, const struct ow_message_times *times, struct ow_error *err);
	/*
	 * The name of a packet of the interval in results and for the other point: the first of its copies, by key or
	 * by id.
	 */
	uint64_t (*name)(const struct ow_comparison *c, uint64_t id);
	void (*done)(struct ow_comparison *c);
};
extern const struct ow_method_ops ow_fold_method, ow_rda_method;
