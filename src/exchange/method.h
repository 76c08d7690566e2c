/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_EXCHANGE_METHOD_H
#define OW_EXCHANGE_METHOD_H

#include "exchange/comparison.h"

/*
 * How an interval is compared. The functions return 0; -EPROTO when a message does not fit, and nothing has changed;
 * -ENOMEM, or another negative errno, and the interval is unknown.
 */
struct ow_method_ops {
	size_t size; /* of a type that begins with struct ow_comparison */
	/* It leaves out all packets that may be mistaken for identical ones, so that the delays of the others are sure.
	 */
	bool leaves_out_doubtful;

	/* The receiver. The synopsis that it pushes when about so many packets differ; NULL: it pushes only counts.
	 * *banks: 0, or those of the synopsis that was pushed before. */
	int (*push)(const struct ow_exchange *x, const struct ow_interval_packets *page, double differences,
	            unsigned *banks, struct ow_synopsis **ret_synopsis);
	/* An empty synopsis as it is asked for; -EOPNOTSUPP when this method has no such part, -EINVAL. */
	int (*answer)(const struct ow_exchange *x, unsigned banks, const struct ow_message_ask *ask,
	              struct ow_synopsis **ret_synopsis);

	/* The sender. Takes what was pushed. */
	int (*take_push)(struct ow_comparison *c, const struct ow_message_synopsis *message, struct ow_error *err);
	/* Page and pushed counts are here. */
	int (*start)(struct ow_comparison *c);
	/* In OW_STAGE_TURN, when all intervals before know which packets they lack. */
	int (*turn)(struct ow_comparison *c);
	int (*take_synopsis)(struct ow_comparison *c, const struct ow_message_synopsis *message, struct ow_error *err);
	int (*take_times)(struct ow_comparison *c, const struct ow_message_times *times, struct ow_error *err);
	/* What results and the other point know a packet of the page by: the first of its copies, by key or by id. */
	uint64_t (*name)(const struct ow_comparison *c, uint64_t id);
	void (*done)(struct ow_comparison *c);
};
extern const struct ow_method_ops ow_fold_method, ow_rda_method;

#endif
