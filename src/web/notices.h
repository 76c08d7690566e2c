/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/stored_sum.h"

/* What rows say besides numbers: times that were not or not fully measured, with the cause; events of the clocks. */
struct ow_notice {
	size_t lane;
	enum ow_result_status status;
	bool of_clock;
	char text[OW_RESULT_CAUSE];
	int64_t start_ns, end_ns;
	uint64_t intervals;
};

/* In the order of time within a lane. Rows of a lane that follow each other and say the same are one notice. */
struct ow_notices {
	size_t limit;
	bool clocks; /* also those of clocks */
	struct ow_notice *notice;
	size_t count, room;
	size_t *last; /* of each lane, its last notice of a status, plus 1; 0: none */
	size_t lanes;
	uint64_t omitted; /* the oldest ones, which are beyond the limit */
	bool no_memory;
};

/* For struct ow_stored_sum_options; arg is a struct ow_notices. */
void ow_notices_add(void *arg, const struct ow_stored_notice *notice);
/* Omits the oldest ones, if there are more than the limit. Call it after the last row. */
void ow_notices_end(struct ow_notices *notices);
void ow_notices_done(struct ow_notices *notices);
