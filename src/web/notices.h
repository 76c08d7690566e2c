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

/* In the order of time. Rows of a lane that follow each other and say the same are one notice. */
struct ow_notices {
	size_t limit;
	bool clocks; /* also those of clocks */
	struct ow_notice *notice;
	size_t count, room;
	uint64_t omitted; /* rows beyond the limit */
	bool no_memory;
};

/* For struct ow_stored_sum_options; arg is a struct ow_notices. */
void ow_notices_add(void *arg, const struct ow_stored_notice *notice);
void ow_notices_done(struct ow_notices *notices);
